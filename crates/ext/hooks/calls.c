/*
 * Wrappers around internal functions and methods that may suspend a task while C frames of a library lie below it: PDO::query(),
 * curl_exec(), fread() …
 *
 * The handler of each such function is replaced by call(), which does three things the libraries cannot do themselves:
 *
 * - While one task waits in a call, another task's use of the same handle throws HandleInUseError, or waits for its turn. Unguarded, the second
 *   command would be written into the middle of the first one's answer.
 * - A cancellation that arrives while the call waits is what the call throws. Libraries wrap it into an exception of their own, or turn it
 *   into a warning and false.
 * - After a fatal error, calls that still wait return before PHP frees their handles.
 *
 * A call that does not suspend costs a frame on the C stack: nothing is allocated or hashed. Only when a fiber switches away from a call are the
 * handles that it uses entered in `claims`. The frame is plain data, because a fatal error jumps over it.
 */
#include "php.h"
#include "zend_exceptions.h"
#include "zend_fibers.h"
#include "zend_gc.h"
#include "zend_observer.h"
#include "zend_weakrefs.h"

#if __has_include("ext/pdo/php_pdo_driver.h")
# include "ext/pdo/php_pdo_driver.h"
# define HAVE_PDO_HEADERS 1
#endif

#include "calls.h"
#include "hooks.h"
#include "fibers/fiber.h"

/* --- which calls are wrapped ----------------------------------------------------------------------------------- */

/* Where a call has its handle. */
enum handle {
	HANDLE_EXEMPT,       /* the call is not wrapped: it only reads what the process has in memory */
	HANDLE_NONE,         /* it has none, or one that tasks may share */
	HANDLE_OBJECT,       /* the object */
	HANDLE_CURL_MULTI,   /* the object, which tasks share between calls: a call does not give way to other tasks, the next one does before it begins */
	HANDLE_INNER,        /* what the object wraps, which other objects may wrap as well: the first pointer of its struct */
	HANDLE_MYSQLI,       /* the connection of a mysqli object */
	HANDLE_MYSQLI_STMT,  /* that of its statement */
	HANDLE_MYSQLI_RESULT,/* that of its result */
	HANDLE_PDO,          /* the connection of a PDO, which persistent connections share */
	HANDLE_PDO_NEW,      /* as before, and the object may have methods of its driver */
	HANDLE_PDO_STATEMENT,/* that of its statement */
	HANDLE_AMQP,         /* the connection of a channel, queue or exchange */
	HANDLE_PGSQL,        /* the connection, or the last one that was opened */
	HANDLE_PGSQL_OPENED, /* none before the call, which returns one */
	HANDLE_RESOURCE,     /* the stream or process of a resource */
	HANDLE_SECOND,       /* the stream of the second argument */
	HANDLE_COPY,         /* two streams: read from the first, written to the second */
	HANDLE_SQLITE,       /* the connection of an SQLite3 object */
	HANDLE_SQLITE_STMT,  /* that of its statement */
	HANDLE_SOAP,         /* the object; see struct soap_variables */
};

/* What two calls must not do to one handle at the same time. */
enum side { READ = 1, WRITE = 2, ALL = READ | WRITE };

struct rule {
	const char *class; /* in lower case, null for functions */
	const char *name;  /* in lower case; a trailing * stands for any ending */
	unsigned char handle;
	unsigned char side;
};

/* The first rule that matches counts. A rule for a class holds for its subclasses. A method has its handle in `$this`, a function in its first
 * argument. */
static const struct rule rules[] = {
	{"pdo", "__destruct", HANDLE_EXEMPT, 0},
	{"pdo", "intransaction", HANDLE_EXEMPT, 0},
	{"pdo", "errorcode", HANDLE_EXEMPT, 0},
	{"pdo", "errorinfo", HANDLE_EXEMPT, 0},
	{"pdo", "quote", HANDLE_EXEMPT, 0},
	{"pdo", "getavailabledrivers", HANDLE_EXEMPT, 0},
	{"pdo", "connect", HANDLE_NONE, 0},
	{"pdo", "__construct", HANDLE_PDO_NEW, ALL},
	{"pdo", "*", HANDLE_PDO, ALL},
	{"pdostatement", "errorcode", HANDLE_EXEMPT, 0},
	{"pdostatement", "errorinfo", HANDLE_EXEMPT, 0},
	{"pdostatement", "rowcount", HANDLE_EXEMPT, 0},
	{"pdostatement", "columncount", HANDLE_EXEMPT, 0},
	{"pdostatement", "debugdumpparams", HANDLE_EXEMPT, 0},
	{"pdostatement", "*", HANDLE_PDO_STATEMENT, ALL},

	{"mysqli", "real_escape_string", HANDLE_EXEMPT, 0},
	{"mysqli", "escape_string", HANDLE_EXEMPT, 0},
	{"mysqli", "get_*", HANDLE_EXEMPT, 0},
	{"mysqli", "character_set_name", HANDLE_EXEMPT, 0},
	{"mysqli", "poll", HANDLE_NONE, 0},
	{"mysqli", "*", HANDLE_MYSQLI, ALL},
	{"mysqli_stmt", "__construct", HANDLE_NONE, 0},
	{"mysqli_stmt", "*", HANDLE_MYSQLI_STMT, ALL},
	{"mysqli_result", "__construct", HANDLE_NONE, 0},
	{"mysqli_result", "*", HANDLE_MYSQLI_RESULT, ALL},
	{NULL, "mysqli_affected_rows", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_character_set_name", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_connect_*", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_connect", HANDLE_NONE, 0},
	{NULL, "mysqli_errno", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_error*", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_escape_string", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_real_escape_string", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_field_count", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_get_*", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_info", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_init", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_insert_id", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_num_fields", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_num_rows", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_poll", HANDLE_NONE, 0},
	{NULL, "mysqli_report", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_sqlstate", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_thread_id", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_thread_safe", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_warning_count", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_stmt_*", HANDLE_MYSQLI_STMT, ALL},
	{NULL, "mysqli_execute", HANDLE_MYSQLI_STMT, ALL},
	{NULL, "mysqli_fetch_*", HANDLE_MYSQLI_RESULT, ALL},
	{NULL, "mysqli_data_seek", HANDLE_MYSQLI_RESULT, ALL},
	{NULL, "mysqli_field_*", HANDLE_MYSQLI_RESULT, ALL},
	{NULL, "mysqli_free_result", HANDLE_MYSQLI_RESULT, ALL},
	{NULL, "mysqli_*", HANDLE_MYSQLI, ALL},

	/* A wait for the lock of another connection leaves SQLite in the middle of a statement. */
	{"sqlite3", "escapestring", HANDLE_EXEMPT, 0},
	{"sqlite3", "last*", HANDLE_EXEMPT, 0},
	{"sqlite3", "changes", HANDLE_EXEMPT, 0},
	{"sqlite3", "version", HANDLE_EXEMPT, 0},
	{"sqlite3", "*", HANDLE_SQLITE, ALL},
	{"sqlite3stmt", "__construct", HANDLE_NONE, 0},
	{"sqlite3stmt", "bind*", HANDLE_EXEMPT, 0},
	{"sqlite3stmt", "*", HANDLE_SQLITE_STMT, ALL},
	{"sqlite3result", "__construct", HANDLE_NONE, 0},
	{"sqlite3result", "column*", HANDLE_EXEMPT, 0},
	{"sqlite3result", "numcolumns", HANDLE_EXEMPT, 0},
	{"sqlite3result", "*", HANDLE_INNER, ALL},

	/* Results of pgsql are in memory; the functions that read them are not wrapped. */
	{NULL, "pg_connect", HANDLE_PGSQL_OPENED, 0},
	{NULL, "pg_pconnect", HANDLE_PGSQL_OPENED, 0},
	{NULL, "pg_connect_poll", HANDLE_PGSQL, ALL},
	{NULL, "pg_connection_reset", HANDLE_PGSQL, ALL},
	{NULL, "pg_close", HANDLE_PGSQL, ALL},
	{NULL, "pg_ping", HANDLE_PGSQL, ALL},
	{NULL, "pg_query*", HANDLE_PGSQL, ALL},
	{NULL, "pg_exec*", HANDLE_PGSQL, ALL},
	{NULL, "pg_prepare", HANDLE_PGSQL, ALL},
	{NULL, "pg_send_*", HANDLE_PGSQL, ALL},
	{NULL, "pg_get_result", HANDLE_PGSQL, ALL},
	{NULL, "pg_get_notify", HANDLE_PGSQL, ALL},
	{NULL, "pg_cancel_query", HANDLE_PGSQL, ALL},
	{NULL, "pg_consume_input", HANDLE_PGSQL, ALL},
	{NULL, "pg_flush", HANDLE_PGSQL, ALL},
	{NULL, "pg_copy_*", HANDLE_PGSQL, ALL},
	{NULL, "pg_put_line", HANDLE_PGSQL, ALL},
	{NULL, "pg_end_copy", HANDLE_PGSQL, ALL},
	{NULL, "pg_lo_*", HANDLE_PGSQL, ALL},
	{NULL, "pg_meta_data", HANDLE_PGSQL, ALL},
	{NULL, "pg_convert", HANDLE_PGSQL, ALL},
	{NULL, "pg_insert", HANDLE_PGSQL, ALL},
	{NULL, "pg_update", HANDLE_PGSQL, ALL},
	{NULL, "pg_delete", HANDLE_PGSQL, ALL},
	{NULL, "pg_select", HANDLE_PGSQL, ALL},
	{NULL, "pg_set_client_encoding", HANDLE_PGSQL, ALL},
	{NULL, "pg_setclientencoding", HANDLE_PGSQL, ALL},
	{NULL, "pg_field_table", HANDLE_PGSQL, ALL}, /* asks the server for the names of tables */
	{NULL, "pg_field_type", HANDLE_PGSQL, ALL},  /* and of types */

	{"redis", "__destruct", HANDLE_EXEMPT, 0},
	{"redis", "getoption", HANDLE_EXEMPT, 0},
	{"redis", "gethost", HANDLE_EXEMPT, 0},
	{"redis", "getport", HANDLE_EXEMPT, 0},
	{"redis", "getdbnum", HANDLE_EXEMPT, 0},
	{"redis", "gettimeout", HANDLE_EXEMPT, 0},
	{"redis", "getreadtimeout", HANDLE_EXEMPT, 0},
	{"redis", "getpersistentid", HANDLE_EXEMPT, 0},
	{"redis", "getauth", HANDLE_EXEMPT, 0},
	{"redis", "getmode", HANDLE_EXEMPT, 0},
	{"redis", "getlasterror", HANDLE_EXEMPT, 0},
	{"redis", "clearlasterror", HANDLE_EXEMPT, 0},
	{"redis", "isconnected", HANDLE_EXEMPT, 0},
	{"redis", "*", HANDLE_OBJECT, ALL},
	{"rediscluster", "__destruct", HANDLE_EXEMPT, 0},
	{"rediscluster", "getoption", HANDLE_EXEMPT, 0},
	{"rediscluster", "getlasterror", HANDLE_EXEMPT, 0},
	{"rediscluster", "clearlasterror", HANDLE_EXEMPT, 0},
	{"rediscluster", "*", HANDLE_OBJECT, ALL},
	{"redisarray", "__destruct", HANDLE_EXEMPT, 0},
	{"redisarray", "*", HANDLE_OBJECT, ALL},
	{"redissentinel", "__destruct", HANDLE_EXEMPT, 0},
	{"redissentinel", "*", HANDLE_OBJECT, ALL},

	{"amqpconnection", "__construct", HANDLE_EXEMPT, 0},
	{"amqpconnection", "get*", HANDLE_EXEMPT, 0},
	{"amqpconnection", "set*", HANDLE_EXEMPT, 0},
	{"amqpconnection", "is*", HANDLE_EXEMPT, 0},
	{"amqpconnection", "*", HANDLE_OBJECT, ALL},
	{"amqpchannel", "__construct", HANDLE_NONE, 0},
	{"amqpchannel", "get*", HANDLE_EXEMPT, 0},
	{"amqpchannel", "is*", HANDLE_EXEMPT, 0},
	{"amqpchannel", "*", HANDLE_AMQP, ALL},
	{"amqpqueue", "__construct", HANDLE_EXEMPT, 0},
	{"amqpqueue", "get", HANDLE_AMQP, ALL},
	{"amqpqueue", "get*", HANDLE_EXEMPT, 0},
	{"amqpqueue", "set*", HANDLE_EXEMPT, 0},
	{"amqpqueue", "has*", HANDLE_EXEMPT, 0},
	{"amqpqueue", "*", HANDLE_AMQP, ALL},
	{"amqpexchange", "__construct", HANDLE_EXEMPT, 0},
	{"amqpexchange", "get*", HANDLE_EXEMPT, 0},
	{"amqpexchange", "set*", HANDLE_EXEMPT, 0},
	{"amqpexchange", "has*", HANDLE_EXEMPT, 0},
	{"amqpexchange", "*", HANDLE_AMQP, ALL},

	{"memcached", "getoption", HANDLE_EXEMPT, 0},
	{"memcached", "getresult*", HANDLE_EXEMPT, 0},
	{"memcached", "getserverlist", HANDLE_EXEMPT, 0},
	{"memcached", "getlast*", HANDLE_EXEMPT, 0},
	{"memcached", "is*", HANDLE_EXEMPT, 0},
	{"memcached", "*", HANDLE_INNER, ALL},

	{"soapclient", "__construct", HANDLE_SOAP, ALL},
	{"soapclient", "__call", HANDLE_SOAP, ALL},
	{"soapclient", "__soapcall", HANDLE_SOAP, ALL},
	{"soapclient", "__dorequest", HANDLE_SOAP, ALL},
	{"soapserver", "__construct", HANDLE_SOAP, ALL},
	{"soapserver", "handle", HANDLE_SOAP, ALL},

	/* libcurl itself lets tasks share a multi handle while one of them waits in curl_multi_select(), and refuses nested calls. */
	{NULL, "curl_getinfo", HANDLE_EXEMPT, 0},
	{NULL, "curl_err*", HANDLE_EXEMPT, 0},
	{NULL, "curl_strerror", HANDLE_EXEMPT, 0},
	{NULL, "curl_version", HANDLE_EXEMPT, 0},
	{NULL, "curl_init", HANDLE_EXEMPT, 0},
	{NULL, "curl_close", HANDLE_EXEMPT, 0},
	{NULL, "curl_escape", HANDLE_EXEMPT, 0},
	{NULL, "curl_unescape", HANDLE_EXEMPT, 0},
	{NULL, "curl_pause", HANDLE_NONE, 0},
	{NULL, "curl_multi_select", HANDLE_NONE, 0},
	{NULL, "curl_multi_init", HANDLE_EXEMPT, 0},
	{NULL, "curl_multi_err*", HANDLE_EXEMPT, 0},
	{NULL, "curl_multi_str*", HANDLE_EXEMPT, 0},
	{NULL, "curl_multi_getcontent", HANDLE_EXEMPT, 0},
	{NULL, "curl_multi_info_read", HANDLE_NONE, 0},
	{NULL, "curl_multi_*", HANDLE_CURL_MULTI, ALL},
	{NULL, "curl_share_*", HANDLE_EXEMPT, 0},
	{NULL, "curl_*", HANDLE_OBJECT, ALL},

	{NULL, "socket_accept", HANDLE_OBJECT, READ},
	{NULL, "socket_read", HANDLE_OBJECT, READ},
	{NULL, "socket_recv*", HANDLE_OBJECT, READ},
	{NULL, "socket_write", HANDLE_OBJECT, WRITE},
	{NULL, "socket_send*", HANDLE_OBJECT, WRITE},
	{NULL, "socket_connect", HANDLE_OBJECT, WRITE},
	{NULL, "socket_close", HANDLE_OBJECT, ALL},
	{NULL, "socket_select", HANDLE_NONE, 0},
	{NULL, "socket_addrinfo_lookup", HANDLE_NONE, 0},
	{NULL, "socket_addrinfo_connect", HANDLE_NONE, 0},

	{NULL, "ldap_bind*", HANDLE_INNER, ALL},
	{NULL, "ldap_sasl_bind", HANDLE_INNER, ALL},
	{NULL, "ldap_unbind", HANDLE_INNER, ALL},
	{NULL, "ldap_close", HANDLE_INNER, ALL},
	{NULL, "ldap_search", HANDLE_INNER, ALL},
	{NULL, "ldap_list", HANDLE_INNER, ALL},
	{NULL, "ldap_read", HANDLE_INNER, ALL},
	{NULL, "ldap_add*", HANDLE_INNER, ALL},
	{NULL, "ldap_delete*", HANDLE_INNER, ALL},
	{NULL, "ldap_mod*", HANDLE_INNER, ALL},
	{NULL, "ldap_rename*", HANDLE_INNER, ALL},
	{NULL, "ldap_compare", HANDLE_INNER, ALL},
	{NULL, "ldap_start_tls", HANDLE_INNER, ALL},
	{NULL, "ldap_exop*", HANDLE_INNER, ALL},

	{NULL, "ftp_connect", HANDLE_NONE, 0},
	{NULL, "ftp_ssl_connect", HANDLE_NONE, 0},
	{NULL, "ftp_*", HANDLE_OBJECT, ALL},

	/* One task may read a stream while another one writes it. */
	{NULL, "fread", HANDLE_RESOURCE, READ},
	{NULL, "fgets", HANDLE_RESOURCE, READ},
	{NULL, "feof", HANDLE_RESOURCE, READ},
	{NULL, "fgetc", HANDLE_RESOURCE, READ},
	{NULL, "fgetcsv", HANDLE_RESOURCE, READ},
	{NULL, "fscanf", HANDLE_RESOURCE, READ},
	{NULL, "fpassthru", HANDLE_RESOURCE, READ},
	{NULL, "stream_get_contents", HANDLE_RESOURCE, READ},
	{NULL, "stream_get_line", HANDLE_RESOURCE, READ},
	{NULL, "stream_socket_accept", HANDLE_RESOURCE, READ},
	{NULL, "stream_socket_recvfrom", HANDLE_RESOURCE, READ},
	{NULL, "fwrite", HANDLE_RESOURCE, WRITE},
	{NULL, "fputs", HANDLE_RESOURCE, WRITE},
	{NULL, "fputcsv", HANDLE_RESOURCE, WRITE},
	{NULL, "fflush", HANDLE_RESOURCE, WRITE},
	{NULL, "stream_socket_sendto", HANDLE_RESOURCE, WRITE},
	{NULL, "stream_socket_enable_crypto", HANDLE_RESOURCE, ALL},
	{NULL, "fseek", HANDLE_RESOURCE, ALL},
	{NULL, "rewind", HANDLE_RESOURCE, ALL},
	{NULL, "fclose", HANDLE_RESOURCE, ALL},
	{NULL, "pclose", HANDLE_RESOURCE, ALL},
	{NULL, "proc_close", HANDLE_RESOURCE, ALL},
	{NULL, "fprintf", HANDLE_RESOURCE, WRITE},
	{NULL, "vfprintf", HANDLE_RESOURCE, WRITE},
	{NULL, "ftruncate", HANDLE_RESOURCE, ALL},
	{NULL, "fsync", HANDLE_RESOURCE, WRITE},
	{NULL, "fdatasync", HANDLE_RESOURCE, WRITE},
	{NULL, "stream_filter_append", HANDLE_RESOURCE, ALL},
	{NULL, "stream_filter_prepend", HANDLE_RESOURCE, ALL},
	{NULL, "readdir", HANDLE_RESOURCE, READ},
	{NULL, "rewinddir", HANDLE_RESOURCE, READ},
	{NULL, "closedir", HANDLE_RESOURCE, ALL},
	{NULL, "hash_update_stream", HANDLE_SECOND, READ},
	{"splfileobject", "*", HANDLE_OBJECT, ALL},
	{NULL, "stream_copy_to_stream", HANDLE_COPY, ALL},
	{NULL, "stream_select", HANDLE_NONE, 0},
	{NULL, "stream_socket_client", HANDLE_NONE, 0},
	{NULL, "fsockopen", HANDLE_NONE, 0},
	{NULL, "pfsockopen", HANDLE_NONE, 0},
	{NULL, "fopen", HANDLE_NONE, 0},
	{NULL, "file", HANDLE_NONE, 0},
	{NULL, "file_get_contents", HANDLE_NONE, 0},
	{NULL, "file_put_contents", HANDLE_NONE, 0},
	{NULL, "readfile", HANDLE_NONE, 0},
	{NULL, "copy", HANDLE_NONE, 0},
	{NULL, "get_headers", HANDLE_NONE, 0},
	{NULL, "unlink", HANDLE_NONE, 0},
	{NULL, "rename", HANDLE_NONE, 0},
	{NULL, "mkdir", HANDLE_NONE, 0},
	{NULL, "rmdir", HANDLE_NONE, 0},
	{NULL, "opendir", HANDLE_NONE, 0},
	{NULL, "scandir", HANDLE_NONE, 0},
	{NULL, "getimagesize", HANDLE_NONE, 0},
	{NULL, "exif_*", HANDLE_NONE, 0},
	{NULL, "md5_file", HANDLE_NONE, 0},
	{NULL, "sha1_file", HANDLE_NONE, 0},
	{NULL, "hash_file", HANDLE_NONE, 0},
	{NULL, "simplexml_load_file", HANDLE_NONE, 0},
	{"domdocument", "load*", HANDLE_OBJECT, ALL},
	{"xmlreader", "open", HANDLE_OBJECT, ALL},
	{"xmlreader", "read*", HANDLE_OBJECT, ALL},
	{"xmlreader", "next", HANDLE_OBJECT, ALL},
	{NULL, "flock", HANDLE_NONE, 0},

	{NULL, "sleep", HANDLE_NONE, 0},
	{NULL, "usleep", HANDLE_NONE, 0},
	{NULL, "time_nanosleep", HANDLE_NONE, 0},
	{NULL, "time_sleep_until", HANDLE_NONE, 0},
	{NULL, "exec", HANDLE_NONE, 0},
	{NULL, "shell_exec", HANDLE_NONE, 0},
	{NULL, "system", HANDLE_NONE, 0},
	{NULL, "passthru", HANDLE_NONE, 0},
	{NULL, "popen", HANDLE_NONE, 0},
	{NULL, "proc_open", HANDLE_NONE, 0},
	{NULL, "mail", HANDLE_NONE, 0},
	{NULL, "pcntl_wait", HANDLE_NONE, 0},
	{NULL, "pcntl_waitpid", HANDLE_NONE, 0},
	{NULL, "gethostbyname*", HANDLE_NONE, 0},
	{NULL, "gethostbyaddr", HANDLE_NONE, 0},
	{NULL, "dns_*", HANDLE_NONE, 0},
	{NULL, "checkdnsrr", HANDLE_NONE, 0},
	{NULL, "getmxrr", HANDLE_NONE, 0},
	{NULL, "session_*", HANDLE_NONE, 0},
};

/* A wrapped function. It is never freed: the classes of users have copies of the methods they inherit. */
struct wrapped {
	zif_handler original;
	unsigned char handle;
	unsigned char side;
	/* Exceptions of this module are the library's own. */
	const zend_module_entry *module;
	/* Of a function that takes the object as its first argument: the class whose struct leads to the handle, null where any of the module does. */
	zend_class_entry *class;
	/* Of HANDLE_AMQP: where the object has its connection, 0 until it is known. */
	uint32_t property;
};

/* --- calls in progress ----------------------------------------------------------------------------------------- */

struct frame;

/* A handle that a call uses. */
struct claim {
	void *handle;
	struct frame *frame;
	/* Another claim to the same handle, while the call is suspended. */
	struct claim *next;
	unsigned char side;
};

/* A call in progress in a fiber, on the C stack of that fiber. */
struct frame {
	struct wrapped *function;
	zend_execute_data *execute_data;
	zend_fiber_context *context;
	/* The call around it in the same fiber. */
	struct frame *outer;
	/* Neighbours in the list of calls from which fibers have switched away. */
	struct frame *before, *after;
	/* The exception with which a wait ended. */
	zend_object *interruption;
	struct claim claims[2];
	/* The object that PHP frees; NULL in the frame of a call. */
	zend_object *freed;
	/* The function has no rule; the frame exists while it waits. */
	bool is_unruled;
	/* Of HANDLE_SOAP, unless it is nested in a call that has them. */
	struct soap_copies *soap;
	int error_reporting;
	bool is_suspended;
	/* A wait of libc is suspended, and not a callback: nothing but C frames is between the wait and this call. */
	bool waits;
	/* The fiber has been resumed in order to be destroyed. */
	bool is_destroyed;
};

/* An object that PHP was about to free while another task used its handle. */
struct parked {
	zend_object *object;
	void *handle;
	struct parked *next;
};

/* The first of the calls from which fibers have switched away. */
static struct frame *suspended;
/* Objects that are freed when their handles are free. */
static struct parked *parked;
/* The claims of these calls, by handle. */
static HashTable claims;
/* How many tasks wait for their turn to read, and how many to write, by handle. Tasks that wait for both count twice. */
static HashTable waiters;
/* How many calls are suspended and how many tasks wait for their turn: while there is none, every call may start. */
static uint32_t obstacles;
/* A task waits for its turn instead of getting an error. */
static bool is_queueing;
/* The connection that functions of pgsql use when they are given none. */
static void *last_pgsql_connection;
/* An error is being described: calls on the handle that is in use are let through. */
static bool is_describing;
/* After a fatal error: calls end with a bailout. */
static bool is_abandoning;

static zend_result (*next_post_startup)(void);
static zend_object_get_method_t next_get_pdo_method;
static const zend_module_entry *pdo;
/* The methods that drivers of PDO add, by their handlers. */
static HashTable driver_methods;
/* The modules that have wrapped functions. */
static HashTable ruled_modules;

static void weft_calls_wrap(void);

static zend_always_inline struct frame *innermost(void)
{
	return weft_fiber_of(EG(current_fiber_context))->call;
}

static zend_always_inline zend_ulong key(void *handle)
{
	/* The lowest bits of a pointer are all zero; a hash table uses them first. */
	return ((zend_ulong) handle >> 4) | ((zend_ulong) handle << (sizeof(zend_ulong) * 8 - 4));
}

/* The objects of one library wrap structs that begin with a pointer to the next one. */
static zend_always_inline void *follow(zend_object *object, int pointers)
{
	void *at = (char *) object - object->handlers->offset;

	while (pointers-- > 0) {
		at = *(void **) at;
		if (at == NULL) {
			return object;
		}
	}
	return at;
}

static zend_always_inline zval *argument(zend_execute_data *execute_data, uint32_t number)
{
	zval *value;

	if (ZEND_CALL_NUM_ARGS(execute_data) < number) {
		return NULL;
	}
	value = ZEND_CALL_ARG(execute_data, number);
	ZVAL_DEREF(value);
	return value;
}

static zend_always_inline zend_object *object_of(zend_execute_data *execute_data)
{
	zval *first;

	if (Z_TYPE(EX(This)) == IS_OBJECT) {
		return Z_OBJ(EX(This));
	}
	first = argument(execute_data, 1);
	return first != NULL && Z_TYPE_P(first) == IS_OBJECT ? Z_OBJ_P(first) : NULL;
}

/*
 * The same for a handle that is inside of the object. A function is wrapped before PHP has checked the types of its arguments: an object of
 * another class has no such struct, and the call has no handle, because PHP is going to refuse it.
 */
static zend_always_inline zend_object *object_with_handle(const struct wrapped *function, zend_execute_data *execute_data)
{
	zend_object *object = object_of(execute_data);

	if (object == NULL || Z_TYPE(EX(This)) == IS_OBJECT) {
		return object;
	}
	if (function->class != NULL) {
		return instanceof_function(object->ce, function->class) ? object : NULL;
	}
	return object->ce->type == ZEND_INTERNAL_CLASS && object->ce->info.internal.module == function->module ? object : NULL;
}

static zend_always_inline void *resource_of(zend_execute_data *execute_data, uint32_t number)
{
	zval *value = argument(execute_data, number);

	return value != NULL && Z_TYPE_P(value) == IS_RESOURCE ? Z_RES_P(value)->ptr : NULL;
}

static void *amqp_connection(struct wrapped *function, zend_object *object)
{
	zval *connection;

	if (function->property == 0) {
		zend_class_entry *class;
		zend_property_info *info = NULL;

		for (class = object->ce; class != NULL && info == NULL; class = class->parent) {
			info = class->type == ZEND_INTERNAL_CLASS ? zend_hash_str_find_ptr(&class->properties_info, "connection", sizeof("connection") - 1) : NULL;
		}
		if (info == NULL) {
			return object;
		}
		function->property = info->offset;
	}
	connection = OBJ_PROP(object, function->property);
	ZVAL_DEREF(connection);
	return Z_TYPE_P(connection) == IS_OBJECT ? (void *) Z_OBJ_P(connection) : object;
}

/* The handle that an object of the right class leads to. */
static zend_always_inline void *handle_in(struct wrapped *function, zend_object *object)
{
	switch (function->handle) {
		case HANDLE_INNER:
		case HANDLE_PGSQL:
		case HANDLE_PDO:
		case HANDLE_PDO_NEW:
			return follow(object, 1);
		case HANDLE_SQLITE:
			return follow(object, 0);
		case HANDLE_SQLITE_STMT:
			return ((void **) follow(object, 0))[1];
		case HANDLE_MYSQLI:
			return follow(object, 4); /* MYSQLI_RESOURCE, MY_MYSQL, MYSQLND, MYSQLND_CONN_DATA */
		case HANDLE_MYSQLI_STMT:
			return follow(object, 5); /* MYSQLI_RESOURCE, MY_STMT, MYSQLND_STMT, MYSQLND_STMT_DATA, MYSQLND_CONN_DATA */
		case HANDLE_MYSQLI_RESULT:
			return follow(object, 3); /* MYSQLI_RESOURCE, MYSQLND_RES, MYSQLND_CONN_DATA */
		case HANDLE_AMQP:
			return amqp_connection(function, object);
#ifdef HAVE_PDO_HEADERS
		case HANDLE_PDO_STATEMENT: {
			pdo_stmt_t *statement = follow(object, 0);
			return statement->dbh != NULL ? (void *) statement->dbh : object;
		}
#endif
	}
	return object;
}

static zend_always_inline void *handle_of(struct wrapped *function, zend_execute_data *execute_data)
{
	zend_object *object;

	switch (function->handle) {
		case HANDLE_NONE:
		case HANDLE_PGSQL_OPENED:
			return NULL;
		case HANDLE_RESOURCE:
		case HANDLE_COPY:
			return resource_of(execute_data, 1);
		case HANDLE_SECOND:
			return resource_of(execute_data, 2);
		case HANDLE_PGSQL:
			if (object_of(execute_data) == NULL) {
				return last_pgsql_connection;
			}
	}
	object = function->handle == HANDLE_OBJECT || function->handle == HANDLE_CURL_MULTI ? object_of(execute_data) : object_with_handle(function, execute_data);
	return object == NULL ? NULL : handle_in(function, object);
}

/* --- one handle, two tasks ------------------------------------------------------------------------------------- */

static void claim(struct claim *claim)
{
	zval *first;

	if (claim->handle == NULL) {
		return;
	}
	first = zend_hash_index_find(&claims, key(claim->handle));
	if (first == NULL) {
		claim->next = NULL;
		zend_hash_index_add_new_ptr(&claims, key(claim->handle), claim);
	} else {
		claim->next = Z_PTR_P(first);
		Z_PTR_P(first) = claim;
	}
}

static void unclaim(struct claim *claim)
{
	zval *first;
	struct claim *other;

	if (claim->handle == NULL || (first = zend_hash_index_find(&claims, key(claim->handle))) == NULL) {
		return;
	}
	if (Z_PTR_P(first) == claim) {
		if (claim->next == NULL) {
			zend_hash_index_del(&claims, key(claim->handle));
		} else {
			Z_PTR_P(first) = claim->next;
		}
		return;
	}
	for (other = Z_PTR_P(first); other != NULL; other = other->next) {
		if (other->next == claim) {
			other->next = claim->next;
			return;
		}
	}
}

/* --- variables of ext/soap ------------------------------------------------------------------------------------- */

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

static void find_soap_variables(void)
{
	void *globals;

	if (has_ini_entry("soap.wsdl_cache_enabled", XtOffsetOf(struct soap_variables, cache_enabled), &globals)
			&& has_ini_entry("soap.wsdl_cache_dir", XtOffsetOf(struct soap_variables, cache_dir), &globals)
			&& has_ini_entry("soap.wsdl_cache_limit", XtOffsetOf(struct soap_variables, cache_limit), &globals)) {
		soap = globals;
	}
}

static zend_never_inline void separate_soap_variables(struct frame *frame)
{
	struct frame *outer;

	for (outer = frame->outer; outer != NULL; outer = outer->outer) {
		if (outer->soap != NULL) {
			return;
		}
	}
	frame->soap = emalloc(sizeof(*frame->soap));
	frame->soap->around = *soap;
}

/* All calls share the cache of descriptions. */
static void set_soap_variables(const struct soap_variables *variables)
{
	HashTable *mem_cache = soap->mem_cache;

	*soap = *variables;
	soap->mem_cache = mem_cache;
}

static void suspend_soap_variables(struct frame *frame)
{
	frame->soap->own = *soap;
	set_soap_variables(&frame->soap->around);
}

static void resume_soap_variables(struct frame *frame)
{
	frame->soap->around = *soap;
	set_soap_variables(&frame->soap->own);
}

/* --- switches between fibers ----------------------------------------------------------------------------------- */

static void suspend_call(struct frame *frame)
{
	if (frame->soap != NULL) {
		suspend_soap_variables(frame);
	}
	frame->is_suspended = true;
	obstacles++;
	frame->before = NULL;
	frame->after = suspended;
	if (suspended != NULL) {
		suspended->before = frame;
	}
	suspended = frame;
	if (frame->function->handle == HANDLE_PDO_NEW) {
		/* With PDO::ATTR_PERSISTENT the constructor has freed what the object had, and connects another handle. */
		frame->claims[0].handle = handle_of(frame->function, frame->execute_data);
	}
	claim(&frame->claims[0]);
	claim(&frame->claims[1]);
}

/* The call is not suspended any more: its fiber goes on, or is gone. */
static void resume_call(struct frame *frame)
{
	frame->is_suspended = false;
	obstacles--;
	unclaim(&frame->claims[0]);
	unclaim(&frame->claims[1]);
	if (frame->before != NULL) {
		frame->before->after = frame->after;
	} else {
		suspended = frame->after;
	}
	if (frame->after != NULL) {
		frame->after->before = frame->before;
	}
}

static void resume_calls(struct frame *frame)
{
	for (; frame != NULL && frame->is_suspended; frame = frame->outer) {
		resume_call(frame);
	}
}

/* Called before a switch, on the stack of the fiber that is left. */
static void fiber_switches(zend_fiber_context *from, zend_fiber_context *to)
{
	struct frame *frame;

	if (from->status != ZEND_FIBER_STATUS_DEAD) {
		for (frame = weft_fiber_of(from)->call; frame != NULL && !frame->is_suspended; frame = frame->outer) {
			suspend_call(frame);
		}
	} else {
		/* A bailout has jumped over these calls. */
		weft_fiber_of(from)->call = NULL;
	}
	frame = weft_fiber_of(to)->call;
	if (frame != NULL) {
		struct frame *call;

		resume_calls(frame);
		for (call = frame; call != NULL; call = call->outer) {
			if (call->soap != NULL) {
				resume_soap_variables(call);
			}
		}
		if (to->kind == zend_ce_fiber && (zend_fiber_from_context(to)->flags & ZEND_FIBER_FLAG_DESTROYED)) {
			for (; frame != NULL; frame = frame->outer) {
				frame->is_destroyed = true;
			}
		}
	}
}

/* PHP frees the stack of a fiber without resuming it. */
static void fiber_destroyed(zend_fiber_context *context)
{
	struct frame *frame = weft_fiber_of(context)->call;

	resume_calls(frame);
	if (frame != NULL && frame->is_unruled) {
		weft_fiber_of(context)->call = NULL;
		efree(frame);
	}
}

/* The call that keeps `frame` from starting, and the claim of `frame` to the same handle. */
static struct frame *conflict(struct frame *frame, struct claim **claim)
{
	struct claim *other;
	int i;

	for (i = 0; i < 2; i++) {
		if (frame->claims[i].handle == NULL) {
			continue;
		}
		other = zend_hash_index_find_ptr(&claims, key(frame->claims[i].handle));
		for (; other != NULL; other = other->next) {
			if (other->frame->context != frame->context && (other->side & frame->claims[i].side)) {
				*claim = &frame->claims[i];
				return other->frame;
			}
		}
	}
	return NULL;
}

static void call_library(const char *name, zval *result, uint32_t count, zval *arguments)
{
	static const char class_name[] = "Weft\\Runtime\\Internal\\SharedHandles";
	zend_string *class = zend_string_init(class_name, sizeof(class_name) - 1, 0);
	zend_class_entry *entry = zend_lookup_class(class);
	zend_function *function = entry == NULL ? NULL : zend_hash_str_find_ptr(&entry->function_table, name, strlen(name));

	zend_string_release(class);
	ZVAL_NULL(result);
	if (function != NULL) {
		zend_call_known_function(function, NULL, entry, result, count, arguments, NULL);
	}
}

#ifdef HAVE_PDO_HEADERS
static zend_object *connection_of(const pdo_stmt_t *statement)
{
# if PHP_VERSION_ID >= 80500
	return statement->database_object_handle;
# else
	return Z_TYPE(statement->database_object_handle) == IS_OBJECT ? Z_OBJ(statement->database_object_handle) : NULL;
# endif
}
#endif

/* The handle as code of PHP knows it, and what it is connected to where only PHP's structs tell. */
static void describe_handle(zval *value, zval *target, zend_execute_data *execute_data)
{
	struct wrapped *function = EX(func)->internal_function.reserved[weft_slot];
	zval *first;

	ZVAL_NULL(value);
	ZVAL_NULL(target);
	if (Z_TYPE(EX(This)) == IS_OBJECT) {
		ZVAL_OBJ_COPY(value, Z_OBJ(EX(This)));
	} else if ((first = argument(execute_data, function->handle == HANDLE_SECOND ? 2 : 1)) != NULL) {
		ZVAL_COPY(value, first);
	}
#ifdef HAVE_PDO_HEADERS
	if (function->handle == HANDLE_PDO_STATEMENT) {
		pdo_stmt_t *statement = follow(Z_OBJ_P(value), 0);
		zend_object *connection = connection_of(statement);
		if (connection != NULL) {
			zval_ptr_dtor(value);
			ZVAL_OBJ_COPY(value, connection);
		}
	}
	if (Z_TYPE_P(value) == IS_OBJECT && function->handle >= HANDLE_PDO && function->handle <= HANDLE_PDO_STATEMENT) {
		pdo_dbh_t *connection = php_pdo_dbh_fetch_inner(Z_OBJ_P(value));
		if (function->handle == HANDLE_PDO_NEW && (first = argument(execute_data, 1)) != NULL && Z_TYPE_P(first) == IS_STRING) {
			ZVAL_COPY(target, first);
		} else if (connection->driver != NULL && connection->data_source != NULL) {
			ZVAL_STR(target, zend_strpprintf(0, "%s:%.*s", connection->driver->driver_name, (int) connection->data_source_len, connection->data_source));
		}
	}
#endif
}

static zend_string *name_of(const struct frame *frame)
{
	const zend_function *function;

	if (frame->freed != NULL) {
		return zend_strpprintf(0, "the release of %s", ZSTR_VAL(frame->freed->ce->name));
	}
	function = frame->execute_data->func;
	return function->common.scope == NULL
		? zend_strpprintf(0, "%s()", ZSTR_VAL(function->common.function_name))
		: zend_strpprintf(0, "%s::%s()", ZSTR_VAL(function->common.scope->name), ZSTR_VAL(function->common.function_name));
}

/* The line of the user that led to the call: the innermost one that is not in a package of Composer, if there is one. */
static zend_string *place_of(zend_execute_data *execute_data)
{
	zend_execute_data *frame, *innermost = NULL;

	for (frame = execute_data; frame != NULL; frame = frame->prev_execute_data) {
		if (frame->func == NULL || !ZEND_USER_CODE(frame->func->type)) {
			continue;
		}
		if (innermost == NULL) {
			innermost = frame;
		}
		if (strstr(ZSTR_VAL(frame->func->op_array.filename), "/vendor/") == NULL) {
			innermost = frame;
			break;
		}
	}
	return innermost == NULL
		? zend_string_init("an unknown line", sizeof("an unknown line") - 1, 0)
		: zend_strpprintf(0, "%s:%u", ZSTR_VAL(innermost->func->op_array.filename), innermost->opline->lineno);
}

/* Throws HandleInUseError. */
static void refuse(struct frame *frame, struct frame *holder)
{
	zval arguments[5], details, error;
	zend_class_entry *class;
	zend_string *name;
	int i;

	if (holder->context->kind == zend_ce_fiber) {
		ZVAL_OBJ_COPY(&arguments[0], &zend_fiber_from_context(holder->context)->std);
	} else {
		ZVAL_NULL(&arguments[0]);
	}
	ZVAL_STR(&arguments[1], name_of(holder));
	ZVAL_STR(&arguments[2], place_of(holder->execute_data));
	describe_handle(&arguments[3], &arguments[4], frame->execute_data);
	is_describing = true;
	call_library("inuse", &details, 5, arguments);
	is_describing = false;
	for (i = 0; i < 5; i++) {
		zval_ptr_dtor(&arguments[i]);
	}
	if (EG(exception) == NULL && Z_TYPE(details) == IS_ARRAY) {
		name = zend_string_init("Weft\\Runtime\\HandleInUseError", sizeof("Weft\\Runtime\\HandleInUseError") - 1, 0);
		class = zend_lookup_class(name);
		zend_string_release(name);
		/* Created here, the error has the file and the line of the call. */
		if (class != NULL && object_init_ex(&error, class) == SUCCESS) {
			zend_call_known_function(class->constructor, Z_OBJ(error), class, NULL, 0, NULL, Z_ARRVAL(details));
			if (EG(exception) == NULL) {
				zend_throw_exception_object(&error);
			} else {
				zval_ptr_dtor(&error);
			}
		}
	}
	zval_ptr_dtor(&details);
	if (EG(exception) == NULL) {
		zend_throw_error(NULL, "The handle is in use: another fiber waits in a call that uses it");
	}
}

/* A number of tasks for each side. */
#define READERS(number) ((zend_long) (number))
#define WRITERS(number) ((zend_long) (number) << (sizeof(zend_long) * 4))

static zend_long ones(unsigned char sides)
{
	return READERS((sides & READ) != 0) + WRITERS((sides & WRITE) != 0);
}

static bool has_waiters(zend_long count, unsigned char sides)
{
	return ((sides & READ) && (count & (WRITERS(1) - 1))) || ((sides & WRITE) && count >= WRITERS(1));
}

/* The sides of a handle in which calls of other fibers wait. */
static unsigned char sides_in_use(const void *handle)
{
	const struct claim *other = zend_hash_index_find_ptr(&claims, key((void *) handle));
	unsigned char sides = 0;

	for (; other != NULL; other = other->next) {
		if (other->frame->context != EG(current_fiber_context)) {
			sides |= other->side;
		}
	}
	return sides;
}

/* Waits until another call has ended that uses the handle. */
static void wait_for_turn(struct frame *frame, struct claim *claim)
{
	void *handle = claim->handle;
	zval arguments[4], result, *count;

	count = zend_hash_index_lookup(&waiters, key(handle));
	if (Z_TYPE_P(count) == IS_NULL) {
		ZVAL_LONG(count, 0);
	}
	Z_LVAL_P(count) += ones(claim->side);
	obstacles++;
	ZVAL_LONG(&arguments[0], (zend_long) handle);
	ZVAL_LONG(&arguments[1], claim->side);
	describe_handle(&arguments[2], &arguments[3], frame->execute_data);
	call_library("waitforturn", &result, 4, arguments);
	zval_ptr_dtor(&arguments[2]);
	zval_ptr_dtor(&arguments[3]);
	zval_ptr_dtor(&result);
	obstacles--;
	count = zend_hash_index_find(&waiters, key(handle));
	if (count != NULL && (Z_LVAL_P(count) -= ones(claim->side)) == 0) {
		zend_hash_index_del(&waiters, key(handle));
	}
}

/* A call around this one, in the same fiber, uses the same handle. */
static bool is_nested(struct frame *frame, void *handle)
{
	struct frame *outer;

	for (outer = frame->outer; outer != NULL; outer = outer->outer) {
		if (outer->claims[0].handle == handle || outer->claims[1].handle == handle) {
			return true;
		}
	}
	return false;
}

/*
 * Lets the first of the tasks that wait for a handle of this call go on: one for each side that is free. An exception of the call stays pending.
 * Nothing is free while a call around this one uses the handle.
 */
static zend_never_inline void give_turn(struct frame *frame)
{
	zend_object *exception = EG(exception);
	zval arguments[2], result;
	int i;

	EG(exception) = NULL;
	for (i = 0; i < 2; i++) {
		void *handle = frame->claims[i].handle;
		if (handle != NULL && zend_hash_index_exists(&waiters, key(handle)) && !is_nested(frame, handle)) {
			ZVAL_LONG(&arguments[0], (zend_long) handle);
			ZVAL_LONG(&arguments[1], sides_in_use(handle));
			call_library("giveturn", &result, 2, arguments);
			zval_ptr_dtor(&result);
		}
	}
	if (exception != NULL) {
		if (EG(exception) != NULL) {
			OBJ_RELEASE(EG(exception));
		}
		EG(exception) = exception;
	}
}

/* The claim for which this call has to queue behind tasks that asked before. */
static struct claim *queue_of(struct frame *frame)
{
	zval *count;
	int i;

	for (i = 0; i < 2; i++) {
		void *handle = frame->claims[i].handle;
		if (handle != NULL && (count = zend_hash_index_find(&waiters, key(handle))) != NULL
				&& has_waiters(Z_LVAL_P(count), frame->claims[i].side) && !is_nested(frame, handle)) {
			return &frame->claims[i];
		}
	}
	return NULL;
}

#ifdef HAVE_PDO_HEADERS
/* The source begins with the name of the driver and a colon. The driver for PostgreSQL replaces the semicolons of its copy by spaces. */
static bool is_source_of(const zval *source, const pdo_dbh_t *connection)
{
	const char *given, *kept = connection->data_source;
	size_t i;

	if (Z_STRLEN_P(source) <= connection->data_source_len) {
		return false;
	}
	given = Z_STRVAL_P(source) + Z_STRLEN_P(source) - connection->data_source_len;
	for (i = 0; i < connection->data_source_len; i++) {
		if (given[i] != kept[i] && !(given[i] == ';' && kept[i] == ' ')) {
			return false;
		}
	}
	return true;
}

/*
 * A persistent connection that is opened again is the same connection, which PDO first asks whether it is alive: no task may wait in it. Null if
 * none does.
 */
static void *suspended_persistent_connection(zend_execute_data *execute_data)
{
	zval *source = argument(execute_data, 1), *options = argument(execute_data, 4), *persistent;
	struct frame *frame;

	if (suspended == NULL || source == NULL || Z_TYPE_P(source) != IS_STRING || options == NULL || Z_TYPE_P(options) != IS_ARRAY
			|| (persistent = zend_hash_index_find(Z_ARRVAL_P(options), PDO_ATTR_PERSISTENT)) == NULL || !zend_is_true(persistent)) {
		return NULL;
	}
	for (frame = suspended; frame != NULL; frame = frame->after) {
		pdo_dbh_t *connection = frame->claims[0].handle;
		if (frame->function->handle < HANDLE_PDO || frame->function->handle > HANDLE_PDO_STATEMENT || connection == NULL
				|| connection == (void *) (frame->freed != NULL ? frame->freed : object_of(frame->execute_data)) || !connection->is_persistent || connection->data_source == NULL) {
			continue;
		}
		if (is_source_of(source, connection)) {
			return connection;
		}
	}
	return NULL;
}
#endif

/* Whether the call may start. If not, an exception is pending. */
static zend_never_inline bool is_admitted(struct frame *frame)
{
	struct claim *claim = is_queueing && EG(active_fiber) != NULL ? queue_of(frame) : NULL;
	struct frame *holder = conflict(frame, &claim);

	if (is_describing || CG(unclean_shutdown)) {
		return true;
	}
	while (claim != NULL) {
		if (!is_queueing || EG(active_fiber) == NULL) {
			refuse(frame, holder);
			return false;
		}
		wait_for_turn(frame, claim);
#ifdef HAVE_PDO_HEADERS
		if (((struct wrapped *) frame->execute_data->func->internal_function.reserved[weft_slot])->handle == HANDLE_PDO_NEW) {
			frame->claims[1].handle = suspended_persistent_connection(frame->execute_data);
		}
#endif
		claim = NULL;
		holder = conflict(frame, &claim);
		/* It cannot use the turn that it may have been given: the next one gets it. */
		if ((claim != NULL || EG(exception) != NULL) && zend_hash_num_elements(&waiters) > 0) {
			give_turn(frame);
		}
		if (EG(exception) != NULL) {
			return false;
		}
	}
	return true;
}

/* --- the wrapper ----------------------------------------------------------------------------------------------- */

static void throw_instead(zend_object *exception)
{
	zend_object *thrown = EG(exception);

	EG(exception) = exception;
	if (thrown != NULL) {
		OBJ_RELEASE(thrown);
	}
}

static bool is_of_library(struct frame *frame, zend_object *exception)
{
	return exception->ce->type == ZEND_INTERNAL_CLASS && instanceof_function(exception->ce, zend_ce_throwable)
		&& exception->ce->info.internal.module == frame->function->module;
}

/* The cancellation of a callback that the library has wrapped. */
static zend_object *wrapped_cancellation(struct frame *frame, zend_object *exception)
{
	static const char name[] = "Weft\\Runtime\\CancelledException";
	zval *previous, memory;

	while (is_of_library(frame, exception)) {
		previous = zend_read_property_ex(zend_ce_exception, exception, ZSTR_KNOWN(ZEND_STR_PREVIOUS), true, &memory);
		ZVAL_DEREF(previous);
		if (Z_TYPE_P(previous) != IS_OBJECT) {
			return NULL;
		}
		exception = Z_OBJ_P(previous);
		if (zend_string_equals_cstr(exception->ce->name, name, sizeof(name) - 1)) {
			return exception;
		}
	}
	return NULL;
}

/* Makes the call throw what has interrupted it. */
static zend_never_inline void end_interrupted(struct frame *frame)
{
	zend_object *cancellation;

	if (frame->interruption != NULL) {
		weft_forget_interruption();
		EG(error_reporting) = frame->error_reporting;
		if (is_abandoning && frame->waits) {
			zend_bailout();
		}
		if (EG(exception) == frame->interruption) {
			OBJ_RELEASE(frame->interruption);
		} else if (EG(exception) == NULL || !zend_is_unwind_exit(EG(exception))) {
			throw_instead(frame->interruption);
		}
	} else if (frame->is_destroyed) {
		if (EG(exception) == NULL || is_of_library(frame, EG(exception))) {
			throw_instead(zend_create_graceful_exit());
		}
	} else if (EG(exception) != NULL && (cancellation = wrapped_cancellation(frame, EG(exception))) != NULL) {
		GC_ADDREF(cancellation);
		throw_instead(cancellation);
	}
}

#ifdef HAVE_PDO_HEADERS
/* A stream of a large object, whose reads and writes are requests of its connection. */
static void claim_connection_of_large_object(struct claim *claim, zend_execute_data *execute_data, uint32_t number)
{
	const php_stream *stream = claim->handle;
	/* The beginning of `struct pdo_pgsql_lob_self`. */
	const zval *connection;

	if (stream == NULL || Z_RES_P(argument(execute_data, number))->type != php_file_le_stream() || stream->ops == NULL
			|| strcmp(stream->ops->label, "pdo_pgsql lob stream") != 0) {
		return;
	}
	connection = stream->abstract;
	if (connection != NULL && Z_TYPE_P(connection) == IS_OBJECT) {
		claim->handle = follow(Z_OBJ_P(connection), 1);
		claim->side = ALL;
	}
}
#else
# define claim_connection_of_large_object(claim, execute_data, number) ((void) 0)
#endif

static zend_always_inline void prepare(struct frame *frame, struct wrapped *function, zend_execute_data *execute_data)
{
	frame->execute_data = execute_data;
	frame->context = EG(current_fiber_context);
	frame->outer = weft_fiber_of(frame->context)->call;
	frame->claims[0].handle = handle_of(function, execute_data);
	frame->claims[0].side = function->side;
	frame->claims[0].frame = frame;
	frame->claims[1].handle = NULL;
	if (function->handle == HANDLE_RESOURCE) {
		claim_connection_of_large_object(&frame->claims[0], execute_data, 1);
	}
	if (UNEXPECTED(function->handle == HANDLE_COPY)) {
		frame->claims[0].side = READ;
		frame->claims[1].handle = resource_of(execute_data, 2);
		frame->claims[1].side = WRITE;
		frame->claims[1].frame = frame;
		claim_connection_of_large_object(&frame->claims[0], execute_data, 1);
		claim_connection_of_large_object(&frame->claims[1], execute_data, 2);
	}
#ifdef HAVE_PDO_HEADERS
	if (UNEXPECTED(function->handle == HANDLE_PDO_NEW)) {
		frame->claims[1].handle = suspended_persistent_connection(execute_data);
		frame->claims[1].side = ALL;
		frame->claims[1].frame = frame;
	}
#endif
}

static zend_always_inline void begin(struct frame *frame, struct wrapped *function)
{
	frame->interruption = NULL;
	frame->function = function;
	frame->freed = NULL;
	frame->is_unruled = false;
	frame->soap = NULL;
	frame->is_suspended = frame->waits = frame->is_destroyed = false;
}

/* --- objects that are freed ------------------------------------------------------------------------------------- */

/*
 * Freeing an object of a library may be a request on its connection: PDOStatement closes the prepared statement, AMQPChannel the channel. No
 * function is called for it, so the function that frees the object is replaced:
 *
 * - Where another task waits in the handle, the contents of the object move to another object, which is freed when that call has ended.
 * - The request is a call like others: it has a frame, so other tasks do not get into its conversation.
 * - Weak references are cleared before it, not after it: no other task finds a half-freed object while the request waits.
 */
struct guarded {
	zend_class_entry *class;
	/* What the class's objects share; null until find_handlers(), and where another class has the same. */
	const zend_object_handlers *handlers;
	bool is_known;
	zend_object_free_obj_t free;
	struct wrapped function;
	struct guarded *next;
};

static const struct rule guarded_classes[] = {
	{"pdo", NULL, HANDLE_PDO, ALL},
	{"pdostatement", NULL, HANDLE_PDO_STATEMENT, ALL},
	{"mysqli", NULL, HANDLE_MYSQLI, ALL},
	{"mysqli_stmt", NULL, HANDLE_MYSQLI_STMT, ALL},
	{"mysqli_result", NULL, HANDLE_MYSQLI_RESULT, ALL},
	{"sqlite3", NULL, HANDLE_SQLITE, ALL},
	/* Without SQLite3Stmt: its release sends no request, and its connection keeps the address of the object. */
	{"sqlite3result", NULL, HANDLE_INNER, ALL},
	{"amqpconnection", NULL, HANDLE_OBJECT, ALL},
	{"amqpchannel", NULL, HANDLE_AMQP, ALL},
	{"memcached", NULL, HANDLE_INNER, ALL},
	{"pgsql\\connection", NULL, HANDLE_INNER, ALL},
	{"curlhandle", NULL, HANDLE_OBJECT, ALL},
	{"curlmultihandle", NULL, HANDLE_OBJECT, ALL},
	{"ftp\\connection", NULL, HANDLE_OBJECT, ALL},
	{"ldap\\connection", NULL, HANDLE_INNER, ALL},
};

static struct guarded *guarded;

static void free_guarded(zend_object *object);

/* Only an object tells what the objects of its class share. So one of each class is created, which has no connection, and freed again. */
void weft_calls_find_handlers(void)
{
	struct guarded *of;

	for (of = guarded; of != NULL; of = of->next) {
		zend_object *object;
		zend_object_handlers *handlers;

		if (of->is_known) {
			continue;
		}
		of->is_known = true;
		object = of->class->create_object(of->class);
		handlers = (zend_object_handlers *) object->handlers;
		GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
		OBJ_RELEASE(object);
		if (handlers->free_obj != free_guarded && handlers != zend_get_std_object_handlers()) {
			of->handlers = handlers;
			of->free = handlers->free_obj;
			handlers->free_obj = free_guarded;
		}
	}
}

static void guard_class(zend_class_entry *class)
{
	const struct rule *rule = NULL;
	const zend_class_entry *ancestor;
	struct guarded *of;
	size_t i;

	for (ancestor = class; ancestor != NULL && rule == NULL; ancestor = ancestor->parent) {
		for (i = 0; i < sizeof(guarded_classes) / sizeof(guarded_classes[0]) && rule == NULL; i++) {
			if (strcasecmp(ZSTR_VAL(ancestor->name), guarded_classes[i].class) == 0) {
				rule = &guarded_classes[i];
			}
		}
	}
	if (rule == NULL || class->create_object == NULL) {
		return;
	}
	for (of = guarded; of != NULL; of = of->next) {
		if (of->class == class) {
			return;
		}
	}
	of = pecalloc(1, sizeof(*of), true);
	of->class = class;
	of->function.handle = rule->handle;
	of->function.side = rule->side;
	of->function.module = class->info.internal.module;
	of->next = guarded;
	guarded = of;
}

static void swap(void *one, void *other, size_t size)
{
	char *a = one, *b = other, byte;

	for (; size > 0; size--, a++, b++) {
		byte = *a;
		*a = *b;
		*b = byte;
	}
}

/* What the library keeps of the object's own address. */
static void replace_address(unsigned char handle, void *object, void *end, void *old)
{
#ifdef HAVE_PDO_HEADERS
	if (handle == HANDLE_PDO_STATEMENT) {
		pdo_stmt_t *statement = object;
		HashTable *bound[] = {statement->bound_params, statement->bound_columns};
		struct pdo_bound_param_data *parameter;
		int i;

		for (i = 0; i < 2; i++) {
			if (bound[i] != NULL) {
				ZEND_HASH_FOREACH_PTR(bound[i], parameter) {
					parameter->stmt = statement;
				} ZEND_HASH_FOREACH_END();
			}
		}
	}
#endif
	if (handle == HANDLE_AMQP) {
		/* The last member of `amqp_channel_object`, and what `amqp_channel_resource` has behind its state and its connection. */
		void **resource = ((void **) end)[-1];
		if (resource != NULL && resource[2] == old) {
			resource[2] = object;
		}
	}
}

/* Moves the contents of an object that is about to be freed to another object, and leaves it as new. */
static zend_object *move_contents(zend_object *object, unsigned char handle)
{
	zend_class_entry *class = object->ce;
	zend_object *other = class->create_object(class);
	char *from = (char *) object - object->handlers->offset, *to = (char *) other - other->handlers->offset;
	int properties = class->default_properties_count + (class->ce_flags & ZEND_ACC_USE_GUARDS ? 1 : 0);

	swap(from, to, object->handlers->offset);
	swap(&object->properties, &other->properties, sizeof(object->properties));
	swap(object->properties_table, other->properties_table, properties * sizeof(zval));
	if (other->properties != NULL) {
		zval *value;

		/* A table of the properties points to those that are declared. */
		ZEND_HASH_FOREACH_VAL(other->properties, value) {
			if (Z_TYPE_P(value) == IS_INDIRECT) {
				ZVAL_INDIRECT(value, other->properties_table + (Z_INDIRECT_P(value) - object->properties_table));
			}
		} ZEND_HASH_FOREACH_END();
	}
	replace_address(handle, to, other, from);
	GC_ADD_FLAGS(other, IS_OBJ_DESTRUCTOR_CALLED);
	return other;
}

static void park(zend_object *object, void *handle)
{
	struct parked *entry = emalloc(sizeof(*entry));

	entry->object = object;
	entry->handle = handle;
	entry->next = parked;
	parked = entry;
}

/* Frees the parked objects whose handles are free. An exception stays pending. */
static zend_never_inline void free_parked(void)
{
	zend_object *exception = EG(exception);
	struct parked **entry = &parked, *freed;

	EG(exception) = NULL;
	while ((freed = *entry) != NULL) {
		if (sides_in_use(freed->handle) != 0) {
			entry = &freed->next;
			continue;
		}
		*entry = freed->next;
		OBJ_RELEASE(freed->object);
		efree(freed);
		/* Other tasks may have changed the list. */
		entry = &parked;
	}
	if (exception != NULL) {
		if (EG(exception) != NULL) {
			OBJ_RELEASE(EG(exception));
		}
		EG(exception) = exception;
	}
}

static void forget_parked(void)
{
	struct parked *next;

	for (; parked != NULL; parked = next) {
		next = parked->next;
		efree(parked);
	}
}

static void free_guarded(zend_object *object)
{
	struct guarded *of = guarded;
	struct frame frame;
	void *handle;

	while (of->handlers != object->handlers) {
		of = of->next;
	}
	if (GC_FLAGS(object) & IS_OBJ_WEAKLY_REFERENCED) {
		zend_weakrefs_notify(object);
		GC_DEL_FLAGS(object, IS_OBJ_WEAKLY_REFERENCED);
	}
	if ((obstacles == 0 && EG(active_fiber) == NULL) || CG(unclean_shutdown)) {
		of->free(object);
		return;
	}
	handle = handle_in(&of->function, object);
	if (UNEXPECTED(obstacles > 0) && sides_in_use(handle) != 0) {
		park(move_contents(object, of->function.handle), handle);
		of->free(object);
		return;
	}
	if (EG(active_fiber) == NULL) {
		of->free(object);
		return;
	}
	if (EG(exception) != NULL && !weft_call_is_running()) {
		/* What was interrupted is over: this is what its exception leaves behind. */
		weft_forget_interruption();
	}
	begin(&frame, &of->function);
	frame.freed = object;
	frame.execute_data = EG(current_execute_data);
	frame.context = EG(current_fiber_context);
	frame.outer = weft_fiber_of(frame.context)->call;
	frame.claims[0].handle = handle;
	frame.claims[0].side = ALL;
	frame.claims[0].frame = &frame;
	frame.claims[1].handle = NULL;
	weft_fiber_of(frame.context)->call = &frame;
	of->free(object);
	weft_fiber_of(frame.context)->call = frame.outer;
	if (UNEXPECTED(frame.interruption != NULL)) {
		end_interrupted(&frame);
		if (EG(exception) != NULL) {
			/* The library may have discarded it. Code of PHP that freed the object does not ask again. */
			zend_throw_exception_internal(NULL);
		}
	}
	if (UNEXPECTED(parked != NULL)) {
		free_parked();
	}
	if (UNEXPECTED(zend_hash_num_elements(&waiters) > 0)) {
		give_turn(&frame);
	}
}

static int (*next_collect_cycles)(void);

/* The objects whose handles are in use, each with a reference more. */
static uint32_t hold_objects_in_use(zend_object ***held)
{
	uint32_t number, count = 0, size = 0;

	for (number = 1; number < EG(objects_store).top; number++) {
		zend_object *object = EG(objects_store).object_buckets[number];
		const struct guarded *of;

		if (!IS_OBJ_VALID(object) || object->handlers->free_obj != free_guarded) {
			continue;
		}
		for (of = guarded; of->handlers != object->handlers; of = of->next) {
		}
		if (sides_in_use(handle_in((struct wrapped *) &of->function, object)) != 0) {
			if (count == size) {
				size = size * 2 + 16;
				*held = safe_erealloc(*held, size, sizeof(**held), 0);
			}
			GC_ADDREF(object);
			(*held)[count++] = object;
		}
	}
	return count;
}

/* Whether a call is suspended in the handle of an object, and not only in a stream: there are many objects to look at. */
static bool is_object_in_use(void)
{
	const struct frame *frame;

	for (frame = suspended; frame != NULL; frame = frame->after) {
		switch (frame->function->handle) {
			case HANDLE_NONE:
			case HANDLE_RESOURCE:
			case HANDLE_SECOND:
			case HANDLE_COPY:
				break;
			default:
				return true;
		}
	}
	return false;
}

/*
 * Garbage cannot be parked: what it refers to may be garbage as well, whose memory the collector frees. While its handle is in use, an object is
 * no garbage.
 */
static int collect_cycles(void)
{
	zend_object **held = NULL;
	uint32_t count = is_object_in_use() && !CG(unclean_shutdown) ? hold_objects_in_use(&held) : 0;
	int collected = next_collect_cycles();

	/* The collector may have been called from anywhere: nothing may suspend here. */
	zend_fiber_switch_block();
	while (count > 0) {
		OBJ_RELEASE(held[--count]);
	}
	zend_fiber_switch_unblock();
	if (held != NULL) {
		efree(held);
	}
	return collected;
}

/* --- the call -------------------------------------------------------------------------------------------------- */

static ZEND_NAMED_FUNCTION(call)
{
	struct wrapped *function = EX(func)->internal_function.reserved[weft_slot];
	struct frame frame;

	if (UNEXPECTED(function->handle == HANDLE_CURL_MULTI) && !weft_give_way_before_call()) {
		return;
	}
	if (EXPECTED(EG(active_fiber) == NULL)) {
		if (UNEXPECTED(obstacles > 0)) {
			prepare(&frame, function, execute_data);
			if (!is_admitted(&frame)) {
				return;
			}
		}
		function->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		if (UNEXPECTED(parked != NULL)) {
			free_parked();
		}
		return;
	}
	prepare(&frame, function, execute_data);
	if (UNEXPECTED(obstacles > 0) && !is_admitted(&frame)) {
		return;
	}
	begin(&frame, function);
	/* Calls whose variables cannot be kept apart must not overlap: they block. */
	bool blocks = UNEXPECTED(function->handle == HANDLE_SOAP) && soap == NULL;
	if (UNEXPECTED(function->handle == HANDLE_SOAP) && soap != NULL) {
		separate_soap_variables(&frame);
	}
	weft_fiber_of(frame.context)->call = &frame;
	if (blocks) {
		zend_fiber_switch_block();
	}
	function->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (blocks) {
		zend_fiber_switch_unblock();
	}
	weft_fiber_of(frame.context)->call = frame.outer;
	if (UNEXPECTED(frame.soap != NULL)) {
		efree(frame.soap);
	}
	if (UNEXPECTED(EG(exception) != NULL) || UNEXPECTED(frame.interruption != NULL) || UNEXPECTED(frame.is_destroyed)) {
		end_interrupted(&frame);
	}
	if (UNEXPECTED(parked != NULL)) {
		free_parked();
	}
	if (UNEXPECTED(zend_hash_num_elements(&waiters) > 0)) {
		give_turn(&frame);
	}
}

/* pg_connect(): the connection it returns is the one that other functions use when they are given none. */
static ZEND_NAMED_FUNCTION(call_pgsql_connect)
{
	call(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		last_pgsql_connection = follow(Z_OBJ_P(return_value), 1);
	}
}

static ZEND_NAMED_FUNCTION(call_pdo_construct);

static zif_handler original_dl;

static ZEND_NAMED_FUNCTION(call_dl)
{
	original_dl(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	weft_calls_wrap();
}

/* --- waits of libc --------------------------------------------------------------------------------------------- */

/* The wrapped call whose C code is running. */
static struct frame *running(void)
{
	struct frame *frame = weft_slot < 0 || EG(active_fiber) == NULL ? NULL : innermost();

	return frame != NULL && frame->execute_data == EG(current_execute_data) ? frame : NULL;
}

bool weft_call_is_running(void)
{
	return running() != NULL;
}

bool weft_call_keeps_shared_handle(void)
{
	const struct frame *frame;

	if (weft_slot >= 0 && EG(active_fiber) != NULL) {
		for (frame = innermost(); frame != NULL; frame = frame->outer) {
			if (frame->function->handle == HANDLE_CURL_MULTI) {
				return true;
			}
		}
	}
	return false;
}

static zend_always_inline bool is_unruled(const zend_execute_data *execute_data)
{
	return execute_data != NULL && execute_data->func != NULL && execute_data->func->type == ZEND_INTERNAL_FUNCTION
		&& execute_data->func->internal_function.reserved[weft_slot] == NULL;
}

/* The streams among the arguments of a function without a rule: they must not be closed while it waits in one of them. */
static zend_never_inline void claim_arguments(zend_execute_data *execute_data)
{
	static struct wrapped unruled = {.handle = HANDLE_RESOURCE, .side = ALL};
	zval *value;
	struct frame *frame;
	uint32_t number, count = 0;
	void *streams[2] = {NULL, NULL};

	for (number = 1; number <= ZEND_CALL_NUM_ARGS(execute_data) && count < 2; number++) {
		value = argument(execute_data, number);
		if (Z_TYPE_P(value) == IS_RESOURCE && Z_RES_P(value)->ptr != NULL
				&& (Z_RES_P(value)->type == php_file_le_stream() || Z_RES_P(value)->type == php_file_le_pstream())) {
			streams[count++] = Z_RES_P(value)->ptr;
		}
	}
	if (count == 0) {
		return;
	}
	frame = emalloc(sizeof(*frame));
	begin(frame, &unruled);
	frame->is_unruled = true;
	frame->execute_data = execute_data;
	frame->context = EG(current_fiber_context);
	frame->outer = innermost();
	for (count = 0; count < 2; count++) {
		frame->claims[count].handle = streams[count];
		frame->claims[count].side = ALL;
		frame->claims[count].frame = frame;
	}
	weft_fiber_of(frame->context)->call = frame;
}

void weft_call_suspends(void)
{
	struct frame *frame = running();
	const zend_execute_data *execute_data = EG(current_execute_data);

	if (frame != NULL) {
		frame->waits = true;
	} else if (weft_slot >= 0 && EG(active_fiber) != NULL && is_unruled(execute_data)) {
		claim_arguments(EG(current_execute_data));
	}
}

/* Extensions without rules whose functions wait in streams only. */
static const char *const extensions_of_php[] = {"bz2", "dba", "fileinfo", "gd", "openssl", "phar", "tidy", "weft", "xml", "xmlwriter", "xsl", "zip", "zlib"};

static bool may_suspend(const zend_module_entry *module)
{
	size_t i;

	if (module->handle == NULL || zend_hash_index_exists(&ruled_modules, (zend_ulong) module)) {
		return true;
	}
	for (i = 0; i < sizeof(extensions_of_php) / sizeof(extensions_of_php[0]); i++) {
		if (strcmp(module->name, extensions_of_php[i]) == 0) {
			return true;
		}
	}
	return false;
}

bool weft_call_may_suspend(void)
{
	static const zend_module_entry *last;
	const zend_execute_data *execute_data = EG(current_execute_data);
	const zend_module_entry *module;

	if (weft_slot < 0 || !is_unruled(execute_data) || (module = execute_data->func->internal_function.module) == NULL || module == last) {
		return true;
	}
	if (!may_suspend(module)) {
		return false;
	}
	last = module;
	return true;
}

void weft_call_resumed(void)
{
	struct frame *frame = running();

	if (frame == NULL) {
		return;
	}
	if (frame->is_unruled) {
		weft_fiber_of(frame->context)->call = frame->outer;
		if (zend_hash_num_elements(&waiters) > 0) {
			give_turn(frame);
		}
		efree(frame);
		return;
	}
	if (EG(exception) != NULL && frame->interruption == NULL) {
		frame->interruption = EG(exception);
		GC_ADDREF(frame->interruption);
		/* The library is about to fail. Its warnings are about a failure that is not one. */
		frame->error_reporting = EG(error_reporting);
		EG(error_reporting) &= E_FATAL_ERRORS;
	}
	if (!is_abandoning) {
		frame->waits = false;
	}
}

/* --- wrapping -------------------------------------------------------------------------------------------------- */

static bool matches(const struct rule *rule, const zend_string *name)
{
	const char *pattern = rule->name, *text = ZSTR_VAL(name);

	for (; *pattern != '\0' && *pattern != '*'; pattern++, text++) {
		if (*pattern != *text) {
			return false;
		}
	}
	return *pattern == '*' || *text == '\0';
}

static const struct rule *rule_of(const char *class, const zend_string *name)
{
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if ((class == NULL ? rules[i].class == NULL : rules[i].class != NULL && strcmp(rules[i].class, class) == 0) && matches(&rules[i], name)) {
			return &rules[i];
		}
	}
	return NULL;
}

/* The class of the objects that the functions of this kind take. */
static zend_class_entry *class_with_handle(unsigned char handle)
{
	switch (handle) {
		case HANDLE_MYSQLI:
			return zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("mysqli"));
		case HANDLE_MYSQLI_STMT:
			return zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("mysqli_stmt"));
		case HANDLE_MYSQLI_RESULT:
			return zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("mysqli_result"));
	}
	return NULL;
}

static struct wrapped *wrapped_function(const zend_internal_function *function, const struct rule *rule, const zend_module_entry *module)
{
	struct wrapped *wrapped = pecalloc(1, sizeof(*wrapped), true);

	wrapped->original = function->handler;
	wrapped->handle = rule->handle;
	wrapped->side = rule->side;
	wrapped->module = module;
	wrapped->class = class_with_handle(rule->handle);
	return wrapped;
}

static zif_handler wrapper_of(const struct rule *rule)
{
	switch (rule->handle) {
		case HANDLE_PGSQL_OPENED:
			return call_pgsql_connect;
		case HANDLE_PDO_NEW:
			return call_pdo_construct;
		default:
			return call;
	}
}

static void wrap(zend_function *function, const struct rule *rule)
{
	if (rule == NULL || rule->handle == HANDLE_EXEMPT || function->type != ZEND_INTERNAL_FUNCTION || function->internal_function.handler == NULL
			|| function->internal_function.reserved[weft_slot] != NULL) {
		return;
	}
	function->internal_function.reserved[weft_slot] = wrapped_function(&function->internal_function, rule, function->internal_function.module);
	function->internal_function.handler = wrapper_of(rule);
	zend_hash_index_add_empty_element(&ruled_modules, (zend_ulong) function->internal_function.module);
}

/*
 * Methods of PDO that a driver adds, such as PDO::pgsqlCopyToArray(). PDO makes them anew for each connection, so they are wrapped when they are
 * looked up.
 */
static zend_function *get_pdo_method(zend_object **object, zend_string *name, const zval *key)
{
	static const struct rule rule = {"pdo", "*", HANDLE_PDO, ALL};
	zend_function *function = next_get_pdo_method(object, name, key);
	struct wrapped *wrapped;

	if (function == NULL || function->type != ZEND_INTERNAL_FUNCTION || !(function->common.fn_flags & ZEND_ACC_NEVER_CACHE)
			|| function->internal_function.module != NULL || function->internal_function.reserved[weft_slot] != NULL) {
		return function;
	}
	wrapped = zend_hash_index_find_ptr(&driver_methods, (zend_ulong) function->internal_function.handler);
	if (wrapped == NULL) {
		wrapped = wrapped_function(&function->internal_function, &rule, pdo);
		zend_hash_index_add_new_ptr(&driver_methods, (zend_ulong) function->internal_function.handler, wrapped);
	}
	function->internal_function.reserved[weft_slot] = wrapped;
	function->internal_function.handler = call;
	return function;
}

static ZEND_NAMED_FUNCTION(call_pdo_construct)
{
	zend_object_handlers *handlers = (zend_object_handlers *) Z_OBJ(EX(This))->handlers;

	if (handlers->get_method != get_pdo_method) {
		pdo = EX(func)->internal_function.module;
		next_get_pdo_method = handlers->get_method;
		handlers->get_method = get_pdo_method;
	}
	call(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static bool has_rules(const char *class)
{
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].class != NULL && strcmp(rules[i].class, class) == 0) {
			return true;
		}
	}
	return false;
}

/* The class with rules of its own from which this one descends, in lower case; null if there is none. */
static zend_string *ruled_ancestor(zend_class_entry *class)
{
	zend_string *name;

	for (; class != NULL; class = class->parent) {
		name = zend_string_tolower(class->name);
		if (has_rules(ZSTR_VAL(name))) {
			return name;
		}
		zend_string_release(name);
	}
	return NULL;
}

static zif_handler original_handler(const zend_internal_function *function)
{
	const struct wrapped *wrapped = function->reserved[weft_slot];

	return wrapped != NULL ? wrapped->original : function->handler;
}

/* An alias such as gzread() is a function of its own with the handler of the other one, and has its rule. */
static void wrap_functions(void)
{
	HashTable rules_of_handlers;
	zend_function *function;
	zend_string *name;
	const struct rule *rule;

	zend_hash_init(&rules_of_handlers, 256, NULL, NULL, true);
	ZEND_HASH_FOREACH_STR_KEY_PTR(CG(function_table), name, function) {
		if (name != NULL && function->type == ZEND_INTERNAL_FUNCTION && (rule = rule_of(NULL, name)) != NULL) {
			zend_hash_index_add_ptr(&rules_of_handlers, (zend_ulong) original_handler(&function->internal_function), (void *) rule);
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_FOREACH_STR_KEY_PTR(CG(function_table), name, function) {
		if (name == NULL || function->type != ZEND_INTERNAL_FUNCTION) {
			continue;
		}
		rule = rule_of(NULL, name);
		if (rule == NULL) {
			rule = zend_hash_index_find_ptr(&rules_of_handlers, (zend_ulong) original_handler(&function->internal_function));
		}
		wrap(function, rule);
	} ZEND_HASH_FOREACH_END();
	zend_hash_destroy(&rules_of_handlers);
}

/* Wraps what has been registered since the last time. */
static void weft_calls_wrap(void)
{
	zend_string *name, *ancestor;
	zend_function *function;
	zend_class_entry *class;

	wrap_functions();
	ZEND_HASH_FOREACH_PTR(CG(class_table), class) {
		if (class->type != ZEND_INTERNAL_CLASS) {
			continue;
		}
		guard_class(class);
		if ((ancestor = ruled_ancestor(class)) == NULL) {
			continue;
		}
		ZEND_HASH_FOREACH_STR_KEY_PTR(&class->function_table, name, function) {
			wrap(function, rule_of(ZSTR_VAL(ancestor), name));
		} ZEND_HASH_FOREACH_END();
		zend_string_release(ancestor);
	} ZEND_HASH_FOREACH_END();
	find_soap_variables();
	function = zend_hash_str_find_ptr(CG(function_table), "dl", sizeof("dl") - 1);
	if (function != NULL && function->internal_function.handler != call_dl) {
		original_dl = function->internal_function.handler;
		function->internal_function.handler = call_dl;
	}
}

/* Every module has registered its functions; no code has been compiled yet. */
static zend_result post_startup(void)
{
	if (next_post_startup != NULL && next_post_startup() != SUCCESS) {
		return FAILURE;
	}
	weft_calls_wrap();
	return SUCCESS;
}

bool weft_calls_startup(void)
{
	if (!weft_fiber_startup()) {
		return false;
	}
	zend_hash_init(&claims, 8, NULL, NULL, true);
	zend_hash_init(&waiters, 8, NULL, NULL, true);
	zend_hash_init(&driver_methods, 8, NULL, NULL, true);
	zend_hash_init(&ruled_modules, 32, NULL, NULL, true);
	zend_observer_fiber_switch_register(fiber_switches);
	weft_fiber_ends(fiber_destroyed);
	next_collect_cycles = gc_collect_cycles;
	gc_collect_cycles = collect_cycles;
	next_post_startup = zend_post_startup_cb;
	zend_post_startup_cb = post_startup;
	return true;
}

/* Resumes the fibers whose libraries wait. The wait fails, the library returns to call(), and the fiber ends there: no code of PHP runs. */
static void abandon_waits(void)
{
	struct frame *frame = suspended;
	zend_fiber *fiber;

	is_abandoning = true;
	while (frame != NULL) {
		if (!frame->waits || frame->context->kind != zend_ce_fiber || frame->context->status != ZEND_FIBER_STATUS_SUSPENDED) {
			frame = frame->after;
			continue;
		}
		fiber = zend_fiber_from_context(frame->context);
		zend_try {
			fiber->std.handlers->dtor_obj(&fiber->std);
		} zend_end_try();
		/* The list is another one now, and shorter by the calls of this fiber. */
		frame = suspended;
	}
	is_abandoning = false;
}

void weft_calls_request_shutdown(void)
{
	if (weft_slot < 0) {
		return;
	}
	if (CG(unclean_shutdown)) {
		abandon_waits();
	}
	suspended = NULL;
	obstacles = 0;
	/* PHP frees the objects with all others. */
	forget_parked();
	last_pgsql_connection = NULL;
	is_describing = is_queueing = false;
	zend_hash_clean(&claims);
	zend_hash_clean(&waiters);
}

bool weft_calls_queue(bool queue)
{
	bool before = is_queueing;

	is_queueing = queue;
	return before;
}
