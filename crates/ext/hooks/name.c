/* Look-ups of names and addresses. They have no descriptor to wait for, so another thread makes them. */
#include "hooks.h"
#include "replacements.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <resolv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static char *copy_of(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

static bool is_numeric(const char *name)
{
	struct in6_addr address;
	return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

/* --- getaddrinfo -------------------------------------------------------------------------------------------------------------------- */

typedef struct {
	weft_work work;
	char *node;
	char *service;
	struct addrinfo hints;
	bool has_hints;
	int result;
	int error;
	struct addrinfo *list;
} address_work;

static void find_addresses(weft_work *work)
{
	address_work *own = (address_work *) work;
	own->result = getaddrinfo(own->node, own->service, own->has_hints ? &own->hints : NULL, &own->list);
	own->error = errno;
}

static void release_addresses(weft_work *work)
{
	address_work *own = (address_work *) work;
	if (own->list != NULL) {
		freeaddrinfo(own->list);
	}
	free(own->node);
	free(own->service);
	free(own);
}

int weft_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	bool is_local = node == NULL || (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0) || is_numeric(node);
	weft_mode mode = is_local ? WEFT_BLOCK : weft_mode_here(WEFT_NAMES);
	if (mode == WEFT_FAIL) {
		errno = ECANCELED;
		return EAI_SYSTEM;
	}
	address_work *work = mode == WEFT_SUSPEND ? calloc(1, sizeof(address_work)) : NULL;
	if (work == NULL) {
		return getaddrinfo(node, service, hints, list);
	}
	work->work = (weft_work) {.run = find_addresses, .release = release_addresses};
	work->node = copy_of(node);
	work->service = copy_of(service);
	work->has_hints = hints != NULL;
	if (hints != NULL) {
		work->hints = *hints;
	}
	switch (weft_run_blocking(&work->work)) {
		case WEFT_UNAVAILABLE:
			release_addresses(&work->work);
			return getaddrinfo(node, service, hints, list);
		case WEFT_INTERRUPTED:
			errno = ECANCELED;
			return EAI_SYSTEM;
		default:
			break;
	}
	int result = work->result, error = work->error;
	if (result == 0) {
		*list = work->list;
		work->list = NULL;
	}
	weft_release(&work->work);
	errno = error;
	return result;
}

/* --- getnameinfo -------------------------------------------------------------------------------------------------------------------- */

typedef struct {
	weft_work work;
	struct sockaddr_storage address;
	socklen_t length;
	char host[NI_MAXHOST];
	char service[NI_MAXSERV];
	socklen_t host_size;
	socklen_t service_size;
	int flags;
	int result;
	int error;
} peer_work;

static void find_peer(weft_work *work)
{
	peer_work *own = (peer_work *) work;
	own->result = getnameinfo(
		(const struct sockaddr *) &own->address, own->length,
		own->host_size != 0 ? own->host : NULL, own->host_size, own->service_size != 0 ? own->service : NULL, own->service_size, own->flags
	);
	own->error = errno;
}

static void release_peer(weft_work *work)
{
	free(work);
}

static socklen_t at_most(socklen_t size, size_t bound)
{
	return size < bound ? size : (socklen_t) bound;
}

int weft_getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *service, socklen_t service_size, int flags)
{
	bool is_local = (flags & NI_NUMERICHOST) != 0 || host == NULL || length > sizeof(struct sockaddr_storage);
	weft_mode mode = is_local ? WEFT_BLOCK : weft_mode_here(WEFT_NAMES);
	if (mode == WEFT_FAIL) {
		errno = ECANCELED;
		return EAI_SYSTEM;
	}
	peer_work *work = mode == WEFT_SUSPEND ? calloc(1, sizeof(peer_work)) : NULL;
	if (work == NULL) {
		return getnameinfo(address, length, host, host_size, service, service_size, flags);
	}
	work->work = (weft_work) {.run = find_peer, .release = release_peer};
	memcpy(&work->address, address, length);
	work->length = length;
	work->host_size = at_most(host_size, sizeof(work->host));
	work->service_size = service != NULL ? at_most(service_size, sizeof(work->service)) : 0;
	work->flags = flags;
	switch (weft_run_blocking(&work->work)) {
		case WEFT_UNAVAILABLE:
			release_peer(&work->work);
			return getnameinfo(address, length, host, host_size, service, service_size, flags);
		case WEFT_INTERRUPTED:
			errno = ECANCELED;
			return EAI_SYSTEM;
		default:
			break;
	}
	int result = work->result, error = work->error;
	if (result == 0) {
		memcpy(host, work->host, work->host_size);
		if (work->service_size != 0) {
			memcpy(service, work->service, work->service_size);
		}
	}
	weft_release(&work->work);
	errno = error;
	return result;
}

/* --- gethostbyname_r ---------------------------------------------------------------------------------------------------------------- */

typedef struct {
	weft_work work;
	char *name;
	struct hostent host;
	char *buffer;
	size_t size;
	int result;
	int host_error;
	bool is_found;
} host_work;

static void find_host(weft_work *work)
{
	host_work *own = (host_work *) work;
	struct hostent *found = NULL;
	own->result = gethostbyname_r(own->name, &own->host, own->buffer, own->size, &found, &own->host_error);
	own->is_found = found != NULL;
}

static void release_host(weft_work *work)
{
	host_work *own = (host_work *) work;
	free(own->name);
	free(own->buffer);
	free(own);
}

/* A pointer into the buffer of the other thread becomes one into that of the caller, which is a copy of it. */
static void *moved(const host_work *work, const void *pointer, char *buffer)
{
	return pointer != NULL ? buffer + ((const char *) pointer - work->buffer) : NULL;
}

static void move_list(const host_work *work, char **list, char *buffer)
{
	char **copy = moved(work, list, buffer);
	for (size_t i = 0; copy != NULL && copy[i] != NULL; i++) {
		copy[i] = moved(work, copy[i], buffer);
	}
}

static void take_host(const host_work *work, struct hostent *host, char *buffer)
{
	memcpy(buffer, work->buffer, work->size);
	move_list(work, work->host.h_aliases, buffer);
	move_list(work, work->host.h_addr_list, buffer);
	*host = (struct hostent) {
		.h_name = moved(work, work->host.h_name, buffer),
		.h_aliases = moved(work, work->host.h_aliases, buffer),
		.h_addrtype = work->host.h_addrtype,
		.h_length = work->host.h_length,
		.h_addr_list = moved(work, work->host.h_addr_list, buffer),
	};
}

int weft_gethostbyname_r(const char *name, struct hostent *host, char *buffer, size_t size, struct hostent **result, int *host_error)
{
	weft_mode mode = is_numeric(name) ? WEFT_BLOCK : weft_mode_here(WEFT_NAMES);
	if (mode == WEFT_FAIL) {
		*result = NULL;
		*host_error = TRY_AGAIN;
		return ECANCELED;
	}
	host_work *work = mode == WEFT_SUSPEND ? calloc(1, sizeof(host_work)) : NULL;
	if (work == NULL) {
		return gethostbyname_r(name, host, buffer, size, result, host_error);
	}
	work->work = (weft_work) {.run = find_host, .release = release_host};
	work->name = copy_of(name);
	work->buffer = malloc(size);
	work->size = size;
	weft_end end = work->name != NULL && work->buffer != NULL ? weft_run_blocking(&work->work) : WEFT_UNAVAILABLE;
	if (end == WEFT_UNAVAILABLE) {
		release_host(&work->work);
		return gethostbyname_r(name, host, buffer, size, result, host_error);
	}
	*result = NULL;
	if (end == WEFT_INTERRUPTED) {
		*host_error = TRY_AGAIN;
		return ECANCELED;
	}
	int returned = work->result;
	*host_error = work->host_error;
	if (returned == 0 && work->is_found) {
		take_host(work, host, buffer);
		*result = host;
	}
	weft_release(&work->work);
	return returned;
}

/* --- res_nsearch -------------------------------------------------------------------------------------------------------------------- */

typedef struct {
	weft_work work;
	char *name;
	int class;
	int type;
	unsigned char *answer;
	int size;
	int length;
	int host_error;
	int error;
} record_work;

static void find_records(weft_work *work)
{
	record_work *own = (record_work *) work;
	/* The caller's resolver lies on a stack that may be gone before the answer is there. */
	struct __res_state resolver;
	memset(&resolver, 0, sizeof(resolver));
	if (res_ninit(&resolver) != 0) {
		own->length = -1;
		own->host_error = NO_RECOVERY;
		return;
	}
	own->length = res_nsearch(&resolver, own->name, own->class, own->type, own->answer, own->size);
	own->error = errno;
	own->host_error = resolver.res_h_errno;
	res_nclose(&resolver);
}

static void release_records(weft_work *work)
{
	record_work *own = (record_work *) work;
	free(own->name);
	free(own->answer);
	free(own);
}

int weft_res_nsearch(res_state resolver, const char *name, int class, int type, unsigned char *answer, int size)
{
	weft_mode mode = size > 0 ? weft_mode_here(WEFT_NAMES) : WEFT_BLOCK;
	if (mode == WEFT_FAIL) {
		errno = ECANCELED;
		return -1;
	}
	record_work *work = mode == WEFT_SUSPEND ? calloc(1, sizeof(record_work)) : NULL;
	if (work == NULL) {
		return res_nsearch(resolver, name, class, type, answer, size);
	}
	work->work = (weft_work) {.run = find_records, .release = release_records};
	work->name = copy_of(name);
	work->class = class;
	work->type = type;
	work->answer = malloc((size_t) size);
	work->size = size;
	weft_end end = work->name != NULL && work->answer != NULL ? weft_run_blocking(&work->work) : WEFT_UNAVAILABLE;
	if (end == WEFT_UNAVAILABLE) {
		release_records(&work->work);
		return res_nsearch(resolver, name, class, type, answer, size);
	}
	if (end == WEFT_INTERRUPTED) {
		resolver->res_h_errno = TRY_AGAIN;
		errno = ECANCELED;
		return -1;
	}
	int length = work->length, error = work->error;
	if (length > 0) {
		memcpy(answer, work->answer, (size_t) (length < size ? length : size));
	}
	resolver->res_h_errno = work->host_error;
	weft_release(&work->work);
	errno = error;
	return length;
}
