/* What PHP's engine keeps for all fibers together while a function of a library or of its own is in progress. */
#ifndef WEFT_HOOKS_STATE_H
#define WEFT_HOOKS_STATE_H

#include <php.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/file.h>
#include <zend_exceptions.h>

#include "php_versions.h"

/* See docs/explanation/hooks.md, "State of the engine", for what was checked. */
typedef struct weft_engine_state {
	zend_error_handling_t error_handling;
	zend_class_entry *exception_class;
	zend_class_entry *fake_scope;
	HashTable *wrapper_errors;
	weft_stream_errors stream_errors;
	const char *user_stream_current_filename;
	bool in_user_include;
	/* serialize() and unserialize() of a nested call share the table of references of the outer one. */
	unsigned serialize_lock;
	struct php_serialize_data *serialize_data;
	unsigned serialize_level;
	struct php_unserialize_data *unserialize_data;
	unsigned unserialize_level;
	/* gethostbyname() frees the result of the call before it begins. */
	char *host_buffer;
	size_t host_buffer_size;
	zend_fcall_info user_compare;
	zend_fcall_info_cache user_compare_cache;
} weft_engine_state;

/*
 * Around the code of PHP that a library does not know of. Where a fiber is left in the middle of a call, the same is done without these: a
 * callback of `usort()` or a stream wrapper may wait by itself.
 */
void weft_engine_save(weft_engine_state *state);
void weft_engine_restore(const weft_engine_state *state);

/*
 * An exception may be on its way while other code has to run: a callback has thrown it and the library does not know, or objects of a library are
 * freed by an exception that leaves their function. It is put aside until that code has returned, as around a destructor.
 */
typedef struct weft_pending_exception {
	zend_object *exception, *previous;
	const zend_op *opline;
	/* Where the code of PHP goes on in which this happens, or NULL. */
	const zend_op *next;
} weft_pending_exception;

weft_pending_exception weft_exception_save(void);

/* An exception that was thrown meanwhile gets it as its previous one; an exit replaces it. */
void weft_exception_restore(const weft_pending_exception *pending);

/*
 * It replaces an exception that was thrown meanwhile. Destructors of what that one holds may throw in turn, and so on without end: those that are thrown after
 * the first few stay until the request ends.
 */
void weft_exception_restore_alone(const weft_pending_exception *pending);

/* Forgets what was thrown since weft_exception_save(), also by destructors of what is forgotten. */
void weft_exception_discard(const weft_pending_exception *pending);

/* No exception of a program: it ends the process or the fiber, and code of PHP that runs before it has arrived would end it. */
static inline bool weft_is_exit(const zend_object *exception)
{
	return zend_is_unwind_exit(exception) || zend_is_graceful_exit(exception);
}

/* To be called when the module starts, after weft_fiber_startup(). */
void weft_engine_startup(void);

#endif
