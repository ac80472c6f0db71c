/*
 * Output buffers of the server around those of an application: the one that all fibers share, which watches for output that reaches no
 * response, and the one that collects a request's. Applications close every buffer there is, `while (ob_get_level() > 0) ob_end_clean();`, and would
 * close these too; then what others print would mix. So inside of fibers the functions below see only what is above. ob_get_contents(),
 * ob_get_length() and ob_clean() are PHP's own: they reach the innermost buffer only, which has nothing but the output of this request.
 */
#include "switch.h"

#include <main/php_output.h>

/* Buffers that all fibers share: crates/ext/src/output.rs. */
static int shared;

static int hidden_here(void)
{
	if (EG(active_fiber) == NULL) {
		return 0;
	}
	/* Where PHP has no room for what is kept with a fiber, there are no realms, which hide buffers. */
	int own = weft_slot >= 0 ? weft_fiber_here()->hidden_buffers : 0;
	return own > shared ? own : shared;
}

static struct {
	const char *name;
	/* What PHP says where there is no buffer; NULL: nothing. */
	const char *notice;
	zend_function *function;
	zif_handler handler;
} closing[] = {
	{.name = "ob_end_clean", .notice = "Failed to delete buffer. No buffer to delete"},
	{.name = "ob_end_flush", .notice = "Failed to delete and flush buffer. No buffer to delete or flush"},
	{.name = "ob_get_clean"},
	{.name = "ob_get_flush", .notice = "Failed to delete and flush buffer. No buffer to delete or flush"},
};
#define CLOSING (sizeof(closing) / sizeof(closing[0]))

static ZEND_NAMED_FUNCTION(close_buffer)
{
	unsigned i = 0;
	while (i < CLOSING - 1 && closing[i].function != EX(func)) {
		i++;
	}
	int hidden = hidden_here();
	if (hidden == 0 || php_output_get_level() > hidden) {
		closing[i].handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	ZEND_PARSE_PARAMETERS_NONE();
	if (closing[i].notice != NULL) {
		php_error_docref("ref.outcontrol", E_NOTICE, "%s", closing[i].notice);
	}
	RETURN_FALSE;
}

static ZEND_NAMED_FUNCTION(count_buffers)
{
	ZEND_PARSE_PARAMETERS_NONE();
	int above = php_output_get_level() - hidden_here();
	RETURN_LONG(above > 0 ? above : 0);
}

static zif_handler flush, list_handlers, get_status;

/* Flushing a buffer of the server would move the output of the request to where nobody sends it. */
static ZEND_NAMED_FUNCTION(flush_buffer)
{
	int hidden = hidden_here();
	if (hidden == 0 || php_output_get_level() > hidden) {
		flush(INTERNAL_FUNCTION_PARAM_PASSTHRU);
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

static ZEND_NAMED_FUNCTION(list_buffers)
{
	list_handlers(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	int hidden = hidden_here();
	if (hidden > 0 && Z_TYPE_P(return_value) == IS_ARRAY) {
		drop_hidden(return_value, hidden);
	}
}

static ZEND_NAMED_FUNCTION(buffer_status)
{
	get_status(INTERNAL_FUNCTION_PARAM_PASSTHRU);
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

static zend_function *internal(const char *name)
{
	zend_function *function = zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
	return function != NULL && function->type == ZEND_INTERNAL_FUNCTION ? function : NULL;
}

/* @return the handler that was there before, NULL where the function is disabled */
static zif_handler replace(const char *name, zif_handler handler)
{
	zend_function *function = internal(name);
	if (function == NULL) {
		return NULL;
	}
	zif_handler before = function->internal_function.handler;
	function->internal_function.handler = handler;
	return before;
}

void weft_buffers_hide(bool is_hidden)
{
	if (EG(active_fiber) != NULL) {
		weft_fiber_here()->hidden_buffers = is_hidden ? php_output_get_level() : 0;
	}
}

/* A buffer that ob_start() was told not to remove has no effect on where the next output goes. */
void weft_buffers_close(int level, bool are_flushed)
{
	weft_buffers_hide(false);
	int remaining = level + hidden_here();
	while (php_output_get_level() > remaining) {
		php_output_get_active_handler()->flags |= PHP_OUTPUT_HANDLER_STDFLAGS;
		if ((are_flushed ? php_output_end() : php_output_discard()) == FAILURE) {
			return;
		}
	}
}

void weft_buffers_share(int level)
{
	shared = level > 0 ? level : 0;
	static bool are_replaced;
	if (shared == 0 || are_replaced) {
		return;
	}
	are_replaced = true;
	for (unsigned i = 0; i < CLOSING; i++) {
		closing[i].function = internal(closing[i].name);
		closing[i].handler = replace(closing[i].name, close_buffer);
	}
	replace("ob_get_level", count_buffers);
	flush = replace("ob_flush", flush_buffer);
	list_handlers = replace("ob_list_handlers", list_buffers);
	get_status = replace("ob_get_status", buffer_status);
}
