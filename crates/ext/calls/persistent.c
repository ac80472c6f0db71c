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
 * Without its pool, ext-redis has one persistent connection for all objects that connect to a server with the same timeout or id, under the key
 * `phpredis:tcp://host:port:` with the id, or else the timeout, at the end. Timeouts are not compared: how they are written is the library's matter.
 */
struct redis_server {
	const char *host, *id;
	size_t host_length;
	/* `:port:`, or `:` for a socket of a path. */
	zend_string *port;
};

static bool is_key_of(const char *key, const struct redis_server *server)
{
	const char *scheme = strstr(key, "://");
	const char *host = scheme != NULL ? scheme + strlen("://") : key;

	if (strncmp(host, server->host, server->host_length) != 0 || strncmp(host + server->host_length, ZSTR_VAL(server->port), ZSTR_LEN(server->port)) != 0) {
		return false;
	}
	return *server->id == '\0' || strcmp(host + server->host_length + ZSTR_LEN(server->port), server->id) == 0;
}

/* The connection that is kept for the server and in which another fiber waits; NULL if there is none. */
static void *redis_connection_in_use(const struct redis_server *server)
{
	zend_string *key;
	zend_resource *kept;

	ZEND_HASH_FOREACH_STR_KEY_PTR(&EG(persistent_list), key, kept) {
		if (key != NULL && kept != NULL && zend_string_starts_with_literal(key, "phpredis:") && is_key_of(ZSTR_VAL(key) + strlen("phpredis:"), server)
				&& weft_sides_in_use(kept->ptr) != 0) {
			return kept->ptr;
		}
	} ZEND_HASH_FOREACH_END();
	return NULL;
}

static void claim_redis(struct weft_call *call)
{
	const zval *host = argument(call->execute_data, 1), *id = argument(call->execute_data, 4);
	zval *number = argument(call->execute_data, 2);
	zend_long port = number != NULL ? zval_get_long(number) : 0;
	struct redis_server server;
	const char *scheme;

	if (host == NULL || Z_TYPE_P(host) != IS_STRING || zend_ini_long(ZEND_STRL("redis.pconnect.pooling_enabled"), 0) != 0) {
		return;
	}
	scheme = strstr(Z_STRVAL_P(host), "://");
	server.host = scheme != NULL ? scheme + strlen("://") : Z_STRVAL_P(host);
	server.host_length = strlen(server.host);
	server.id = id != NULL && Z_TYPE_P(id) == IS_STRING ? Z_STRVAL_P(id) : "";
	server.port = *server.host == '/' ? zend_string_init(ZEND_STRL(":"), false) : zend_strpprintf(0, ":" ZEND_LONG_FMT ":", port > 0 ? port : 6379);
	call->claims[1].handle = redis_connection_in_use(&server);
	if (call->claims[1].handle != NULL) {
		call->claims[1].side = ALL;
		call->claims[1].call = call;
	} else {
		claim_name(call, zend_strpprintf(0, "phpredis:%s%s%s", server.host, ZSTR_VAL(server.port), server.id));
	}
	zend_string_release(server.port);
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
