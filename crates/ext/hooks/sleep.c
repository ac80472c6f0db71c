/* sleep, usleep, nanosleep, clock_nanosleep. */
#include "hooks.h"
#include "replacements.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/* A sleep for which no signal ends it early: signals are handled while the task is suspended. */
static weft_end sleep_until(weft_deadline deadline)
{
	weft_end end;
	do {
		end = weft_wait(NULL, 0, deadline);
	} while (end == WEFT_READY);
	return end;
}

static void fill(struct timespec *left, weft_deadline deadline)
{
	if (left != NULL) {
		int64_t nanoseconds = weft_time_left(deadline);
		*left = (struct timespec) {nanoseconds / 1000000000, nanoseconds % 1000000000};
	}
}

unsigned weft_sleep(unsigned seconds)
{
	weft_mode mode = seconds != 0 ? weft_mode_here(WEFT_SLEEP) : WEFT_BLOCK;
	if (mode == WEFT_BLOCK) {
		return sleep(seconds);
	}
	weft_deadline deadline = weft_deadline_in(seconds, 0);
	weft_end end = mode == WEFT_FAIL ? WEFT_INTERRUPTED : sleep_until(deadline);
	if (end == WEFT_UNAVAILABLE) {
		return sleep(seconds);
	}
	return (unsigned) ((weft_time_left(deadline) + 999999999) / 1000000000);
}

int weft_usleep(useconds_t microseconds)
{
	weft_mode mode = microseconds != 0 ? weft_mode_here(WEFT_SLEEP) : WEFT_BLOCK;
	if (mode == WEFT_BLOCK) {
		return usleep(microseconds);
	}
	weft_end end = mode == WEFT_FAIL ? WEFT_INTERRUPTED : sleep_until(weft_deadline_in(0, microseconds * INT64_C(1000)));
	if (end == WEFT_UNAVAILABLE) {
		return usleep(microseconds);
	}
	if (end == WEFT_INTERRUPTED) {
		errno = ECANCELED;
		return -1;
	}
	return 0;
}

static bool is_valid(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}

int weft_nanosleep(const struct timespec *time, struct timespec *left)
{
	weft_mode mode = is_valid(time) ? weft_mode_here(WEFT_SLEEP) : WEFT_BLOCK;
	if (mode == WEFT_BLOCK) {
		return nanosleep(time, left);
	}
	weft_deadline deadline = weft_deadline_in(time->tv_sec, time->tv_nsec);
	weft_end end = mode == WEFT_FAIL ? WEFT_INTERRUPTED : sleep_until(deadline);
	if (end == WEFT_UNAVAILABLE) {
		return nanosleep(time, left);
	}
	if (end == WEFT_INTERRUPTED) {
		fill(left, deadline);
		errno = ECANCELED;
		return -1;
	}
	return 0;
}

/* Returns the error instead of setting errno. */
int weft_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	struct timespec now;
	bool is_known = (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME) && is_valid(time) && clock_gettime(clock, &now) == 0;
	weft_mode mode = is_known ? weft_mode_here(WEFT_SLEEP) : WEFT_BLOCK;
	if (mode == WEFT_BLOCK) {
		return clock_nanosleep(clock, flags, time, left);
	}
	bool is_absolute = flags & TIMER_ABSTIME;
	int64_t seconds = is_absolute ? time->tv_sec - now.tv_sec : time->tv_sec;
	int64_t nanoseconds = is_absolute ? time->tv_nsec - now.tv_nsec : time->tv_nsec;
	weft_deadline deadline = weft_deadline_in(seconds, nanoseconds);
	weft_end end = mode == WEFT_FAIL ? WEFT_INTERRUPTED : sleep_until(deadline);
	if (end == WEFT_UNAVAILABLE) {
		return clock_nanosleep(clock, flags, time, left);
	}
	if (end == WEFT_INTERRUPTED) {
		if (!is_absolute) {
			fill(left, deadline);
		}
		return ECANCELED;
	}
	return 0;
}
