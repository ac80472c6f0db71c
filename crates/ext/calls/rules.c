/* Which functions and methods are wrapped, which objects are guarded, and which extensions need neither. */
#include "internal.h"

/* Functions that read a document and wait meanwhile, and those that change it. Functions that read it without waiting are not wrapped. */
#define RULES_OF_NODES(class) \
	{class, "savexml", HANDLE_EXEMPT, 0}, \
	{class, "savehtml", HANDLE_EXEMPT, 0}, \
	{class, "save*", HANDLE_TREE, ALL | SHARED}, \
	{class, "c14nfile", HANDLE_TREE, ALL | SHARED}, \
	{class, "validate", HANDLE_TREE, ALL | SHARED}, \
	{class, "schemavalidate*", HANDLE_TREE, ALL | SHARED}, \
	{class, "relaxngvalidate*", HANDLE_TREE, ALL | SHARED}, \
	{class, "load*", HANDLE_TREE, ALL}, \
	{class, "xinclude", HANDLE_TREE, ALL}, \
	{class, "adoptnode", HANDLE_TREE, ALL}, \
	{class, "after", HANDLE_TREE, ALL}, \
	{class, "append*", HANDLE_TREE, ALL}, \
	{class, "before", HANDLE_TREE, ALL}, \
	{class, "delete*", HANDLE_TREE, ALL}, \
	{class, "insert*", HANDLE_TREE, ALL}, \
	{class, "normalize*", HANDLE_TREE, ALL}, \
	{class, "prepend", HANDLE_TREE, ALL}, \
	{class, "remove*", HANDLE_TREE, ALL}, \
	{class, "rename", HANDLE_TREE, ALL}, \
	{class, "replace*", HANDLE_TREE, ALL}, \
	{class, "set*", HANDLE_TREE, ALL}, \
	{class, "split*", HANDLE_TREE, ALL}, \
	{class, "toggle*", HANDLE_TREE, ALL}

/* The first rule that matches counts. A rule for a class holds for its subclasses. A method has its handle in `$this`, a function in its first
 * argument. */
static const struct rule rules[] = {
	{"pdo", "__destruct", HANDLE_EXEMPT, 0},
	{"pdo", "intransaction", HANDLE_EXEMPT, 0},
	{"pdo", "errorcode", HANDLE_EXEMPT, 0},
	{"pdo", "errorinfo", HANDLE_EXEMPT, 0},
	{"pdo", "quote", HANDLE_EXEMPT, 0},
	{"pdo", "getavailabledrivers", HANDLE_EXEMPT, 0},
	{"pdo", "connect", HANDLE_PDO_CONNECT, ALL},
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
	{"mysqli", "get_warnings", HANDLE_MYSQLI, ALL}, /* asks the server for them */
	{"mysqli", "get_*", HANDLE_EXEMPT, 0},
	{"mysqli", "character_set_name", HANDLE_EXEMPT, 0},
	{"mysqli", "poll", HANDLE_OUTPUTS, 0},
	{"mysqli", "*", HANDLE_MYSQLI, ALL},
	{"mysqli_stmt", "__construct", HANDLE_MYSQLI_GIVEN, ALL},
	{"mysqli_stmt", "*", HANDLE_MYSQLI_STMT, ALL},
	{"mysqli_result", "__construct", HANDLE_MYSQLI_GIVEN, ALL},
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
	{NULL, "mysqli_get_warnings", HANDLE_MYSQLI, ALL},
	{NULL, "mysqli_get_*", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_info", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_init", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_insert_id", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_num_fields", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_num_rows", HANDLE_EXEMPT, 0},
	{NULL, "mysqli_poll", HANDLE_OUTPUTS, 0},
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
	{"sqlite3stmt", "*", HANDLE_SQLITE_STMT, ALL},
	{"sqlite3result", "__construct", HANDLE_NONE, 0},
	{"sqlite3result", "column*", HANDLE_EXEMPT, 0},
	{"sqlite3result", "numcolumns", HANDLE_EXEMPT, 0},
	{"sqlite3result", "*", HANDLE_INNER, ALL},

	/* Results of pgsql are in memory; the functions that read them are not wrapped. */
	{NULL, "pg_connect", HANDLE_PGSQL_OPENED, 0},
	{NULL, "pg_pconnect", HANDLE_PGSQL_KEPT, ALL},
	{NULL, "pg_connect_poll", HANDLE_PGSQL, ALL},
	{NULL, "pg_connection_reset", HANDLE_PGSQL, ALL},
	{NULL, "pg_close", HANDLE_PGSQL, ALL},
	{NULL, "pg_ping", HANDLE_PGSQL, ALL},
	{NULL, "pg_query*", HANDLE_PGSQL, ALL},
	{NULL, "pg_exec*", HANDLE_PGSQL, ALL},
	{NULL, "pg_prepare", HANDLE_PGSQL, ALL},
	{NULL, "pg_close_stmt", HANDLE_PGSQL, ALL},
	{NULL, "pg_change_password", HANDLE_PGSQL, ALL},
	{NULL, "pg_jit", HANDLE_PGSQL, ALL}, /* asks the server for two settings */
	{NULL, "pg_send_*", HANDLE_PGSQL, ALL},
	{NULL, "pg_get_result", HANDLE_PGSQL, ALL},
	{NULL, "pg_get_notify", HANDLE_PGSQL, ALL},
	{NULL, "pg_cancel_query", HANDLE_PGSQL, ALL},
	{NULL, "pg_consume_input", HANDLE_PGSQL, ALL},
	{NULL, "pg_connection_busy", HANDLE_PGSQL, ALL}, /* takes what has arrived off the socket before it answers */
	{NULL, "pg_flush", HANDLE_PGSQL, ALL},
	{NULL, "pg_copy_*", HANDLE_PGSQL, ALL},
	{NULL, "pg_put_line", HANDLE_PGSQL, ALL},
	{NULL, "pg_put_copy_*", HANDLE_PGSQL, ALL},
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
	{"redis", "pconnect", HANDLE_REDIS_KEPT, ALL},
	{"redis", "popen", HANDLE_REDIS_KEPT, ALL},
	{"redis", "*", HANDLE_REDIS, ALL},
	{"rediscluster", "__destruct", HANDLE_EXEMPT, 0},
	{"rediscluster", "getoption", HANDLE_EXEMPT, 0},
	{"rediscluster", "getlasterror", HANDLE_EXEMPT, 0},
	{"rediscluster", "clearlasterror", HANDLE_EXEMPT, 0},
	{"rediscluster", "*", HANDLE_OBJECT, ALL},
	{"redisarray", "__destruct", HANDLE_EXEMPT, 0},
	{"redisarray", "*", HANDLE_OBJECT, ALL},
	{"redissentinel", "__destruct", HANDLE_EXEMPT, 0},
	{"redissentinel", "*", HANDLE_REDIS, ALL},

	{"amqpconnection", "__construct", HANDLE_EXEMPT, 0},
	{"amqpconnection", "get*", HANDLE_EXEMPT, 0},
	{"amqpconnection", "set*", HANDLE_EXEMPT, 0},
	{"amqpconnection", "is*", HANDLE_EXEMPT, 0},
	{"amqpconnection", "*", HANDLE_OBJECT, ALL},
	{"amqpchannel", "__construct", HANDLE_AMQP_GIVEN, ALL}, /* opens the channel at the server */
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
	{NULL, "curl_multi_getcontent", HANDLE_OBJECT, ALL}, /* returns the buffer that a transfer writes to */
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
	{NULL, "socket_select", HANDLE_OUTPUTS, 0},
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
	{NULL, "ldap_parse_*", HANDLE_INNER, ALL}, /* waits for a lock of the library, which a search holds */

	{NULL, "ftp_connect", HANDLE_NONE, 0},
	{NULL, "ftp_ssl_connect", HANDLE_NONE, 0},
	{NULL, "ftp_fget", HANDLE_OBJECT_AND_STREAM, ALL},
	{NULL, "ftp_fput", HANDLE_OBJECT_AND_STREAM, ALL},
	{NULL, "ftp_nb_fget", HANDLE_OBJECT_AND_STREAM, ALL},
	{NULL, "ftp_nb_fput", HANDLE_OBJECT_AND_STREAM, ALL},
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
	{NULL, "fclose", HANDLE_CLOSED, ALL},
	{NULL, "pclose", HANDLE_RESOURCE, ALL},
	{NULL, "proc_close", HANDLE_PROCESS, ALL},
	{NULL, "fprintf", HANDLE_RESOURCE, WRITE},
	{NULL, "vfprintf", HANDLE_RESOURCE, WRITE},
	{NULL, "ftruncate", HANDLE_RESOURCE, ALL},
	{NULL, "fsync", HANDLE_RESOURCE, WRITE},
	{NULL, "fdatasync", HANDLE_RESOURCE, WRITE},
	{NULL, "stream_set_chunk_size", HANDLE_RESOURCE, READ},
	{NULL, "stream_set_read_buffer", HANDLE_RESOURCE, READ},
	{NULL, "stream_set_write_buffer", HANDLE_RESOURCE, WRITE},
	{NULL, "stream_filter_append", HANDLE_RESOURCE, ALL},
	{NULL, "stream_filter_prepend", HANDLE_RESOURCE, ALL},
	{NULL, "stream_filter_remove", HANDLE_FILTER, ALL},
	{NULL, "readdir", HANDLE_DIRECTORY, READ},
	{NULL, "rewinddir", HANDLE_DIRECTORY, READ},
	{NULL, "closedir", HANDLE_DIRECTORY, ALL},
	{"directory", "*", HANDLE_DIRECTORY, ALL},
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
	{NULL, "file_put_contents", HANDLE_SECOND, READ}, /* the data may be a stream */
	{NULL, "readfile", HANDLE_NONE, 0},
	{NULL, "copy", HANDLE_NONE, 0},
	{NULL, "get_headers", HANDLE_NONE, 0},
	{NULL, "unlink", HANDLE_NONE, 0},
	{NULL, "rename", HANDLE_NONE, 0},
	{NULL, "mkdir", HANDLE_NONE, 0},
	{NULL, "rmdir", HANDLE_NONE, 0},
	{NULL, "opendir", HANDLE_DIRECTORY_OPENED, 0},
	{NULL, "dir", HANDLE_DIRECTORY_OPENED, 0},
	{NULL, "scandir", HANDLE_NONE, 0},
	{NULL, "getimagesize", HANDLE_OUTPUTS, 0},
	{NULL, "exif_*", HANDLE_NONE, 0},
	{NULL, "md5_file", HANDLE_NONE, 0},
	{NULL, "sha1_file", HANDLE_NONE, 0},
	{NULL, "hash_file", HANDLE_NONE, 0},
	{NULL, "simplexml_load_file", HANDLE_NONE, 0},
	RULES_OF_NODES("domnode"),
	RULES_OF_NODES("dom\\node"),
	{"dom\\tokenlist", "add", HANDLE_TREE_BEHIND, ALL},
	{"dom\\tokenlist", "re*", HANDLE_TREE_BEHIND, ALL}, /* remove and replace */
	{"dom\\tokenlist", "toggle", HANDLE_TREE_BEHIND, ALL},
	{"domxpath", "query", HANDLE_TREE_BEHIND, ALL | SHARED}, /* functions of PHP may wait in it */
	{"domxpath", "evaluate", HANDLE_TREE_BEHIND, ALL | SHARED},
	{"dom\\xpath", "query", HANDLE_TREE_BEHIND, ALL | SHARED},
	{"dom\\xpath", "evaluate", HANDLE_TREE_BEHIND, ALL | SHARED},
	{"simplexmlelement", "asxml", HANDLE_TREE, ALL | SHARED},
	{"simplexmlelement", "savexml", HANDLE_TREE, ALL | SHARED},
	{"simplexmlelement", "add*", HANDLE_TREE, ALL},
	{"xmlreader", "*", HANDLE_OBJECT, ALL},
	{"xsltprocessor", "transform*", HANDLE_OBJECT_AND_TREE, ALL},
	{"xsltprocessor", "*", HANDLE_OBJECT, ALL},
	{NULL, "flock", HANDLE_NONE, 0},

	{NULL, "sleep", HANDLE_NONE, 0},
	{NULL, "usleep", HANDLE_NONE, 0},
	{NULL, "time_nanosleep", HANDLE_NONE, 0},
	{NULL, "time_sleep_until", HANDLE_NONE, 0},
	{NULL, "exec", HANDLE_OUTPUTS, 0},
	{NULL, "shell_exec", HANDLE_NONE, 0},
	{NULL, "system", HANDLE_OUTPUTS, 0},
	{NULL, "passthru", HANDLE_OUTPUTS, 0},
	{NULL, "popen", HANDLE_NONE, 0},
	{NULL, "proc_open", HANDLE_NONE, 0},
	{NULL, "mail", HANDLE_NONE, 0},
	{NULL, "pcntl_wait", HANDLE_OUTPUTS, 0},
	{NULL, "pcntl_waitpid", HANDLE_OUTPUTS, 0},
	{NULL, "gethostbyname*", HANDLE_NONE, 0},
	{NULL, "gethostbyaddr", HANDLE_NONE, 0},
	{NULL, "dns_*", HANDLE_OUTPUTS, 0},
	{NULL, "checkdnsrr", HANDLE_NONE, 0},
	{NULL, "getmxrr", HANDLE_OUTPUTS, 0},
	/* PHP refuses these while a session is active, or they only read. */
	{NULL, "session_status", HANDLE_EXEMPT, 0},
	{NULL, "session_id", HANDLE_EXEMPT, 0},
	{NULL, "session_name", HANDLE_EXEMPT, 0},
	{NULL, "session_module_name", HANDLE_EXEMPT, 0},
	{NULL, "session_save_path", HANDLE_EXEMPT, 0},
	{NULL, "session_cache_*", HANDLE_EXEMPT, 0},
	{NULL, "session_get_*", HANDLE_EXEMPT, 0},
	{NULL, "session_set_*", HANDLE_EXEMPT, 0},
	{NULL, "session_register_shutdown", HANDLE_EXEMPT, 0},
	{NULL, "session_*", HANDLE_SESSION, ALL},
	{"sessionhandler", "*", HANDLE_SESSION, ALL},
};

/* The classes whose objects are guarded: see release.c. The steps of their iterators are calls: see iterate.c. */
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

/* The modules that have wrapped functions. */
static HashTable ruled_modules;

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

const struct rule *weft_rule_of(const char *class, const zend_string *name)
{
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if ((class == NULL ? rules[i].class == NULL : rules[i].class != NULL && strcmp(rules[i].class, class) == 0) && matches(&rules[i], name)) {
			return &rules[i];
		}
	}
	return NULL;
}

bool weft_has_rules(const char *class)
{
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].class != NULL && strcmp(rules[i].class, class) == 0) {
			return true;
		}
	}
	return false;
}

const struct rule *weft_rule_of_guarded(const zend_class_entry *class)
{
	size_t i;

	for (; class != NULL; class = class->parent) {
		for (i = 0; i < sizeof(guarded_classes) / sizeof(guarded_classes[0]); i++) {
			if (strcasecmp(ZSTR_VAL(class->name), guarded_classes[i].class) == 0) {
				return &guarded_classes[i];
			}
		}
	}
	return NULL;
}

void weft_rules_apply_to(const zend_module_entry *module)
{
	zend_hash_index_add_empty_element(&ruled_modules, (zend_ulong) module);
}

/* Extensions that need no rules: their functions wait in streams only, or not in a call that is replaced. */
static const char *const need_no_rules[] = {
	"FFI", "Phar", "apcu", "ast", "bcmath", "bz2", "calendar", "ctype", "dba", "ds", "enchant", "fileinfo", "gd", "gettext", "gmp", "iconv",
	"igbinary", "intl", "mbstring", "msgpack", "mysqlnd", "openssl", "pcov", "pdo_mysql", "pdo_pgsql", "pdo_sqlite", "posix", "protobuf",
	"pspell", "readline", "shmop", "sodium", "sysvmsg", "sysvsem", "sysvshm", "tidy", "tokenizer", "weft", "xml", "xmlwriter", "xsl", "zip",
	"zlib",
};

bool weft_extension_may_suspend(const zend_module_entry *module)
{
	size_t i;

	if (module->handle == NULL || zend_hash_index_exists(&ruled_modules, (zend_ulong) module)) {
		return true;
	}
	for (i = 0; i < sizeof(need_no_rules) / sizeof(need_no_rules[0]); i++) {
		if (strcmp(module->name, need_no_rules[i]) == 0) {
			return true;
		}
	}
	return false;
}

/*
 * Calls `visit` with each extension that is a library: its name, its dlopen() handle, and whether its functions may suspend a task. The functions of
 * extensions that are compiled into PHP may.
 */
void weft_each_extension(void (*visit)(const char *name, void *handle, bool may_suspend, void *context), void *context)
{
	const zend_module_entry *module;

	ZEND_HASH_FOREACH_PTR(&module_registry, module) {
		if (module->handle != NULL) {
			visit(module->name, module->handle, weft_slot >= 0 && weft_extension_may_suspend(module), context);
		}
	} ZEND_HASH_FOREACH_END();
}

void weft_rules_startup(void)
{
	zend_hash_init(&ruled_modules, 32, NULL, NULL, true);
}
