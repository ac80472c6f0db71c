/* A module that handles exit as uopz, Swoole and Xdebug do: it says that PHP exits, and lets it, whatever handled exit before. */
#include <php.h>

#if PHP_VERSION_ID >= 80400
static zif_handler php_exit;

static ZEND_NAMED_FUNCTION(say_exit)
{
	php_write("exit\n", sizeof("exit\n") - 1);
	php_exit(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static PHP_MINIT_FUNCTION(late_exit)
{
	zend_internal_function *function = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("exit"));
	php_exit = function->handler;
	function->handler = say_exit;
	return SUCCESS;
}
#else
static int say_exit(zend_execute_data *execute_data)
{
	php_write("exit\n", sizeof("exit\n") - 1);
	return ZEND_USER_OPCODE_DISPATCH;
}

static PHP_MINIT_FUNCTION(late_exit)
{
	return zend_set_user_opcode_handler(ZEND_EXIT, say_exit);
}
#endif

zend_module_entry late_exit_module_entry = {
	STANDARD_MODULE_HEADER, "late_exit", NULL, PHP_MINIT(late_exit), NULL, NULL, NULL, NULL, "1", STANDARD_MODULE_PROPERTIES
};

ZEND_GET_MODULE(late_exit)
