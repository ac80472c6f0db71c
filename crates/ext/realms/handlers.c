/*
 * The handlers of a realm: what set_error_handler(), set_exception_handler() and session_set_save_handler() have set. Those of a request are put back
 * like its settings.
 */
#include "realm.h"
#include "switch.h"

static zend_stack copy_of_stack(const zend_stack *stack, int element_size, bool holds_values)
{
	zend_stack copy;
	zend_stack_init(&copy, element_size);
	for (int i = 0; i < zend_stack_count(stack); i++) {
		void *element = (char *) zend_stack_base(stack) + (size_t) i * element_size;
		if (holds_values) {
			Z_TRY_ADDREF_P((zval *) element);
		}
		zend_stack_push(&copy, element);
	}
	return copy;
}

static weft_handlers copy_of_handlers(const weft_handlers *handlers)
{
	weft_handlers copy = {
		.are_kept = true,
		.error_handler_reporting = handlers->error_handler_reporting,
		.error_handlers = copy_of_stack(&handlers->error_handlers, sizeof(zval), true),
		.error_handlers_reporting = copy_of_stack(&handlers->error_handlers_reporting, sizeof(int), false),
		.exception_handlers = copy_of_stack(&handlers->exception_handlers, sizeof(zval), true),
		.save_handler_object = WEFT_COPY_SAVE_HANDLER_OBJECT(handlers->save_handler_object),
		.is_save_handler_implemented = handlers->is_save_handler_implemented,
	};
	ZVAL_COPY(&copy.error_handler, &handlers->error_handler);
	ZVAL_COPY(&copy.exception_handler, &handlers->exception_handler);
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		ZVAL_COPY(&copy.save_handlers[i], &handlers->save_handlers[i]);
	}
	return copy;
}

/* Those in force, which still own what this names. */
static weft_handlers handlers_in_force(void)
{
	weft_handlers handlers = {
		.are_kept = true,
		.error_handler_reporting = EG(user_error_handler_error_reporting),
		.error_handlers = EG(user_error_handlers),
		.error_handlers_reporting = EG(user_error_handlers_error_reporting),
		.exception_handlers = EG(user_exception_handlers),
	};
	ZVAL_COPY_VALUE(&handlers.error_handler, &EG(user_error_handler));
	ZVAL_COPY_VALUE(&handlers.exception_handler, &EG(user_exception_handler));
	if (weft_has_sessions()) {
		php_ps_globals *session = weft_sessions();
		memcpy(handlers.save_handlers, weft_save_handlers(session), sizeof(handlers.save_handlers));
		handlers.save_handler_object = WEFT_SAVE_HANDLER_OBJECT(session);
		handlers.is_save_handler_implemented = session->mod_user_implemented;
	}
	return handlers;
}

static void put_in_force(const weft_handlers *handlers)
{
	ZVAL_COPY_VALUE(&EG(user_error_handler), &handlers->error_handler);
	EG(user_error_handler_error_reporting) = handlers->error_handler_reporting;
	ZVAL_COPY_VALUE(&EG(user_exception_handler), &handlers->exception_handler);
	EG(user_error_handlers) = handlers->error_handlers;
	EG(user_error_handlers_error_reporting) = handlers->error_handlers_reporting;
	EG(user_exception_handlers) = handlers->exception_handlers;
	if (weft_has_sessions()) {
		php_ps_globals *session = weft_sessions();
		memcpy(weft_save_handlers(session), handlers->save_handlers, sizeof(handlers->save_handlers));
		WEFT_SAVE_HANDLER_OBJECT(session) = handlers->save_handler_object;
		session->mod_user_implemented = handlers->is_save_handler_implemented;
	}
}

/* Handlers are functions: names, arrays of an object and a name, or closures. PHP 8.2 compares what is not const. */
static bool is_same_handler(const zval *one, const zval *other)
{
	return Z_TYPE_P(one) == IS_UNDEF || Z_TYPE_P(other) == IS_UNDEF ? Z_TYPE_P(one) == Z_TYPE_P(other) : zend_is_identical((zval *) one, (zval *) other);
}

static bool has_same_handlers(const zend_stack *one, const zend_stack *other)
{
	int count = zend_stack_count(one);
	if (count != zend_stack_count(other)) {
		return false;
	}
	for (int i = 0; i < count; i++) {
		if (!is_same_handler((zval *) zend_stack_base(one) + i, (zval *) zend_stack_base(other) + i)) {
			return false;
		}
	}
	return true;
}

static bool has_same_levels(const zend_stack *one, const zend_stack *other)
{
	int count = zend_stack_count(one);
	return count == zend_stack_count(other) && (count == 0 || memcmp(zend_stack_base(one), zend_stack_base(other), count * sizeof(int)) == 0);
}

static bool are_same(const weft_handlers *one, const weft_handlers *other)
{
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		if (!is_same_handler(&one->save_handlers[i], &other->save_handlers[i])) {
			return false;
		}
	}
	return one->is_save_handler_implemented == other->is_save_handler_implemented && is_same_handler(&one->error_handler, &other->error_handler) &&
		one->error_handler_reporting == other->error_handler_reporting && is_same_handler(&one->exception_handler, &other->exception_handler) &&
		has_same_handlers(&one->error_handlers, &other->error_handlers) && has_same_levels(&one->error_handlers_reporting, &other->error_handlers_reporting) &&
		has_same_handlers(&one->exception_handlers, &other->exception_handlers);
}

void weft_handlers_free(weft_handlers *handlers)
{
	if (!handlers->are_kept) {
		return;
	}
	zval_ptr_dtor(&handlers->error_handler);
	zval_ptr_dtor(&handlers->exception_handler);
	zend_stack_clean(&handlers->error_handlers, (void (*)(void *)) ZVAL_PTR_DTOR, true);
	zend_stack_clean(&handlers->error_handlers_reporting, NULL, true);
	zend_stack_clean(&handlers->exception_handlers, (void (*)(void *)) ZVAL_PTR_DTOR, true);
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		zval_ptr_dtor(&handlers->save_handlers[i]);
	}
	WEFT_RELEASE_SAVE_HANDLER_OBJECT(handlers->save_handler_object);
}

void weft_handlers_keep(weft_handlers *handlers)
{
	weft_handlers in_force = handlers_in_force();
	*handlers = copy_of_handlers(&in_force);
}

/* Which module handles sessions is a setting, "session.save_handler"; what "user" calls is not. */
void weft_handlers_restore(const weft_handlers *kept)
{
	weft_handlers before = handlers_in_force();
	if (are_same(&before, kept) || (weft_has_sessions() && weft_sessions()->session_status == php_session_active)) {
		return;
	}
	weft_handlers copy = copy_of_handlers(kept);
	put_in_force(&copy);
	/* Last: destructors run. */
	weft_handlers_free(&before);
}
