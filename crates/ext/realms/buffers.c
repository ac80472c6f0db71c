/*
 * Output buffers of the server around those of an application: the one that all fibers share, which watches for output that reaches no
 * response, and the one that collects a request's. Applications close every buffer there is, `while (ob_get_level() > 0) ob_end_clean();`, and would
 * close these too; then what others print would mix. So inside of fibers the functions below see only what is above.
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
	int own = weft_fiber_of(EG(current_fiber_context))->hidden_buffers;
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

void weft_buffers_hide(bool is_hidden)
{
	if (EG(active_fiber) != NULL) {
		weft_fiber_of(EG(current_fiber_context))->hidden_buffers = is_hidden ? php_output_get_level() : 0;
	}
}

void weft_buffers_share(int level)
{
	shared = level > 0 ? level : 0;
	if (shared == 0 || closing[0].function != NULL) {
		return;
	}
	for (unsigned i = 0; i < CLOSING; i++) {
		zend_function *function = zend_hash_str_find_ptr(CG(function_table), closing[i].name, strlen(closing[i].name));
		if (function != NULL && function->type == ZEND_INTERNAL_FUNCTION) {
			closing[i].function = function;
			closing[i].handler = function->internal_function.handler;
			function->internal_function.handler = close_buffer;
		}
	}
	zend_function *counting = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("ob_get_level"));
	if (counting != NULL && counting->type == ZEND_INTERNAL_FUNCTION) {
		counting->internal_function.handler = count_buffers;
	}
}
