/* The replacements, with the signatures of libc. Names that end in `_chk` are those of code that was compiled with _FORTIFY_SOURCE. */
#ifndef WEFT_REPLACEMENTS_H
#define WEFT_REPLACEMENTS_H

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

int weft_poll(struct pollfd *descriptors, nfds_t count, int timeout);
int weft_poll_chk(struct pollfd *descriptors, nfds_t count, int timeout, size_t size);
int weft_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask);
int weft_ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size);
int weft_select(int bound, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout);
int weft_pselect(int bound, fd_set *read, fd_set *write, fd_set *except, const struct timespec *timeout, const sigset_t *mask);
int weft_epoll_wait(int epoll, struct epoll_event *events, int limit, int timeout);
int weft_epoll_pwait(int epoll, struct epoll_event *events, int limit, int timeout, const sigset_t *mask);

unsigned weft_sleep(unsigned seconds);
int weft_usleep(useconds_t microseconds);
int weft_nanosleep(const struct timespec *time, struct timespec *left);
int weft_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left);

void *weft_dlopen(const char *file, int mode);

#endif
