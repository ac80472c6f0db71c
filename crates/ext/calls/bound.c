/*
 * Values bound to the parameters of a statement while another task runs. The library reads it in the middle of the call by pointers of its own, and
 * bindParam() binds a variable, to which the other task may assign something else. So a call that is suspended
 *
 * - claims the streams that are bound as large objects: nobody closes them, and one that is dropped is closed afterwards;
 * - holds the strings of variables, which SQLite and libpq read where they are.
 */
#include "internal.h"
#include "handle.h"

/* The beginning of what ext/sqlite3 keeps of a parameter: `struct php_sqlite3_bound_param`, in a header that PHP does not install. */
struct sqlite3_parameter {
	zend_long number;
	zend_string *name;
	zend_long type;
	zval value;
};

/*
 * Whether the library may be reading the parameters: those of bindParam(). With an array of values, PDO binds these instead, and the call must not look at
 * what is being replaced. Other methods change parameters.
 */
static bool executes(const struct weft_call *call)
{
	bool is_of_statement = call->function->kind == HANDLE_PDO_STATEMENT || call->function->kind == HANDLE_SQLITE_STMT;
	const zval *values;

	if (EXPECTED(!is_of_statement) || call->freed != NULL || call->operand != NULL) {
		return false;
	}
	values = argument(call->execute_data, 1);
	return (values == NULL || Z_TYPE_P(values) == IS_NULL) && zend_string_equals_literal_ci(call->execute_data->func->common.function_name, "execute");
}

static HashTable *parameters_of(const struct weft_call *call)
{
	zend_object *object = executes(call) ? object_of(call->execute_data) : NULL;

	if (object == NULL) {
		return NULL;
	}
	switch (call->function->kind) {
#ifdef HAVE_PDO_HEADERS
		case HANDLE_PDO_STATEMENT:
			return ((pdo_stmt_t *) follow(object, 0))->bound_params;
#endif
		case HANDLE_SQLITE_STMT:
			/* The last member of `php_sqlite3_stmt`. */
			return ((HashTable **) object)[-1];
		default:
			return NULL;
	}
}

static zval *value_of(const struct weft_call *call, void *parameter)
{
#ifdef HAVE_PDO_HEADERS
	if (call->function->kind == HANDLE_PDO_STATEMENT) {
		return &((struct pdo_bound_param_data *) parameter)->parameter;
	}
#endif
	return &((struct sqlite3_parameter *) parameter)->value;
}

static bool is_kept(const struct weft_call *call, const void *stream, const zend_string *string, uint32_t *next)
{
	uint32_t i;

	/* The parameters are always in the same order. */
	for (i = *next; i < call->bound_count; i++) {
		if (call->bound[i].claim.handle == stream && call->bound[i].string == string) {
			*next = i + 1;
			return true;
		}
	}
	for (i = 0; i < *next && i < call->bound_count; i++) {
		if (call->bound[i].claim.handle == stream && call->bound[i].string == string) {
			return true;
		}
	}
	return false;
}

static void keep(struct weft_call *call, void *stream, zend_string *string)
{
	if (call->bound_count == call->bound_room) {
		call->bound_room = call->bound_room * 2 + 4;
		call->bound = safe_erealloc(call->bound, call->bound_room, sizeof(*call->bound), 0);
	}
	call->bound[call->bound_count++] = (struct bound) {
		.claim = {.handle = stream, .call = call, .side = ALL},
		.string = string != NULL ? zend_string_copy(string) : NULL,
	};
}

void weft_bound_keep(struct weft_call *call)
{
	HashTable *parameters = parameters_of(call);
	uint32_t next = 0;
	void *parameter;

	if (EXPECTED(parameters == NULL)) {
		return;
	}
	weft_memory_limit_lift();
	ZEND_HASH_FOREACH_PTR(parameters, parameter) {
		const zval *value = value_of(call, parameter);
		bool is_variable = Z_ISREF_P(value);
		zend_string *string;
		void *stream;

		ZVAL_DEREF(value);
		string = is_variable && Z_TYPE_P(value) == IS_STRING ? Z_STR_P(value) : NULL;
		stream = Z_TYPE_P(value) == IS_RESOURCE && Z_RES_P(value)->type == php_file_le_stream() ? Z_RES_P(value)->ptr : NULL;
		if ((string != NULL || stream != NULL) && !is_kept(call, stream, string, &next)) {
			keep(call, stream, string);
		}
	} ZEND_HASH_FOREACH_END();
	weft_memory_limit_restore();
}

void weft_bound_release(struct weft_call *call)
{
	uint32_t i;

	for (i = 0; i < call->bound_count; i++) {
		if (call->bound[i].string != NULL) {
			zend_string_release(call->bound[i].string);
		}
	}
	if (call->bound != NULL) {
		efree(call->bound);
		call->bound = NULL;
		call->bound_count = call->bound_room = 0;
	}
}
