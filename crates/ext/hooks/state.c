#include "state.h"
#include "fibers/fiber.h"

#include <zend_observer.h>

/* So many exceptions in a row are thrown by destructors of the one before. */
#define MOST_DISCARDED 16

void weft_engine_save(weft_engine_state *state)
{
	state->error_handling = EG(error_handling);
	state->exception_class = EG(exception_class);
	EG(error_handling) = EH_NORMAL;
	EG(exception_class) = NULL;
	/* PHP 8.5 declares it const. */
	state->fake_scope = (zend_class_entry *) EG(fake_scope);
	EG(fake_scope) = NULL;
	state->wrapper_errors = WEFT_WRAPPER_ERRORS;
	WEFT_WRAPPER_ERRORS = NULL;
	weft_stream_errors_save(&state->stream_errors);
	state->user_stream_current_filename = FG(user_stream_current_filename);
	FG(user_stream_current_filename) = NULL;
	state->in_user_include = PG(in_user_include);
	PG(in_user_include) = false;
	state->serialize_lock = BG(serialize_lock);
	BG(serialize_lock) = 0;
	state->serialize_data = BG(serialize).data;
	state->serialize_level = BG(serialize).level;
	BG(serialize).data = NULL;
	BG(serialize).level = 0;
	state->unserialize_data = BG(unserialize).data;
	state->unserialize_level = BG(unserialize).level;
	BG(unserialize).data = NULL;
	BG(unserialize).level = 0;
	state->host_buffer = FG(tmp_host_buf);
	state->host_buffer_size = FG(tmp_host_buf_len);
	FG(tmp_host_buf) = NULL;
	FG(tmp_host_buf_len) = 0;
	state->user_compare = BG(user_compare_fci);
	state->user_compare_cache = BG(user_compare_fci_cache);
	BG(user_compare_fci) = empty_fcall_info;
	BG(user_compare_fci_cache) = empty_fcall_info_cache;
}

void weft_engine_restore(const weft_engine_state *state)
{
	EG(error_handling) = state->error_handling;
	EG(exception_class) = state->exception_class;
	EG(fake_scope) = state->fake_scope;
	if (state->wrapper_errors != NULL) {
		if (WEFT_WRAPPER_ERRORS != NULL) {
			zend_hash_destroy(WEFT_WRAPPER_ERRORS);
			FREE_HASHTABLE(WEFT_WRAPPER_ERRORS);
		}
		WEFT_WRAPPER_ERRORS = state->wrapper_errors;
	}
	weft_stream_errors_restore(&state->stream_errors);
	if (state->host_buffer != NULL) {
		free(FG(tmp_host_buf));
		FG(tmp_host_buf) = state->host_buffer;
		FG(tmp_host_buf_len) = state->host_buffer_size;
	}
	FG(user_stream_current_filename) = state->user_stream_current_filename;
	PG(in_user_include) = state->in_user_include;
	BG(serialize_lock) = state->serialize_lock;
	BG(serialize).data = state->serialize_data;
	BG(serialize).level = state->serialize_level;
	BG(unserialize).data = state->unserialize_data;
	BG(unserialize).level = state->unserialize_level;
	BG(user_compare_fci) = state->user_compare;
	BG(user_compare_fci_cache) = state->user_compare_cache;
}

/* The frame of code of PHP that runs, or NULL: an exception moves it to the instruction that handles exceptions. */
static zend_execute_data *frame_of_code(void)
{
	zend_execute_data *frame = EG(current_execute_data);
	return frame != NULL && frame->func != NULL && ZEND_USER_CODE(frame->func->type) ? frame : NULL;
}

weft_pending_exception weft_exception_save(void)
{
	const zend_execute_data *frame = frame_of_code();
	weft_pending_exception pending = {EG(exception), WEFT_PREVIOUS_EXCEPTION(), EG(opline_before_exception), frame != NULL ? frame->opline : NULL};
	EG(exception) = NULL;
	WEFT_SET_PREVIOUS_EXCEPTION(NULL);
	EG(opline_before_exception) = NULL;
	return pending;
}

void weft_exception_restore(const weft_pending_exception *pending)
{
	WEFT_SET_PREVIOUS_EXCEPTION(pending->previous);
	if (pending->exception == NULL) {
		return;
	}
	EG(opline_before_exception) = pending->opline;
	if (EG(exception) == NULL) {
		EG(exception) = pending->exception;
	} else if (weft_is_exit(EG(exception))) {
		OBJ_RELEASE(pending->exception);
	} else {
		zend_exception_set_previous(EG(exception), pending->exception);
	}
}

void weft_exception_discard(const weft_pending_exception *pending)
{
	zend_execute_data *frame = frame_of_code();
	for (unsigned discarded = 0; EG(exception) != NULL; discarded++) {
		zend_object *exception = EG(exception);
		EG(exception) = NULL;
		/* Destructors of what its trace names may throw. One that is not released is freed with all objects, at the end of the request. */
		if (discarded < MOST_DISCARDED) {
			OBJ_RELEASE(exception);
		}
	}
	if (frame != NULL && pending->next != NULL) {
		frame->opline = pending->next;
	}
}

void weft_exception_restore_alone(const weft_pending_exception *pending)
{
	if (pending->exception != NULL && EG(exception) != NULL) {
		weft_exception_discard(pending);
	}
	weft_exception_restore(pending);
}

/* What stays after a call, such as the buffer of gethostbyname(), does not count. */
static bool is_in_a_call(void)
{
	return EG(error_handling) != EH_NORMAL
		|| EG(exception_class) != NULL
		|| EG(fake_scope) != NULL
		|| BG(user_compare_fci).size != 0
		|| BG(serialize_lock) != 0
		|| BG(serialize).level != 0
		|| BG(unserialize).level != 0
		|| FG(user_stream_current_filename) != NULL
		|| PG(in_user_include)
		|| weft_has_stream_operation()
		|| (WEFT_WRAPPER_ERRORS != NULL && zend_hash_num_elements(WEFT_WRAPPER_ERRORS) != 0);
}

/* Called before a switch. A fiber that is left outside of such calls, which is the rule, costs these comparisons. */
static void fiber_switches(zend_fiber_context *from, zend_fiber_context *to)
{
	if (UNEXPECTED(is_in_a_call()) && from->status != ZEND_FIBER_STATUS_DEAD) {
		weft_fiber *left = weft_fiber_of(from);
		weft_engine_save(&left->engine);
		left->has_engine_state = true;
	}
	weft_fiber *entered = weft_fiber_of(to);
	if (UNEXPECTED(entered->has_engine_state)) {
		entered->has_engine_state = false;
		weft_engine_restore(&entered->engine);
	}
}

void weft_engine_startup(void)
{
	zend_observer_fiber_switch_register(fiber_switches);
}
