/*
 * Replaces the handlers of PHP's functions.
 *
 * That happens once, when every module has registered its functions and no code has been compiled: a caller may have the address of a handler in its
 * code. Opcache's JIT compiles it in, so a handler that took its place later would never be called by functions that were compiled before. A replacement
 * therefore asks in each call whether there is anything to do, and calls the handler before it where there is not.
 *
 * Modules that dl() loads while a script runs come later, and so does Weft where dl() loads it. Code that was compiled with the JIT before keeps the handlers
 * that it has.
 */
#ifndef WEFT_FUNCTIONS_H
#define WEFT_FUNCTIONS_H

#include <php.h>

/*
 * Calls `replace` when every module has registered its functions, and again after dl(). To be called when the module starts. The last one that replaces a
 * function is called first.
 */
void weft_when_functions_are_registered(void (*replace)(void));

/*
 * Puts `handler` in the place of the function's own, which `*before` names from then on. Changes nothing where the function is missing or disabled, and where
 * `*before` is set: another extension may have replaced `handler` since, and calls it.
 */
void weft_replace_function(const char *name, zif_handler handler, zif_handler *before);

/* Whether it is a function or method of PHP or an extension with one of the names, the last of which is NULL. NULL is none. */
bool weft_function_is_one_of(const zend_function *function, const char *const *names);

#endif
