/*
 * Where versions of PHP differ: names that all of them understand. What one file alone does differently stays in it.
 *
 * `scripts/check-headers` compiles the C of this crate against the headers of each version.
 */
#ifndef WEFT_PHP_VERSIONS_H
#define WEFT_PHP_VERSIONS_H

#include <php.h>
#include <ext/standard/file.h>

/* --- Zend: zend_globals.h ---------------------------------------------------------------------------------------------------------- */

/* Before PHP 8.6 the engine keeps an exception that is on its way while an autoloader or a destructor runs. */
#if PHP_VERSION_ID >= 80600
# define WEFT_PREVIOUS_EXCEPTION() NULL
# define WEFT_SET_PREVIOUS_EXCEPTION(exception) ((void) (exception))
#else
# define WEFT_PREVIOUS_EXCEPTION() EG(prev_exception)
# define WEFT_SET_PREVIOUS_EXCEPTION(exception) (EG(prev_exception) = (exception))
#endif

/* Whether a class is being loaded. The names of such classes are in a table, so that none is loaded inside of its own autoloader. */
#if PHP_VERSION_ID >= 80600
# define WEFT_IS_AUTOLOADING() (zend_hash_num_elements(&EG(autoload_current_classnames)) != 0)
#else
# define WEFT_IS_AUTOLOADING() (EG(in_autoload) != NULL && zend_hash_num_elements(EG(in_autoload)) != 0)
#endif

/* --- ext/standard: file.h ---------------------------------------------------------------------------------------------------------- */

#if PHP_VERSION_ID >= 80600
# define WEFT_WRAPPER_ERRORS FG(wrapper_logged_errors)
#else
# define WEFT_WRAPPER_ERRORS FG(wrapper_errors)
#endif

/*
 * The errors of the stream operations in progress, which PHP 8.6 keeps in a stack whose lowest entries are in the globals themselves. Those that operations
 * which have ended have left for stream_get_last_errors() stay where they are.
 */
#if PHP_VERSION_ID >= 80600
typedef php_stream_error_state weft_stream_errors;

static inline bool weft_has_stream_operation(void)
{
	return FG(stream_error_state).operation_depth != 0;
}

static inline void weft_stream_errors_save(weft_stream_errors *kept)
{
	*kept = FG(stream_error_state);
	FG(stream_error_state) = (php_stream_error_state) {.stored_errors = kept->stored_errors, .stored_count = kept->stored_count};
}

static inline void weft_stream_errors_restore(const weft_stream_errors *kept)
{
	php_stream_error_state ended = FG(stream_error_state);
	FG(stream_error_state) = *kept;
	FG(stream_error_state).stored_errors = ended.stored_errors;
	FG(stream_error_state).stored_count = ended.stored_count;
	if (ended.overflow_operations != NULL) {
		efree(ended.overflow_operations);
	}
}
#else
typedef struct {} weft_stream_errors;
# define weft_has_stream_operation() false
# define weft_stream_errors_save(kept) ((void) (kept))
# define weft_stream_errors_restore(kept) ((void) (kept))
#endif

/* --- ext/session: php_session.h ----------------------------------------------------------------------------------------------------- */

/* What a session keeps of the object that session_set_save_handler() got: the name of its class, since PHP 8.6 only whether there is one. */
#if PHP_VERSION_ID >= 80600
typedef bool weft_save_handler_object;
# define WEFT_SAVE_HANDLER_OBJECT(session) ((session)->mod_user_uses_object_methods_as_handlers)
# define WEFT_NO_SAVE_HANDLER_OBJECT false
# define WEFT_COPY_SAVE_HANDLER_OBJECT(object) (object)
# define WEFT_RELEASE_SAVE_HANDLER_OBJECT(object) ((void) (object))
#else
typedef zend_string *weft_save_handler_object;
# define WEFT_SAVE_HANDLER_OBJECT(session) ((session)->mod_user_class_name)
# define WEFT_NO_SAVE_HANDLER_OBJECT NULL
# define WEFT_COPY_SAVE_HANDLER_OBJECT(object) ((object) != NULL ? zend_string_copy(object) : NULL)
# define WEFT_RELEASE_SAVE_HANDLER_OBJECT(object) ((object) != NULL ? zend_string_release(object) : (void) 0)
#endif

#endif
