/* What only tests call, in debug builds. */
#include "hooks/hooks.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct {
	weft_work work;
	useconds_t microseconds;
} nap;

static void take_nap(weft_work *work)
{
	usleep(((nap *) work)->microseconds);
}

static void free_nap(weft_work *work)
{
	free(work);
}

/* Sleeps on another thread while the task is suspended. */
weft_end weft_nap(unsigned microseconds)
{
	nap *own = malloc(sizeof(*own));
	*own = (nap) {.work = {.run = take_nap, .release = free_nap}, .microseconds = microseconds};
	weft_end end = weft_mode_here(WEFT_SLEEP) == WEFT_SUSPEND ? weft_run_blocking(&own->work) : WEFT_UNAVAILABLE;
	if (end == WEFT_UNAVAILABLE) {
		free(own);
	} else if (end != WEFT_INTERRUPTED) {
		weft_release(&own->work);
	}
	return end;
}
