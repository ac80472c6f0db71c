/* The wrapper: what happens around a call. */
#include "internal.h"
#include "handle.h"
#include "hooks/hooks.h"

static void throw_instead(zend_object *exception)
{
	zend_object *thrown = EG(exception);

	EG(exception) = exception;
	if (thrown != NULL) {
		OBJ_RELEASE(thrown);
	}
}

static bool is_of_library(struct weft_call *call, zend_object *exception)
{
	return exception->ce->type == ZEND_INTERNAL_CLASS && instanceof_function(exception->ce, zend_ce_throwable)
		&& exception->ce->info.internal.module == call->function->module;
}

/* The cancellation of a callback that the library has wrapped. */
static zend_object *wrapped_cancellation(struct weft_call *call, zend_object *exception)
{
	static const char name[] = "Weft\\Runtime\\CancelledException";
	zval *previous, memory;

	while (is_of_library(call, exception)) {
		previous = zend_read_property_ex(zend_ce_exception, exception, ZSTR_KNOWN(ZEND_STR_PREVIOUS), true, &memory);
		ZVAL_DEREF(previous);
		if (Z_TYPE_P(previous) != IS_OBJECT) {
			return NULL;
		}
		exception = Z_OBJ_P(previous);
		if (zend_string_equals_cstr(exception->ce->name, name, sizeof(name) - 1)) {
			return exception;
		}
	}
	return NULL;
}

zend_never_inline void weft_end_interrupted(struct weft_call *call)
{
	zend_object *cancellation;

	if (call->interruption != NULL) {
		weft_forget_interruption();
		EG(error_reporting) = call->error_reporting;
		if (weft_calls.is_abandoning && call->waits) {
			zend_bailout();
		}
		if (EG(exception) == call->interruption) {
			OBJ_RELEASE(call->interruption);
		} else if (EG(exception) == NULL || !zend_is_unwind_exit(EG(exception))) {
			throw_instead(call->interruption);
		}
	} else if (call->is_destroyed) {
		if (EG(exception) == NULL || is_of_library(call, EG(exception))) {
			throw_instead(zend_create_graceful_exit());
		}
	} else if (EG(exception) != NULL && (cancellation = wrapped_cancellation(call, EG(exception))) != NULL) {
		GC_ADDREF(cancellation);
		throw_instead(cancellation);
	}
}

/* The handles of a function or method that is called. */
static zend_always_inline void find_handles(struct weft_call *call, struct wrapped *function, zend_execute_data *execute_data)
{
	call->claims[0].handle = handle_of(function, execute_data);
	call->claims[0].side = function->side;
	call->claims[0].call = call;
	call->claims[1].handle = NULL;
	if (function->kind == HANDLE_RESOURCE) {
		weft_claim_connection_of_large_object(&call->claims[0], execute_data, 1);
	}
	if (UNEXPECTED(function->kind == HANDLE_SECOND)) {
		weft_claim_connection_of_large_object(&call->claims[0], execute_data, 2);
	}
	if (UNEXPECTED(function->kind == HANDLE_CLOSED)) {
		weft_claim_connection_of_large_object(&call->claims[0], execute_data, 1);
		call->claims[1].handle = weft_transfer_in_use(execute_data);
		call->claims[1].side = ALL;
		call->claims[1].call = call;
	}
	if (UNEXPECTED(function->kind == HANDLE_FILTER)) {
		const php_stream_filter *filter = filter_of(execute_data);
		if (filter != NULL && filter->chain != NULL) {
			call->claims[0].handle = filter->chain->stream;
			call->claims[0].side = filter->chain == &filter->chain->stream->readfilters ? READ : WRITE;
		}
	}
	if (UNEXPECTED(function->kind == HANDLE_PROCESS)) {
		const zval *process = argument(execute_data, 1);
		call->claims[1].handle = process != NULL && Z_TYPE_P(process) == IS_RESOURCE ? weft_pipe_in_use(Z_RES_P(process)) : NULL;
		call->claims[1].side = ALL;
		call->claims[1].call = call;
	}
	if (UNEXPECTED(function->kind == HANDLE_OBJECT_AND_STREAM)) {
		void *second = resource_of(execute_data, 2);
		call->claims[1].handle = second != NULL ? second : resource_of(execute_data, 3);
		call->claims[1].side = ALL;
		call->claims[1].call = call;
	}
	if (UNEXPECTED(function->kind == HANDLE_OBJECT_AND_TREE)) {
		const zval *node = argument(execute_data, 1);
		call->claims[1].handle = node != NULL && Z_TYPE_P(node) == IS_OBJECT ? weft_tree_of(Z_OBJ_P(node)) : NULL;
		call->claims[1].side = ALL | SHARED;
		call->claims[1].call = call;
	}
	if (UNEXPECTED(function->kind == HANDLE_TREE) && UNEXPECTED(weft_calls.pending > 0)) {
		call->claims[1].handle = weft_other_tree_in_use(execute_data, call->claims[0].handle);
		call->claims[1].side = ALL;
		call->claims[1].call = call;
	}
	if (UNEXPECTED(function->kind == HANDLE_COPY)) {
		call->claims[0].side = READ;
		call->claims[1].handle = resource_of(execute_data, 2);
		call->claims[1].side = WRITE;
		call->claims[1].call = call;
		weft_claim_connection_of_large_object(&call->claims[0], execute_data, 1);
		weft_claim_connection_of_large_object(&call->claims[1], execute_data, 2);
	}
	if (UNEXPECTED(may_open_persistent(function))) {
		weft_claim_persistent_connection(call, function);
	}
}

void weft_find_handles(struct weft_call *call)
{
	if (call->operand != NULL) {
		call->claims[0].handle = handle_in(call->function, call->operand);
	} else if (call->freed == NULL) {
		find_handles(call, call->function, call->execute_data);
	}
}

static zend_always_inline void prepare(struct weft_call *call, struct wrapped *function, zend_execute_data *execute_data)
{
	begin(call, function);
	call->execute_data = execute_data;
	call->context = EG(current_fiber_context);
	call->outer = weft_fiber_of(call->context)->call;
	find_handles(call, function, execute_data);
}

/*
 * PHP writes into a variable that a call fills without looking again what is in it, because none of its code runs in between. Here other tasks run: the
 * call gets variables of its own, which are assigned when it has returned.
 */
static zend_never_inline void call_with_own_outputs(struct wrapped *function, INTERNAL_FUNCTION_PARAMETERS)
{
	enum { MOST = 4 };
	zval given[MOST];
	uint32_t places[MOST], count = 0, i;

	for (i = 1; i <= ZEND_CALL_NUM_ARGS(execute_data) && count < MOST; i++) {
		zval *place = ZEND_CALL_ARG(execute_data, i);
		if (Z_ISREF_P(place)) {
			zval value;
			ZVAL_COPY_VALUE(&given[count], place);
			ZVAL_COPY(&value, Z_REFVAL_P(place));
			ZVAL_NEW_REF(place, &value);
			places[count++] = i;
		}
	}
	function->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	for (i = 0; i < count; i++) {
		zval *place = ZEND_CALL_ARG(execute_data, places[i]);
		zval filled;
		ZVAL_COPY_VALUE(&filled, place);
		ZVAL_COPY_VALUE(place, &given[i]);
		if (EG(exception) == NULL) {
			/* Held over the assignment: a destructor of the old value may assign the variable. */
			zval old;
			ZVAL_COPY(&old, Z_REFVAL_P(place));
			ZEND_TRY_ASSIGN_REF_COPY(place, Z_REFVAL(filled));
			zval_ptr_dtor(&old);
		}
		zval_ptr_dtor(&filled);
	}
}

/* Calls of SOAP whose variables cannot be kept apart must not overlap. After a fatal error in one of them, shutdown functions run tasks. */
static zend_never_inline void call_without_switches(struct wrapped *function, INTERNAL_FUNCTION_PARAMETERS)
{
	volatile bool has_ended = true;

	zend_fiber_switch_block();
	zend_try {
		function->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	} zend_catch {
		has_ended = false;
	} zend_end_try();
	zend_fiber_switch_unblock();
	if (!has_ended) {
		zend_bailout();
	}
}

ZEND_NAMED_FUNCTION(weft_call_function)
{
	struct wrapped *function = EX(func)->internal_function.reserved[weft_slot];
	struct weft_call call;

	if (UNEXPECTED(function->kind == HANDLE_CURL_MULTI) && !weft_give_way_before_call()) {
		return;
	}
	if (EXPECTED(EG(active_fiber) == NULL)) {
		if (UNEXPECTED(weft_calls.pending > 0)) {
			prepare(&call, function, execute_data);
			if (!weft_is_admitted(&call)) {
				return;
			}
		}
		function->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		if (UNEXPECTED(weft_calls.deferred != NULL)) {
			weft_release_deferred();
		}
		return;
	}
	prepare(&call, function, execute_data);
	if (UNEXPECTED(weft_calls.pending > 0) && !weft_is_admitted(&call)) {
		return;
	}
	bool blocks = UNEXPECTED(function->kind == HANDLE_SOAP) && !weft_soap_separate(&call);
	weft_fiber_of(call.context)->call = &call;
	if (UNEXPECTED(blocks)) {
		call_without_switches(function, INTERNAL_FUNCTION_PARAM_PASSTHRU);
	} else if (UNEXPECTED(function->kind == HANDLE_OUTPUTS)) {
		call_with_own_outputs(function, INTERNAL_FUNCTION_PARAM_PASSTHRU);
	} else {
		function->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	}
	weft_fiber_of(call.context)->call = call.outer;
	if (UNEXPECTED(call.soap != NULL)) {
		efree(call.soap);
	}
	if (UNEXPECTED(call.bound != NULL)) {
		weft_bound_release(&call);
	}
	if (UNEXPECTED(EG(exception) != NULL) || UNEXPECTED(call.interruption != NULL) || UNEXPECTED(call.is_destroyed)) {
		weft_end_interrupted(&call);
	}
	if (UNEXPECTED(weft_calls.deferred != NULL)) {
		weft_release_deferred();
	}
	if (UNEXPECTED(zend_hash_num_elements(&weft_calls.waiters) > 0)) {
		weft_give_turn(&call);
	}
}

/* opendir() and dir(): the directory that they return is the one that other functions use when they are given none. */
ZEND_NAMED_FUNCTION(weft_call_opendir)
{
	weft_call_function(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	const zval *value = return_value;
	if (Z_TYPE_P(value) == IS_OBJECT && Z_OBJCE_P(value)->default_properties_count > 1) {
		value = OBJ_PROP_NUM(Z_OBJ_P(value), 1);
	}
	if (Z_TYPE_P(value) == IS_RESOURCE) {
		weft_calls.last_directory = Z_RES_P(value)->ptr;
	}
}

/* pg_connect(): the connection it returns is the one that other functions use when they are given none. */
ZEND_NAMED_FUNCTION(weft_call_pgsql_connect)
{
	weft_call_function(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		weft_calls.last_pgsql_connection = follow(Z_OBJ_P(return_value), 1);
	}
}
