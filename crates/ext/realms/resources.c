/*
 * get_resources() inside and outside of realms leaves out the streams behind php://input. They serve one request after the other and are in use as long as the
 * process runs: code that closes everything it finds, as daemons do, would take them away, and code that reads what it finds would see the bodies of other
 * clients.
 */
#include "realm.h"
#include "switch.h"
#include "functions/functions.h"

#include <main/php_streams.h>

static bool is_body(const php_stream *stream)
{
	php_stream **bodies = zend_stack_base(&realms.bodies);
	for (int i = 0; i < zend_stack_count(&realms.bodies); i++) {
		/* The contents of a body are a stream of their own, in memory or in a file. */
		if (bodies[i] == stream || (stream->enclosing_stream != NULL && bodies[i] == stream->enclosing_stream)) {
			return true;
		}
	}
	return false;
}

static zif_handler original_get_resources;

static ZEND_NAMED_FUNCTION(own_get_resources)
{
	original_get_resources(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) != IS_ARRAY || zend_stack_count(&realms.bodies) == 0) {
		return;
	}
	SEPARATE_ARRAY(return_value);
	zend_ulong number;
	zval *entry;
	ZEND_HASH_FOREACH_NUM_KEY_VAL(Z_ARRVAL_P(return_value), number, entry) {
		if (Z_TYPE_P(entry) == IS_RESOURCE && Z_RES_P(entry)->type == php_file_le_stream() && Z_RES_P(entry)->ptr != NULL && is_body(Z_RES_P(entry)->ptr)) {
			zend_hash_index_del(Z_ARRVAL_P(return_value), number);
		}
	} ZEND_HASH_FOREACH_END();
}

void weft_resources_replace_functions(void)
{
	weft_replace_function("get_resources", own_get_resources, &original_get_resources);
}
