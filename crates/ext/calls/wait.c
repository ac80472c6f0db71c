/* A wait of libc inside of a wrapped call, and its interruption. */
#include "internal.h"
#include "handle.h"

/* The wrapped call whose C code is running. */
static struct weft_call *running(void)
{
	struct weft_call *call = weft_slot < 0 || EG(active_fiber) == NULL ? NULL : innermost();

	return call != NULL && call->execute_data == EG(current_execute_data) ? call : NULL;
}

bool weft_call_is_running(void)
{
	return running() != NULL;
}

bool weft_call_keeps_shared_handle(void)
{
	const struct weft_call *call;

	if (weft_slot >= 0 && EG(active_fiber) != NULL) {
		for (call = innermost(); call != NULL; call = call->outer) {
			if (call->function->kind == HANDLE_CURL_MULTI) {
				return true;
			}
		}
	}
	return false;
}

static zend_always_inline bool is_unruled(const zend_execute_data *execute_data)
{
	return execute_data != NULL && execute_data->func != NULL && execute_data->func->type == ZEND_INTERNAL_FUNCTION
		&& execute_data->func->internal_function.reserved[weft_slot] == NULL;
}

/* The streams among the arguments of a function without a rule: they must not be closed while it waits in one of them. */
static zend_never_inline void claim_arguments(zend_execute_data *execute_data)
{
	static struct wrapped unruled = {.kind = HANDLE_RESOURCE, .side = ALL};
	zval *value;
	struct weft_call *call;
	uint32_t number, count = 0;
	void *streams[2] = {NULL, NULL};

	for (number = 1; number <= ZEND_CALL_NUM_ARGS(execute_data) && count < 2; number++) {
		value = argument(execute_data, number);
		if (Z_TYPE_P(value) == IS_RESOURCE && Z_RES_P(value)->ptr != NULL
				&& (Z_RES_P(value)->type == php_file_le_stream() || Z_RES_P(value)->type == php_file_le_pstream())) {
			streams[count++] = Z_RES_P(value)->ptr;
		}
	}
	if (count == 0) {
		return;
	}
	call = emalloc(sizeof(*call));
	begin(call, &unruled);
	call->is_unruled = true;
	call->execute_data = execute_data;
	call->context = EG(current_fiber_context);
	call->outer = innermost();
	for (count = 0; count < 2; count++) {
		call->claims[count].handle = streams[count];
		call->claims[count].side = ALL;
		call->claims[count].call = call;
	}
	weft_fiber_of(call->context)->call = call;
}

void weft_call_suspends(void)
{
	struct weft_call *call = running();
	const zend_execute_data *execute_data = EG(current_execute_data);

	if (call != NULL) {
		call->waits = true;
	} else if (weft_slot >= 0 && EG(active_fiber) != NULL && is_unruled(execute_data)) {
		claim_arguments(EG(current_execute_data));
	}
}

bool weft_call_may_suspend(void)
{
	static const zend_module_entry *last;
	const zend_execute_data *execute_data = EG(current_execute_data);
	const zend_module_entry *module;

	if (weft_slot < 0 || !is_unruled(execute_data) || (module = execute_data->func->internal_function.module) == NULL || module == last) {
		return true;
	}
	if (!weft_extension_may_suspend(module)) {
		return false;
	}
	last = module;
	return true;
}

void weft_call_resumed(void)
{
	struct weft_call *call = running();

	if (call == NULL) {
		return;
	}
	if (call->is_unruled) {
		weft_fiber_of(call->context)->call = call->outer;
		if (zend_hash_num_elements(&weft_calls.waiters) > 0) {
			weft_give_turn(call);
		}
		efree(call);
		return;
	}
	if (EG(exception) != NULL && call->interruption == NULL) {
		call->interruption = EG(exception);
		GC_ADDREF(call->interruption);
		/* The library is about to fail. Its warnings are about a failure that is not one. */
		call->error_reporting = EG(error_reporting);
		EG(error_reporting) &= E_FATAL_ERRORS;
	}
	if (!weft_calls.is_abandoning) {
		call->waits = false;
	}
}

void weft_abandon_waits(void)
{
	struct weft_call *call = weft_calls.suspended;
	zend_fiber *fiber;

	weft_calls.is_abandoning = true;
	while (call != NULL) {
		if (!call->waits || call->context->kind != zend_ce_fiber || call->context->status != ZEND_FIBER_STATUS_SUSPENDED) {
			call = call->after;
			continue;
		}
		fiber = zend_fiber_from_context(call->context);
		zend_try {
			fiber->std.handlers->dtor_obj(&fiber->std);
		} zend_end_try();
		/* The list is another one now, and shorter by the calls of this fiber. */
		call = weft_calls.suspended;
	}
	weft_calls.is_abandoning = false;
}
