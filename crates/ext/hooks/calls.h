/* Wrappers around internal functions and methods that may suspend a task while C frames of a library lie below it. */
#ifndef WEFT_CALLS_H
#define WEFT_CALLS_H

#include <stdbool.h>

/* To be called once, when the module starts. It wraps nothing yet: modules that are loaded later have not registered their functions. */
bool weft_calls_startup(void);

/* To be called at the end of a request, while the other modules still work. After a fatal error it makes the libraries that wait return, so
 * that their handles are consistent when PHP frees them. */
void weft_calls_request_shutdown(void);

/* To be called by a replaced wait of libc before it suspends the task. */
void weft_call_suspends(void);

/* To be called when the task has been resumed. If an exception is pending, the call of the library ends with that exception, whatever the library
 * makes of its failure. */
void weft_call_resumed(void);

/* Whether a task whose handle is in use waits for its turn instead of getting an error. Returns whether it did before. */
bool weft_calls_queue(bool queue);

#endif
