/* read, write and close: pipes, terminals and sockets. Regular files are always ready and never suspend. */
#include "hooks.h"
#include "replacements.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

static ssize_t read_when_ready(int descriptor, void *buffer, size_t size, const void *caller)
{
	weft_mode mode = weft_mode_here(WEFT_PIPES);
	if (!weft_give_way(mode)) {
		weft_break_connection(descriptor, caller);
		errno = ECANCELED;
		return -1;
	}
	while (mode != WEFT_BLOCK && !weft_is_ready(descriptor, POLLIN) && weft_blocks(descriptor)) {
		weft_attempt next = weft_retry(descriptor, POLLIN, mode, WEFT_FOREVER, caller);
		if (next == WEFT_GIVE_UP) {
			return -1;
		}
		if (next == WEFT_CALL_REAL) {
			break;
		}
	}
	return read(descriptor, buffer, size);
}

ssize_t weft_read(int descriptor, void *buffer, size_t size)
{
	return read_when_ready(descriptor, buffer, size, __builtin_return_address(0));
}

ssize_t weft_read_chk(int descriptor, void *buffer, size_t size, size_t room)
{
	if (size > room) {
		abort();
	}
	return read_when_ready(descriptor, buffer, size, __builtin_return_address(0));
}

/* A pipe that counts as writable takes PIPE_BUF bytes without waiting, and possibly no more. */
static ssize_t write_in_chunks(int pipe, const char *data, size_t size, weft_mode mode, const void *caller)
{
	size_t written = 0;
	while (written < size) {
		if (!weft_is_ready(pipe, POLLOUT)) {
			weft_attempt next = weft_retry(pipe, POLLOUT, mode, WEFT_FOREVER, caller);
			if (next == WEFT_GIVE_UP) {
				break;
			}
			if (next == WEFT_TRY_AGAIN) {
				continue;
			}
		}
		size_t chunk = size - written < PIPE_BUF ? size - written : PIPE_BUF;
		ssize_t result = write(pipe, data + written, chunk);
		if (result < 0) {
			break;
		}
		written += (size_t) result;
	}
	return written > 0 || size == 0 ? (ssize_t) written : -1;
}

ssize_t weft_write(int descriptor, const void *data, size_t size)
{
	weft_mode mode = WEFT_BLOCK;
	/* Output of the process stays in order: two tasks that print do not interrupt each other. */
	if (descriptor != STDOUT_FILENO && descriptor != STDERR_FILENO) {
		mode = weft_mode_here(WEFT_PIPES);
	}
	if (mode == WEFT_BLOCK || (size <= PIPE_BUF && weft_is_ready(descriptor, POLLOUT)) || !weft_blocks(descriptor)) {
		return write(descriptor, data, size);
	}
	struct stat status;
	if (fstat(descriptor, &status) != 0 || S_ISREG(status.st_mode)) {
		return write(descriptor, data, size);
	}
	if (S_ISSOCK(status.st_mode)) {
		return weft_send_from(descriptor, data, size, 0, __builtin_return_address(0));
	}
	return write_in_chunks(descriptor, data, size, mode, __builtin_return_address(0));
}

/* Ends the waits of tasks for the descriptor; the system would report no event to them. */
int weft_close(int descriptor)
{
	if (weft_hooks_apply()) {
		weft_closed(descriptor);
	}
	return close(descriptor);
}
