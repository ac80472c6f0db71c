/* Takes all places that PHP has for extensions in fibers and functions, as opcache, debuggers and profilers do together. */
#include <php.h>
#include <zend_extensions.h>

static PHP_MINIT_FUNCTION(slots)
{
	while (zend_get_resource_handle("slots") >= 0) {
	}
	return SUCCESS;
}

zend_module_entry slots_module_entry = {STANDARD_MODULE_HEADER, "slots", NULL, PHP_MINIT(slots), NULL, NULL, NULL, NULL, "1", STANDARD_MODULE_PROPERTIES};
ZEND_GET_MODULE(slots)
