/* Replaces the handlers of functions and methods by the wrappers. */
#include "internal.h"
#include "functions/functions.h"

/* The class of the objects that the functions of this kind take. */
static zend_class_entry *class_with_handle(unsigned char kind)
{
	switch (kind) {
		case HANDLE_MYSQLI:
		case HANDLE_MYSQLI_GIVEN:
			return zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("mysqli"));
		case HANDLE_MYSQLI_STMT:
			return zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("mysqli_stmt"));
		case HANDLE_MYSQLI_RESULT:
			return zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("mysqli_result"));
		case HANDLE_AMQP_GIVEN:
			return zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("amqpconnection"));
	}
	return NULL;
}

struct wrapped *weft_wrapped_function(const zend_internal_function *function, const struct rule *rule, const zend_module_entry *module)
{
	struct wrapped *wrapped = pecalloc(1, sizeof(*wrapped), true);

	wrapped->original = function->handler;
	wrapped->kind = rule->kind;
	wrapped->side = rule->side;
	wrapped->module = module;
	wrapped->class = class_with_handle(rule->kind);
	return wrapped;
}

static zif_handler wrapper_of(const struct rule *rule)
{
	switch (rule->kind) {
		case HANDLE_PGSQL_OPENED:
		case HANDLE_PGSQL_KEPT:
			return weft_call_pgsql_connect;
		case HANDLE_DIRECTORY_OPENED:
			return weft_call_opendir;
		case HANDLE_PDO_NEW:
			return weft_call_pdo_construct;
		case HANDLE_PDO_CONNECT:
			return weft_call_pdo_connect;
		default:
			return weft_call_function;
	}
}

static void wrap(zend_function *function, const struct rule *rule)
{
	if (rule == NULL || rule->kind == HANDLE_EXEMPT || function->type != ZEND_INTERNAL_FUNCTION || function->internal_function.handler == NULL
			|| function->internal_function.reserved[weft_slot] != NULL) {
		return;
	}
	function->internal_function.reserved[weft_slot] = weft_wrapped_function(&function->internal_function, rule, function->internal_function.module);
	function->internal_function.handler = wrapper_of(rule);
	weft_rules_apply_to(function->internal_function.module);
}

/* The class with rules of its own from which this one descends, in lower case; null if there is none. */
static zend_string *ruled_ancestor(zend_class_entry *class)
{
	zend_string *name;

	for (; class != NULL; class = class->parent) {
		name = zend_string_tolower(class->name);
		if (weft_has_rules(ZSTR_VAL(name))) {
			return name;
		}
		zend_string_release(name);
	}
	return NULL;
}

static zif_handler original_handler(const zend_internal_function *function)
{
	const struct wrapped *wrapped = function->reserved[weft_slot];

	return wrapped != NULL ? wrapped->original : function->handler;
}

/* An alias such as gzread() is a function of its own with the handler of the other one, and has its rule. */
static void wrap_functions(void)
{
	HashTable rules_of_handlers;
	zend_function *function;
	zend_string *name;
	const struct rule *rule;

	zend_hash_init(&rules_of_handlers, 256, NULL, NULL, true);
	ZEND_HASH_FOREACH_STR_KEY_PTR(CG(function_table), name, function) {
		if (name != NULL && function->type == ZEND_INTERNAL_FUNCTION && (rule = weft_rule_of(NULL, name)) != NULL) {
			zend_hash_index_add_ptr(&rules_of_handlers, (zend_ulong) original_handler(&function->internal_function), (void *) rule);
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_FOREACH_STR_KEY_PTR(CG(function_table), name, function) {
		if (name == NULL || function->type != ZEND_INTERNAL_FUNCTION) {
			continue;
		}
		rule = weft_rule_of(NULL, name);
		if (rule == NULL) {
			rule = zend_hash_index_find_ptr(&rules_of_handlers, (zend_ulong) original_handler(&function->internal_function));
		}
		wrap(function, rule);
	} ZEND_HASH_FOREACH_END();
	zend_hash_destroy(&rules_of_handlers);
}

/* Wraps what has been registered since the last time. */
static void wrap_all(void)
{
	zend_string *name, *ancestor;
	zend_function *function;
	zend_class_entry *class;

	wrap_functions();
	ZEND_HASH_FOREACH_PTR(CG(class_table), class) {
		if (class->type != ZEND_INTERNAL_CLASS) {
			continue;
		}
		weft_guard_class(class);
		weft_iterate_class(class);
		weft_tree_class(class);
		if ((ancestor = ruled_ancestor(class)) == NULL) {
			continue;
		}
		ZEND_HASH_FOREACH_STR_KEY_PTR(&class->function_table, name, function) {
			wrap(function, weft_rule_of(ZSTR_VAL(ancestor), name));
		} ZEND_HASH_FOREACH_END();
		zend_string_release(ancestor);
	} ZEND_HASH_FOREACH_END();
	weft_soap_find();
}

void weft_wrap_startup(void)
{
	weft_when_functions_are_registered(wrap_all);
}
