/*
 * A module that makes the variables of ext/soap look as if they were in another order, as a PHP that Weft does not know could have them: its
 * ini entries say other offsets. Nothing may change them afterwards, for PHP would write to these offsets.
 */
#include "php.h"
#include "zend_ini.h"

static PHP_MINIT_FUNCTION(soap_layout)
{
	zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("soap.wsdl_cache_dir"));

	(void) type;
	(void) module_number;
	if (entry == NULL) {
		return FAILURE;
	}
	entry->mh_arg1 = (char *) entry->mh_arg1 + sizeof(void *);
	return SUCCESS;
}

static const zend_module_dep dependencies[] = {ZEND_MOD_REQUIRED("soap") ZEND_MOD_END};

zend_module_entry soap_layout_module_entry = {
	STANDARD_MODULE_HEADER_EX, NULL, dependencies, "soap_layout", NULL, PHP_MINIT(soap_layout), NULL, NULL, NULL, NULL, "1",
	STANDARD_MODULE_PROPERTIES
};

ZEND_GET_MODULE(soap_layout)
