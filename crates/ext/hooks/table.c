/* Which functions of libc are replaced. */
#include "hooks.h"
#include "replacements.h"

#include <dlfcn.h>

/* The next task may use the library that is loaded here. */
void *weft_dlopen(const char *file, int mode)
{
	void *library = dlopen(file, mode);
	if (library != NULL) {
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
	{"sleep", weft_sleep},
	{"usleep", weft_usleep},
	{"nanosleep", weft_nanosleep},
	{"clock_nanosleep", weft_clock_nanosleep},
	{"dlopen", weft_dlopen},
};

const size_t weft_replacement_count = sizeof(weft_replacements) / sizeof(*weft_replacements);
