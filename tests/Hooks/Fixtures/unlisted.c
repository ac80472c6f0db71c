/* An extension that Weft has no rules for, with a function that waits for a millisecond. */
#include <php.h>
#include <poll.h>

ZEND_BEGIN_ARG_INFO(no_arguments, 0)
ZEND_END_ARG_INFO()

static PHP_FUNCTION(unlisted_wait)
{
	ZEND_PARSE_PARAMETERS_NONE();
	poll(NULL, 0, 1);
}

static const zend_function_entry functions[] = {
	PHP_FE(unlisted_wait, no_arguments)
	PHP_FE_END
};

zend_module_entry unlisted_module_entry = {
	STANDARD_MODULE_HEADER, "unlisted", functions, NULL, NULL, NULL, NULL, NULL, "1", STANDARD_MODULE_PROPERTIES
};

ZEND_GET_MODULE(unlisted)
