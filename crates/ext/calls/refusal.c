/* The error about a handle that is in use. */
#include "internal.h"
#include "handle.h"

void weft_call_shared_handles(const char *name, zval *result, uint32_t count, zval *arguments)
{
	static const char class_name[] = "Weft\\Runtime\\Internal\\SharedHandles";
	zend_string *class = zend_string_init(class_name, sizeof(class_name) - 1, 0);
	zend_class_entry *entry = zend_lookup_class(class);
	zend_function *function = entry == NULL ? NULL : zend_hash_str_find_ptr(&entry->function_table, name, strlen(name));

	zend_string_release(class);
	ZVAL_NULL(result);
	if (function != NULL) {
		zend_call_known_function(function, NULL, entry, result, count, arguments, NULL);
	}
}

/* The constructor of an object that is not connected yet: its handle is that of the argument. */
static bool is_given(const struct wrapped *function)
{
	return function->kind == HANDLE_MYSQLI_GIVEN || function->kind == HANDLE_AMQP_GIVEN;
}

/* The name of a handle for which code of PHP has no value. */
static const char *name_of_kind(unsigned char kind)
{
	switch (kind) {
		case HANDLE_DIRECTORY:
			return "The directory that was opened last";
		case HANDLE_SESSION:
			return "The session";
		default:
			return "The connection";
	}
}

void weft_describe_handle(zval *value, zval *target, const struct weft_call *call)
{
	const struct wrapped *function = call->function;
	zend_execute_data *execute_data = call->execute_data;
	zval *first;

	ZVAL_NULL(value);
	ZVAL_NULL(target);
	if (call->operand != NULL) {
		ZVAL_OBJ_COPY(value, call->operand);
	} else if (function->kind == HANDLE_SESSION) {
		/* Its functions get values that stand for something else. */
	} else if (Z_TYPE(EX(This)) == IS_OBJECT && !is_given(function)) {
		ZVAL_OBJ_COPY(value, Z_OBJ(EX(This)));
	} else if ((first = argument(execute_data, function->kind == HANDLE_SECOND ? 2 : 1)) != NULL) {
		ZVAL_COPY(value, first);
	}
	if (is_of_pdo(function)) {
		weft_describe_pdo(value, target, call);
	} else if (function->kind == HANDLE_PGSQL_KEPT) {
		ZVAL_COPY(target, value);
	}
	if (Z_TYPE_P(value) != IS_OBJECT && Z_TYPE_P(value) != IS_RESOURCE) {
		zval_ptr_dtor(value);
		ZVAL_STRING(value, name_of_kind(function->kind));
	}
}

static zend_string *name_of(const struct weft_call *call)
{
	const zend_function *function;

	if (call->freed != NULL) {
		return zend_strpprintf(0, "the release of %s", ZSTR_VAL(call->freed->ce->name));
	}
	if (call->operand != NULL) {
		return zend_strpprintf(0, "an iteration over %s", ZSTR_VAL(call->operand->ce->name));
	}
	function = call->execute_data->func;
	return function->common.scope == NULL
		? zend_strpprintf(0, "%s()", ZSTR_VAL(function->common.function_name))
		: zend_strpprintf(0, "%s::%s()", ZSTR_VAL(function->common.scope->name), ZSTR_VAL(function->common.function_name));
}

/* The line of the user that led to the call: the innermost one that is not in a package of Composer, if there is one. */
static zend_string *place_of(zend_execute_data *execute_data)
{
	zend_execute_data *frame, *innermost = NULL;

	for (frame = execute_data; frame != NULL; frame = frame->prev_execute_data) {
		if (frame->func == NULL || !ZEND_USER_CODE(frame->func->type)) {
			continue;
		}
		if (innermost == NULL) {
			innermost = frame;
		}
		if (strstr(ZSTR_VAL(frame->func->op_array.filename), "/vendor/") == NULL) {
			innermost = frame;
			break;
		}
	}
	return innermost == NULL
		? zend_string_init("an unknown line", sizeof("an unknown line") - 1, 0)
		: zend_strpprintf(0, "%s:%u", ZSTR_VAL(innermost->func->op_array.filename), innermost->opline->lineno);
}

void weft_refuse(struct weft_call *call, struct weft_call *holder)
{
	zval arguments[5], details, error;
	zend_class_entry *class;
	zend_string *name;
	int i;

	if (holder->context->kind == zend_ce_fiber) {
		ZVAL_OBJ_COPY(&arguments[0], &zend_fiber_from_context(holder->context)->std);
	} else {
		ZVAL_NULL(&arguments[0]);
	}
	ZVAL_STR(&arguments[1], name_of(holder));
	ZVAL_STR(&arguments[2], place_of(holder->execute_data));
	weft_describe_handle(&arguments[3], &arguments[4], call);
	weft_calls.is_describing = true;
	weft_call_shared_handles("inuse", &details, 5, arguments);
	weft_calls.is_describing = false;
	for (i = 0; i < 5; i++) {
		zval_ptr_dtor(&arguments[i]);
	}
	if (EG(exception) == NULL && Z_TYPE(details) == IS_ARRAY) {
		name = zend_string_init("Weft\\Runtime\\HandleInUseError", sizeof("Weft\\Runtime\\HandleInUseError") - 1, 0);
		class = zend_lookup_class(name);
		zend_string_release(name);
		/* Created here, the error has the file and the line of the call. */
		if (class != NULL && object_init_ex(&error, class) == SUCCESS) {
			zend_call_known_function(class->constructor, Z_OBJ(error), class, NULL, 0, NULL, Z_ARRVAL(details));
			if (EG(exception) == NULL) {
				zend_throw_exception_object(&error);
			} else {
				zval_ptr_dtor(&error);
			}
		}
	}
	zval_ptr_dtor(&details);
	if (EG(exception) == NULL) {
		zend_throw_error(NULL, "The handle is in use: another fiber waits in a call that uses it");
	}
}
