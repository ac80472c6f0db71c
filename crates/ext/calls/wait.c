/* A wait of libc inside of a wrapped call, and its interruption. */
#include "internal.h"
#include "handle.h"

/* The wrapped call whose C code is running. */
static struct frame *running(void)
{
	struct frame *frame = weft_slot < 0 || EG(active_fiber) == NULL ? NULL : innermost();

	return frame != NULL && frame->execute_data == EG(current_execute_data) ? frame : NULL;
}

bool weft_call_is_running(void)
{
	return running() != NULL;
}

bool weft_call_keeps_shared_handle(void)
{
	const struct frame *frame;

	if (weft_slot >= 0 && EG(active_fiber) != NULL) {
		for (frame = innermost(); frame != NULL; frame = frame->outer) {
			if (frame->function->handle == HANDLE_CURL_MULTI) {
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
	static struct wrapped unruled = {.handle = HANDLE_RESOURCE, .side = ALL};
	zval *value;
	struct frame *frame;
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
	frame = emalloc(sizeof(*frame));
	begin(frame, &unruled);
	frame->is_unruled = true;
	frame->execute_data = execute_data;
	frame->context = EG(current_fiber_context);
	frame->outer = innermost();
	for (count = 0; count < 2; count++) {
		frame->claims[count].handle = streams[count];
		frame->claims[count].side = ALL;
		frame->claims[count].frame = frame;
	}
	weft_fiber_of(frame->context)->call = frame;
}

void weft_call_suspends(void)
{
	struct frame *frame = running();
	const zend_execute_data *execute_data = EG(current_execute_data);

	if (frame != NULL) {
		frame->waits = true;
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
	struct frame *frame = running();

	if (frame == NULL) {
		return;
	}
	if (frame->is_unruled) {
		weft_fiber_of(frame->context)->call = frame->outer;
		if (zend_hash_num_elements(&weft_calls.waiters) > 0) {
			weft_give_turn(frame);
		}
		efree(frame);
		return;
	}
	if (EG(exception) != NULL && frame->interruption == NULL) {
		frame->interruption = EG(exception);
		GC_ADDREF(frame->interruption);
		/* The library is about to fail. Its warnings are about a failure that is not one. */
		frame->error_reporting = EG(error_reporting);
		EG(error_reporting) &= E_FATAL_ERRORS;
	}
	if (!weft_calls.is_abandoning) {
		frame->waits = false;
	}
}

void weft_abandon_waits(void)
{
	struct frame *frame = weft_calls.suspended;
	zend_fiber *fiber;

	weft_calls.is_abandoning = true;
	while (frame != NULL) {
		if (!frame->waits || frame->context->kind != zend_ce_fiber || frame->context->status != ZEND_FIBER_STATUS_SUSPENDED) {
			frame = frame->after;
			continue;
		}
		fiber = zend_fiber_from_context(frame->context);
		zend_try {
			fiber->std.handlers->dtor_obj(&fiber->std);
		} zend_end_try();
		/* The list is another one now, and shorter by the calls of this fiber. */
		frame = weft_calls.suspended;
	}
	weft_calls.is_abandoning = false;
}
