/*
 * What Weft keeps with a fiber of PHP.
 *
 * PHP has room for one pointer of six extensions in each fiber and in each function, and opcache, debuggers and profilers want one as well. So
 * all parts of Weft share one: in a fiber it leads to a `weft_fiber`, in a function to the wrapper around it (calls/calls.c).
 */
#ifndef WEFT_FIBER_H
#define WEFT_FIBER_H

#include <php.h>
#include <zend_fibers.h>

#include "hooks/state.h"

/* Of the declaration of a variable that files share: without it, code fetches the address from the global offset table. */
#define WEFT_HIDDEN __attribute__((visibility("hidden")))

typedef struct {
	/* Whether calls of libraries suspend it: a `weft_hook_state` of hooks/suspend.c. */
	int hook_state;
	/* Where the last wait was interrupted. */
	const zend_execute_data *interrupted_in;
	/* The innermost wrapped call in progress: calls/internal.h. */
	struct weft_call *call;
	/* The engine's state in the middle of a call when the fiber was left: hooks/state.c. It is here because a switch must not need memory. */
	weft_engine_state engine;
	bool has_engine_state;
	/* The realm that it is in, or NULL: realms/switch.c. */
	struct weft_realm *realm;
	/* The error handler that an error in it has called last, and whether it was left while that ran: realms/errors.c. */
	zval error_handler;
	bool waits_in_error_handler;
	/* How many output buffers the ob_ functions do not see in it: realms/buffers.c. */
	int hidden_buffers;
} weft_fiber;

/* The index of our pointer; -1 before the module starts, and where PHP has no room. */
extern WEFT_HIDDEN int weft_slot;

/* To be called when the module starts; calls after the first one change nothing. False where PHP has no room left. */
bool weft_fiber_startup(void);

/* Calls `handler` for each fiber that is destroyed, before what is kept with it is freed. To be called when the module starts. */
void weft_fiber_ends(void (*handler)(zend_fiber_context *context));

/* Of a fiber that had none: with everything empty. */
weft_fiber *weft_fiber_begin(zend_fiber_context *context);

/*
 * Ends the process, as zend_bailout() does, from a handler of a switch. PHP does not expect that: it has noted already that the fiber is left, which it is
 * not. A fiber that has ended has nowhere to jump to: then this returns, and the fiber that goes on ends the process.
 */
ZEND_COLD void weft_fiber_bailout(zend_fiber_context *from, zend_fiber_context *to);

/* Whether weft_fiber_bailout() has returned, once: PHP calls zend_interrupt_function for the fiber that goes on, which has to end the process. */
bool weft_fiber_takes_bailout(void);

/* Lets PHP switch fibers again, if it did before code that a fatal error has left. */
void weft_fiber_unblock_after_fatal_error(bool was_blocked);

/* Releases an object where destructors must not switch fibers. */
void weft_release_without_switch(zend_object *object);

/*
 * Between these two the memory limit does not apply. A switch that exceeds it would end in its middle, where PHP's notes about fibers are wrong and the state of no
 * realm is whole. What is used beyond the limit then counts for the next one who allocates.
 */
void weft_memory_limit_lift(void);
/* Puts the limit in force that PHP's settings say. While others use more, the limit from before stays, until the next call finds that memory free. */
void weft_memory_limit_restore(void);

/* To be called when a request begins. */
void weft_fiber_request_startup(void);

/*
 * Whether the garbage collector calls destructors in the fiber. Since PHP 8.4 it has one for that where a fiber runs it, and keeps it for the next
 * collection, which may be that of another fiber.
 */
static inline bool weft_is_collector(zend_fiber_context *context)
{
#if PHP_VERSION_ID >= 80400
	if (context->kind == zend_ce_fiber) {
		const zend_function *function = zend_fiber_from_context(context)->fci_cache.function_handler;
		return function != NULL && function->type == ZEND_INTERNAL_FUNCTION && function->common.function_name != NULL
			&& zend_string_equals_literal(function->common.function_name, "gc_destructor_fiber");
	}
#endif
	return false;
}

/* A fiber of the collector has nothing of its own: it stands for the one that it is called from. */
static inline zend_fiber_context *weft_represented(zend_fiber_context *context)
{
	while (UNEXPECTED(weft_is_collector(context)) && zend_fiber_from_context(context)->caller != NULL) {
		context = zend_fiber_from_context(context)->caller;
	}
	return context;
}

static zend_always_inline weft_fiber *weft_fiber_of(zend_fiber_context *context)
{
	weft_fiber *fiber = context->reserved[weft_slot];
	return EXPECTED(fiber != NULL) ? fiber : weft_fiber_begin(context);
}

/* What belongs to the code that runs, also in a destructor that the collector calls. */
static inline weft_fiber *weft_fiber_here(void)
{
	return weft_fiber_of(weft_represented(EG(current_fiber_context)));
}

#endif
