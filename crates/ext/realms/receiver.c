/*
 * Output buffers of the library: a closure receives what is printed, such as the output of a handler whose response is a stream.
 */
#include "switch.h"
#include "functions/functions.h"
#include "hooks/state.h"

#include <main/php_output.h>

typedef struct {
	zval closure;
	/* What it has thrown last, until it is called again: another exception must not have its address. */
	zend_object *thrown;
} weft_receiver;

static void forget_thrown(weft_receiver *receiver)
{
	zend_object *thrown = receiver->thrown;
	receiver->thrown = NULL;
	if (thrown != NULL) {
		OBJ_RELEASE(thrown);
	}
}

/*
 * Whether what prints can wait. Code of PHP can: echo. Of functions, these are known to: many others print, also the warnings that are displayed, while
 * they hold what the process has once.
 */
static bool may_wait_where_it_is_printed(void)
{
	static const char *const names[] = {
		"ob_flush", "ob_end_flush", "ob_get_flush", "flush", "closeBuffers", "printf", "vprintf", "print_r", "var_export",
		"fpassthru", "readfile", "readgzfile", "gzpassthru", "fwrite", "fputs", "fprintf", "vfprintf", "fputcsv", "fflush", "fclose", "file_put_contents",
		"stream_copy_to_stream", "copy", "curl_exec", NULL,
	};
	const zend_execute_data *frame = EG(current_execute_data);
	return frame != NULL && frame->func != NULL && (ZEND_USER_CODE(frame->func->type) || weft_function_is_one_of(frame->func, names));
}

/*
 * exit() in a callback of a buffer above passes the text of that buffer on, as PHP-FPM does. PHP ends a fiber that it destroys by the same exception, and
 * such a fiber does not continue.
 */
static bool is_destroyed(const zend_object *exception)
{
	return weft_is_exit(exception) && EG(active_fiber) != NULL && (EG(active_fiber)->flags & ZEND_FIBER_FLAG_DESTROYED) != 0;
}

/*
 * An exception in a callback of ob_start() makes PHP pass the text on to the buffers below, without calling their callbacks, and disable them all for
 * good, also those that fibers share. Here it reaches the code that has printed, and does nothing else; and where one of a buffer above is on its way,
 * the text still arrives.
 *
 * Functions such as fpassthru() print in a loop that does not look at exceptions. What follows an exception of the receiver is dropped, as PHP-FPM drops
 * what a script prints for a client that has left; after another one it is received without a wait.
 */
static int receive(void **context_of_handler, php_output_context *context)
{
	weft_receiver *receiver = *context_of_handler;
	const zend_object *before = EG(exception);
	if (context->in.used == 0 || (before != NULL && (before == receiver->thrown || is_destroyed(before)))) {
		return SUCCESS;
	}
	weft_pending_exception pending = weft_exception_save();
	forget_thrown(receiver);
	zval text, rest;
	ZVAL_STRINGL(&text, context->in.data, context->in.used);
	ZVAL_UNDEF(&rest);
	bool were_refused = weft_buffers_refuse_waits(true);
	weft_buffers_refuse_waits(were_refused || before != NULL || !may_wait_where_it_is_printed());
	call_user_function(NULL, NULL, &receiver->closure, &rest, 1, &text);
	weft_buffers_refuse_waits(were_refused);
	zval_ptr_dtor(&text);
	if (Z_TYPE(rest) == IS_STRING && Z_STRLEN(rest) != 0) {
		context->out.data = estrndup(Z_STRVAL(rest), Z_STRLEN(rest));
		context->out.used = Z_STRLEN(rest);
		context->out.free = 1;
	}
	zval_ptr_dtor(&rest);
	if (before != NULL && weft_is_exit(before)) {
		weft_exception_restore_alone(&pending);
	} else {
		weft_exception_restore(&pending);
	}
	if (EG(exception) != before && EG(exception) != NULL) {
		receiver->thrown = EG(exception);
		GC_ADDREF(receiver->thrown);
	}
	return SUCCESS;
}

static void release_receiver(void *receiver)
{
	forget_thrown(receiver);
	zval_ptr_dtor(&((weft_receiver *) receiver)->closure);
	efree(receiver);
}

bool weft_receive_output(const zval *closure)
{
	static const char name[] = "Weft";
	/* Of one byte: the receiver is called for each piece. */
	php_output_handler *handler = php_output_handler_create_internal(name, sizeof(name) - 1, receive, 1, PHP_OUTPUT_HANDLER_STDFLAGS);
	weft_receiver *receiver = emalloc(sizeof(weft_receiver));
	ZVAL_COPY(&receiver->closure, closure);
	receiver->thrown = NULL;
	php_output_handler_set_context(handler, receiver, release_receiver);
	if (php_output_handler_start(handler) == SUCCESS) {
		return true;
	}
	php_output_handler_free(&handler);
	return false;
}
