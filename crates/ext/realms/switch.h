/* What the files of this folder share. */
#ifndef WEFT_REALM_SWITCH_H
#define WEFT_REALM_SWITCH_H

#include "realm.h"
#include "fibers/fiber.h"

/* A static property that each realm has its own value of. */
typedef struct {
	zval *place;
	/* What a new realm begins with: what the class declares, or what the property has outside of realms. */
	zval initial;
	bool is_inherited;
} weft_static;

typedef struct {
	/* Realms that exist. Without any, a switch of fibers costs one comparison. */
	size_t count;
	/* The realm whose state is in place; NULL is the base. */
	weft_realm *loaded;
	weft_realm_state base;
	weft_static *statics;
	size_t static_count;
	zend_string *names[WEFT_SUPERGLOBALS];
	/* Streams behind php://input that no realm uses. */
	zend_stack idle_bodies;
	/* Those that handles still read. */
	zend_stack held_bodies;
	/* All of them, also those that realms use. */
	zend_stack bodies;
	/* The request is ending: its streams are freed by PHP. */
	bool is_over;
	/* header() and its like throw in fibers outside of realms. */
	bool refuses_headers;
	/* Files that declare functions or classes, since the first realm was made. */
	HashTable declaring;
	bool are_files_known;
	/* One realm is being put in the place of another. */
	bool is_exchanging;
} weft_realms;

/* How errors are reported. */
typedef struct {
	int error_reporting;
	zval error_handler;
	weft_last_error last_error;
} weft_reports;

/*
 * The stage in which a setting is put back. At run time PHP refuses what was in force before: an open_basedir that is wider, a memory_limit below
 * what is in use. At the end of a request it refuses nothing, but starts no timer.
 */
static inline int weft_ini_stage(const zend_ini_entry *entry)
{
	return zend_string_equals_literal(entry->name, "max_execution_time") ? PHP_INI_STAGE_RUNTIME : PHP_INI_STAGE_DEACTIVATE;
}

extern WEFT_HIDDEN weft_realms realms;

/* The realm that the running fiber is in, or NULL. */
static inline weft_realm *weft_realm_here(void)
{
	return weft_fiber_here()->realm;
}

bool weft_switch_startup(void);
/* The level of error_reporting() that code outside of realms begins with. */
int weft_error_reporting_of_process(void);
/* NULL is the base. */
void weft_realm_load(weft_realm *realm);
/*
 * As above, but returns false after a fatal error: in a destructor that a setting has called, where the realm is in place nevertheless, or because the system has no
 * memory left.
 */
bool weft_realm_exchange(weft_realm *realm);
/* Whether it is the scheduler that makes a call: the caller of Fiber::suspend() suspends a task. */
bool weft_is_scheduler(const zend_execute_data *caller);
zval *weft_superglobal(unsigned index);
/* As unset() does. */
void weft_superglobal_forget(unsigned index);
weft_ini_list weft_ini_in_force(void);
bool weft_ini_is_equal(const weft_ini_list *one, const weft_ini_list *other);
void weft_ini_free(weft_ini_list *list);
/* Where ext/date keeps what date_default_timezone_set() has set. */
char **weft_timezone(void);
/* LC_ALL, to be released; NULL if setlocale() was not called. */
zend_string *weft_locale(void);
void weft_put_locale(const zend_string *locale);
/*
 * Nothing is reported in between: a setting that PHP warns of must neither fail the next request nor run an error handler in the middle of a
 * switch.
 */
weft_reports weft_reports_stop(void);
void weft_reports_resume(weft_reports *stopped);
/* Nothing is reported while it changes settings, and exceptions of destructors are discarded. False after a fatal error in one of them. */
bool weft_settings_change(void (*change)(const weft_ini_list *list), const weft_ini_list *list);
/* error_get_last() returns null. */
void weft_last_error_forget(void);
void weft_last_error_free(weft_last_error *error);
/* strtok() without a new string returns false. */
void weft_strtok_forget(void);
/* No URL is rewritten any more, and the next variable starts it again. */
void weft_rewriters_forget(void);
void weft_rewriter_free(url_adapt_state_ex_t *rewriter);
bool weft_has_sessions(void);
php_ps_globals *weft_sessions(void);
static inline zval *weft_save_handlers(php_ps_globals *session)
{
	return (zval *) &session->mod_user_names;
}
weft_mbstring weft_mbstring_state(void);
void weft_put_mbstring(const weft_mbstring *state);

/* state.c: a realm begins with what is in force outside of realms. */
void weft_state_begin(weft_realm_state *state);
void weft_state_end(weft_realm_state *state);

/* statics.c. The name is Class::property; on FAILURE an error has been thrown. */
zend_result weft_statics_isolate(zend_string *name, bool is_inherited);
void weft_statics_forget(void);

/* request.c, for the realm that is in place. Before the first request, the shutdown functions that are registered are those of the boot. */
void weft_request_set_boot_functions_aside(weft_realm *realm);
/* $_GET, $_POST, $_COOKIE, $_SERVER, $_FILES and $_REQUEST, with the settings of the boot; throws where there is no memory for the body. */
void weft_request_put_input(weft_realm *realm, zval *arrays[6], HashTable *uploads, zend_string *body);
/*
 * Writes the session of a realm that nobody uses any more, as PHP does at the end of a script. Otherwise its file would stay open and locked: the next request with the
 * same session would wait without end.
 */
void weft_session_close_left(weft_realm *realm);
/* Whether a handle of php://input reads this body. */
bool weft_request_is_read_by_handles(const php_stream *body);
/* Forgets the headers of the response before. */
void weft_request_begin_headers(int status);

/* settings.c */
void weft_settings_keep(weft_settings *settings);
void weft_settings_restore(const weft_settings *settings);
void weft_settings_free(weft_settings *settings);

/* handlers.c */
void weft_handlers_keep(weft_handlers *handlers);
void weft_handlers_restore(const weft_handlers *kept);
void weft_handlers_free(weft_handlers *handlers);

/* buffers.c: hides the output buffers that are open now from the ob_ functions in this fiber, or shows them again. */
void weft_buffers_hide(bool is_hidden);
/* Shows them again and closes those of this fiber above the level that ob_get_level() has returned. */
void weft_buffers_close(int level, bool are_flushed);
/* While it is true, weft_buffers_may_wait() is false. Returns what it was before. */
bool weft_buffers_refuse_waits(bool are_refused);

void weft_buffers_replace_functions(void);
void weft_buffers_request_startup(void);

/* filter.c: filter_input() and its like read the input of the realm. */
void weft_filter_replace_functions(void);

/* response.c */
void weft_response_replace_functions(void);

/* included.c */
void weft_included_begin(void);
void weft_included_end(void);
/* For the state that is in place: whether others have included files since that cannot run again, and what enters them. */
bool weft_included_is_behind(const weft_realm_state *state);
void weft_included_catch_up(weft_realm_state *state);
void weft_included_replace_functions(void);

/* exit.c */
void weft_exit_replace_functions(void);
bool weft_call_until_exit(zend_fcall_info *call, zend_fcall_info_cache *cache);
void weft_exit_request_shutdown(void);
/* Until they are shown again, exit() ends the process and no call of weft_call_until_exit(). */
struct weft_exit_guard *weft_exit_hide_guards(void);
void weft_exit_show_guards(struct weft_exit_guard *hidden);

/* errors.c: the handlers that run in fibers, before and after the exchange. */
void weft_errors_startup(void);
void weft_errors_leave(zend_fiber_context *from);

/* To be called before the scheduler suspends a task: frees an error handler that has returned. */
void weft_errors_before_suspension(void);
void weft_errors_enter(zend_fiber_context *to);

/* signals.c */
void weft_signals_replace_functions(void);

/* resources.c */
void weft_resources_replace_functions(void);

#endif
