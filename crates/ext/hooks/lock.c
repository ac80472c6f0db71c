/* flock, and fcntl with F_SETLKW: waits for the locks of other processes and of other tasks. */
#include "hooks.h"
#include "replacements.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>

typedef struct {
	int descriptor;
	int operation;
	/* Of fcntl, or NULL. */
	struct flock *lock;
} weft_lock;

/* -1 with EWOULDBLOCK, EAGAIN or EACCES while another holds the lock. */
static int try_lock(const weft_lock *lock)
{
	if (lock->lock == NULL) {
		return flock(lock->descriptor, lock->operation | LOCK_NB);
	}
	return fcntl(lock->descriptor, lock->operation == F_SETLKW ? F_SETLK : F_OFD_SETLK, lock->lock);
}

static int lock_at_once(const weft_lock *lock)
{
	return lock->lock == NULL ? flock(lock->descriptor, lock->operation) : fcntl(lock->descriptor, lock->operation, lock->lock);
}

/*
 * A lock that is held across a wait would otherwise stop the process for ever: the task that holds it could not run to release it. Sessions in
 * files and Symfony's locks do that. The system does not announce the release of a lock, so the attempt is repeated.
 */
static int lock_until_free(const weft_lock *lock)
{
	weft_mode mode = weft_mode_here(WEFT_LOCKS);
	if (mode == WEFT_BLOCK) {
		return lock_at_once(lock);
	}
	int64_t pause = WEFT_FIRST_PAUSE;
	while (true) {
		int result = try_lock(lock);
		if (result == 0 || (errno != EWOULDBLOCK && errno != EAGAIN && errno != EACCES)) {
			return result;
		}
		switch (weft_back_off(&pause, mode, WEFT_FOREVER)) {
			case WEFT_GIVE_UP:
				return -1;
			case WEFT_CALL_REAL:
				return lock_at_once(lock);
			case WEFT_TRY_AGAIN:
				break;
		}
	}
}

int weft_flock(int descriptor, int operation)
{
	if (operation & (LOCK_NB | LOCK_UN)) {
		return flock(descriptor, operation);
	}
	return lock_until_free(&(weft_lock) {.descriptor = descriptor, .operation = operation});
}

/* libc too reads its third argument as a pointer in every case. */
int weft_fcntl(int descriptor, int operation, ...)
{
	va_list arguments;
	va_start(arguments, operation);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	if ((operation != F_SETLKW && operation != F_OFD_SETLKW) || argument == NULL) {
		return fcntl(descriptor, operation, argument);
	}
	return lock_until_free(&(weft_lock) {.descriptor = descriptor, .operation = operation, .lock = argument});
}
