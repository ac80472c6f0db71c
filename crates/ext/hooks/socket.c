/* recv, send, accept, connect and their variants: calls on blocking sockets, which wait in the kernel. */
#include "hooks.h"
#include "replacements.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>

bool weft_blocks(int descriptor)
{
	int error = errno;
	int flags = fcntl(descriptor, F_GETFL);
	errno = error;
	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* When a blocking call on the socket gives up: SO_RCVTIMEO or SO_SNDTIMEO. */
static weft_deadline socket_deadline(int socket, int option)
{
	struct timeval timeout = {0, 0};
	socklen_t length = sizeof(timeout);
	if (getsockopt(socket, SOL_SOCKET, option, &timeout, &length) != 0 || (timeout.tv_sec == 0 && timeout.tv_usec == 0)) {
		return WEFT_FOREVER;
	}
	return weft_deadline_in(timeout.tv_sec, timeout.tv_usec * INT64_C(1000));
}

weft_attempt weft_retry(int descriptor, short events, weft_mode mode, weft_deadline deadline, const void *caller)
{
	switch (mode == WEFT_FAIL ? WEFT_INTERRUPTED : weft_wait_for(descriptor, events, deadline)) {
		case WEFT_READY:
			return WEFT_TRY_AGAIN;
		case WEFT_TIMED_OUT:
			errno = EAGAIN;
			return WEFT_GIVE_UP;
		case WEFT_CLOSED:
			errno = EBADF;
			return WEFT_GIVE_UP;
		case WEFT_INTERRUPTED:
			if (mode != WEFT_FAIL) {
				weft_break_connection(descriptor, caller);
			}
			errno = ECANCELED;
			return WEFT_GIVE_UP;
		default:
			return WEFT_CALL_REAL;
	}
}

#define LONGEST_PAUSE INT64_C(20000000)

weft_attempt weft_back_off(int64_t *pause, weft_mode mode, weft_deadline deadline)
{
	weft_deadline end = weft_deadline_in(0, *pause);
	if (deadline != WEFT_FOREVER && deadline < end) {
		end = deadline;
	}
	*pause = *pause * 2 < LONGEST_PAUSE ? *pause * 2 : LONGEST_PAUSE;
	switch (mode == WEFT_FAIL ? WEFT_INTERRUPTED : weft_wait(NULL, 0, end)) {
		case WEFT_INTERRUPTED:
			errno = ECANCELED;
			return WEFT_GIVE_UP;
		case WEFT_UNAVAILABLE:
			return WEFT_CALL_REAL;
		default:
			return WEFT_TRY_AGAIN;
	}
}

/*
 * One call on a socket: CALL(more) is the real one with more flags. The first attempt does not wait. If there is nothing and the socket blocks,
 * the task is suspended until there is.
 */
#define UNTIL_DONE(socket, flags, events, option, CALL) \
	do { \
		weft_mode mode = ((flags) & MSG_DONTWAIT) == 0 ? weft_mode_here(WEFT_SOCKETS) : WEFT_BLOCK; \
		if (mode == WEFT_BLOCK) { \
			return CALL(0); \
		} \
		if (!weft_give_way(mode)) { \
			weft_break_connection(socket, __builtin_return_address(0)); \
			errno = ECANCELED; \
			return -1; \
		} \
		weft_deadline deadline = 0; \
		while (true) { \
			ssize_t result = CALL(MSG_DONTWAIT); \
			if (result >= 0 && (events) == POLLIN) { \
				weft_taken(socket); \
			} \
			if (result >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || !weft_blocks(socket)) { \
				return result; \
			} \
			if (deadline == 0) { \
				deadline = socket_deadline(socket, option); \
			} \
			switch (weft_retry(socket, events, mode, deadline, __builtin_return_address(0))) { \
				case WEFT_TRY_AGAIN: \
					break; \
				case WEFT_GIVE_UP: \
					return -1; \
				case WEFT_CALL_REAL: \
					return CALL(0); \
			} \
		} \
	} while (false)

/* --- receiving ---------------------------------------------------------------------------------------------------------------------- */

/* MSG_WAITALL: until the buffer is full, the peer has closed or an error. */
static ssize_t receive_all(int socket, char *buffer, size_t size, int flags, weft_mode mode, const void *caller)
{
	weft_deadline deadline = socket_deadline(socket, SO_RCVTIMEO);
	size_t received = 0;
	while (true) {
		ssize_t result = recv(socket, buffer + received, size - received, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
		if (result > 0) {
			received += (size_t) result;
			if (received == size) {
				return (ssize_t) received;
			}
			continue;
		}
		bool is_empty = result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
		if (!is_empty || !weft_blocks(socket)) {
			return received > 0 ? (ssize_t) received : result;
		}
		switch (weft_retry(socket, POLLIN, mode, deadline, caller)) {
			case WEFT_TRY_AGAIN:
				break;
			case WEFT_GIVE_UP:
				return received > 0 ? (ssize_t) received : -1;
			case WEFT_CALL_REAL:
				result = recv(socket, buffer + received, size - received, flags);
				return result >= 0 ? (ssize_t) received + result : received > 0 ? (ssize_t) received : -1;
		}
	}
}

ssize_t weft_recv(int socket, void *buffer, size_t size, int flags)
{
	const int other = MSG_OOB | MSG_ERRQUEUE;
	if (flags & other) {
		return recv(socket, buffer, size, flags);
	}
	if ((flags & (MSG_WAITALL | MSG_PEEK | MSG_DONTWAIT)) == MSG_WAITALL) {
		weft_mode mode = weft_mode_here(WEFT_SOCKETS);
		if (mode != WEFT_BLOCK) {
			return receive_all(socket, buffer, size, flags, mode, __builtin_return_address(0));
		}
	}
#define CALL(more) recv(socket, buffer, size, flags | (more))
	UNTIL_DONE(socket, flags, POLLIN, SO_RCVTIMEO, CALL);
#undef CALL
}

ssize_t weft_recv_chk(int socket, void *buffer, size_t size, size_t room, int flags)
{
	if (size > room) {
		abort();
	}
	return weft_recv(socket, buffer, size, flags);
}

ssize_t weft_recvfrom(int socket, void *buffer, size_t size, int flags, struct sockaddr *address, socklen_t *length)
{
	if (flags & (MSG_OOB | MSG_ERRQUEUE | MSG_WAITALL)) {
		return address == NULL ? weft_recv(socket, buffer, size, flags) : recvfrom(socket, buffer, size, flags, address, length);
	}
	socklen_t given = length != NULL ? *length : 0;
#define CALL(more) (length != NULL ? (void) (*length = given) : (void) 0, recvfrom(socket, buffer, size, flags | (more), address, length))
	UNTIL_DONE(socket, flags, POLLIN, SO_RCVTIMEO, CALL);
#undef CALL
}

ssize_t weft_recvfrom_chk(
	int socket, void *buffer, size_t size, size_t room, int flags, struct sockaddr *address, socklen_t *length)
{
	if (size > room) {
		abort();
	}
	return weft_recvfrom(socket, buffer, size, flags, address, length);
}

/* With MSG_WAITALL the kernel waits for the rest of a message that has begun to arrive. */
ssize_t weft_recvmsg(int socket, struct msghdr *message, int flags)
{
	if (flags & (MSG_OOB | MSG_ERRQUEUE | MSG_WAITALL)) {
		return recvmsg(socket, message, flags);
	}
	struct msghdr given = *message;
#define CALL(more) (*message = given, recvmsg(socket, message, flags | (more)))
	UNTIL_DONE(socket, flags, POLLIN, SO_RCVTIMEO, CALL);
#undef CALL
}

/* --- sending ------------------------------------------------------------------------------------------------------------------------ */

/* A blocking socket of a stream takes everything before the call returns. */
static ssize_t send_all(int socket, const char *data, size_t size, int flags, weft_mode mode, const void *caller)
{
	weft_deadline deadline = 0;
	size_t sent = 0;
	while (true) {
		ssize_t result = send(socket, data + sent, size - sent, flags | MSG_DONTWAIT);
		if (result >= 0) {
			sent += (size_t) result;
			if (sent >= size || !weft_blocks(socket)) {
				return (ssize_t) sent;
			}
			continue;
		}
		bool is_full = errno == EAGAIN || errno == EWOULDBLOCK;
		if (!is_full || !weft_blocks(socket)) {
			return sent > 0 ? (ssize_t) sent : -1;
		}
		if (deadline == 0) {
			deadline = socket_deadline(socket, SO_SNDTIMEO);
		}
		switch (weft_retry(socket, POLLOUT, mode, deadline, caller)) {
			case WEFT_TRY_AGAIN:
				break;
			case WEFT_GIVE_UP:
				return sent > 0 ? (ssize_t) sent : -1;
			case WEFT_CALL_REAL:
				result = send(socket, data + sent, size - sent, flags);
				return result >= 0 ? (ssize_t) sent + result : sent > 0 ? (ssize_t) sent : -1;
		}
	}
}

ssize_t weft_send_from(int socket, const void *data, size_t size, int flags, const void *caller)
{
	weft_mode mode = (flags & MSG_DONTWAIT) == 0 ? weft_mode_here(WEFT_SOCKETS) : WEFT_BLOCK;
	if (mode == WEFT_BLOCK) {
		return send(socket, data, size, flags);
	}
	return send_all(socket, data, size, flags, mode, caller);
}

ssize_t weft_send(int socket, const void *data, size_t size, int flags)
{
	return weft_send_from(socket, data, size, flags, __builtin_return_address(0));
}

ssize_t weft_sendto(int socket, const void *data, size_t size, int flags, const struct sockaddr *address, socklen_t length)
{
	if (address == NULL) {
		return weft_send_from(socket, data, size, flags, __builtin_return_address(0));
	}
#define CALL(more) sendto(socket, data, size, flags | (more), address, length)
	UNTIL_DONE(socket, flags, POLLOUT, SO_SNDTIMEO, CALL);
#undef CALL
}

/* A large message may be sent in part, as on a socket that does not block. */
ssize_t weft_sendmsg(int socket, const struct msghdr *message, int flags)
{
#define CALL(more) sendmsg(socket, message, flags | (more))
	UNTIL_DONE(socket, flags, POLLOUT, SO_SNDTIMEO, CALL);
#undef CALL
}

/* --- connections -------------------------------------------------------------------------------------------------------------------- */

/* No flag makes a single `accept` return at once: the socket is asked before. */
int weft_accept4(int socket, struct sockaddr *address, socklen_t *length, int flags)
{
	weft_mode mode = weft_mode_here(WEFT_SOCKETS);
	weft_deadline deadline = 0;
	while (mode != WEFT_BLOCK) {
		if (weft_is_ready(socket, POLLIN) || !weft_blocks(socket)) {
			break;
		}
		if (deadline == 0) {
			deadline = socket_deadline(socket, SO_RCVTIMEO);
		}
		weft_attempt next = weft_retry(socket, POLLIN, mode, deadline, __builtin_return_address(0));
		if (next == WEFT_GIVE_UP) {
			return -1;
		}
		if (next == WEFT_CALL_REAL) {
			break;
		}
	}
	return accept4(socket, address, length, flags);
}

int weft_accept(int socket, struct sockaddr *address, socklen_t *length)
{
	return weft_accept4(socket, address, length, 0);
}

static int outcome_of_connect(int socket)
{
	int error = 0;
	socklen_t length = sizeof(error);
	if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0) {
		return 0;
	}
	errno = error;
	return -1;
}

/* The queue of a Unix socket is full, for which there is no event: the attempt is repeated. */
static weft_attempt connect_again(int socket, const struct sockaddr *address, socklen_t length, weft_mode mode)
{
	weft_deadline deadline = socket_deadline(socket, SO_SNDTIMEO);
	int64_t pause = WEFT_FIRST_PAUSE;
	while (true) {
		weft_attempt next = weft_back_off(&pause, mode, deadline);
		if (next != WEFT_TRY_AGAIN) {
			return next;
		}
		if (connect(socket, address, length) == 0) {
			return WEFT_TRY_AGAIN;
		}
		if (errno != EAGAIN || (deadline != WEFT_FOREVER && weft_time_left(deadline) == 0)) {
			return WEFT_GIVE_UP;
		}
	}
}

/* The socket does not block for the time of the call. */
int weft_connect(int socket, const struct sockaddr *address, socklen_t length)
{
	int flags;
	weft_mode mode = weft_mode_here(WEFT_SOCKETS);
	if (mode == WEFT_BLOCK || (flags = fcntl(socket, F_GETFL)) < 0 || (flags & O_NONBLOCK)
		|| fcntl(socket, F_SETFL, flags | O_NONBLOCK) != 0) {
		return connect(socket, address, length);
	}
	int result = connect(socket, address, length);
	if (result != 0 && errno == EAGAIN) {
		weft_attempt next = connect_again(socket, address, length, mode);
		if (next == WEFT_CALL_REAL) {
			fcntl(socket, F_SETFL, flags);
			return connect(socket, address, length);
		}
		result = next == WEFT_TRY_AGAIN ? 0 : -1;
	} else if (result != 0 && errno == EINPROGRESS) {
		weft_deadline deadline = socket_deadline(socket, SO_SNDTIMEO);
		weft_attempt next;
		do {
			next = weft_retry(socket, POLLOUT, mode, deadline, __builtin_return_address(0));
		} while (next == WEFT_TRY_AGAIN && !weft_is_ready(socket, POLLOUT));
		if (next == WEFT_CALL_REAL) {
			struct pollfd one = {.fd = socket, .events = POLLOUT};
			while (poll(&one, 1, -1) < 0 && errno == EINTR) {
			}
		}
		result = next == WEFT_GIVE_UP ? -1 : outcome_of_connect(socket);
		if (next == WEFT_GIVE_UP && errno == EAGAIN) {
			errno = EINPROGRESS;
		}
	}
	int error = errno;
	if (!(result != 0 && error == EBADF)) {
		fcntl(socket, F_SETFL, flags);
	}
	errno = error;
	return result;
}
