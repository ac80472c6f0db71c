/* What is special about PDO: persistent connections, large objects, methods of drivers. */
#include "internal.h"
#include "handle.h"

static zend_object_get_method_t next_get_pdo_method;
static const zend_module_entry *pdo;
/* The methods that drivers of PDO add, by their handlers. */
static HashTable driver_methods;

#ifdef HAVE_PDO_HEADERS
static const char *text_of(const zval *value)
{
	return value != NULL && Z_TYPE_P(value) == IS_STRING ? Z_STRVAL_P(value) : "";
}

/* As PDO makes it, in the constructor: without what pdo.ini names an alias for. */
zend_string *weft_pdo_key(zend_execute_data *execute_data)
{
	zval *source = argument(execute_data, 1), *options = argument(execute_data, 4), *persistent;
	const char *user, *password;

	if (source == NULL || Z_TYPE_P(source) != IS_STRING || options == NULL || Z_TYPE_P(options) != IS_ARRAY
			|| (persistent = zend_hash_index_find_deref(Z_ARRVAL_P(options), PDO_ATTR_PERSISTENT)) == NULL) {
		return NULL;
	}
	user = text_of(argument(execute_data, 2));
	password = text_of(argument(execute_data, 3));
	if (Z_TYPE_P(persistent) == IS_STRING && Z_STRLEN_P(persistent) > 0 && !is_numeric_string(Z_STRVAL_P(persistent), Z_STRLEN_P(persistent), NULL, NULL, false)) {
		return zend_strpprintf(0, "PDO:DBH:DSN=%s:%s:%s:%s", Z_STRVAL_P(source), user, password, Z_STRVAL_P(persistent));
	}
	return zval_get_long(persistent) == 0 ? NULL : zend_strpprintf(0, "PDO:DBH:DSN=%s:%s:%s", Z_STRVAL_P(source), user, password);
}

static zend_object *connection_of(const pdo_stmt_t *statement)
{
# if PHP_VERSION_ID >= 80500
	return statement->database_object_handle;
# else
	return Z_TYPE(statement->database_object_handle) == IS_OBJECT ? Z_OBJ(statement->database_object_handle) : NULL;
# endif
}

void weft_describe_pdo(zval *value, zval *target, const struct weft_call *call)
{
	const struct wrapped *function = call->function;
	zval *first;

	if (function->kind == HANDLE_PDO_STATEMENT) {
		pdo_stmt_t *statement = follow(Z_OBJ_P(value), 0);
		zend_object *connection = connection_of(statement);
		if (connection != NULL) {
			zval_ptr_dtor(value);
			ZVAL_OBJ_COPY(value, connection);
		}
	}
	if (may_open_persistent(function) && (first = argument(call->execute_data, 1)) != NULL && Z_TYPE_P(first) == IS_STRING) {
		ZVAL_COPY(target, first);
	} else if (Z_TYPE_P(value) == IS_OBJECT) {
		pdo_dbh_t *connection = php_pdo_dbh_fetch_inner(Z_OBJ_P(value));
		if (connection->driver != NULL && connection->data_source != NULL) {
			ZVAL_STR(target, zend_strpprintf(0, "%s:%.*s", connection->driver->driver_name, (int) connection->data_source_len, connection->data_source));
		}
	}
}

void weft_claim_connection_of_large_object(struct claim *claim, zend_execute_data *execute_data, uint32_t number)
{
	const php_stream *stream = claim->handle;
	/* The beginning of `struct pdo_pgsql_lob_self`. */
	const zval *connection;

	if (stream == NULL || Z_RES_P(argument(execute_data, number))->type != php_file_le_stream() || stream->ops == NULL
			|| strcmp(stream->ops->label, "pdo_pgsql lob stream") != 0) {
		return;
	}
	connection = stream->abstract;
	if (connection != NULL && Z_TYPE_P(connection) == IS_OBJECT) {
		claim->handle = follow(Z_OBJ_P(connection), 1);
		claim->side = ALL;
	}
}

void weft_statement_moved(pdo_stmt_t *statement)
{
	HashTable *bound[] = {statement->bound_params, statement->bound_columns};
	struct pdo_bound_param_data *parameter;
	int i;

	for (i = 0; i < 2; i++) {
		if (bound[i] != NULL) {
			ZEND_HASH_FOREACH_PTR(bound[i], parameter) {
				parameter->stmt = statement;
			} ZEND_HASH_FOREACH_END();
		}
	}
}
#endif

/*
 * Methods of PDO that a driver adds, such as PDO::pgsqlCopyToArray(). PDO makes them anew for each connection, so they are wrapped when they are
 * looked up.
 */
static zend_function *get_pdo_method(zend_object **object, zend_string *name, const zval *key)
{
	static const struct rule rule = {"pdo", "*", HANDLE_PDO, ALL};
	zend_function *function = next_get_pdo_method(object, name, key);
	struct wrapped *wrapped;

	if (function == NULL || function->type != ZEND_INTERNAL_FUNCTION || !(function->common.fn_flags & ZEND_ACC_NEVER_CACHE)
			|| function->internal_function.module != NULL || function->internal_function.reserved[weft_slot] != NULL) {
		return function;
	}
	wrapped = zend_hash_index_find_ptr(&driver_methods, (zend_ulong) function->internal_function.handler);
	if (wrapped == NULL) {
		wrapped = weft_wrapped_function(&function->internal_function, &rule, pdo);
		zend_hash_index_add_new_ptr(&driver_methods, (zend_ulong) function->internal_function.handler, wrapped);
	}
	function->internal_function.reserved[weft_slot] = wrapped;
	function->internal_function.handler = weft_call_function;
	return function;
}

static void guard_driver_methods(zend_object *object, const zend_module_entry *module)
{
	zend_object_handlers *handlers = (zend_object_handlers *) object->handlers;

	if (handlers->get_method != get_pdo_method) {
		pdo = module;
		next_get_pdo_method = handlers->get_method;
		handlers->get_method = get_pdo_method;
	}
}

ZEND_NAMED_FUNCTION(weft_call_pdo_construct)
{
	guard_driver_methods(Z_OBJ(EX(This)), EX(func)->internal_function.module);
	weft_call_function(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* PDO::connect(), which calls no constructor. */
ZEND_NAMED_FUNCTION(weft_call_pdo_connect)
{
	weft_call_function(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		guard_driver_methods(Z_OBJ_P(return_value), EX(func)->internal_function.module);
	}
}

void weft_pdo_startup(void)
{
	zend_hash_init(&driver_methods, 8, NULL, NULL, true);
}
