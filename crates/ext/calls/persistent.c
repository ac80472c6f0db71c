/* Persistent connections: the same one for all tasks that open it with the same arguments. */
#include "internal.h"
#include "handle.h"

/* PGSQL_CONNECT_FORCE_NEW. The key leaves it out. */
#define PGSQL_FORCE_NEW 2

/* As ext/pgsql makes it, in php_pgsql_do_connect(). */
static zend_string *pgsql_key(zend_execute_data *execute_data)
{
	zval *connection = argument(execute_data, 1), *type = argument(execute_data, 2);

	if (connection == NULL || Z_TYPE_P(connection) != IS_STRING) {
		return NULL;
	}
	return zend_strpprintf(0, "pgsql%s_" ZEND_LONG_FMT, Z_STRVAL_P(connection), type != NULL ? zval_get_long(type) & ~PGSQL_FORCE_NEW : 0);
}

void weft_claim_persistent_connection(struct weft_call *call, struct wrapped *function)
{
	zend_string *name = function->kind == HANDLE_PGSQL_KEPT ? pgsql_key(call->execute_data) : weft_pdo_key(call->execute_data);
	zend_resource *kept;

	if (name == NULL) {
		return;
	}
	kept = zend_hash_find_ptr(&EG(persistent_list), name);
	if (kept != NULL && kept->ptr != NULL) {
		call->claims[0].handle = kept->ptr;
	}
	/* No address: the highest bit of a hash is set. */
	call->claims[1].handle = (void *) zend_string_hash_val(name);
	call->claims[1].side = ALL;
	call->claims[1].call = call;
	zend_string_release(name);
}
