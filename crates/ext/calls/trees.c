/*
 * Nodes of DOM and SimpleXML. A document is a tree of structs of libxml2, which save() and xinclude() go through while a stream waits: no other task may
 * free nodes meanwhile. So what changes a document is refused. Most changes are calls of methods; this is about those that are none:
 *
 *     $node->textContent = '…';   unset($element->child);   $element['attribute'] = '…';
 */
#include "internal.h"
#include "handle.h"

struct tree {
	zend_class_entry *class;
	/* The handlers that the class's objects share; NULL until weft_trees_find_handlers(), and where another class has the same. */
	const zend_object_handlers *handlers;
	bool is_known, is_simplexml;
	zend_object_handlers original;
	struct wrapped function;
	struct tree *next, *next_replaced;
};

static struct tree *trees;
/* Those whose handlers are replaced: one of DOM, one of SimpleXML. */
static struct tree *replaced;

static struct tree *tree_with(const zend_object_handlers *handlers)
{
	struct tree *tree = replaced;

	while (tree != NULL && tree->handlers != handlers) {
		tree = tree->next_replaced;
	}
	return tree;
}

void *weft_tree_of(zend_object *object)
{
	struct tree *tree = tree_with(object->handlers);

	return tree != NULL ? handle_in(&tree->function, object) : NULL;
}

void *weft_other_tree_in_use(zend_execute_data *execute_data, const void *document)
{
	uint32_t number;

	for (number = 1; number <= ZEND_CALL_NUM_ARGS(execute_data); number++) {
		const zval *value = argument(execute_data, number);
		void *other = Z_TYPE_P(value) == IS_OBJECT ? weft_tree_of(Z_OBJ_P(value)) : NULL;
		if (other != NULL && other != document && weft_sides_in_use(other) != 0) {
			return other;
		}
	}
	return NULL;
}

/* Whether the document may be changed. If not, an exception is pending. */
static zend_never_inline bool is_admitted(struct tree *tree, zend_object *object)
{
	struct weft_call call;

	begin(&call, &tree->function);
	call.operand = object;
	call.execute_data = EG(current_execute_data);
	call.context = EG(current_fiber_context);
	call.outer = weft_fiber_of(call.context)->call;
	call.claims[0].handle = handle_in(&tree->function, object);
	call.claims[0].side = ALL;
	call.claims[0].call = &call;
	call.claims[1].handle = NULL;
	/* It never waits for a turn: PHP does not hold the node during an assignment, and another task may drop it meanwhile. */
	return weft_is_admitted_at_once(&call);
}

static zend_always_inline bool may_change(struct tree *tree, zend_object *object)
{
	return EXPECTED(weft_calls.pending == 0) || is_admitted(tree, object);
}

/* A subclass in PHP code has properties of its own, which the document does not have. Those of SimpleXML are elements in any case. */
static bool is_of_document(const struct tree *tree, const zend_object *object, zend_string *name)
{
	const zend_class_entry *class = object->ce;

	while (class->type != ZEND_INTERNAL_CLASS) {
		class = class->parent;
	}
	return tree->is_simplexml || zend_hash_exists(&class->properties_info, name);
}

static zval *write_property(zend_object *object, zend_string *name, zval *value, void **slot)
{
	struct tree *tree = tree_with(object->handlers);

	if (UNEXPECTED(weft_calls.pending > 0) && is_of_document(tree, object, name) && !may_change(tree, object)) {
		return value;
	}
	return tree->original.write_property(object, name, value, slot);
}

static void unset_property(zend_object *object, zend_string *name, void **slot)
{
	struct tree *tree = tree_with(object->handlers);

	if (!is_of_document(tree, object, name) || may_change(tree, object)) {
		tree->original.unset_property(object, name, slot);
	}
}

static void write_dimension(zend_object *object, zval *offset, zval *value)
{
	struct tree *tree = tree_with(object->handlers);

	if (may_change(tree, object)) {
		tree->original.write_dimension(object, offset, value);
	}
}

static void unset_dimension(zend_object *object, zval *offset)
{
	struct tree *tree = tree_with(object->handlers);

	if (may_change(tree, object)) {
		tree->original.unset_dimension(object, offset);
	}
}

/* SimpleXML creates an element that is about to be assigned to. */
static zval *get_property_ptr_ptr(zend_object *object, zend_string *name, int type, void **slot)
{
	struct tree *tree = tree_with(object->handlers);

	return may_change(tree, object) ? tree->original.get_property_ptr_ptr(object, name, type, slot) : &EG(error_zval);
}

static zval *read_dimension(zend_object *object, zval *offset, int type, zval *result)
{
	struct tree *tree = tree_with(object->handlers);

	return type == BP_VAR_R || type == BP_VAR_IS || may_change(tree, object) ? tree->original.read_dimension(object, offset, type, result) : NULL;
}

static void replace_handlers(struct tree *tree, zend_object_handlers *handlers)
{
	tree->handlers = handlers;
	tree->original = *handlers;
	tree->next_replaced = replaced;
	replaced = tree;
	handlers->write_property = write_property;
	handlers->unset_property = unset_property;
	if (tree->is_simplexml) {
		handlers->write_dimension = write_dimension;
		handlers->unset_dimension = unset_dimension;
		handlers->get_property_ptr_ptr = get_property_ptr_ptr;
		handlers->read_dimension = read_dimension;
	}
}

/* Only an object tells what the objects of its class share: see weft_calls_find_handlers(). */
void weft_trees_find_handlers(void)
{
	struct tree *tree;

	for (tree = trees; tree != NULL; tree = tree->next) {
		zend_object *object;
		zend_object_handlers *handlers;

		if (tree->is_known) {
			continue;
		}
		tree->is_known = true;
		object = tree->class->create_object(tree->class);
		handlers = (zend_object_handlers *) object->handlers;
		GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
		OBJ_RELEASE(object);
		if (handlers->write_property != write_property && handlers != zend_get_std_object_handlers()) {
			replace_handlers(tree, handlers);
		}
	}
}

static bool descends_from(const zend_class_entry *class, const char *name)
{
	while (class != NULL && strcasecmp(ZSTR_VAL(class->name), name) != 0) {
		class = class->parent;
	}
	return class != NULL;
}

void weft_tree_class(zend_class_entry *class)
{
	bool is_simplexml = descends_from(class, "SimpleXMLElement");
	struct tree *tree = trees;

	if (class->create_object == NULL || !(is_simplexml || descends_from(class, "DOMNode") || descends_from(class, "Dom\\Node"))) {
		return;
	}
	while (tree != NULL && tree->class != class) {
		tree = tree->next;
	}
	if (tree == NULL) {
		tree = pecalloc(1, sizeof(*tree), true);
		tree->class = class;
		tree->is_simplexml = is_simplexml;
		tree->function.kind = HANDLE_TREE;
		tree->function.side = ALL;
		tree->function.module = class->info.internal.module;
		tree->next = trees;
		trees = tree;
	}
}
