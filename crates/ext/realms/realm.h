/*
 * Realms: what PHP keeps outside of objects, once per application instance instead of once per process.
 *
 * A fiber may belong to a realm. When PHP switches to a fiber of another realm, what is listed in `weft_realm_state` is exchanged: the state
 * of the realm that is left is kept with it, that of the other is put in place. The main fiber, which runs the scheduler, leaves the state of
 * the last realm in place, so a task that waits and continues alone costs nothing. The base is the state of everything outside of realms.
 */
#ifndef WEFT_REALM_H
#define WEFT_REALM_H

#include <php.h>
#include <SAPI.h>
#include <ext/session/php_session.h>
#include <ext/standard/url_scanner_ex.h>
#include <zend_fibers.h>
#include <zend_ini.h>
#include <zend_stack.h>

#include "php_versions.h"

/* Optional in builds of PHP. */
#if __has_include(<ext/mbstring/mbstring.h>)
# define WEFT_HAS_MBSTRING 1
#endif

/* $_GET, $_POST …; their names in this order are in switch.c. */
enum { WEFT_GET, WEFT_POST, WEFT_COOKIE, WEFT_SERVER, WEFT_ENV, WEFT_FILES, WEFT_REQUEST, WEFT_SESSION, WEFT_SUPERGLOBALS };
/* The arrays of PG(http_globals), in the order of PHP's TRACK_VARS_ constants. */
#define WEFT_HTTP_GLOBALS 6

/* mb_internal_encoding(), mb_http_output(), mb_language() and mb_substitute_character(). */
typedef struct {
	const void *internal_encoding;
	const void *http_output;
	int language;
	int illegal_mode;
	int illegal_character;
} weft_mbstring;

/* One `ini_set()` that is in force. */
typedef struct {
	zend_ini_entry *entry;
	zend_string *value;
} weft_ini;

typedef struct {
	weft_ini *entries;
	size_t count;
} weft_ini_list;

/* The last error, as error_get_last() returns it. */
typedef struct {
	int type;
	zend_string *message;
	zend_string *file;
	int line;
} weft_last_error;

/* Where strtok() goes on: a string and a place in it. */
typedef struct {
	zend_string *string;
	char *last;
	size_t length;
} weft_strtok;

/* The state of a realm. While it is in place, PHP has the values, and those here are out of date. */
typedef struct {
	zval superglobals[WEFT_SUPERGLOBALS];
	zval http_globals[WEFT_HTTP_GLOBALS];
	weft_mbstring mbstring;
	/* Values of the listed static properties. */
	zval *statics;
	size_t static_count;

	sapi_headers_struct headers;
	sapi_request_info request_info;
	int64_t read_post_bytes;
	unsigned char post_read;
	unsigned char headers_sent;
	HashTable *uploads;

	zval error_handler;
	int error_handler_reporting;
	zval exception_handler;
	zend_stack error_handlers;
	zend_stack error_handlers_reporting;
	zend_stack exception_handlers;
	HashTable *shutdown_functions;
	/* Those of the application's boot. They are not a request's, and nothing runs them. */
	HashTable *boot_functions;

	char *timezone;
	weft_ini_list ini;
	/* LC_ALL, or NULL if setlocale() was not called. */
	zend_string *locale;
	/* PHP compiles regular expressions for each of these anew. NULL is C. */
	zend_string *regex_locale;
	weft_last_error last_error;
	weft_strtok strtok;
	/* output_add_rewrite_var(), and session.use_trans_sid. Their tags are a setting, and not of a realm. */
	url_adapt_state_ex_t output_rewriter;
	url_adapt_state_ex_t session_rewriter;
	/* What include_once skips, and how many of the files that are included in every realm are in it. */
	HashTable included;
	uint32_t declaring_known;
	php_ps_globals session;
} weft_realm_state;

/* The functions of session_set_save_handler(), a union before PHP 8.4 and a struct since, whose members are all values. */
#define WEFT_SAVE_HANDLERS (sizeof(((php_ps_globals *) NULL)->mod_user_names) / sizeof(zval))

/* What set_error_handler(), set_exception_handler() and session_set_save_handler() have set, and what restore_error_handler() and its like go back to. */
typedef struct {
	bool are_kept;
	zval error_handler;
	int error_handler_reporting;
	zval exception_handler;
	zend_stack error_handlers;
	zend_stack error_handlers_reporting;
	zend_stack exception_handlers;
	zval save_handlers[WEFT_SAVE_HANDLERS];
	weft_save_handler_object save_handler_object;
	bool is_save_handler_implemented;
} weft_handlers;

/* Settings that PHP-FPM forgets at the end of a request. */
typedef struct {
	bool are_kept;
	weft_ini_list ini;
	int error_reporting;
	char *timezone;
	/* LC_ALL, or NULL if setlocale() was not called. */
	zend_string *locale;
	zend_string *regex_locale;
	weft_mbstring mbstring;
	/* $_ENV */
	zval environment;
	/* $_SERVER of work that is no request. */
	zval server;
} weft_settings;

typedef struct weft_realm {
	weft_realm_state state;
	/* Those of the application when it was booted, which each request begins with. */
	weft_settings booted;
	/* Those in force when the second request began: the first one may be what has booted the application. */
	weft_handlers handlers;
	bool has_begun;
	/* The shutdown functions are called one after the other. */
	bool are_functions_called;
	/* Resources below this number were there before the request. */
	zend_ulong first_resource;
	/* Fibers that are in it. */
	unsigned fibers;
	/* Tasks that were started in it and have not ended: Weft\Runtime\Internal\Scheduler counts them. */
	unsigned tasks;
	/* The level of error_reporting() inside; a fiber has its own. */
	int error_reporting;
	zend_object std;
} weft_realm;

/* Called when the module starts. */
bool weft_realms_startup(void);
/* This many output buffers are shared by all fibers, and no code in them sees or closes these; less than 0: all are, and every fiber sees them. */
void weft_buffers_share(int level);
/*
 * Whether the running fiber may wait, as far as output buffers are concerned: not while the callback of a shared one runs. Others print into that as
 * well, and PHP would lose it.
 */
bool weft_buffers_may_wait(void);
/*
 * Whether a file or a string is being compiled, also where the compiler has called an error handler: what it has compiled so far is the process's, and another task
 * that compiles meanwhile would write into it.
 */
bool weft_scanner_is_in_use(void);
/* receiver.c: opens a buffer that calls a closure for each piece of output; what it returns goes to the buffer below. False where PHP refuses. */
bool weft_receive_output(const zval *closure);
/* The base is put in place, before PHP's own shutdown looks at its state. */
void weft_realms_request_startup(void);
void weft_realms_request_shutdown(void);
/* Writes the session that is still open, as session_write_close() does. */
void weft_session_close(void);

#endif
