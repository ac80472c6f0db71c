/* Wrappers around internal functions and methods that may suspend a task while C frames of a library lie below it. */
#ifndef WEFT_CALLS_H
#define WEFT_CALLS_H

#include "fibers/fiber.h"

#include <stdbool.h>

/* To be called once, when the module starts. It wraps nothing yet: modules that are loaded later have not registered their functions. */
bool weft_calls_startup(void);

/* To be called at the end of a request, while the other modules still work. After a fatal error it makes the libraries that wait return, so
 * that their handles are consistent when PHP frees them. */
void weft_calls_request_startup(void);
void weft_calls_request_shutdown(void);

/* To be called when an event loop starts, before tasks use objects of libraries. */
void weft_calls_find_handlers(void);

/* How many collections of garbage are in progress: the heap is in no state in which other code may run. */
extern WEFT_HIDDEN unsigned weft_collections;

/* Whether the function that runs, or the release of an object, is a call with a handle. */
bool weft_call_is_running(void);

/* Whether the task is in a call on a handle that tasks share between calls: while it is suspended, they get an error. */
bool weft_call_keeps_shared_handle(void);

/* Whether the function that runs may suspend its task: not one of an extension whose handles are unknown, because nothing keeps two tasks apart. */
bool weft_call_may_suspend(void);

/* To be called by a replaced wait of libc before it suspends the task. */
void weft_call_suspends(void);

/* To be called when the task has been resumed. If an exception is pending, the call of the library ends with that exception, whatever the library
 * makes of its failure. */
void weft_call_resumed(void);

/* A fatal error in the middle of a switch jumps over the calls of the fiber that was to be left. */
void weft_calls_are_left(zend_fiber_context *context);

/* Whether a task whose handle is in use waits for its turn instead of getting an error. Returns whether it did before. */
bool weft_calls_queue(bool queue);

#endif
