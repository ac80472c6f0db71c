/*
 * Finds the handle of a call. Inline, because each wrapped call does it.
 */
#ifndef WEFT_CALLS_HANDLE_H
#define WEFT_CALLS_HANDLE_H

#include "internal.h"

/* The objects of one library wrap structs that begin with a pointer to the next one. */
static zend_always_inline void *follow(zend_object *object, int pointers)
{
	void *at = (char *) object - object->handlers->offset;

	while (pointers-- > 0) {
		at = *(void **) at;
		if (at == NULL) {
			return object;
		}
	}
	return at;
}

static zend_always_inline zval *argument(zend_execute_data *execute_data, uint32_t number)
{
	zval *value;

	if (ZEND_CALL_NUM_ARGS(execute_data) < number) {
		return NULL;
	}
	value = ZEND_CALL_ARG(execute_data, number);
	ZVAL_DEREF(value);
	return value;
}

static zend_always_inline zend_object *object_of(zend_execute_data *execute_data)
{
	zval *first;

	if (Z_TYPE(EX(This)) == IS_OBJECT) {
		return Z_OBJ(EX(This));
	}
	first = argument(execute_data, 1);
	return first != NULL && Z_TYPE_P(first) == IS_OBJECT ? Z_OBJ_P(first) : NULL;
}

/*
 * The same for a handle that is inside of the object. A function is wrapped before PHP has checked the types of its arguments: an object of
 * another class has no such struct, and the call has no handle, because PHP is going to refuse it.
 */
static zend_always_inline zend_object *object_with_handle(const struct wrapped *function, zend_execute_data *execute_data)
{
	zend_object *object = object_of(execute_data);

	if (object == NULL || Z_TYPE(EX(This)) == IS_OBJECT) {
		return object;
	}
	if (function->class != NULL) {
		return instanceof_function(object->ce, function->class) ? object : NULL;
	}
	return object->ce->type == ZEND_INTERNAL_CLASS && object->ce->info.internal.module == function->module ? object : NULL;
}

static zend_always_inline void *resource_of(zend_execute_data *execute_data, uint32_t number)
{
	zval *value = argument(execute_data, number);

	return value != NULL && Z_TYPE_P(value) == IS_RESOURCE ? Z_RES_P(value)->ptr : NULL;
}

/* An address that stands for the session of PHP that the code which runs has. */
static zend_always_inline void *session_here(void)
{
	struct weft_realm *realm = weft_fiber_here()->realm;

	return realm != NULL ? (void *) realm : (void *) &weft_calls;
}

/* The filter of a resource; NULL for other resources. */
static zend_always_inline const php_stream_filter *filter_of(zend_execute_data *execute_data)
{
	const zval *value = argument(execute_data, 1);
	const char *type = value != NULL && Z_TYPE_P(value) == IS_RESOURCE ? zend_rsrc_list_get_rsrc_type(Z_RES_P(value)) : NULL;

	return type != NULL && strcmp(type, "stream filter") == 0 ? Z_RES_P(value)->ptr : NULL;
}

/* The resource of a Directory, its second property; NULL where the call is given none. */
static zend_always_inline zval *directory_of(zend_execute_data *execute_data)
{
	if (Z_TYPE(EX(This)) == IS_OBJECT) {
		return Z_OBJ(EX(This))->ce->default_properties_count > 1 ? OBJ_PROP_NUM(Z_OBJ(EX(This)), 1) : NULL;
	}
	return argument(execute_data, 1);
}

static zend_always_inline void *stream_of_directory(zend_execute_data *execute_data)
{
	const zval *value = directory_of(execute_data);

	return value != NULL && Z_TYPE_P(value) == IS_RESOURCE ? Z_RES_P(value)->ptr : Z_TYPE(EX(This)) == IS_OBJECT ? NULL : weft_calls.last_directory;
}

/* The handle that an object of the right class leads to. */
static zend_always_inline void *handle_in(struct wrapped *function, zend_object *object)
{
	switch (function->kind) {
		case HANDLE_INNER:
		case HANDLE_PGSQL:
		case HANDLE_PDO:
		case HANDLE_PDO_NEW:
			return follow(object, 1);
		case HANDLE_REDIS:
		case HANDLE_REDIS_KEPT:
			return follow(object, 2); /* RedisSock, php_stream */
		case HANDLE_SQLITE:
			return follow(object, 0);
		case HANDLE_SQLITE_STMT:
			return ((void **) follow(object, 0))[1];
		case HANDLE_MYSQLI:
		case HANDLE_MYSQLI_GIVEN:
			return follow(object, 4); /* MYSQLI_RESOURCE, MY_MYSQL, MYSQLND, MYSQLND_CONN_DATA */
		case HANDLE_MYSQLI_STMT:
			return follow(object, 5); /* MYSQLI_RESOURCE, MY_STMT, MYSQLND_STMT, MYSQLND_STMT_DATA, MYSQLND_CONN_DATA */
		case HANDLE_MYSQLI_RESULT:
			return follow(object, 3); /* MYSQLI_RESOURCE, MYSQLND_RES, MYSQLND_CONN_DATA */
		case HANDLE_TREE: {
			/* The second member of `dom_object` and `php_sxe_object`, as of `php_libxml_node_object`. */
			void *document = ((void **) follow(object, 0))[1];
			return document != NULL ? document : object;
		}
		case HANDLE_TREE_BEHIND: {
			/* A `dom_object` is the last member, and itself ends with its document, the table of its properties and the object. */
			void *document = ((void **) object)[-2];
			return document != NULL ? document : object;
		}
		case HANDLE_AMQP:
			return weft_amqp_connection(function, object);
#ifdef HAVE_PDO_HEADERS
		case HANDLE_PDO_STATEMENT: {
			pdo_stmt_t *statement = follow(object, 0);
			return statement->dbh != NULL ? (void *) statement->dbh : object;
		}
#endif
	}
	return object;
}

/* PHP is going to refuse an object of another class. */
static zend_always_inline void *handle_of_given(struct wrapped *function, zend_execute_data *execute_data)
{
	zval *given = argument(execute_data, 1);

	return given != NULL && Z_TYPE_P(given) == IS_OBJECT && function->class != NULL && instanceof_function(Z_OBJCE_P(given), function->class)
		? handle_in(function, Z_OBJ_P(given))
		: NULL;
}

static zend_always_inline void *handle_of(struct wrapped *function, zend_execute_data *execute_data)
{
	zend_object *object;

	switch (function->kind) {
		case HANDLE_NONE:
		case HANDLE_OUTPUTS:
		case HANDLE_PDO_CONNECT:
		case HANDLE_PGSQL_OPENED:
		case HANDLE_PGSQL_KEPT:
		case HANDLE_DIRECTORY_OPENED:
		case HANDLE_FILTER:
			return NULL;
		case HANDLE_SESSION:
			return session_here();
		case HANDLE_DIRECTORY:
			return stream_of_directory(execute_data);
		case HANDLE_RESOURCE:
		case HANDLE_CLOSED:
		case HANDLE_COPY:
		case HANDLE_PROCESS:
			return resource_of(execute_data, 1);
		case HANDLE_SECOND:
			return resource_of(execute_data, 2);
		case HANDLE_MYSQLI_GIVEN:
		case HANDLE_AMQP_GIVEN:
			return handle_of_given(function, execute_data);
		case HANDLE_PGSQL:
			if (object_of(execute_data) == NULL) {
				return weft_calls.last_pgsql_connection;
			}
	}
	object = function->kind == HANDLE_OBJECT || function->kind == HANDLE_OBJECT_AND_STREAM || function->kind == HANDLE_CURL_MULTI ? object_of(execute_data) : object_with_handle(function, execute_data);
	return object == NULL ? NULL : handle_in(function, object);
}

#endif
