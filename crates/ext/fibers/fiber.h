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

/* Of the declaration of a variable that files share: without it, code fetches the address from the global offset table. */
#define WEFT_HIDDEN __attribute__((visibility("hidden")))

typedef struct {
	/* Whether calls of libraries suspend it: a `weft_hook_state` of hooks/suspend.c. */
	int hook_state;
	/* Where the last wait was interrupted. */
	const zend_execute_data *interrupted_in;
	/* The innermost wrapped call in progress: calls/internal.h. */
	struct weft_call *call;
	/* What the engine had in the middle of a call when the fiber was left, or NULL: hooks/state.c. */
	struct weft_engine_state *engine;
	/* The realm that it is in, or NULL: realms/switch.c. */
	struct weft_realm *realm;
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
