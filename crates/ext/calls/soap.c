/* The variables of ext/soap, which each call has to itself. */
#include "internal.h"

/*
 * The state that ext/soap keeps for the call in progress: `zend_soap_globals` of ext/soap/php_soap.h, a header that PHP does not install. A call sets
 * the variables it needs and restores the previous values at its end, so calls that overlap have to be kept apart. PHP 8.4 has another order,
 * and since PHP 8.5 the tables of encodings are elsewhere.
 */
struct soap_variables {
#if PHP_VERSION_ID < 80500
	HashTable namespaces, encodings, encoding_index;
#endif
	HashTable *typemap;
	int unique_namespace;
	int version;
	void *sdl;
#if PHP_VERSION_ID >= 80400
	char *error_code;
	zval error_object;
	bool errors_are_faults;
	char cache_mode, cache_enabled;
#else
	bool errors_are_faults;
	char *error_code;
	zval error_object;
	char cache, cache_mode, cache_enabled;
#endif
	char *cache_dir;
	zend_long cache_ttl, cache_limit;
	HashTable *mem_cache;
	void *encoding;
	HashTable *class_map;
	int features;
};

/* Those around the call, and those of the call while it is suspended. */
struct soap_copies {
	struct soap_variables around, own;
};

/* Null where the module is not loaded, or its variables are not in the order declared above. */
static struct soap_variables *soap;

static bool has_ini_entry(const char *name, size_t offset, void **globals)
{
	zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), name, strlen(name));

	if (entry == NULL || (size_t) entry->mh_arg1 != offset) {
		return false;
	}
	*globals = entry->mh_arg2;
	return true;
}

void weft_soap_find(void)
{
	void *globals;

	if (has_ini_entry("soap.wsdl_cache_enabled", offsetof(struct soap_variables, cache_enabled), &globals)
			&& has_ini_entry("soap.wsdl_cache_dir", offsetof(struct soap_variables, cache_dir), &globals)
			&& has_ini_entry("soap.wsdl_cache_limit", offsetof(struct soap_variables, cache_limit), &globals)) {
		soap = globals;
	}
}

zend_never_inline bool weft_soap_separate(struct weft_call *call)
{
	struct weft_call *outer;

	if (soap == NULL) {
		return false;
	}
	for (outer = call->outer; outer != NULL; outer = outer->outer) {
		if (outer->soap != NULL) {
			return true;
		}
	}
	call->soap = emalloc(sizeof(*call->soap));
	call->soap->around = *soap;
	return true;
}

/* All calls share the cache of descriptions and the settings, which ini_set() changes and frees. */
static void set_variables(const struct soap_variables *variables)
{
	struct soap_variables shared = *soap;

	*soap = *variables;
	soap->mem_cache = shared.mem_cache;
	soap->cache_mode = shared.cache_mode;
	soap->cache_enabled = shared.cache_enabled;
	soap->cache_dir = shared.cache_dir;
	soap->cache_ttl = shared.cache_ttl;
	soap->cache_limit = shared.cache_limit;
}

void weft_soap_suspend(struct weft_call *call)
{
	call->soap->own = *soap;
	set_variables(&call->soap->around);
}

void weft_soap_resume(struct weft_call *call)
{
	call->soap->around = *soap;
	set_variables(&call->soap->own);
}
