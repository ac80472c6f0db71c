/*
 * Error handlers of tasks, and errors in the event loop.
 *
 * PHP takes the handler of set_error_handler() away while it runs, so that its own errors do not call it again, and puts it back when it returns. A handler may
 * wait, such as one that logs by network. The errors of other tasks would find no handler meanwhile, and one that they set and restore around a call would replace
 * this one for good. So the handler is in force while the task that runs it is suspended.
 */
#include "realm.h"
#include "switch.h"

#include <zend_exceptions.h>
#include <zend_observer.h>

/* Destructors of what the handler holds must neither leave the middle of an error nor be seen there. */
static void forget(weft_fiber *fiber)
{
	zval handler;
	ZVAL_COPY_VALUE(&handler, &fiber->error_handler);
	ZVAL_UNDEF(&fiber->error_handler);
	if (Z_REFCOUNTED(handler) && Z_REFCOUNT(handler) > 1) {
		Z_DELREF(handler);
		return;
	}
	weft_pending_exception pending = weft_exception_save();
	zend_fiber_switch_block();
	zval_ptr_dtor(&handler);
	zend_fiber_switch_unblock();
	weft_exception_discard(&pending);
	weft_exception_restore(&pending);
}

/* Closures, names and arrays are the same where they are the same in memory: nobody copies those that are in force. */
static bool is_same(const zval *one, const zval *other)
{
	return Z_TYPE_P(one) == Z_TYPE_P(other) && Z_PTR_P(one) == Z_PTR_P(other);
}

static bool is_in_progress(zval *handler)
{
	zend_fcall_info_cache cache;
	if (!zend_is_callable_ex(handler, NULL, IS_CALLABLE_SUPPRESS_DEPRECATIONS, NULL, &cache, NULL)) {
		return false;
	}
	const zend_function *function = cache.function_handler;
	bool is_found = false;
	for (const zend_execute_data *frame = EG(current_execute_data); frame != NULL && !is_found; frame = frame->prev_execute_data) {
		is_found = frame->func == function
			|| (frame->func != NULL && ZEND_USER_CODE(frame->func->type) && ZEND_USER_CODE(function->type) && frame->func->op_array.opcodes == function->op_array.opcodes);
	}
	zend_release_fcall_info_cache(&cache);
	return is_found;
}

void weft_errors_leave(zend_fiber_context *from)
{
	weft_fiber *fiber = weft_fiber_of(from);
	if (EXPECTED(Z_TYPE(fiber->error_handler) == IS_UNDEF) || from->status == ZEND_FIBER_STATUS_DEAD || from->kind != zend_ce_fiber) {
		return;
	}
	if (zend_fiber_from_context(from)->caller != NULL) {
		/* It resumes another one. */
		return;
	}
	if (Z_TYPE(EG(user_error_handler)) == IS_UNDEF && is_in_progress(&fiber->error_handler)) {
		ZVAL_COPY(&EG(user_error_handler), &fiber->error_handler);
		fiber->waits_in_error_handler = true;
	}
}

/* In a switch, destructors would run with the output and the calls of the next task. */
void weft_errors_before_suspension(void)
{
	weft_fiber *fiber = weft_fiber_here();
	if (UNEXPECTED(Z_TYPE(fiber->error_handler) != IS_UNDEF) && !(Z_TYPE(EG(user_error_handler)) == IS_UNDEF && is_in_progress(&fiber->error_handler))) {
		forget(fiber);
	}
}

/* Another handler that is in force by now stays: PHP drops the one that returns. */
void weft_errors_enter(zend_fiber_context *to)
{
	weft_fiber *fiber = weft_fiber_of(to);
	if (UNEXPECTED(fiber->waits_in_error_handler)) {
		fiber->waits_in_error_handler = false;
		if (is_same(&EG(user_error_handler), &fiber->error_handler)) {
			/* The fiber keeps it. */
			Z_TRY_DELREF(EG(user_error_handler));
			ZVAL_UNDEF(&EG(user_error_handler));
		}
	}
}

static void fiber_destroyed(zend_fiber_context *context)
{
	weft_fiber *fiber = weft_fiber_of(context);
	if (Z_TYPE(fiber->error_handler) != IS_UNDEF) {
		forget(fiber);
	}
}

/* Called before PHP looks for a handler. */
static void error_occurred(int type, zend_string *file, uint32_t line, zend_string *message)
{
	if (EG(current_fiber_context) == EG(main_fiber_context)) {
		/*
		 * The event loop, and what is freed in it, runs in the state of whichever realm is in place. An error there is the process's: its handler is
		 * called, and if the error ends the process, its shutdown functions run.
		 */
		if (UNEXPECTED(realms.loaded != NULL) && weft_realm_here() == NULL) {
			weft_realm_exchange(NULL);
		}
	} else if (Z_TYPE(EG(user_error_handler)) != IS_UNDEF && (EG(user_error_handler_error_reporting) & type) != 0 && !realms.is_exchanging) {
		weft_fiber *fiber = weft_fiber_of(EG(current_fiber_context));
		if (!is_same(&fiber->error_handler, &EG(user_error_handler))) {
			if (Z_TYPE(fiber->error_handler) != IS_UNDEF) {
				forget(fiber);
			}
			ZVAL_COPY(&fiber->error_handler, &EG(user_error_handler));
		}
	}
}

void weft_errors_startup(void)
{
	zend_observer_error_register(error_occurred);
	weft_fiber_ends(fiber_destroyed);
}
