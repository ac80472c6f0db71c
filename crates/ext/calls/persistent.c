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

/* Claims what stands for the name; releases the string. */
static void claim_name(struct weft_call *call, zend_string *name)
{
	/* No address: the highest bit of a hash is set. */
	call->claims[1].handle = (void *) zend_string_hash_val(name);
	call->claims[1].side = ALL;
	call->claims[1].call = call;
	zend_string_release(name);
}

/*
 * Without its pool, ext-redis has one persistent connection for all objects that connect to a server with the same timeout or id. It makes its key
 * `phpredis:tcp://host:port:timeout` from more than the arguments; the host and the port are enough.
 */
static void claim_redis(struct weft_call *call)
{
	const zval *host = argument(call->execute_data, 1);
	zval *number = argument(call->execute_data, 2);
	zend_long port = number != NULL ? zval_get_long(number) : 0;
	zend_string *key, *part;
	zend_resource *kept;

	if (host == NULL || Z_TYPE_P(host) != IS_STRING || zend_ini_long(ZEND_STRL("redis.pconnect.pooling_enabled"), 0) != 0) {
		return;
	}
	part = zend_strpprintf(0, ":" ZEND_LONG_FMT ":", port > 0 ? port : 6379);
	ZEND_HASH_FOREACH_STR_KEY_PTR(&EG(persistent_list), key, kept) {
		if (key != NULL && kept != NULL && zend_string_starts_with_literal(key, "phpredis:") && strstr(ZSTR_VAL(key), Z_STRVAL_P(host)) != NULL
				&& (Z_STRVAL_P(host)[0] == '/' || strstr(ZSTR_VAL(key), ZSTR_VAL(part)) != NULL) && weft_sides_in_use(kept->ptr) != 0) {
			call->claims[1].handle = kept->ptr;
			call->claims[1].side = ALL;
			call->claims[1].call = call;
			zend_string_release(part);
			return;
		}
	} ZEND_HASH_FOREACH_END();
	claim_name(call, zend_strpprintf(0, "phpredis:%s%s", Z_STRVAL_P(host), ZSTR_VAL(part)));
	zend_string_release(part);
}

void weft_claim_persistent_connection(struct weft_call *call, struct wrapped *function)
{
	zend_string *name;
	zend_resource *kept;

	if (function->kind == HANDLE_REDIS_KEPT) {
		claim_redis(call);
		return;
	}
	name = function->kind == HANDLE_PGSQL_KEPT ? pgsql_key(call->execute_data) : weft_pdo_key(call->execute_data);
	if (name == NULL) {
		return;
	}
	kept = zend_hash_find_ptr(&EG(persistent_list), name);
	if (kept != NULL && kept->ptr != NULL) {
		call->claims[0].handle = kept->ptr;
	}
	claim_name(call, name);
}
