/*
 * A module whose function fail_allocation($n) makes the n-th allocation from then on a fatal error, as one is that exceeds the memory limit, or that the system
 * refuses; 0: none.
 */
#include <php.h>

static zend_long left;

static void fail_or_pass_on(bool are_counted);

static void count(void)
{
	fail_or_pass_on(false);
	if (left > 0 && --left == 0) {
		zend_error_noreturn(E_ERROR, "There is no memory left");
	}
}

static void *allocate(size_t size)
{
	count();
	void *memory = emalloc(size);
	fail_or_pass_on(true);
	return memory;
}

static void *reallocate(void *memory, size_t size)
{
	count();
	memory = erealloc(memory, size);
	fail_or_pass_on(true);
	return memory;
}

static void release(void *memory)
{
	fail_or_pass_on(false);
	efree(memory);
	fail_or_pass_on(true);
}

static void fail_or_pass_on(bool are_counted)
{
	if (are_counted && left > 0) {
		zend_mm_set_custom_handlers(zend_mm_get_heap(), allocate, release, reallocate);
	} else {
		zend_mm_set_custom_handlers(zend_mm_get_heap(), NULL, NULL, NULL);
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_fail_allocation, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, number, IS_LONG, 0)
ZEND_END_ARG_INFO()

static PHP_FUNCTION(fail_allocation)
{
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(left)
	ZEND_PARSE_PARAMETERS_END();
	fail_or_pass_on(true);
}

static const zend_function_entry functions[] = {
	PHP_FE(fail_allocation, arginfo_fail_allocation)
	PHP_FE_END
};

zend_module_entry failing_memory_module_entry = {
	STANDARD_MODULE_HEADER, "failing_memory", functions, NULL, NULL, NULL, NULL, NULL, "1", STANDARD_MODULE_PROPERTIES
};

ZEND_GET_MODULE(failing_memory)
