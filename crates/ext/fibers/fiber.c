/* The lifetime of what Weft keeps with a fiber. */
#include "fiber.h"

#include <zend_extensions.h>
#include <zend_observer.h>

#define MAX_HANDLERS 3

int weft_slot = -1;

/* PHP tells neither the beginning nor the end of the fiber that it begins a request with, and nothing stays in it. */
static weft_fiber main_fiber;

static void (*handlers[MAX_HANDLERS])(zend_fiber_context *context);
static unsigned handler_count;

ZEND_COLD weft_fiber *weft_fiber_begin(zend_fiber_context *context)
{
	weft_fiber *fiber = context == EG(main_fiber_context) ? &main_fiber : emalloc(sizeof(weft_fiber));
	*fiber = (weft_fiber) {0};
	context->reserved[weft_slot] = fiber;
	return fiber;
}

/* Not at the first switch: there is no way back from the middle of one if memory has run out. */
static void made(zend_fiber_context *context)
{
	weft_fiber_begin(context);
}

/* False after a fatal error, in a destructor of what the handler frees. */
static bool runs_to_its_end(void (*handler)(zend_fiber_context *context), zend_fiber_context *context)
{
	bool has_ended = true;
	zend_try {
		handler(context);
	} zend_catch {
		has_ended = false;
	} zend_end_try();
	return has_ended;
}

static void destroyed(zend_fiber_context *context)
{
	weft_fiber *fiber = context->reserved[weft_slot];
	bool have_ended = true;
	if (fiber == NULL) {
		return;
	}
	for (unsigned i = 0; i < handler_count; i++) {
		have_ended &= runs_to_its_end(handlers[i], context);
	}
	context->reserved[weft_slot] = NULL;
	efree(fiber);
	if (!have_ended && EG(bailout) != NULL) {
		/* PHP still names the fiber that has ended as the one that runs. */
		EG(active_fiber) = NULL;
		zend_bailout();
	}
}

static bool bailout_is_due;

ZEND_COLD void weft_fiber_bailout(zend_fiber_context *from, zend_fiber_context *to)
{
	zend_fiber *left = from->kind == zend_ce_fiber ? zend_fiber_from_context(from) : NULL;
	if (from->status == ZEND_FIBER_STATUS_DEAD || EG(bailout) == NULL) {
		/* Where it has ended by another fatal error, PHP tells the one that goes on. */
		if (left == NULL || (left->flags & ZEND_FIBER_FLAG_BAILOUT) == 0) {
			bailout_is_due = true;
			zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
		}
		return;
	}
	zend_fiber *resumed = to->kind == zend_ce_fiber ? zend_fiber_from_context(to) : NULL;
	if (left != NULL && left->caller == NULL) {
		/* It was being suspended. The code that has resumed it gets the bailout when it ends. */
		left->caller = to;
	} else if (resumed != NULL && resumed->caller == from) {
		resumed->caller = NULL;
	}
	EG(active_fiber) = NULL;
	zend_bailout();
}

bool weft_fiber_takes_bailout(void)
{
	bool was_due = bailout_is_due;
	bailout_is_due = false;
	return was_due;
}

static bool is_released(zend_object *object)
{
	bool has_ended = true;
	zend_try {
		OBJ_RELEASE(object);
	} zend_catch {
		has_ended = false;
	} zend_end_try();
	return has_ended;
}

void weft_fiber_unblock_after_fatal_error(bool was_blocked)
{
	/* PHP jumps over where it would have allowed switches again, such as the end of a destructor. */
	while (!was_blocked && zend_fiber_switch_blocked()) {
		zend_fiber_switch_unblock();
	}
}

void weft_release_without_switch(zend_object *object)
{
	bool was_blocked = zend_fiber_switch_blocked();
	zend_fiber_switch_block();
	bool has_ended = is_released(object);
	zend_fiber_switch_unblock();
	if (!has_ended) {
		/* Shutdown functions run tasks. */
		weft_fiber_unblock_after_fatal_error(was_blocked);
		zend_bailout();
	}
}

/* --- the memory limit ---------------------------------------------------------------------------------------------------------------- */

/* The limit in force before it was lifted: PHP tells only the one of its settings. */
static size_t limit_in_force;
static bool limit_is_lifted;
/* The limit in force is not that of the settings, because more memory is in use than that. */
static bool limit_is_due;

void weft_memory_limit_lift(void)
{
	if (!limit_is_lifted && !limit_is_due) {
		limit_in_force = (size_t) PG(memory_limit);
	}
	limit_is_lifted = true;
	zend_set_memory_limit(SIZE_MAX);
}

void weft_memory_limit_restore(void)
{
	limit_is_lifted = false;
	limit_is_due = zend_set_memory_limit((size_t) PG(memory_limit)) == FAILURE;
	if (limit_is_due && zend_set_memory_limit(limit_in_force) == FAILURE) {
		limit_in_force = zend_memory_usage(true);
		zend_set_memory_limit(limit_in_force);
	}
}

/* --- life cycle ---------------------------------------------------------------------------------------------------------------------- */

void weft_fiber_ends(void (*handler)(zend_fiber_context *context))
{
	ZEND_ASSERT(handler_count < MAX_HANDLERS);
	handlers[handler_count++] = handler;
}

bool weft_fiber_startup(void)
{
	if (weft_slot < 0) {
		weft_slot = zend_get_resource_handle("weft");
		if (weft_slot >= 0) {
			zend_observer_fiber_init_register(made);
			zend_observer_fiber_destroy_register(destroyed);
		}
	}
	return weft_slot >= 0;
}

void weft_fiber_request_startup(void)
{
	bailout_is_due = false;
	limit_is_lifted = limit_is_due = false;
}

/* For Weft\Native\isCollecting(). */
bool weft_collector_runs(void)
{
	return weft_is_collector(EG(current_fiber_context));
}
