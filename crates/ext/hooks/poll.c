/* poll, select, epoll_wait, curl_multi_wait: waits for several descriptors. */
#include "hooks.h"
#include "replacements.h"
#include "calls/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <zend.h>
#include <zend_compile.h>
#include <zend_globals.h>
#include <zend_globals_macros.h>

/* For the real function, which takes milliseconds. */
static int milliseconds_left(weft_deadline deadline)
{
	if (deadline == WEFT_FOREVER) {
		return -1;
	}
	int64_t left = (weft_time_left(deadline) + 999999) / 1000000;
	return left > INT_MAX ? INT_MAX : (int) left;
}

static void break_connections(const struct pollfd *descriptors, nfds_t count, const void *caller)
{
	for (nfds_t i = 0; i < count; i++) {
		if (descriptors[i].fd >= 0) {
			weft_break_connection(descriptors[i].fd, caller);
		}
	}
}

static int fail(const struct pollfd *descriptors, nfds_t count, const void *caller)
{
	break_connections(descriptors, count, caller);
	errno = ECANCELED;
	return -1;
}

/*
 * A callback of curl_exec() has thrown or was cancelled. PHP does not tell libcurl: it says that all data was taken, and calls no callback any more.
 * The transfer would go on until the server ends it, as it does without Weft. Not so with curl_multi_exec(), which returns before it waits.
 */
static bool is_transfer_abandoned(void)
{
	return weft_hooks_apply() && EG(exception) != NULL && weft_call_is_running() && strcmp(weft_calling_function(), "curl_exec") == 0;
}

static int poll_at_once(struct pollfd *descriptors, nfds_t count, const void *caller)
{
	weft_mode mode = weft_mode_here(WEFT_SOCKETS);
	if ((mode != WEFT_FAIL && is_transfer_abandoned()) || !weft_give_way(mode)) {
		return fail(descriptors, count, caller);
	}
	return poll(descriptors, count, 0);
}

/*
 * Tasks share the transfers of a curl_multi handle. One that goes on with them takes what another one waits for, and has its connections closed:
 * the other has to look at its own transfer, so its wait ends, as curl_multi_select() may at any time.
 */
static bool is_for_shared_transfers(void)
{
	return strcmp(weft_calling_function(), "curl_multi_select") == 0;
}

static int poll_until(struct pollfd *descriptors, nfds_t count, weft_deadline deadline, const void *caller)
{
	weft_mode mode = weft_mode_here(WEFT_SOCKETS);
	if (mode != WEFT_FAIL && is_transfer_abandoned()) {
		return fail(descriptors, count, caller);
	}
	if (mode == WEFT_BLOCK) {
		return poll(descriptors, count, milliseconds_left(deadline));
	}
	if (!weft_give_way(mode)) {
		return fail(descriptors, count, caller);
	}
	bool was_ready = false;
	while (true) {
		int ready = poll(descriptors, count, 0);
		if (ready != 0 || (was_ready && is_for_shared_transfers())) {
			return ready;
		}
		switch (mode == WEFT_FAIL ? WEFT_INTERRUPTED : weft_wait(descriptors, count, deadline)) {
			case WEFT_READY:
				if (count == 1 && descriptors->revents != 0) {
					return 1;
				}
				was_ready = true;
				break;
			case WEFT_TIMED_OUT:
				return poll(descriptors, count, 0);
			case WEFT_UNAVAILABLE:
				return poll(descriptors, count, milliseconds_left(deadline));
			case WEFT_CLOSED:
				if (is_for_shared_transfers()) {
					return poll(descriptors, count, 0);
				}
				errno = EBADF;
				return -1;
			case WEFT_INTERRUPTED:
				if (mode != WEFT_FAIL) {
					return fail(descriptors, count, caller);
				}
				errno = ECANCELED;
				return -1;
		}
	}
}

static weft_deadline deadline_of(const struct timespec *timeout)
{
	return timeout == NULL ? WEFT_FOREVER : weft_deadline_in(timeout->tv_sec, timeout->tv_nsec);
}

int weft_poll(struct pollfd *descriptors, nfds_t count, int timeout)
{
	if (timeout == 0) {
		return poll_at_once(descriptors, count, __builtin_return_address(0));
	}
	weft_deadline deadline = timeout < 0 ? WEFT_FOREVER : weft_deadline_in(0, timeout * INT64_C(1000000));
	return poll_until(descriptors, count, deadline, __builtin_return_address(0));
}

int weft_poll_chk(struct pollfd *descriptors, nfds_t count, int timeout, size_t size)
{
	if (size / sizeof(*descriptors) < count) {
		abort();
	}
	if (timeout == 0) {
		return poll_at_once(descriptors, count, __builtin_return_address(0));
	}
	weft_deadline deadline = timeout < 0 ? WEFT_FOREVER : weft_deadline_in(0, timeout * INT64_C(1000000));
	return poll_until(descriptors, count, deadline, __builtin_return_address(0));
}

/* A mask of signals is swapped for the time of the call, which a suspended task cannot do. */
int weft_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	if (mask != NULL || weft_mode_here(WEFT_SOCKETS) == WEFT_BLOCK) {
		return ppoll(descriptors, count, timeout, mask);
	}
	return poll_until(descriptors, count, deadline_of(timeout), __builtin_return_address(0));
}

int weft_ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size)
{
	if (size / sizeof(*descriptors) < count) {
		abort();
	}
	if (mask != NULL || weft_mode_here(WEFT_SOCKETS) == WEFT_BLOCK) {
		return ppoll(descriptors, count, timeout, mask);
	}
	return poll_until(descriptors, count, deadline_of(timeout), __builtin_return_address(0));
}

/* --- select ------------------------------------------------------------------------------------------------------------------------- */

typedef struct {
	fd_set sets[3];
} weft_sets;

static const short set_events[3] = {POLLIN, POLLOUT, POLLPRI};

/* The bytes of a set that hold the descriptors below the bound: callers may have allocated no more. */
static size_t size_of_set(int bound)
{
	return ((size_t) bound + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
}

static void copy_sets(int bound, fd_set *const given[3], weft_sets *to)
{
	for (int i = 0; i < 3; i++) {
		if (given[i] != NULL) {
			memcpy(&to->sets[i], given[i], size_of_set(bound));
		}
	}
}

static void copy_back(int bound, const weft_sets *from, fd_set *const given[3])
{
	for (int i = 0; i < 3; i++) {
		if (given[i] != NULL) {
			memcpy(given[i], &from->sets[i], size_of_set(bound));
		}
	}
}

/* `select` leaves in the sets what is ready, so each attempt has copies. */
static int select_at_once(int bound, fd_set *const given[3], const weft_sets *wanted)
{
	struct timeval none = {0, 0};
	weft_sets sets = *wanted;
	fd_set *arguments[3];
	for (int i = 0; i < 3; i++) {
		arguments[i] = given[i] != NULL ? &sets.sets[i] : NULL;
	}
	int ready = select(bound, arguments[0], arguments[1], arguments[2], &none);
	if (ready >= 0) {
		copy_back(bound, &sets, given);
	}
	return ready;
}

static size_t to_poll(int bound, fd_set *const given[3], const weft_sets *wanted, struct pollfd *descriptors)
{
	size_t count = 0;
	for (int fd = 0; fd < bound; fd++) {
		short events = 0;
		for (int i = 0; i < 3; i++) {
			if (given[i] != NULL && FD_ISSET(fd, &wanted->sets[i])) {
				events |= set_events[i];
			}
		}
		if (events != 0) {
			descriptors[count++] = (struct pollfd) {.fd = fd, .events = events};
		}
	}
	return count;
}

/*
 * An interrupted `select` leaves the connections alone: it says only what is ready, and takes nothing from a protocol. The code that asks
 * (`stream_select()`, `mysqli_poll()`) can ask again.
 */
static int select_until(int bound, fd_set *const given[3], weft_deadline deadline, weft_mode mode)
{
	weft_sets wanted;
	copy_sets(bound, given, &wanted);
	struct pollfd descriptors[FD_SETSIZE];
	size_t count = to_poll(bound, given, &wanted, descriptors);
	while (true) {
		int ready = select_at_once(bound, given, &wanted);
		if (ready != 0) {
			return ready;
		}
		switch (mode == WEFT_FAIL ? WEFT_INTERRUPTED : weft_wait(descriptors, count, deadline)) {
			case WEFT_READY:
				break;
			case WEFT_TIMED_OUT:
				return select_at_once(bound, given, &wanted);
			case WEFT_UNAVAILABLE: {
				int64_t left = deadline == WEFT_FOREVER ? 0 : weft_time_left(deadline);
				struct timeval timeout = {left / 1000000000, left % 1000000000 / 1000};
				copy_back(bound, &wanted, given);
				return select(bound, given[0], given[1], given[2], deadline == WEFT_FOREVER ? NULL : &timeout);
			}
			case WEFT_CLOSED:
				errno = EBADF;
				return -1;
			case WEFT_INTERRUPTED:
				errno = ECANCELED;
				return -1;
		}
	}
}

static bool waits(const struct timeval *timeout)
{
	return timeout->tv_sec >= 0 && timeout->tv_usec >= 0 && (timeout->tv_sec != 0 || timeout->tv_usec != 0);
}

/* Linux leaves in the time-out what is left of it. */
int weft_select(int bound, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout)
{
	weft_mode mode = weft_mode_here(WEFT_SOCKETS);
	if (!weft_give_way(mode)) {
		errno = ECANCELED;
		return -1;
	}
	if (mode == WEFT_BLOCK || bound < 0 || bound > FD_SETSIZE || (timeout != NULL && !waits(timeout))) {
		return select(bound, read, write, except, timeout);
	}
	weft_deadline deadline = timeout == NULL ? WEFT_FOREVER : weft_deadline_in(timeout->tv_sec, timeout->tv_usec * INT64_C(1000));
	fd_set *given[3] = {read, write, except};
	int ready = select_until(bound, given, deadline, mode);
	if (timeout != NULL) {
		int64_t left = weft_time_left(deadline);
		*timeout = (struct timeval) {left / 1000000000, left % 1000000000 / 1000};
	}
	return ready;
}

int weft_pselect(int bound, fd_set *read, fd_set *write, fd_set *except, const struct timespec *timeout, const sigset_t *mask)
{
	weft_mode mode = mask == NULL ? weft_mode_here(WEFT_SOCKETS) : WEFT_BLOCK;
	if (mode == WEFT_BLOCK || bound < 0 || bound > FD_SETSIZE) {
		return pselect(bound, read, write, except, timeout, mask);
	}
	fd_set *given[3] = {read, write, except};
	return select_until(bound, given, deadline_of(timeout), mode);
}

/* --- epoll -------------------------------------------------------------------------------------------------------------------------- */

/* An epoll instance is ready to read when one of its descriptors is ready. */
int weft_epoll_wait(int epoll, struct epoll_event *events, int limit, int timeout)
{
	weft_mode mode = weft_mode_here(WEFT_SOCKETS);
	if (!weft_give_way(mode)) {
		errno = ECANCELED;
		return -1;
	}
	if (mode == WEFT_BLOCK || timeout == 0) {
		return epoll_wait(epoll, events, limit, timeout);
	}
	weft_deadline deadline = timeout < 0 ? WEFT_FOREVER : weft_deadline_in(0, timeout * INT64_C(1000000));
	while (true) {
		int ready = epoll_wait(epoll, events, limit, 0);
		if (ready != 0) {
			return ready;
		}
		switch (mode == WEFT_FAIL ? WEFT_INTERRUPTED : weft_wait_for(epoll, POLLIN, deadline)) {
			case WEFT_READY:
				break;
			case WEFT_TIMED_OUT:
				return epoll_wait(epoll, events, limit, 0);
			case WEFT_UNAVAILABLE:
				return epoll_wait(epoll, events, limit, milliseconds_left(deadline));
			case WEFT_CLOSED:
				errno = EBADF;
				return -1;
			case WEFT_INTERRUPTED:
				errno = ECANCELED;
				return -1;
		}
	}
}

int weft_epoll_pwait(int epoll, struct epoll_event *events, int limit, int timeout, const sigset_t *mask)
{
	return mask != NULL ? epoll_pwait(epoll, events, limit, timeout, mask) : weft_epoll_wait(epoll, events, limit, timeout);
}

/* --- curl_multi_wait ---------------------------------------------------------------------------------------------------------------- */

/* `struct curl_waitfd` of libcurl is laid out as `struct pollfd` is, and its events are the same bits. */
typedef struct pollfd curl_waitfd;

/* CURLMcode, <https://curl.se/libcurl/c/libcurl-errors.html> */
enum {
	CURLM_OK = 0,
	CURLM_INTERNAL_ERROR = 4,
	CURLM_UNRECOVERABLE_POLL = 12,
};

/* This library is not linked with libcurl. The caller of the replacement has loaded it. */
typedef struct {
	int (*wait)(void *multi, curl_waitfd *extra, unsigned extra_count, int timeout, int *ready);
	/* Since libcurl 8.8. */
	int (*waitfds)(void *multi, curl_waitfd *descriptors, unsigned size, unsigned *count);
	int (*timeout)(void *multi, long *milliseconds);
} curl_functions;

static const curl_functions *curl(void)
{
	static curl_functions functions;
	if (functions.wait == NULL) {
		functions = (curl_functions) {
			.wait = dlsym(RTLD_DEFAULT, "curl_multi_wait"),
			.waitfds = dlsym(RTLD_DEFAULT, "curl_multi_waitfds"),
			.timeout = dlsym(RTLD_DEFAULT, "curl_multi_timeout"),
		};
	}
	return &functions;
}

/*
 * PHP's curl_multi_select(). Newer versions of libcurl (8.22) refuse every call for a multi handle that waits, with CURLM_RECURSIVE_API_CALL, but
 * tasks share its transfers. So libcurl says for what it would wait, and the wait is made outside of it. The versions before 8.8 cannot say it,
 * and suspend in the poll() that they call.
 */
int weft_curl_multi_wait(void *multi, struct pollfd *extra, unsigned extra_count, int timeout, int *ready)
{
	const curl_functions *library = curl();
	if (library->wait == NULL) {
		return CURLM_INTERNAL_ERROR;
	}
	struct pollfd descriptors[FD_SETSIZE];
	unsigned count = 0;
	long timer = -1;
	bool can_tell = library->waitfds != NULL && library->timeout != NULL;
	/* WEFT_HOOKS_EXCLUDE may name libcurl, which is not changed then. */
	bool is_hooked = weft_mode_here(WEFT_SOCKETS) != WEFT_BLOCK && weft_caller_keeps_connection(library->wait);
	if (timeout < 0 || extra_count != 0 || !can_tell || !is_hooked
		|| library->waitfds(multi, descriptors, FD_SETSIZE, &count) != CURLM_OK || count == 0 || library->timeout(multi, &timer) != CURLM_OK) {
		return library->wait(multi, extra, extra_count, timeout, ready);
	}
	if (timer >= 0 && timer < timeout) {
		timeout = (int) timer;
	}
	int found = timeout == 0 ? poll_at_once(descriptors, count, library->wait)
							 : poll_until(descriptors, count, weft_deadline_in(0, timeout * INT64_C(1000000)), library->wait);
	if (found < 0) {
		return CURLM_UNRECOVERABLE_POLL;
	}
	if (ready != NULL) {
		*ready = found;
	}
	return CURLM_OK;
}
