/* Whether a call may start: it begins, is refused, or waits until the call that uses its handle has ended. */
#include "internal.h"
#include "handle.h"
#include "hooks/state.h"

/* A task waits for its turn instead of getting an error. */
static bool is_queueing;

/* A number of tasks for each side. */
#define READERS(number) ((zend_long) (number))
#define WRITERS(number) ((zend_long) (number) << (sizeof(zend_long) * 4))

static zend_long ones(unsigned char sides)
{
	return READERS((sides & READ) != 0) + WRITERS((sides & WRITE) != 0);
}

static bool has_waiters(zend_long count, unsigned char sides)
{
	return ((sides & READ) && (count & (WRITERS(1) - 1))) || ((sides & WRITE) && count >= WRITERS(1));
}

/* The call that keeps `call` from starting, and the claim of `call` to the same handle. */
static struct weft_call *conflict(struct weft_call *call, struct claim **claim)
{
	struct claim *other;
	int i;

	for (i = 0; i < 2; i++) {
		if (call->claims[i].handle == NULL) {
			continue;
		}
		other = zend_hash_index_find_ptr(&weft_calls.claims, key(call->claims[i].handle));
		for (; other != NULL; other = other->next) {
			if (other->call->context != call->context && excludes(other->side, call->claims[i].side)) {
				*claim = &call->claims[i];
				return other->call;
			}
		}
	}
	return NULL;
}

/* Waits until another call has ended that uses the handle. */
static void wait_for_turn(struct weft_call *call, struct claim *claim)
{
	void *handle = claim->handle;
	zval arguments[4], result, *count;

	count = zend_hash_index_lookup(&weft_calls.waiters, key(handle));
	if (Z_TYPE_P(count) == IS_NULL) {
		ZVAL_LONG(count, 0);
	}
	Z_LVAL_P(count) += ones(claim->side);
	weft_calls.pending++;
	ZVAL_LONG(&arguments[0], (zend_long) handle);
	ZVAL_LONG(&arguments[1], claim->side & ALL);
	weft_describe_handle(&arguments[2], &arguments[3], call);
	weft_call_shared_handles("waitforturn", &result, 4, arguments);
	zval_ptr_dtor(&arguments[2]);
	zval_ptr_dtor(&arguments[3]);
	zval_ptr_dtor(&result);
	weft_calls.pending--;
	count = zend_hash_index_find(&weft_calls.waiters, key(handle));
	if (count != NULL && (Z_LVAL_P(count) -= ones(claim->side)) == 0) {
		zend_hash_index_del(&weft_calls.waiters, key(handle));
	}
}

/* A call around this one, in the same fiber, uses the same handle. */
static bool is_nested(struct weft_call *call, void *handle)
{
	struct weft_call *outer;

	for (outer = call->outer; outer != NULL; outer = outer->outer) {
		if (outer->claims[0].handle == handle || outer->claims[1].handle == handle) {
			return true;
		}
	}
	return false;
}

static void give_turn_for(struct weft_call *call, void *handle)
{
	if (handle != NULL && zend_hash_index_exists(&weft_calls.waiters, key(handle)) && !is_nested(call, handle)) {
		weft_pending_exception pending = weft_exception_save();
		zval arguments[2], result;

		ZVAL_LONG(&arguments[0], (zend_long) handle);
		ZVAL_LONG(&arguments[1], weft_sides_in_use(handle) & ALL);
		weft_call_shared_handles("giveturn", &result, 2, arguments);
		zval_ptr_dtor(&result);
		weft_exception_restore_alone(&pending);
	}
}

/* The tasks look again which connection they need, so a turn for a handle that has gone is no harm. */
static void give_turns_for_free_handles(struct weft_call *call)
{
	uint32_t count = 0, room = zend_hash_num_elements(&weft_calls.waiters), i;
	void **handles = safe_emalloc(room, sizeof(*handles), 0);
	zend_ulong place;

	ZEND_HASH_FOREACH_NUM_KEY(&weft_calls.waiters, place) {
		handles[count++] = handle_at(place);
	} ZEND_HASH_FOREACH_END();
	for (i = 0; i < count; i++) {
		if (weft_sides_in_use(handles[i]) == 0) {
			give_turn_for(call, handles[i]);
		}
	}
	efree(handles);
}

zend_never_inline void weft_give_turn(struct weft_call *call)
{
	if (UNEXPECTED(call->has_moved)) {
		give_turns_for_free_handles(call);
		return;
	}
	give_turn_for(call, call->claims[0].handle);
	give_turn_for(call, call->claims[1].handle);
}

/* The claim for which this call has to queue behind tasks that asked before. */
static struct claim *queue_of(struct weft_call *call)
{
	zval *count;
	int i;

	for (i = 0; i < 2; i++) {
		void *handle = call->claims[i].handle;
		if (handle != NULL && (count = zend_hash_index_find(&weft_calls.waiters, key(handle))) != NULL
				&& has_waiters(Z_LVAL_P(count), call->claims[i].side) && !is_nested(call, handle)) {
			return &call->claims[i];
		}
	}
	return NULL;
}

zend_never_inline bool weft_is_admitted(struct weft_call *call)
{
	struct claim *claim = is_queueing && EG(active_fiber) != NULL ? queue_of(call) : NULL;
	struct weft_call *holder = conflict(call, &claim);

	if (weft_calls.is_describing || CG(unclean_shutdown)) {
		return true;
	}
	while (claim != NULL) {
		if (!is_queueing || EG(active_fiber) == NULL) {
			weft_refuse(call, holder);
			return false;
		}
		void *awaited = claim->handle;
		wait_for_turn(call, claim);
		/* The tasks before this one may have closed the connection, or opened another one in its place. */
		weft_find_handles(call);
		claim = NULL;
		holder = conflict(call, &claim);
		/* It cannot use the turn that it may have been given: the next one gets it. */
		if (claim != NULL || EG(exception) != NULL) {
			weft_give_turn(call);
		}
		if (awaited != call->claims[0].handle && awaited != call->claims[1].handle) {
			give_turn_for(call, awaited);
		}
		if (EG(exception) != NULL) {
			return false;
		}
	}
	return true;
}

zend_never_inline bool weft_is_admitted_at_once(struct weft_call *call)
{
	struct claim *claim = NULL;
	struct weft_call *holder;

	if (weft_calls.is_describing || CG(unclean_shutdown)) {
		return true;
	}
	holder = conflict(call, &claim);
	if (claim != NULL) {
		weft_refuse(call, holder);
		return false;
	}
	return true;
}

bool weft_calls_queue(bool queue)
{
	bool before = is_queueing;

	is_queueing = queue;
	return before;
}

void weft_turns_startup(void)
{
	zend_hash_init(&weft_calls.waiters, 8, NULL, NULL, true);
}

void weft_turns_request_shutdown(void)
{
	is_queueing = false;
	zend_hash_clean(&weft_calls.waiters);
}
