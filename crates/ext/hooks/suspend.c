/* Whether a library may suspend its task, and the suspension. */
#include "hooks.h"
#include "state.h"
#include "calls/calls.h"
#include "fibers/fiber.h"
#include "realms/realm.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <zend_fibers.h>

/* What the hooks keep with a fiber. */
typedef enum {
	/* Libraries block on it. */
	WEFT_FIBER_FOREIGN = 0,
	WEFT_FIBER_HOOKED,
	/* A wait has ended with an exception, and the library may not have returned yet. */
	WEFT_FIBER_INTERRUPTED,
} weft_hook_state;

/* A library that always finds something, or asks without waiting, lets other tasks run after so many calls. */
#define CALLS_IN_A_ROW 128

static struct {
	/* The groups of calls that suspend. */
	unsigned groups;
	/* Weft\Runtime\Internal\Scheduler::await() and isAlone(). */
	zend_function *await;
	zend_function *is_alone;
	pthread_t thread;
	/* The process is a child of the one that the event loop runs in: its tasks and their connections belong to the parent. */
	bool is_forked;
	/* Calls since the last suspension that found something at once. */
	unsigned calls_in_a_row;
} hooks;

static weft_hook_state fiber_state(void)
{
	zend_fiber *fiber = EG(active_fiber);
	return fiber != NULL ? (weft_hook_state) weft_fiber_of(&fiber->context)->hook_state : WEFT_FIBER_FOREIGN;
}

static void set_fiber_state(weft_hook_state state)
{
	weft_fiber_of(&EG(active_fiber)->context)->hook_state = state;
}

bool weft_hooks_apply(void)
{
	return hooks.await != NULL && pthread_equal(pthread_self(), hooks.thread);
}

static bool is_in_function(void)
{
	const zend_execute_data *frame = EG(current_execute_data);
	return frame != NULL && frame->func != NULL && !ZEND_USER_CODE(frame->func->type);
}

/* Whether the call whose wait was interrupted goes on, or one around it, and not a release of what the exception leaves behind. */
static bool is_interrupted_here(void)
{
	return weft_call_is_running() || (is_in_function() && weft_fiber_of(&EG(active_fiber)->context)->interrupted_in == EG(current_execute_data));
}

bool weft_is_forked(void)
{
	return hooks.is_forked;
}

/* For Weft\Native\maySuspend(), too. */
bool weft_may_suspend(void)
{
	return EG(active_fiber) != NULL
		&& !(EG(active_fiber)->flags & ZEND_FIBER_FLAG_DESTROYED)
		&& !zend_fiber_switch_blocked()
		&& weft_collections == 0
		&& !CG(in_compilation)
		&& !weft_scanner_is_in_use()
		&& !CG(unclean_shutdown)
		&& weft_buffers_may_wait()
		&& !WEFT_IS_AUTOLOADING();
}

weft_mode weft_mode_here(weft_group group)
{
	if (!weft_hooks_apply()) {
		return WEFT_BLOCK;
	}
	weft_hook_state state = fiber_state();
	if (state == WEFT_FIBER_FOREIGN) {
		return WEFT_BLOCK;
	}
	if (EG(exception) != NULL && state == WEFT_FIBER_INTERRUPTED && is_interrupted_here()) {
		return WEFT_FAIL;
	}
	bool is_refused = (EG(exception) != NULL && weft_is_exit(EG(exception)))
		|| (hooks.groups & group) == 0
		|| !weft_may_suspend()
		|| !weft_call_may_suspend();
	return is_refused ? WEFT_BLOCK : WEFT_SUSPEND;
}

/*
 * An include reads its file between saving and restoring the state of the scanner. Another task that compiles meanwhile would find it in the
 * middle. The frame of a file that is already running has the include as its caller too; it is told apart by the code that it runs.
 */
static bool is_including(void)
{
	const zend_execute_data *callee = NULL;
	for (const zend_execute_data *frame = EG(current_execute_data); frame != NULL; frame = frame->prev_execute_data) {
		if (frame->func == NULL || !ZEND_USER_CODE(frame->func->type)) {
			if (frame->func != NULL) {
				callee = frame;
			}
			continue;
		}
		if (frame->opline != NULL && frame->opline->opcode == ZEND_INCLUDE_OR_EVAL) {
			bool runs = callee != NULL && ZEND_USER_CODE(callee->func->type) && callee->func->common.function_name == NULL;
			if (!runs) {
				return true;
			}
		}
		callee = frame;
	}
	return false;
}

weft_deadline weft_deadline_in(int64_t seconds, int64_t nanoseconds)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	/* A century outlasts the process, and the sum stays in range. */
	const int64_t longest = INT64_C(100) * 365 * 86400;
	seconds = seconds > longest ? longest : seconds;
	return (now.tv_sec + seconds) * INT64_C(1000000000) + now.tv_nsec + nanoseconds;
}

int64_t weft_time_left(weft_deadline deadline)
{
	int64_t left = deadline - weft_deadline_in(0, 0);
	return left > 0 ? left : 0;
}

/* --- the suspension ----------------------------------------------------------------------------------------------------------------- */

/* An outcome is a weft_end, and above it the events that one descriptor is known to be ready for (crates/ext/src/hooks/wait.rs). */
static weft_end end_of(zend_long outcome)
{
	return (weft_end) (outcome & 0xff);
}

static short events_of(zend_long outcome)
{
	return (short) (outcome >> 8);
}

/* Calls Scheduler::await(), which suspends the fiber and returns the outcome of the operation. */
static zend_long await_operation(int64_t operation)
{
	weft_engine_state state;
	hooks.calls_in_a_row = 0;
	weft_engine_save(&state);
	zval argument, outcome;
	ZVAL_LONG(&argument, operation);
	ZVAL_UNDEF(&outcome);
	weft_call_suspends();
	zend_call_known_function(hooks.await, NULL, hooks.await->common.scope, &outcome, 1, &argument, NULL);
	weft_engine_restore(&state);
	weft_call_resumed();
	if (EG(exception) != NULL) {
		weft_wait_cancel(operation);
		/* A resource that code of PHP has released is gone with this wait. The next release is of another one, whose connection is intact. */
		set_fiber_state(is_in_function() || weft_call_is_running() ? WEFT_FIBER_INTERRUPTED : WEFT_FIBER_HOOKED);
		weft_fiber_of(&EG(active_fiber)->context)->interrupted_in = EG(current_execute_data);
		zval_ptr_dtor(&outcome);
		return WEFT_INTERRUPTED;
	}
	return Z_TYPE(outcome) == IS_LONG ? Z_LVAL(outcome) : WEFT_READY;
}

/* Whether no other task could run meanwhile. A handler of a signal may be called on the way. */
static bool is_alone(void)
{
	weft_engine_state state;
	weft_engine_save(&state);
	zval answer;
	ZVAL_UNDEF(&answer);
	zend_call_known_function(hooks.is_alone, NULL, hooks.is_alone->common.scope, &answer, 0, NULL, NULL);
	weft_engine_restore(&state);
	return Z_TYPE(answer) == IS_TRUE;
}

/*
 * Where nothing else can run, the process may wait as well as the task, which costs one system call and no switch. The event loop's descriptor
 * ends the wait when a signal or another thread gives the loop work; then, and after a signal, the task is suspended as usual: WEFT_UNAVAILABLE.
 */
static weft_end wait_alone(struct pollfd *descriptor, weft_deadline deadline)
{
	int source = weft_only_event_source();
	if (source < 0 || descriptor->fd < 0 || !is_alone() || EG(exception) != NULL) {
		return WEFT_UNAVAILABLE;
	}
	struct pollfd both[2] = {{.fd = descriptor->fd, .events = descriptor->events}, {.fd = source, .events = POLLIN}};
	int64_t left = deadline == WEFT_FOREVER ? 0 : weft_time_left(deadline);
	struct timespec timeout = {left / 1000000000, left % 1000000000};
	weft_process_waits(true);
	int ready = ppoll(both, 2, deadline == WEFT_FOREVER ? NULL : &timeout, NULL);
	weft_process_waits(false);
	descriptor->revents = both[0].revents;
	return ready == 0 ? WEFT_TIMED_OUT : ready > 0 && both[0].revents != 0 ? WEFT_READY : WEFT_UNAVAILABLE;
}

weft_end weft_wait(struct pollfd *descriptors, size_t count, weft_deadline deadline)
{
	int error = errno;
	weft_pending_exception pending = weft_exception_save();
	/* Where it was interrupted, the exception has been dealt with. */
	set_fiber_state(WEFT_FIBER_HOOKED);
	weft_end end = WEFT_UNAVAILABLE;
	bool may_wait = !is_including();
	if (may_wait && count == 1) {
		end = wait_alone(descriptors, deadline);
	}
	if (may_wait && end == WEFT_UNAVAILABLE) {
		int64_t operation = weft_wait_start(descriptors, count, deadline);
		if (operation > 0) {
			zend_long outcome = await_operation(operation);
			end = end_of(outcome);
			if (count == 1) {
				descriptors->revents = events_of(outcome);
			}
		}
	}
	weft_exception_restore(&pending);
	errno = error;
	return end;
}

bool weft_give_way(weft_mode mode)
{
	if (mode != WEFT_SUSPEND || ++hooks.calls_in_a_row < CALLS_IN_A_ROW || weft_call_keeps_shared_handle()) {
		return true;
	}
	return weft_wait(NULL, 0, weft_deadline_in(0, 0)) != WEFT_INTERRUPTED;
}

bool weft_give_way_before_call(void)
{
	if (hooks.calls_in_a_row < CALLS_IN_A_ROW || weft_give_way(weft_mode_here(WEFT_SOCKETS))) {
		return true;
	}
	/* No library has begun to wait. */
	weft_forget_interruption();
	return false;
}

weft_end weft_wait_for(int descriptor, short events, weft_deadline deadline)
{
	struct pollfd one = {.fd = descriptor, .events = events};
	return weft_wait(&one, 1, deadline);
}

bool weft_is_ready(int descriptor, short events)
{
	struct pollfd one = {.fd = descriptor, .events = events};
	int error = errno;
	int ready;
	do {
		ready = poll(&one, 1, 0);
	} while (ready < 0 && errno == EINTR);
	errno = error;
	return ready != 0;
}

weft_end weft_run_blocking(weft_work *work)
{
	int error = errno;
	weft_pending_exception pending = weft_exception_save();
	set_fiber_state(WEFT_FIBER_HOOKED);
	weft_end end = WEFT_UNAVAILABLE;
	if (!is_including()) {
		work->holders = 2;
		int64_t operation = weft_blocking_start(work);
		if (operation > 0) {
			end = end_of(await_operation(operation));
			if (end == WEFT_INTERRUPTED) {
				weft_release(work);
			}
		}
	}
	weft_exception_restore(&pending);
	errno = error;
	return end;
}

void weft_release(weft_work *work)
{
	if (__atomic_sub_fetch(&work->holders, 1, __ATOMIC_ACQ_REL) == 0) {
		work->release(work);
	}
}

/* --- interruptions ------------------------------------------------------------------------------------------------------------------ */

void weft_forget_interruption(void)
{
	if (weft_slot >= 0 && fiber_state() == WEFT_FIBER_INTERRUPTED) {
		set_fiber_state(WEFT_FIBER_HOOKED);
	}
}

/* Both ends of a pair that `socketpair()` has made have no name: libraries use them to wake themselves. */
static bool has_name(int descriptor, int (*name)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	if (name(descriptor, (struct sockaddr *) &address, &length) != 0) {
		return false;
	}
	return address.ss_family != AF_UNIX || length > offsetof(struct sockaddr_un, sun_path);
}

static bool has_option(int descriptor, int option, int wanted)
{
	int value = 0;
	socklen_t length = sizeof(value);
	return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 && value == wanted;
}

void weft_break_connection(int descriptor, const void *caller)
{
	if (hooks.is_forked) {
		return;
	}
	bool is_connection = has_option(descriptor, SO_TYPE, SOCK_STREAM)
		&& has_option(descriptor, SO_ACCEPTCONN, 0)
		&& (has_name(descriptor, getsockname) || has_name(descriptor, getpeername));
	if (is_connection && !weft_is_awaited(descriptor) && !weft_caller_keeps_connection(caller)) {
		shutdown(descriptor, SHUT_RDWR);
	}
}

/* --- life cycle --------------------------------------------------------------------------------------------------------------------- */

/* Called in a forked child, whose libraries block from now on. */
void weft_hooks_forked(void)
{
	hooks.await = NULL;
	hooks.is_forked = true;
}

/* Called when the module starts. False where PHP has no room left for what we keep with each fiber. */
bool weft_hooks_startup(void)
{
	if (!weft_fiber_startup()) {
		return false;
	}
	weft_engine_startup();
	return true;
}

/* Where the scheduler's class is not loaded, both stay NULL. */
static void find_methods(void)
{
	static const char name[] = "weft\\runtime\\internal\\scheduler";
	zend_class_entry *scheduler = zend_hash_str_find_ptr(EG(class_table), name, sizeof(name) - 1);
	if (scheduler != NULL) {
		hooks.await = zend_hash_str_find_ptr(&scheduler->function_table, ZEND_STRL("await"));
		hooks.is_alone = zend_hash_str_find_ptr(&scheduler->function_table, ZEND_STRL("isalone"));
	}
}

/* From now on calls of these groups suspend the fibers that `weft_hooks_enter_fiber` has been called on. */
void weft_hooks_switch(unsigned groups)
{
	hooks.thread = pthread_self();
	hooks.is_forked = false;
	if (groups != 0 && weft_slot >= 0) {
		weft_calls_find_handlers();
	}
	/* It stays when the last event loop ends: a library on a fiber that is destroyed later must not block. */
	if (hooks.await == NULL && groups != 0 && weft_slot >= 0) {
		find_methods();
	}
	hooks.groups = hooks.await != NULL ? groups : 0;
}

unsigned weft_hooks_groups(void)
{
	return hooks.groups;
}

/* Libraries suspend the running fiber from now on. */
void weft_hooks_enter_fiber(void)
{
	if (weft_slot >= 0 && EG(active_fiber) != NULL) {
		set_fiber_state(WEFT_FIBER_HOOKED);
	}
}

/* The functions of PHP that the request has compiled are about to be freed. */
void weft_hooks_request_shutdown(void)
{
	hooks.groups = 0;
	hooks.await = NULL;
	weft_children_forget();
}
