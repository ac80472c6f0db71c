/*
 * `foreach` over a PDOStatement or a mysqli_result calls no method: these classes have iterators in C. Where the rows are still at the server, each
 * step reads from the connection. So the first step, which PDO makes when it creates the iterator, and each further one is a call like others: it has
 * a `struct weft_call`, is refused while another task waits in the connection, and keeps other tasks out while it waits itself.
 */
#include "internal.h"
#include "handle.h"

struct iterated {
	zend_class_entry *class;
	zend_object_iterator *(*get_iterator)(zend_class_entry *class, zval *object, int by_reference);
	/* The functions of the library's iterators, null until there is one, and the same with our steps. */
	const zend_object_iterator_funcs *theirs;
	zend_object_iterator_funcs ours;
	struct wrapped function;
	struct iterated *next;
};

static struct iterated *iterated;

/* A class of PHP code inherits the function that creates its iterators. */
static struct iterated *iterated_of(const zend_class_entry *class)
{
	struct iterated *of;

	for (; class != NULL; class = class->parent) {
		for (of = iterated; of != NULL; of = of->next) {
			if (of->class == class) {
				return of;
			}
		}
	}
	return NULL;
}

/* `foreach` goes on at the instruction that a pending exception has set. */
static void throw_pending(void)
{
	if (EG(exception) != NULL) {
		zend_throw_exception_internal(NULL);
	}
}

/* Whether the step may be made. If not, an exception is pending. */
static bool begin_step(struct weft_call *call, struct iterated *of, zend_object *object)
{
	begin(call, &of->function);
	call->operand = object;
	call->execute_data = EG(current_execute_data);
	call->context = EG(current_fiber_context);
	call->outer = weft_fiber_of(call->context)->call;
	call->claims[0].handle = handle_in(&of->function, object);
	call->claims[0].side = of->function.side;
	call->claims[0].call = call;
	call->claims[1].handle = NULL;
	if (UNEXPECTED(weft_calls.pending > 0) && !weft_is_admitted(call)) {
		throw_pending();
		return false;
	}
	if (EG(active_fiber) != NULL) {
		weft_fiber_of(call->context)->call = call;
	}
	return true;
}

static void end_step(struct weft_call *call)
{
	weft_fiber_of(call->context)->call = call->outer;
	if (UNEXPECTED(EG(exception) != NULL) || UNEXPECTED(call->interruption != NULL) || UNEXPECTED(call->is_destroyed)) {
		weft_end_interrupted(call);
		throw_pending();
	}
	if (UNEXPECTED(weft_calls.deferred != NULL)) {
		weft_release_deferred();
	}
	if (UNEXPECTED(zend_hash_num_elements(&weft_calls.waiters) > 0)) {
		weft_give_turn(call);
	}
}

static void move_forward(zend_object_iterator *iterator)
{
	struct iterated *of = iterated_of(Z_OBJCE(iterator->data));
	struct weft_call call;

	if (begin_step(&call, of, Z_OBJ(iterator->data))) {
		of->theirs->move_forward(iterator);
		end_step(&call);
	}
}

/* mysqli fetches the first row here. */
static void rewind_iterator(zend_object_iterator *iterator)
{
	struct iterated *of = iterated_of(Z_OBJCE(iterator->data));
	struct weft_call call;

	if (begin_step(&call, of, Z_OBJ(iterator->data))) {
		of->theirs->rewind(iterator);
		end_step(&call);
	}
}

static void replace_steps(struct iterated *of, zend_object_iterator *iterator)
{
	if (of->theirs == NULL) {
		of->theirs = iterator->funcs;
		of->ours = *iterator->funcs;
		of->ours.move_forward = move_forward;
		of->ours.rewind = iterator->funcs->rewind != NULL ? rewind_iterator : NULL;
	}
	if (iterator->funcs == of->theirs) {
		iterator->funcs = &of->ours;
	}
}

static zend_object_iterator *get_iterator(zend_class_entry *class, zval *object, int by_reference)
{
	struct iterated *of = iterated_of(class);
	struct weft_call call;
	zend_object_iterator *iterator;

	if (!begin_step(&call, of, Z_OBJ_P(object))) {
		return NULL;
	}
	iterator = of->get_iterator(class, object, by_reference);
	end_step(&call);
	if (iterator != NULL) {
		replace_steps(of, iterator);
	}
	return iterator;
}

void weft_iterate_class(zend_class_entry *class)
{
	const struct rule *rule = weft_rule_of_guarded(class);
	struct iterated *of;

	if (rule == NULL || class->get_iterator == NULL || class->get_iterator == get_iterator) {
		return;
	}
	of = pecalloc(1, sizeof(*of), true);
	of->class = class;
	of->get_iterator = class->get_iterator;
	of->function.kind = rule->kind;
	of->function.side = rule->side;
	of->function.module = class->info.internal.module;
	of->next = iterated;
	iterated = of;
	class->get_iterator = get_iterator;
}
