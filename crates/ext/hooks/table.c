/* Which functions are replaced: of libc, and one of libcurl. */
#include "hooks.h"
#include "replacements.h"

#include <dlfcn.h>

/* The next task may use the library that is loaded here. */
void *weft_dlopen(const char *file, int mode)
{
	void *library = dlopen(file, mode);
	if (library != NULL && weft_hooks_apply()) {
		weft_scan_libraries();
	}
	return library;
}

const weft_replacement weft_replacements[] = {
	{"poll", weft_poll},
	{"__poll_chk", weft_poll_chk},
	{"ppoll", weft_ppoll},
	{"__ppoll_chk", weft_ppoll_chk},
	{"select", weft_select},
	{"pselect", weft_pselect},
	{"epoll_wait", weft_epoll_wait},
	{"epoll_pwait", weft_epoll_pwait},
	{"curl_multi_wait", weft_curl_multi_wait},
	{"sleep", weft_sleep},
	{"usleep", weft_usleep},
	{"nanosleep", weft_nanosleep},
	{"clock_nanosleep", weft_clock_nanosleep},
	{"recv", weft_recv},
	{"__recv_chk", weft_recv_chk},
	{"recvfrom", weft_recvfrom},
	{"__recvfrom_chk", weft_recvfrom_chk},
	{"recvmsg", weft_recvmsg},
	{"send", weft_send},
	{"sendto", weft_sendto},
	{"sendmsg", weft_sendmsg},
	{"accept", weft_accept},
	{"accept4", weft_accept4},
	{"connect", weft_connect},
	{"read", weft_read},
	{"__read_chk", weft_read_chk},
	{"write", weft_write},
	{"close", weft_close},
	{"flock", weft_flock},
	{"fcntl", weft_fcntl},
	{"fcntl64", weft_fcntl},
	{"waitpid", weft_waitpid},
	{"wait4", weft_wait4},
	{"wait3", weft_wait3},
	{"wait", weft_child_wait},
	{"popen", weft_popen},
	{"pclose", weft_pclose},
	{"getaddrinfo", weft_getaddrinfo},
	{"getnameinfo", weft_getnameinfo},
	{"gethostbyname_r", weft_gethostbyname_r},
	{"res_nsearch", weft_res_nsearch},
	{"__res_nsearch", weft_res_nsearch},
	{"dlopen", weft_dlopen},
};

const size_t weft_replacement_count = sizeof(weft_replacements) / sizeof(*weft_replacements);
