/*
 * Output buffers of the server around those of an application: the one that all fibers share, which watches for output that reaches no
 * response, and the one that collects a request's. Applications close every buffer there is, `while (ob_get_level() > 0) ob_end_clean();`, and would
 * close these too; then what others print would mix. So inside of fibers the functions below see only what is above. ob_get_contents(),
 * ob_get_length() and ob_clean() are PHP's own: they reach the innermost buffer only, which has nothing but the output of this request.
 */
#include "switch.h"
#include "functions/functions.h"

#include <main/php_output.h>

/* Buffers that all fibers share: crates/ext/src/output.rs. */
static int shared;
/* Whether those above are of the fibers that have opened them. */
static bool are_separate;
/* While code runs that must not wait, because an operation on buffers has called it. As it does not, no other fiber sees this. */
static bool waits_are_refused;

static int hidden_here(void)
{
	if (EG(active_fiber) == NULL) {
		return 0;
	}
	/* Where PHP has no room for what is kept with a fiber, there are no realms, which hide buffers. */
	int own = weft_slot >= 0 ? weft_fiber_here()->hidden_buffers : 0;
	return own > shared ? own : shared;
}

/* Whether the innermost buffer is one that the code in this fiber does not see. */
static bool is_hidden_here(void)
{
	int hidden = hidden_here();
	return UNEXPECTED(hidden != 0) && php_output_get_level() <= hidden;
}

/* `notice` is what PHP says where there is no buffer; NULL: nothing. */
static zend_always_inline void close_buffer(zif_handler close, const char *notice, INTERNAL_FUNCTION_PARAMETERS)
{
	if (!is_hidden_here()) {
		close(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	ZEND_PARSE_PARAMETERS_NONE();
	if (notice != NULL) {
		php_error_docref("ref.outcontrol", E_NOTICE, "%s", notice);
	}
	RETURN_FALSE;
}

#define CLOSES_BUFFER(name, notice) \
	static zif_handler original_##name; \
	static ZEND_NAMED_FUNCTION(own_##name) \
	{ \
		close_buffer(original_##name, notice, INTERNAL_FUNCTION_PARAM_PASSTHRU); \
	}

CLOSES_BUFFER(ob_end_clean, "Failed to delete buffer. No buffer to delete")
CLOSES_BUFFER(ob_end_flush, "Failed to delete and flush buffer. No buffer to delete or flush")
CLOSES_BUFFER(ob_get_clean, NULL)
CLOSES_BUFFER(ob_get_flush, "Failed to delete and flush buffer. No buffer to delete or flush")

static zif_handler original_ob_get_level, original_ob_flush, original_ob_list_handlers, original_ob_get_status;

static ZEND_NAMED_FUNCTION(own_ob_get_level)
{
	original_ob_get_level(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	int hidden = hidden_here();
	if (UNEXPECTED(hidden != 0) && Z_TYPE_P(return_value) == IS_LONG) {
		Z_LVAL_P(return_value) = MAX(Z_LVAL_P(return_value) - hidden, 0);
	}
}

/* Flushing a buffer of the server would move the output of the request to where nobody sends it. */
static ZEND_NAMED_FUNCTION(own_ob_flush)
{
	if (!is_hidden_here()) {
		original_ob_flush(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	ZEND_PARSE_PARAMETERS_NONE();
	/* No notice as in PHP without buffers: streams call ob_flush() before flush(), and under PHP-FPM output_buffering is a buffer. */
	RETURN_TRUE;
}

/* The level in what ob_get_status() says of a buffer. */
static void lower_level(zval *status, int hidden)
{
	zval *level = zend_hash_str_find(Z_ARRVAL_P(status), ZEND_STRL("level"));
	if (level != NULL && Z_TYPE_P(level) == IS_LONG) {
		Z_LVAL_P(level) -= hidden;
	}
}

/* Leaves out the first elements, which are the outermost buffers. */
static void drop_hidden(zval *list, int hidden)
{
	zval rest;
	array_init(&rest);
	zval *one;
	int i = 0;
	ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(list), one) {
		if (i++ >= hidden) {
			Z_TRY_ADDREF_P(one);
			add_next_index_zval(&rest, one);
		}
	} ZEND_HASH_FOREACH_END();
	zval_ptr_dtor(list);
	ZVAL_COPY_VALUE(list, &rest);
}

static ZEND_NAMED_FUNCTION(own_ob_list_handlers)
{
	original_ob_list_handlers(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	int hidden = hidden_here();
	if (hidden > 0 && Z_TYPE_P(return_value) == IS_ARRAY) {
		drop_hidden(return_value, hidden);
	}
}

static ZEND_NAMED_FUNCTION(own_ob_get_status)
{
	original_ob_get_status(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	int hidden = hidden_here();
	if (hidden == 0 || Z_TYPE_P(return_value) != IS_ARRAY) {
		return;
	}
	if (ZEND_NUM_ARGS() > 0 && zend_is_true(ZEND_CALL_ARG(execute_data, 1))) {
		zval *one;
		ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(return_value), one) {
			lower_level(one, hidden);
		} ZEND_HASH_FOREACH_END();
		drop_hidden(return_value, hidden);
	} else if (php_output_get_level() > hidden) {
		lower_level(return_value, hidden);
	} else {
		zval_ptr_dtor(return_value);
		RETURN_EMPTY_ARRAY();
	}
}

void weft_buffers_hide(bool is_hidden)
{
	if (EG(active_fiber) != NULL) {
		weft_fiber_here()->hidden_buffers = is_hidden ? php_output_get_level() : 0;
	}
}

/*
 * A buffer that ob_start() was told not to remove has no effect on where the next output goes. The callbacks of buffers that are discarded cannot wait: the
 * task or request that has left them open has ended.
 */
void weft_buffers_close(int level, bool are_flushed)
{
	weft_buffers_hide(false);
	bool were_refused = weft_buffers_refuse_waits(waits_are_refused || !are_flushed);
	int remaining = MAX(level, 0) + hidden_here();
	while (php_output_get_level() > remaining) {
		php_output_get_active_handler()->flags |= PHP_OUTPUT_HANDLER_STDFLAGS;
		if ((are_flushed ? php_output_end() : php_output_discard()) == FAILURE) {
			break;
		}
	}
	waits_are_refused = were_refused;
}

void weft_buffers_share(int level)
{
	shared = level > 0 ? level : 0;
	are_separate = level >= 0;
	/* A fatal error leaves the operation. */
	waits_are_refused = false;
}

/* Functions that print in the middle of something that the process has once: the scanner, or marks on values that others would take for recursion. */
static bool is_in_a_function_that_must_end(void)
{
	static const char *const names[] = {
		"highlight_string", "highlight_file", "show_source", "token_get_all", "var_dump", "debug_zval_refcount", "debug_zval_dump", "phpinfo", NULL,
	};
	for (const zend_execute_data *frame = EG(current_execute_data); frame != NULL; frame = frame->prev_execute_data) {
		if (weft_function_is_one_of(frame->func, names)) {
			return true;
		}
	}
	return false;
}

/*
 * Since the callback has been called, its buffer and those below it are where they were: what a fiber opens above the shared ones leaves and returns with
 * it. PHP goes through the stack by level after the callback has returned.
 */
static ZEND_COLD bool may_wait_in(const php_output_handler *running)
{
	return are_separate && running->level >= shared && !CG(in_compilation) && !is_in_a_function_that_must_end();
}

bool weft_buffers_refuse_waits(bool are_refused)
{
	bool before = waits_are_refused;
	waits_are_refused = are_refused;
	return before;
}

bool weft_buffers_may_wait(void)
{
	const php_output_handler *running = OG(running);
	return !waits_are_refused && (EXPECTED(running == NULL) || may_wait_in(running));
}

/*
 * Fiber::suspend() as the scheduler calls it, which is the one place that suspends tasks: it throws as PHP does where it blocks switches, and
 * Weft\Runtime\Internal\Blocking knows the message. Fibers that programs make themselves are theirs to suspend.
 */
static zif_handler original_suspend;

bool weft_is_scheduler(const zend_execute_data *caller)
{
	return caller != NULL && caller->func != NULL && caller->func->common.scope != NULL
		&& zend_string_equals_literal(caller->func->common.scope->name, "Weft\\Runtime\\Internal\\Scheduler");
}

static ZEND_NAMED_FUNCTION(own_suspend)
{
	bool is_compiling = weft_scanner_is_in_use();
	if (EXPECTED(weft_buffers_may_wait() && !is_compiling) || !weft_is_scheduler(EX(prev_execute_data))) {
		weft_errors_before_suspension();
		original_suspend(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	zend_throw_error(zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("fibererror")),
		is_compiling ? "Cannot switch fibers during a compilation" : "Cannot switch fibers in the callback of an output buffer");
}

/* Where the scanner begins to read. A compilation that has ended by a fatal error in an earlier request has left its own place. */
static const unsigned char *idle_scanner;

bool weft_scanner_is_in_use(void)
{
	/* A fatal error in a compilation leaves the scanner where it is; shutdown functions run tasks. */
	return LANG_SCNG(yy_start) != idle_scanner && !CG(unclean_shutdown);
}

void weft_buffers_request_startup(void)
{
	idle_scanner = LANG_SCNG(yy_start);
}

void weft_buffers_replace_functions(void)
{
	weft_replace_function("ob_end_clean", own_ob_end_clean, &original_ob_end_clean);
	weft_replace_function("ob_end_flush", own_ob_end_flush, &original_ob_end_flush);
	weft_replace_function("ob_get_clean", own_ob_get_clean, &original_ob_get_clean);
	weft_replace_function("ob_get_flush", own_ob_get_flush, &original_ob_get_flush);
	weft_replace_function("ob_get_level", own_ob_get_level, &original_ob_get_level);
	weft_replace_function("ob_flush", own_ob_flush, &original_ob_flush);
	weft_replace_function("ob_list_handlers", own_ob_list_handlers, &original_ob_list_handlers);
	weft_replace_function("ob_get_status", own_ob_get_status, &original_ob_get_status);
	zend_function *suspend = zend_hash_str_find_ptr(&zend_ce_fiber->function_table, ZEND_STRL("suspend"));
	if (suspend != NULL && original_suspend == NULL) {
		original_suspend = suspend->internal_function.handler;
		suspend->internal_function.handler = own_suspend;
	}
}
