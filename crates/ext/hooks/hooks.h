/*
 * Blocking calls of libraries that suspend the Weft task instead of the process.
 *
 * The extension replaces the entries of libc's blocking functions in the jump slots of PHP, its extensions and known client libraries
 * (crates/ext/src/hooks/slots.rs) by the functions declared here. Each of them first asks `weft_mode_here()`. Outside
 * of tasks the replacement is the real function. In a task it asks the system without waiting, and only if nothing is ready it calls
 * `weft_wait()`, which suspends the task.
 *
 * The frames of a library and of a replacement lie below the suspended fiber. So only plain data may be on them: a fatal error of PHP jumps
 * over them, and no destructor runs. This is why this layer is C. Rust is called before and after a suspension, never across it.
 *
 * The real functions are called by their names: the slots of this library are never replaced.
 */
#ifndef WEFT_HOOKS_H
#define WEFT_HOOKS_H

#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- whether to suspend ------------------------------------------------------------------------------------------------------------- */

typedef enum {
	/* Call the real function: this is no task, another thread, a forked child, or a place where PHP cannot switch fibers. */
	WEFT_BLOCK,
	/* Ask the system without waiting, then `weft_wait()`. */
	WEFT_SUSPEND,
	/*
	 * A wait of this task was interrupted and its exception is still pending: the task was cancelled, or PHP destroys its fiber. The library
	 * is on its way out. Ask the system without waiting, then fail with -1 and ECANCELED.
	 */
	WEFT_FAIL,
} weft_mode;

/* Groups of replacements that are switched together; `Weft\Runtime\Hook` has the same numbers. */
typedef enum {
	WEFT_SLEEP = 1,
	WEFT_SOCKETS = 2,
	WEFT_PIPES = 4,
	WEFT_LOCKS = 8,
	WEFT_PROCESSES = 16,
	WEFT_NAMES = 32,
} weft_group;

/* What a replacement has to do. Costs a few nanoseconds. */
weft_mode weft_mode_here(weft_group group);
/* Whether the running code is in a fiber that it may suspend now, as far as PHP is concerned. */
bool weft_may_suspend(void);
/* No task waits for a child any more. */
void weft_children_forget(void);

/* Whether this is the thread of PHP while an event loop runs with hooks. */
bool weft_hooks_apply(void);

/* Whether this process is a child of the one that the event loop runs in: its tasks, their connections and children belong to the parent. */
bool weft_is_forked(void);

/* --- waiting ------------------------------------------------------------------------------------------------------------------------ */

typedef enum {
	/* A descriptor may be ready: ask the system again, without waiting. */
	WEFT_READY = 1,
	WEFT_TIMED_OUT = 2,
	/* Another task has closed a descriptor meanwhile. */
	WEFT_CLOSED = 3,
	/* An exception is pending. Return to the library at once, with -1 and ECANCELED. */
	WEFT_INTERRUPTED = 4,
	/* Nothing was waited for: call the real function. */
	WEFT_UNAVAILABLE = 5,
} weft_end;

/* A point in time in nanoseconds of CLOCK_MONOTONIC; WEFT_FOREVER is none. */
typedef int64_t weft_deadline;
#define WEFT_FOREVER ((weft_deadline) -1)

weft_deadline weft_deadline_in(int64_t seconds, int64_t nanoseconds);
/* Nanoseconds until the deadline, 0 when it has passed. */
int64_t weft_time_left(weft_deadline deadline);

/*
 * Suspends the task until one of the descriptors is ready or the deadline has passed. Without descriptors it is a sleep. Descriptors below 0
 * are ignored. To be called only in WEFT_SUSPEND. Keeps `errno`.
 *
 * With a single descriptor and WEFT_READY, `revents` is what poll() would write; 0 where the system has to be asked, because another task waited
 * for the same descriptor. With several, `revents` is not written.
 */
weft_end weft_wait(struct pollfd *descriptors, size_t count, weft_deadline deadline);

/* The same for one descriptor. */
weft_end weft_wait_for(int descriptor, short events, weft_deadline deadline);

/*
 * Asks the system without waiting. A signal that is pending ends even a poll() that does not wait (EINTR), which says nothing of the descriptor.
 * Keeps `errno`.
 */
bool weft_is_ready(int descriptor, short events);

/*
 * To be called by a replacement before it asks the system without waiting. Lets other tasks run once in a while, so that a library that never
 * waits does not keep the process to itself. False: interrupted; fail with -1 and ECANCELED.
 */
bool weft_give_way(weft_mode mode);

/* The same for a call in which a task must not give way. False: an exception is pending. */
bool weft_give_way_before_call(void);

/*
 * Calls `run(work)` on another thread and suspends the task until it has returned: WEFT_READY. `run` must not use PHP. `release(work)` is
 * called once both sides are done with it, on either thread. WEFT_INTERRUPTED abandons the call: it runs to its end, and the caller must not
 * touch `work` any more. With WEFT_UNAVAILABLE nothing was called, not even `release`. Otherwise the caller calls `weft_release(work)` when it
 * has read the result.
 */
typedef struct weft_work {
	void (*run)(struct weft_work *work);
	void (*release)(struct weft_work *work);
	/* Written by weft_run_blocking. */
	int holders;
} weft_work;

weft_end weft_run_blocking(weft_work *work);
void weft_release(weft_work *work);

/* --- interruptions ------------------------------------------------------------------------------------------------------------------ */

/*
 * The library whose wait was interrupted has returned. What becomes of the exception, which libraries wrap in one of their own or discard, is the
 * matter of calls/call.c.
 */
void weft_forget_interruption(void);

/*
 * Makes the library notice that its wait was interrupted: shuts the socket down, if it is a connection that only this task waits for. Without
 * this a connection is out of step: its next request reads the answer to this one. `caller` is the return address in the library.
 */
void weft_break_connection(int descriptor, const void *caller);

/* --- the table ---------------------------------------------------------------------------------------------------------------------- */

typedef struct {
	const char *name;
	void *replacement;
} weft_replacement;

extern const weft_replacement weft_replacements[];
extern const size_t weft_replacement_count;

/* --- implemented in Rust (crates/ext/src/hooks) --------------------------------------------------------------------------------------- */

/* The operation, or 0 where a descriptor is always ready, or -1 where the wait cannot begin. */
int64_t weft_wait_start(const struct pollfd *descriptors, size_t count, weft_deadline deadline);
int64_t weft_blocking_start(weft_work *work);
void weft_wait_cancel(int64_t operation);
/* The descriptor that is ready when the event loop has work, or -1 where it may have work that no descriptor tells of. */
int weft_only_event_source(void);
/* Tells the watchdog of the event loop that the process waits, and that it goes on. */
void weft_process_waits(bool begins);
bool weft_is_awaited(int descriptor);
/* Bytes were read from the descriptor: tasks that wait for them have to ask again. */
void weft_taken(int descriptor);
void weft_closed(int descriptor);
/* Whether the address is in a library that takes ECANCELED alone better than a connection that was shut down. */
bool weft_caller_keeps_connection(const void *caller);
void weft_scan_libraries(void);

#endif
