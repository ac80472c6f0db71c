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

static bool is_of_library(struct frame *frame, zend_object *exception)
{
	return exception->ce->type == ZEND_INTERNAL_CLASS && instanceof_function(exception->ce, zend_ce_throwable)
		&& exception->ce->info.internal.module == frame->function->module;
}

/* The cancellation of a callback that the library has wrapped. */
static zend_object *wrapped_cancellation(struct frame *frame, zend_object *exception)
{
	static const char name[] = "Weft\\Runtime\\CancelledException";
	zval *previous, memory;

	while (is_of_library(frame, exception)) {
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

zend_never_inline void weft_end_interrupted(struct frame *frame)
{
	zend_object *cancellation;

	if (frame->interruption != NULL) {
		weft_forget_interruption();
		EG(error_reporting) = frame->error_reporting;
		if (weft_calls.is_abandoning && frame->waits) {
			zend_bailout();
		}
		if (EG(exception) == frame->interruption) {
			OBJ_RELEASE(frame->interruption);
		} else if (EG(exception) == NULL || !zend_is_unwind_exit(EG(exception))) {
			throw_instead(frame->interruption);
		}
	} else if (frame->is_destroyed) {
		if (EG(exception) == NULL || is_of_library(frame, EG(exception))) {
			throw_instead(zend_create_graceful_exit());
		}
	} else if (EG(exception) != NULL && (cancellation = wrapped_cancellation(frame, EG(exception))) != NULL) {
		GC_ADDREF(cancellation);
		throw_instead(cancellation);
	}
}

static zend_always_inline void prepare(struct frame *frame, struct wrapped *function, zend_execute_data *execute_data)
{
	frame->execute_data = execute_data;
	frame->context = EG(current_fiber_context);
	frame->outer = weft_fiber_of(frame->context)->call;
	frame->claims[0].handle = handle_of(function, execute_data);
	frame->claims[0].side = function->side;
	frame->claims[0].frame = frame;
	frame->claims[1].handle = NULL;
	if (function->handle == HANDLE_RESOURCE) {
		weft_claim_connection_of_large_object(&frame->claims[0], execute_data, 1);
	}
	if (UNEXPECTED(function->handle == HANDLE_COPY)) {
		frame->claims[0].side = READ;
		frame->claims[1].handle = resource_of(execute_data, 2);
		frame->claims[1].side = WRITE;
		frame->claims[1].frame = frame;
		weft_claim_connection_of_large_object(&frame->claims[0], execute_data, 1);
		weft_claim_connection_of_large_object(&frame->claims[1], execute_data, 2);
	}
	if (UNEXPECTED(function->handle == HANDLE_PDO_NEW)) {
		frame->claims[1].handle = weft_suspended_persistent_connection(execute_data);
		frame->claims[1].side = ALL;
		frame->claims[1].frame = frame;
	}
}

ZEND_NAMED_FUNCTION(weft_call_function)
{
	struct wrapped *function = EX(func)->internal_function.reserved[weft_slot];
	struct frame frame;

	if (UNEXPECTED(function->handle == HANDLE_CURL_MULTI) && !weft_give_way_before_call()) {
		return;
	}
	if (EXPECTED(EG(active_fiber) == NULL)) {
		if (UNEXPECTED(weft_calls.obstacles > 0)) {
			prepare(&frame, function, execute_data);
			if (!weft_is_admitted(&frame)) {
				return;
			}
		}
		function->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		if (UNEXPECTED(weft_calls.parked != NULL)) {
			weft_free_parked();
		}
		return;
	}
	prepare(&frame, function, execute_data);
	if (UNEXPECTED(weft_calls.obstacles > 0) && !weft_is_admitted(&frame)) {
		return;
	}
	begin(&frame, function);
	/* Calls whose variables cannot be kept apart must not overlap: they block. */
	bool blocks = UNEXPECTED(function->handle == HANDLE_SOAP) && !weft_soap_separate(&frame);
	weft_fiber_of(frame.context)->call = &frame;
	if (blocks) {
		zend_fiber_switch_block();
	}
	function->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (blocks) {
		zend_fiber_switch_unblock();
	}
	weft_fiber_of(frame.context)->call = frame.outer;
	if (UNEXPECTED(frame.soap != NULL)) {
		efree(frame.soap);
	}
	if (UNEXPECTED(EG(exception) != NULL) || UNEXPECTED(frame.interruption != NULL) || UNEXPECTED(frame.is_destroyed)) {
		weft_end_interrupted(&frame);
	}
	if (UNEXPECTED(weft_calls.parked != NULL)) {
		weft_free_parked();
	}
	if (UNEXPECTED(zend_hash_num_elements(&weft_calls.waiters) > 0)) {
		weft_give_turn(&frame);
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
