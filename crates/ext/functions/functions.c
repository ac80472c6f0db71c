/* When functions are replaced. */
#include "functions.h"

#include <string.h>

#define MAX_REPLACERS 2

static void (*replacers[MAX_REPLACERS])(void);
static unsigned replacer_count;
static zend_result (*next_post_startup)(void);
static zif_handler original_dl;

static void replace_all(void);

/* The module has functions that no one has replaced yet. */
static ZEND_NAMED_FUNCTION(call_dl)
{
	original_dl(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	replace_all();
}

static void replace_all(void)
{
	for (unsigned i = 0; i < replacer_count; i++) {
		replacers[i]();
	}
	weft_replace_function("dl", call_dl, &original_dl);
}

static zend_result post_startup(void)
{
	if (next_post_startup != NULL && next_post_startup() != SUCCESS) {
		return FAILURE;
	}
	replace_all();
	return SUCCESS;
}

void weft_replace_function(const char *name, zif_handler handler, zif_handler *before)
{
	zend_function *function = zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
	if (*before != NULL || function == NULL || function->type != ZEND_INTERNAL_FUNCTION) {
		return;
	}
	*before = function->internal_function.handler;
	function->internal_function.handler = handler;
}

void weft_when_functions_are_registered(void (*replace)(void))
{
	ZEND_ASSERT(replacer_count < MAX_REPLACERS);
	replacers[replacer_count++] = replace;
	if (php_get_module_initialized()) {
		/* A script has loaded Weft by dl(). */
		replace_all();
	} else if (replacer_count == 1) {
		next_post_startup = zend_post_startup_cb;
		zend_post_startup_cb = post_startup;
	}
}

bool weft_function_is_one_of(const zend_function *function, const char *const *names)
{
	if (function == NULL || function->type != ZEND_INTERNAL_FUNCTION || function->common.function_name == NULL) {
		return false;
	}
	for (; *names != NULL; names++) {
		if (zend_string_equals_cstr(function->common.function_name, *names, strlen(*names))) {
			return true;
		}
	}
	return false;
}
