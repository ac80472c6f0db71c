/* The replacements, with the signatures of libc and libcurl. Names that end in `_chk` are those of code that was compiled with _FORTIFY_SOURCE. */
#ifndef WEFT_REPLACEMENTS_H
#define WEFT_REPLACEMENTS_H

#include "hooks.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
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
int weft_curl_multi_wait(void *multi, struct pollfd *extra, unsigned extra_count, int timeout, int *ready);

unsigned weft_sleep(unsigned seconds);
int weft_usleep(useconds_t microseconds);
int weft_nanosleep(const struct timespec *time, struct timespec *left);
int weft_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left);

ssize_t weft_recv(int socket, void *buffer, size_t size, int flags);
ssize_t weft_recv_chk(int socket, void *buffer, size_t size, size_t room, int flags);
ssize_t weft_recvfrom(int socket, void *buffer, size_t size, int flags, struct sockaddr *address, socklen_t *length);
ssize_t weft_recvfrom_chk(
	int socket, void *buffer, size_t size, size_t room, int flags, struct sockaddr *address, socklen_t *length);
ssize_t weft_recvmsg(int socket, struct msghdr *message, int flags);
ssize_t weft_send(int socket, const void *data, size_t size, int flags);
ssize_t weft_sendto(int socket, const void *data, size_t size, int flags, const struct sockaddr *address, socklen_t length);
ssize_t weft_sendmsg(int socket, const struct msghdr *message, int flags);
int weft_accept(int socket, struct sockaddr *address, socklen_t *length);
int weft_accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
int weft_connect(int socket, const struct sockaddr *address, socklen_t length);

ssize_t weft_read(int descriptor, void *buffer, size_t size);
ssize_t weft_read_chk(int descriptor, void *buffer, size_t size, size_t room);
ssize_t weft_write(int descriptor, const void *data, size_t size);
int weft_close(int descriptor);

/* --- what they share ---------------------------------------------------------------------------------------------------------------- */

typedef enum { WEFT_TRY_AGAIN, WEFT_GIVE_UP, WEFT_CALL_REAL } weft_attempt;

/* Waits for one descriptor after an attempt that found nothing. WEFT_GIVE_UP: errno is set, return -1. */
weft_attempt weft_retry(int descriptor, short events, weft_mode mode, weft_deadline deadline, const void *caller);
/*
 * Waits before the next attempt at what the system does not announce: `*pause` nanoseconds, and twice as long the next time, up to 20 ms. Gives
 * up for an interruption only; the caller asks whether its deadline has passed.
 */
weft_attempt weft_back_off(int64_t *pause, weft_mode mode, weft_deadline deadline);
#define WEFT_FIRST_PAUSE INT64_C(500000)
/* Whether calls on the descriptor wait in the kernel. Keeps errno. */
bool weft_blocks(int descriptor);
/* The call of PHP that waits, such as `proc_close`, or an empty string. */
const char *weft_calling_function(void);
ssize_t weft_send_from(int socket, const void *data, size_t size, int flags, const void *caller);

int weft_flock(int descriptor, int operation);
int weft_fcntl(int descriptor, int operation, ...);

pid_t weft_waitpid(pid_t child, int *status, int options);
pid_t weft_wait4(pid_t child, int *status, int options, struct rusage *usage);
pid_t weft_wait3(int *status, int options, struct rusage *usage);
/* wait() */
pid_t weft_child_wait(int *status);
FILE *weft_popen(const char *command, const char *mode);
int weft_pclose(FILE *file);

int weft_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list);
int weft_getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *service, socklen_t service_size, int flags);
int weft_gethostbyname_r(const char *name, struct hostent *host, char *buffer, size_t size, struct hostent **result, int *host_error);
int weft_res_nsearch(res_state resolver, const char *name, int class, int type, unsigned char *answer, int size);

void *weft_dlopen(const char *file, int mode);

#endif
