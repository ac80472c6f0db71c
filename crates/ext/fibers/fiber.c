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

static void destroyed(zend_fiber_context *context)
{
	weft_fiber *fiber = context->reserved[weft_slot];
	if (fiber != NULL) {
		for (unsigned i = 0; i < handler_count; i++) {
			handlers[i](context);
		}
		context->reserved[weft_slot] = NULL;
		efree(fiber);
	}
}

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
			zend_observer_fiber_destroy_register(destroyed);
		}
	}
	return weft_slot >= 0;
}

/* For Weft\Native\isCollecting(). */
bool weft_collector_runs(void)
{
	return weft_is_collector(EG(current_fiber_context));
}
