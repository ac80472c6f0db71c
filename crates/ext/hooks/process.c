/* waitpid and its like, popen and pclose: waits for child processes. */
#include "hooks.h"
#include "replacements.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <zend.h>
#include <zend_compile.h>
#include <zend_globals.h>
#include <zend_globals_macros.h>

/* Nanoseconds between two looks where no descriptor tells of a child: any child, or a kernel without pidfd_open (before 5.3). */
#define PAUSE INT64_C(5000000)
/* Seconds from SIGTERM to SIGKILL for a child whose task was cancelled. */
#define TERMINATION_GRACE 5

extern char **environ;

static int open_process(pid_t child)
{
#ifdef SYS_pidfd_open
	return (int) syscall(SYS_pidfd_open, child, 0);
#else
	errno = ENOSYS;
	return -1;
#endif
}

const char *weft_calling_function(void)
{
	const zend_execute_data *frame = EG(current_execute_data);
	bool is_internal = frame != NULL && frame->func != NULL && frame->func->type == ZEND_INTERNAL_FUNCTION;
	return is_internal && frame->func->common.function_name != NULL ? ZSTR_VAL(frame->func->common.function_name) : "";
}

static void *end_child(void *argument)
{
	pid_t child = (pid_t) (intptr_t) argument;
	for (int tenth = 0; tenth < TERMINATION_GRACE * 10; tenth++) {
		if (waitpid(child, NULL, WNOHANG) != 0) {
			return NULL;
		}
		nanosleep(&(struct timespec) {0, 100000000}, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return NULL;
}

/* The caller no longer asks for the exit code, so the child is ended, and another thread takes it out of the process table. */
static void give_up_child(pid_t child)
{
	/* A forked child has copies of its parent's tasks, and destroys them. The processes are the parent's. */
	if (weft_is_forked()) {
		return;
	}
	kill(child, SIGTERM);
	if (waitpid(child, NULL, WNOHANG) != 0) {
		return;
	}
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_t thread;
	if (pthread_create(&thread, NULL, end_child, (void *) (intptr_t) child) == 0) {
		pthread_detach(thread);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/*
 * The children that tasks wait for by their ids, so that a task that waits for any child leaves them alone. In plain PHP these calls cannot
 * overlap. Not on the stack of the fibers: a fatal error leaves them without a return.
 */
static struct {
	pid_t *children;
	size_t count, room;
} awaited;

static void add_awaited(pid_t child)
{
	if (awaited.count == awaited.room) {
		size_t room = awaited.room == 0 ? 16 : 2 * awaited.room;
		pid_t *children = realloc(awaited.children, room * sizeof(pid_t));
		if (children == NULL) {
			return;
		}
		awaited.children = children;
		awaited.room = room;
	}
	awaited.children[awaited.count++] = child;
}

/* After a fatal error their calls have not returned. */
void weft_children_forget(void)
{
	awaited.count = 0;
}

static void remove_awaited(pid_t child)
{
	for (size_t i = 0; i < awaited.count; i++) {
		if (awaited.children[i] == child) {
			awaited.children[i] = awaited.children[--awaited.count];
			return;
		}
	}
}

static bool is_awaited(pid_t child)
{
	for (size_t i = 0; i < awaited.count; i++) {
		if (awaited.children[i] == child) {
			return true;
		}
	}
	return false;
}

/* Whether the next child that the system would tell of is one that another task waits for: that task is about to take it. */
static bool is_next_awaited(pid_t child, int options)
{
	if (child > 0 || awaited.count == 0) {
		return false;
	}
	idtype_t type = child == -1 ? P_ALL : P_PGID;
	id_t id = child == -1 ? 0 : child == 0 ? (id_t) getpgrp() : (id_t) -child;
	int states = WEXITED | ((options & WUNTRACED) != 0 ? WSTOPPED : 0) | (options & WCONTINUED);
	siginfo_t next = {.si_pid = 0};
	int error = errno;
	bool is_found = waitid(type, id, &next, states | WNOHANG | WNOWAIT) == 0 && next.si_pid != 0;
	errno = error;
	return is_found && is_awaited(next.si_pid);
}

/* `ends_child`: an interruption ends the child, because the caller will not wait for it again. */
static pid_t wait_for_child(pid_t child, int *status, int options, struct rusage *usage, bool ends_child)
{
	weft_mode mode = (options & WNOHANG) == 0 ? weft_mode_here(WEFT_PROCESSES) : WEFT_BLOCK;
	if (mode == WEFT_BLOCK) {
		return wait4(child, status, options, usage);
	}
	/* The descriptor tells of an end only. */
	int descriptor = child > 0 && (options & (WUNTRACED | WCONTINUED)) == 0 ? open_process(child) : -1;
	if (child > 0) {
		add_awaited(child);
	}
	pid_t ended;
	while (true) {
		ended = is_next_awaited(child, options) ? 0 : wait4(child, status, options | WNOHANG, usage);
		if (ended != 0) {
			break;
		}
		weft_end end = mode == WEFT_FAIL ? WEFT_INTERRUPTED
			: descriptor >= 0 ? weft_wait_for(descriptor, POLLIN, WEFT_FOREVER)
			: weft_wait(NULL, 0, weft_deadline_in(0, PAUSE));
		if (end == WEFT_UNAVAILABLE) {
			ended = wait4(child, status, options, usage);
			break;
		}
		if (end == WEFT_INTERRUPTED) {
			if (ends_child && child > 0) {
				give_up_child(child);
			}
			errno = ECANCELED;
			ended = -1;
			break;
		}
	}
	if (child > 0) {
		remove_awaited(child);
	}
	if (descriptor >= 0) {
		int error = errno;
		close(descriptor);
		errno = error;
	}
	return ended;
}

/* A program that uses pcntl asks again for its child; proc_close() and the like do not. */
static bool is_given_up_when_interrupted(void)
{
	return strncmp(weft_calling_function(), "pcntl_", 6) != 0;
}

pid_t weft_waitpid(pid_t child, int *status, int options)
{
	return wait_for_child(child, status, options, NULL, is_given_up_when_interrupted());
}

pid_t weft_wait4(pid_t child, int *status, int options, struct rusage *usage)
{
	return wait_for_child(child, status, options, usage, is_given_up_when_interrupted());
}

pid_t weft_wait3(int *status, int options, struct rusage *usage)
{
	return wait_for_child(-1, status, options, usage, false);
}

pid_t weft_child_wait(int *status)
{
	return wait_for_child(-1, status, 0, NULL, false);
}

/* --- popen -------------------------------------------------------------------------------------------------------------------------- */

/* Pipes of ours: libc does not say which child belongs to a pipe. */
typedef struct weft_pipe {
	FILE *file;
	pid_t child;
	struct weft_pipe *next;
} weft_pipe;

static weft_pipe *pipes;
static pthread_mutex_t pipes_mutex = PTHREAD_MUTEX_INITIALIZER;

static pid_t start_shell(const char *command, int end, int descriptor)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, end, descriptor);
	posix_spawnattr_init(&attributes);
	pid_t child = -1;
	char *const arguments[] = {"sh", "-c", "--", (char *) command, NULL};
	int error = posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	errno = error;
	return error == 0 ? child : -1;
}

FILE *weft_popen(const char *command, const char *mode)
{
	bool reads = strchr(mode, 'r') != NULL;
	if (weft_mode_here(WEFT_PROCESSES) != WEFT_SUSPEND || reads == (strchr(mode, 'w') != NULL)) {
		return popen(command, mode);
	}
	weft_pipe *pipe = malloc(sizeof(weft_pipe));
	int ends[2];
	if (pipe == NULL || pipe2(ends, O_CLOEXEC) != 0) {
		free(pipe);
		return NULL;
	}
	int own = ends[reads ? 0 : 1], other = ends[reads ? 1 : 0];
	/* A descriptor that is duplicated onto itself would keep its flag and be closed in the child. */
	if (other == (reads ? STDOUT_FILENO : STDIN_FILENO)) {
		fcntl(other, F_SETFD, 0);
	}
	pid_t child = start_shell(command, other, reads ? STDOUT_FILENO : STDIN_FILENO);
	int error = errno;
	close(other);
	FILE *file = child > 0 ? fdopen(own, reads ? "r" : "w") : NULL;
	if (file == NULL) {
		close(own);
		free(pipe);
		if (child > 0) {
			give_up_child(child);
		}
		errno = error;
		return NULL;
	}
	*pipe = (weft_pipe) {.file = file, .child = child};
	pthread_mutex_lock(&pipes_mutex);
	pipe->next = pipes;
	pipes = pipe;
	pthread_mutex_unlock(&pipes_mutex);
	return file;
}

/* The child at the other end, or 0 where libc has made the pipe. */
static pid_t take_child(const FILE *file)
{
	pid_t child = 0;
	pthread_mutex_lock(&pipes_mutex);
	for (weft_pipe **place = &pipes; *place != NULL; place = &(*place)->next) {
		if ((*place)->file == file) {
			weft_pipe *found = *place;
			child = found->child;
			*place = found->next;
			free(found);
			break;
		}
	}
	pthread_mutex_unlock(&pipes_mutex);
	return child;
}

int weft_pclose(FILE *file)
{
	pid_t child = take_child(file);
	if (child == 0) {
		return pclose(file);
	}
	fclose(file);
	int status = 0;
	pid_t ended;
	do {
		ended = wait_for_child(child, &status, 0, NULL, true);
	} while (ended < 0 && errno == EINTR);
	return ended == child ? status : -1;
}
