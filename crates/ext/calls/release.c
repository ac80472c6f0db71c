/*
 * Freeing an object of a library may be a request on its connection: PDOStatement closes the prepared statement, AMQPChannel the channel. No
 * function is called for it, so the function that frees the object is replaced:
 *
 * - Where another task waits in the handle, the contents of the object move to another object, which is freed when that call has ended.
 * - The request is a call like others: it has a `struct weft_call`, so other tasks do not get into its conversation.
 * - Weak references are cleared before it, not after it: no other task finds a half-freed object while the request waits.
 *
 * Streams and processes are resources, which PHP frees when it removes them from its list. One that a call uses stays in the list until that call has
 * ended: a process whose pipe a task reads, a directory that readdir() reads without being given it.
 */
#include "internal.h"
#include "handle.h"
#include "hooks/hooks.h"
#include "hooks/state.h"

#include <zend_gc.h>
#include <zend_weakrefs.h>

struct guarded {
	zend_class_entry *class;
	/* What the class's objects share; null until find_handlers(), and where another class has the same. */
	const zend_object_handlers *handlers;
	bool is_known;
	zend_object_free_obj_t free;
	struct wrapped function;
	struct guarded *next;
};

/* An object or resource that PHP was about to free while a call used its handle. */
struct deferred_release {
	/* One of the two is NULL. */
	zend_object *object;
	zend_resource *resource;
	void *handle;
	struct deferred_release *next;
};

static struct guarded *guarded;
static int (*next_collect_cycles)(void);
/* How PHP frees a resource that it has removed from its list. */
static dtor_func_t next_free_resource;
unsigned weft_collections;

static void free_guarded(zend_object *object);

/* Only an object tells what the objects of its class share. So one of each class is created, which has no connection, and freed again. */
void weft_calls_find_handlers(void)
{
	struct guarded *of;

	for (of = guarded; of != NULL; of = of->next) {
		zend_object *object;
		zend_object_handlers *handlers;

		if (of->is_known) {
			continue;
		}
		of->is_known = true;
		object = of->class->create_object(of->class);
		handlers = (zend_object_handlers *) object->handlers;
		GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
		OBJ_RELEASE(object);
		if (handlers->free_obj != free_guarded && handlers != zend_get_std_object_handlers()) {
			of->handlers = handlers;
			of->free = handlers->free_obj;
			handlers->free_obj = free_guarded;
		}
	}
	weft_trees_find_handlers();
}

void weft_guard_class(zend_class_entry *class)
{
	const struct rule *rule = weft_rule_of_guarded(class);
	struct guarded *of;

	if (rule == NULL || class->create_object == NULL) {
		return;
	}
	for (of = guarded; of != NULL; of = of->next) {
		if (of->class == class) {
			return;
		}
	}
	of = pecalloc(1, sizeof(*of), true);
	of->class = class;
	of->function.kind = rule->kind;
	of->function.side = rule->side;
	of->function.module = class->info.internal.module;
	of->next = guarded;
	guarded = of;
}

static void swap(void *one, void *other, size_t size)
{
	char *a = one, *b = other, byte;

	for (; size > 0; size--, a++, b++) {
		byte = *a;
		*a = *b;
		*b = byte;
	}
}

/* What the library keeps of the object's own address. */
static void replace_address(unsigned char kind, void *object, void *end, void *old)
{
	if (kind == HANDLE_PDO_STATEMENT) {
		weft_statement_moved(object);
	}
	if (kind == HANDLE_AMQP) {
		/* The last member of `amqp_channel_object`, and what `amqp_channel_resource` has behind its state and its connection. */
		void **resource = ((void **) end)[-1];
		if (resource != NULL && resource[2] == old) {
			resource[2] = object;
		}
	}
}

/* Moves the contents of an object that is about to be freed to another object, and leaves it as new. */
static zend_object *move_contents(zend_object *object, unsigned char kind)
{
	zend_class_entry *class = object->ce;
	zend_object *other = class->create_object(class);
	char *from = (char *) object - object->handlers->offset, *to = (char *) other - other->handlers->offset;
	int properties = class->default_properties_count + (class->ce_flags & ZEND_ACC_USE_GUARDS ? 1 : 0);

	swap(from, to, object->handlers->offset);
	swap(&object->properties, &other->properties, sizeof(object->properties));
	swap(object->properties_table, other->properties_table, properties * sizeof(zval));
	if (other->properties != NULL) {
		zval *value;

		/* A table of the properties points to those that are declared. */
		ZEND_HASH_FOREACH_VAL(other->properties, value) {
			if (Z_TYPE_P(value) == IS_INDIRECT) {
				ZVAL_INDIRECT(value, other->properties_table + (Z_INDIRECT_P(value) - object->properties_table));
			}
		} ZEND_HASH_FOREACH_END();
	}
	replace_address(kind, to, other, from);
	GC_ADD_FLAGS(other, IS_OBJ_DESTRUCTOR_CALLED);
	return other;
}

static void defer_release(zend_object *object, zend_resource *resource, void *handle)
{
	struct deferred_release *entry = emalloc(sizeof(*entry));

	entry->object = object;
	entry->resource = resource;
	entry->handle = handle;
	entry->next = weft_calls.deferred;
	weft_calls.deferred = entry;
}

zend_never_inline void weft_release_deferred(void)
{
	weft_pending_exception pending = weft_exception_save();
	struct deferred_release **entry = &weft_calls.deferred, *freed;

	while ((freed = *entry) != NULL) {
		/* A request of an object may be made in a callback of its connection, in which a task may stay for good. */
		if (freed->object != NULL ? weft_sides_in_use(freed->handle) != 0 : weft_is_in_use(freed->handle)) {
			entry = &freed->next;
			continue;
		}
		*entry = freed->next;
		if (freed->object != NULL) {
			OBJ_RELEASE(freed->object);
		} else {
			zend_list_delete(freed->resource);
			if (EG(exception) != NULL && !weft_call_is_running()) {
				weft_forget_interruption();
			}
		}
		efree(freed);
		/* Other tasks may have changed the list. */
		entry = &weft_calls.deferred;
	}
	weft_exception_restore_alone(&pending);
}

/* The handle of a resource that a call uses; NULL if none does. */
static void *handle_in_use_of(const zend_resource *resource)
{
	bool is_stream = resource->type == php_file_le_stream() || resource->type == php_file_le_pstream();

	return is_stream && resource->ptr != NULL && weft_is_in_use(resource->ptr) ? resource->ptr : weft_pipe_in_use(resource);
}

/* Called when nothing refers to the resource any more, and at the end of a request. */
static void free_resource(zval *value)
{
	zend_resource *resource = Z_RES_P(value);
	bool are_calls_in_progress = weft_calls.pending > 0 || EG(active_fiber) != NULL;
	void *handle = are_calls_in_progress && !CG(unclean_shutdown) ? handle_in_use_of(resource) : NULL;

	if (EXPECTED(handle == NULL)) {
		next_free_resource(value);
		return;
	}
	GC_SET_REFCOUNT(resource, 1);
	zend_hash_index_add_new(&EG(regular_list), resource->handle, value);
	defer_release(NULL, resource, handle);
}

static void free_guarded(zend_object *object)
{
	struct guarded *of = guarded;
	struct weft_call call;
	void *handle;

	while (of->handlers != object->handlers) {
		of = of->next;
	}
	if (GC_FLAGS(object) & IS_OBJ_WEAKLY_REFERENCED) {
		zend_weakrefs_notify(object);
		GC_DEL_FLAGS(object, IS_OBJ_WEAKLY_REFERENCED);
	}
	if ((weft_calls.pending == 0 && EG(active_fiber) == NULL) || CG(unclean_shutdown)) {
		of->free(object);
		return;
	}
	handle = handle_in(&of->function, object);
	if (UNEXPECTED(weft_calls.pending > 0) && weft_sides_in_use(handle) != 0) {
		defer_release(move_contents(object, of->function.kind), NULL, handle);
		of->free(object);
		return;
	}
	if (EG(active_fiber) == NULL) {
		of->free(object);
		return;
	}
	if (EG(exception) != NULL && !weft_call_is_running()) {
		/* The interrupted call has ended; this release belongs to its unwinding. */
		weft_forget_interruption();
	}
	begin(&call, &of->function);
	call.freed = object;
	call.execute_data = EG(current_execute_data);
	call.context = EG(current_fiber_context);
	call.outer = weft_fiber_of(call.context)->call;
	call.claims[0].handle = handle;
	call.claims[0].side = ALL;
	call.claims[0].call = &call;
	call.claims[1].handle = NULL;
	weft_fiber_of(call.context)->call = &call;
	of->free(object);
	weft_fiber_of(call.context)->call = call.outer;
	if (UNEXPECTED(call.interruption != NULL)) {
		weft_end_interrupted(&call);
		if (EG(exception) != NULL) {
			/* The library may have discarded it. Code of PHP that freed the object does not ask again. */
			zend_throw_exception_internal(NULL);
		}
	}
	if (UNEXPECTED(weft_calls.deferred != NULL)) {
		weft_release_deferred();
	}
	if (UNEXPECTED(zend_hash_num_elements(&weft_calls.waiters) > 0)) {
		weft_give_turn(&call);
	}
}

/* The objects whose handles are in use, each with a reference more. */
static uint32_t hold_objects_in_use(zend_object ***held)
{
	uint32_t number, count = 0, size = 0;

	for (number = 1; number < EG(objects_store).top; number++) {
		zend_object *object = EG(objects_store).object_buckets[number];
		const struct guarded *of;

		if (!IS_OBJ_VALID(object) || object->handlers->free_obj != free_guarded) {
			continue;
		}
		for (of = guarded; of->handlers != object->handlers; of = of->next) {
		}
		if (weft_sides_in_use(handle_in((struct wrapped *) &of->function, object)) != 0) {
			if (count == size) {
				size = size * 2 + 16;
				*held = safe_erealloc(*held, size, sizeof(**held), 0);
			}
			GC_ADDREF(object);
			(*held)[count++] = object;
		}
	}
	return count;
}

/* Whether a call is suspended in the handle of an object, and not only in a stream: there are many objects to look at. */
static bool is_object_in_use(void)
{
	const struct weft_call *call;

	for (call = weft_calls.suspended; call != NULL; call = call->after) {
		switch (call->function->kind) {
			case HANDLE_NONE:
			case HANDLE_OUTPUTS:
			case HANDLE_PROCESS:
			case HANDLE_RESOURCE:
			case HANDLE_CLOSED:
			case HANDLE_TREE:
			case HANDLE_TREE_BEHIND:
			case HANDLE_SESSION:
			case HANDLE_FILTER:
			case HANDLE_DIRECTORY:
			case HANDLE_DIRECTORY_OPENED:
			case HANDLE_SECOND:
			case HANDLE_COPY:
				break;
			default:
				return true;
		}
	}
	return false;
}

/*
 * The release of garbage cannot be deferred: what it refers to may be garbage as well, whose memory the collector frees. An object whose
 * handle is in use is therefore kept out of the collection.
 */
static int collect_cycles(void)
{
	zend_object **held = NULL;
	uint32_t count = is_object_in_use() && !CG(unclean_shutdown) ? hold_objects_in_use(&held) : 0;
	int collected;

	weft_collections++;
	collected = next_collect_cycles();
	weft_collections--;
	/* The collector may have been called from anywhere: nothing may suspend here. */
	while (count > 0) {
		weft_release_without_switch(held[--count]);
	}
	if (held != NULL) {
		efree(held);
	}
	return collected;
}

void weft_release_startup(void)
{
	next_collect_cycles = gc_collect_cycles;
	gc_collect_cycles = collect_cycles;
}

void weft_release_request_startup(void)
{
	next_free_resource = EG(regular_list).pDestructor;
	EG(regular_list).pDestructor = free_resource;
}

void weft_release_request_shutdown(void)
{
	struct deferred_release *next;

	weft_collections = 0;
	/* PHP frees the objects and resources with all others. */
	for (; weft_calls.deferred != NULL; weft_calls.deferred = next) {
		next = weft_calls.deferred->next;
		efree(weft_calls.deferred);
	}
}
