/* A module that observes all functions, as profilers and tracers do, and says at the end whether each one that began has ended. */
#include <php.h>
#include <zend_observer.h>

static long begun, ended;

static void begins(zend_execute_data *execute_data)
{
	begun++;
}

static void ends(zend_execute_data *execute_data, zval *result)
{
	/* What a tracer reads of a call. */
	if (EX(func)->common.function_name == NULL || ZSTR_LEN(EX(func)->common.function_name) != 0) {
		ended++;
	}
}

static zend_observer_fcall_handlers observe(zend_execute_data *execute_data)
{
	return (zend_observer_fcall_handlers) {begins, ends};
}

static PHP_MINIT_FUNCTION(observer)
{
	zend_observer_fcall_register(observe);
	return SUCCESS;
}

static PHP_MSHUTDOWN_FUNCTION(observer)
{
	fprintf(stderr, "%s", begun == ended ? "all ended" : "not all ended");
	return SUCCESS;
}

zend_module_entry observer_module_entry = {
	STANDARD_MODULE_HEADER, "observer", NULL, PHP_MINIT(observer), PHP_MSHUTDOWN(observer), NULL, NULL, NULL, "1", STANDARD_MODULE_PROPERTIES
};

ZEND_GET_MODULE(observer)
