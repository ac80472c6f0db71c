/* The handles of suspended calls. They are entered when a fiber switches away from a call, and struck out when it comes back. */
#include "internal.h"
#include "handle.h"

#include <ext/standard/proc_open.h>
#include <zend_observer.h>

/* The type of the resources of proc_open(). */
static int process_type;

static void claim(struct claim *claim)
{
	zval *first;

	if (claim->handle == NULL) {
		return;
	}
	first = zend_hash_index_find(&weft_calls.claims, key(claim->handle));
	if (first == NULL) {
		claim->next = NULL;
		zend_hash_index_add_new_ptr(&weft_calls.claims, key(claim->handle), claim);
	} else {
		claim->next = Z_PTR_P(first);
		Z_PTR_P(first) = claim;
	}
}

static void unclaim(struct claim *claim)
{
	zval *first;
	struct claim *other;

	if (claim->handle == NULL || (first = zend_hash_index_find(&weft_calls.claims, key(claim->handle))) == NULL) {
		return;
	}
	if (Z_PTR_P(first) == claim) {
		if (claim->next == NULL) {
			zend_hash_index_del(&weft_calls.claims, key(claim->handle));
		} else {
			Z_PTR_P(first) = claim->next;
		}
		return;
	}
	for (other = Z_PTR_P(first); other != NULL; other = other->next) {
		if (other->next == claim) {
			other->next = claim->next;
			return;
		}
	}
}

static void suspend_call(struct weft_call *call)
{
	if (call->soap != NULL) {
		weft_soap_suspend(call);
	}
	call->is_suspended = true;
	weft_calls.pending++;
	call->before = NULL;
	call->after = weft_calls.suspended;
	if (weft_calls.suspended != NULL) {
		weft_calls.suspended->before = call;
	}
	weft_calls.suspended = call;
	if (may_connect(call->function)) {
		void *first = call->claims[0].handle, *second = call->claims[1].handle;
		weft_memory_limit_lift();
		weft_find_handles(call);
		weft_memory_limit_restore();
		call->has_moved |= first != call->claims[0].handle || second != call->claims[1].handle;
	}
	weft_bound_keep(call);
	claim(&call->claims[0]);
	claim(&call->claims[1]);
	for (uint32_t i = 0; i < call->bound_count; i++) {
		claim(&call->bound[i].claim);
	}
}

/* The call is not suspended any more: its fiber goes on, or is gone. */
static void resume_call(struct weft_call *call)
{
	call->is_suspended = false;
	weft_calls.pending--;
	unclaim(&call->claims[0]);
	unclaim(&call->claims[1]);
	for (uint32_t i = 0; i < call->bound_count; i++) {
		unclaim(&call->bound[i].claim);
	}
	if (call->before != NULL) {
		call->before->after = call->after;
	} else {
		weft_calls.suspended = call->after;
	}
	if (call->after != NULL) {
		call->after->before = call->before;
	}
}

static void resume_calls(struct weft_call *call)
{
	for (; call != NULL && call->is_suspended; call = call->outer) {
		resume_call(call);
	}
}

/* Called before a switch, on the stack of the fiber that is left. */
static void fiber_switches(zend_fiber_context *from, zend_fiber_context *to)
{
	struct weft_call *call;

	if (from->status != ZEND_FIBER_STATUS_DEAD) {
		for (call = weft_fiber_of(from)->call; call != NULL && !call->is_suspended; call = call->outer) {
			suspend_call(call);
		}
	} else {
		/* A bailout has jumped over these calls. */
		weft_fiber_of(from)->call = NULL;
	}
	call = weft_fiber_of(to)->call;
	if (call != NULL) {
		struct weft_call *outer;

		resume_calls(call);
		for (outer = call; outer != NULL; outer = outer->outer) {
			if (outer->soap != NULL) {
				weft_soap_resume(outer);
			}
		}
		if (to->kind == zend_ce_fiber && (zend_fiber_from_context(to)->flags & ZEND_FIBER_FLAG_DESTROYED)) {
			for (; call != NULL; call = call->outer) {
				call->is_destroyed = true;
			}
		}
	}
}

void weft_calls_are_left(zend_fiber_context *context)
{
	resume_calls(weft_fiber_of(context)->call);
	weft_fiber_of(context)->call = NULL;
}

/* PHP frees the stack of a fiber without resuming it. */
static void fiber_destroyed(zend_fiber_context *context)
{
	struct weft_call *call = weft_fiber_of(context)->call;

	resume_calls(call);
	for (struct weft_call *each = call; each != NULL; each = each->outer) {
		weft_bound_release(each);
	}
	if (call != NULL && call->is_unruled) {
		weft_fiber_of(context)->call = NULL;
		efree(call);
	}
}

unsigned char weft_sides_in_use(const void *handle)
{
	const struct claim *other = zend_hash_index_find_ptr(&weft_calls.claims, key((void *) handle));
	unsigned char sides = 0;

	for (; other != NULL; other = other->next) {
		if (other->call->context != EG(current_fiber_context)) {
			sides |= other->side;
		}
	}
	return sides;
}

static bool has_claim(const struct weft_call *call, const void *handle)
{
	for (uint32_t i = 0; i < call->bound_count; i++) {
		if (call->bound[i].claim.handle == handle) {
			return true;
		}
	}
	return call->claims[0].handle == handle || call->claims[1].handle == handle;
}

bool weft_is_in_use(const void *handle)
{
	for (const struct weft_call *call = innermost(); call != NULL; call = call->outer) {
		if (has_claim(call, handle)) {
			return true;
		}
	}
	return weft_sides_in_use(handle) != 0;
}

/* The library keeps the FILE of a stream that it is given to read or write (CURLOPT_FILE, CURLOPT_INFILE), and PHP closes it with the stream. */
void *weft_transfer_in_use(zend_execute_data *execute_data)
{
	const zval *value = argument(execute_data, 1);
	if (value == NULL || Z_TYPE_P(value) != IS_RESOURCE) {
		return NULL;
	}
	for (const struct weft_call *call = weft_calls.suspended; call != NULL; call = call->after) {
		if (call->context == EG(current_fiber_context) || call->function->module == NULL || strcmp(call->function->module->name, "curl") != 0
				|| call->freed != NULL) {
			continue;
		}
		zend_object *transfer = object_of(call->execute_data);
		if (transfer == NULL) {
			continue;
		}
		/* What the collector of garbage finds in it: its streams among others. */
		zval *held;
		int count;
		transfer->handlers->get_gc(transfer, &held, &count);
		for (int i = 0; i < count; i++) {
			if (Z_TYPE(held[i]) == IS_RESOURCE && Z_RES(held[i]) == Z_RES_P(value)) {
				return call->claims[0].handle;
			}
		}
	}
	return NULL;
}

void *weft_pipe_in_use(const zend_resource *resource)
{
	if (resource->type != process_type || resource->ptr == NULL) {
		return NULL;
	}
	const php_process_handle *process = resource->ptr;
	for (int i = 0; i < process->npipes; i++) {
		void *stream = process->pipes[i] != NULL ? process->pipes[i]->ptr : NULL;
		if (stream != NULL && weft_sides_in_use(stream) != 0) {
			return stream;
		}
	}
	return NULL;
}

void weft_claims_startup(void)
{
	zend_hash_init(&weft_calls.claims, 8, NULL, NULL, true);
	zend_observer_fiber_switch_register(fiber_switches);
	weft_fiber_ends(fiber_destroyed);
}

/* What runs after the end of a request may leave calls suspended, which are gone. */
void weft_claims_request_startup(void)
{
	weft_calls.suspended = NULL;
	zend_hash_clean(&weft_calls.claims);
	process_type = zend_fetch_list_dtor_id("process");
}

void weft_claims_request_shutdown(void)
{
	for (struct weft_call *call = weft_calls.suspended; call != NULL; call = call->after) {
		call->is_suspended = false;
	}
	weft_calls.suspended = NULL;
	zend_hash_clean(&weft_calls.claims);
}
