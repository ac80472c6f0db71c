/* What PHP's engine keeps for all fibers together while a function of a library or of its own is in progress. */
#ifndef WEFT_HOOKS_STATE_H
#define WEFT_HOOKS_STATE_H

#include <php.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/file.h>

#if PHP_VERSION_ID >= 80600
# define WEFT_WRAPPER_ERRORS FG(wrapper_logged_errors)
#else
# define WEFT_WRAPPER_ERRORS FG(wrapper_errors)
#endif

/* See docs/explanation/hooks.md, "State of the engine", for what was checked. */
typedef struct weft_engine_state {
	zend_error_handling_t error_handling;
	zend_class_entry *exception_class;
	zend_class_entry *fake_scope;
	HashTable *wrapper_errors;
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

/* To be called when the module starts, after weft_fiber_startup(). */
void weft_engine_startup(void);

#endif
