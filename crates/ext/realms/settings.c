/*
 * The settings of a realm: ini_set(), error_reporting(), time zone, locale, mb_internal_encoding() and its like, the handlers of errors, exceptions and
 * sessions, and $_ENV.
 *
 * PHP-FPM forgets at the end of a request what it has set. The application of a realm goes on, so its settings are put back to those that it
 * had when it was booted.
 */
#include "realm.h"
#include "switch.h"

#include <locale.h>

#include <ext/standard/basic_functions.h>

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
		.error_handler_reporting = handlers->error_handler_reporting,
		.error_handlers = copy_of_stack(&handlers->error_handlers, sizeof(zval), true),
		.error_handlers_reporting = copy_of_stack(&handlers->error_handlers_reporting, sizeof(int), false),
		.exception_handlers = copy_of_stack(&handlers->exception_handlers, sizeof(zval), true),
	};
	ZVAL_COPY(&copy.error_handler, &handlers->error_handler);
	ZVAL_COPY(&copy.exception_handler, &handlers->exception_handler);
	return copy;
}

/* Those that are in force, which still own what this names. */
static weft_handlers handlers_in_force(void)
{
	weft_handlers handlers = {
		.error_handler_reporting = EG(user_error_handler_error_reporting),
		.error_handlers = EG(user_error_handlers),
		.error_handlers_reporting = EG(user_error_handlers_error_reporting),
		.exception_handlers = EG(user_exception_handlers),
	};
	ZVAL_COPY_VALUE(&handlers.error_handler, &EG(user_error_handler));
	ZVAL_COPY_VALUE(&handlers.exception_handler, &EG(user_exception_handler));
	return handlers;
}

static void free_handlers(weft_handlers *handlers)
{
	zval_ptr_dtor(&handlers->error_handler);
	zval_ptr_dtor(&handlers->exception_handler);
	zend_stack_clean(&handlers->error_handlers, (void (*)(void *)) ZVAL_PTR_DTOR, true);
	zend_stack_clean(&handlers->error_handlers_reporting, NULL, true);
	zend_stack_clean(&handlers->exception_handlers, (void (*)(void *)) ZVAL_PTR_DTOR, true);
}

/* Handlers are functions: names, arrays of an object and a name, or closures. The same one is the same value, not one that is equal. */
static bool is_same_value(const zval *one, const zval *other)
{
	return Z_TYPE_P(one) == Z_TYPE_P(other) && (!Z_REFCOUNTED_P(one) && Z_TYPE_P(one) != IS_STRING ? true : Z_PTR_P(one) == Z_PTR_P(other));
}

static bool has_same_values(const zend_stack *one, const zend_stack *other)
{
	int count = zend_stack_count(one);
	if (count != zend_stack_count(other)) {
		return false;
	}
	for (int i = 0; i < count; i++) {
		if (!is_same_value((zval *) zend_stack_base(one) + i, (zval *) zend_stack_base(other) + i)) {
			return false;
		}
	}
	return true;
}

static void restore_handlers(const weft_handlers *kept)
{
	weft_handlers before = handlers_in_force();
	if (is_same_value(&before.error_handler, &kept->error_handler) && before.error_handler_reporting == kept->error_handler_reporting &&
		is_same_value(&before.exception_handler, &kept->exception_handler) && has_same_values(&before.error_handlers, &kept->error_handlers) &&
		has_same_values(&before.exception_handlers, &kept->exception_handlers)) {
		return;
	}
	weft_handlers copy = copy_of_handlers(kept);
	ZVAL_COPY_VALUE(&EG(user_error_handler), &copy.error_handler);
	EG(user_error_handler_error_reporting) = copy.error_handler_reporting;
	ZVAL_COPY_VALUE(&EG(user_exception_handler), &copy.exception_handler);
	EG(user_error_handlers) = copy.error_handlers;
	EG(user_error_handlers_error_reporting) = copy.error_handlers_reporting;
	EG(user_exception_handlers) = copy.exception_handlers;
	/* Last: destructors run. */
	free_handlers(&before);
}

static void keep_save_handler(weft_save_handler *kept)
{
	if (!weft_has_sessions()) {
		return;
	}
	php_ps_globals *session = weft_sessions();
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		ZVAL_COPY(&kept->functions[i], weft_save_handlers(session) + i);
	}
	kept->class_name = session->mod_user_class_name != NULL ? zend_string_copy(session->mod_user_class_name) : NULL;
	kept->is_implemented = session->mod_user_implemented;
}

static void free_save_handler(weft_save_handler *handler)
{
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		zval_ptr_dtor(&handler->functions[i]);
	}
	if (handler->class_name != NULL) {
		zend_string_release(handler->class_name);
	}
}

/* Which module handles sessions is a setting, "session.save_handler"; what "user" calls is not. */
static void restore_save_handler(const weft_save_handler *kept)
{
	if (!weft_has_sessions() || weft_sessions()->session_status == php_session_active) {
		return;
	}
	php_ps_globals *session = weft_sessions();
	weft_save_handler before = {.class_name = session->mod_user_class_name, .is_implemented = session->mod_user_implemented};
	bool is_same = before.class_name == kept->class_name && before.is_implemented == kept->is_implemented;
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		is_same = is_same && is_same_value(weft_save_handlers(session) + i, &kept->functions[i]);
	}
	if (is_same) {
		return;
	}
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		ZVAL_COPY_VALUE(&before.functions[i], weft_save_handlers(session) + i);
		ZVAL_COPY(weft_save_handlers(session) + i, &kept->functions[i]);
	}
	session->mod_user_class_name = kept->class_name != NULL ? zend_string_copy(kept->class_name) : NULL;
	session->mod_user_implemented = kept->is_implemented;
	free_save_handler(&before);
}

void weft_settings_free(weft_settings *settings)
{
	if (settings->are_kept) {
		free_handlers(&settings->handlers);
		free_save_handler(&settings->save_handler);
	}
	weft_ini_free(&settings->ini);
	if (settings->timezone != NULL) {
		efree(settings->timezone);
	}
	if (settings->locale != NULL) {
		zend_string_release(settings->locale);
	}
	if (settings->regex_locale != NULL) {
		zend_string_release(settings->regex_locale);
	}
	zval_ptr_dtor(&settings->environment);
	memset(settings, 0, sizeof(*settings));
}

void weft_settings_keep(weft_settings *settings)
{
	weft_settings_free(settings);
	const char *timezone = *weft_timezone();
	settings->are_kept = true;
	settings->ini = weft_ini_in_force();
	settings->error_reporting = EG(error_reporting);
	settings->timezone = timezone != NULL ? estrdup(timezone) : NULL;
	settings->locale = weft_locale();
	settings->regex_locale = BG(ctype_string) != NULL ? zend_string_copy(BG(ctype_string)) : NULL;
	settings->mbstring = weft_mbstring_state();
	ZVAL_COPY_DEREF(&settings->environment, weft_superglobal(WEFT_ENV));
	weft_handlers handlers = handlers_in_force();
	settings->handlers = copy_of_handlers(&handlers);
	keep_save_handler(&settings->save_handler);
}

/* NULL if the entry is not in the list. */
static const zend_string *value_in(const weft_ini_list *list, const zend_ini_entry *entry)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->entries[i].entry == entry) {
			return list->entries[i].value;
		}
	}
	return NULL;
}

/* PHP refuses a change of a session's settings while one is active. */
static bool is_changeable(const zend_ini_entry *entry)
{
	return !weft_has_sessions() || weft_sessions()->session_status != php_session_active || !zend_string_starts_with_literal(entry->name, "session.");
}

/* "user" is what session_set_save_handler() sets, and PHP refuses it to everyone else. */
static void alter(const weft_ini *kept)
{
	if (weft_has_sessions()) {
		weft_sessions()->set_handler = true;
	}
	zend_alter_ini_entry_ex(kept->entry->name, kept->value, PHP_INI_USER, PHP_INI_STAGE_RUNTIME, true);
	if (weft_has_sessions()) {
		weft_sessions()->set_handler = false;
	}
}

/* Unchanged settings are not touched: some have effects when they are set, and PHP refuses a second change of others. */
static void restore_ini(const weft_ini_list *kept)
{
	weft_ini_list in_force = weft_ini_in_force();
	if (!weft_ini_is_equal(&in_force, kept)) {
		weft_reports stopped = weft_reports_stop();
		for (size_t i = 0; i < in_force.count; i++) {
			zend_ini_entry *entry = in_force.entries[i].entry;
			if (value_in(kept, entry) == NULL && is_changeable(entry)) {
				zend_restore_ini_entry(entry->name, ZEND_INI_STAGE_RUNTIME);
			}
		}
		for (size_t i = 0; i < kept->count; i++) {
			const zend_string *value = value_in(&in_force, kept->entries[i].entry);
			if ((value == NULL || !zend_string_equals(value, kept->entries[i].value)) && is_changeable(kept->entries[i].entry)) {
				alter(&kept->entries[i]);
			}
		}
		weft_reports_resume(&stopped);
	}
	weft_ini_free(&in_force);
}

static void restore_timezone(const char *kept)
{
	char **timezone = weft_timezone();
	if (*timezone == kept || (*timezone != NULL && kept != NULL && strcmp(*timezone, kept) == 0)) {
		return;
	}
	if (*timezone != NULL) {
		efree(*timezone);
	}
	*timezone = kept != NULL ? estrdup(kept) : NULL;
}

static void restore_locale(zend_string *kept, zend_string *regex_locale)
{
	if (!BG(locale_changed) && kept == NULL) {
		return;
	}
	weft_put_locale(kept);
	if (BG(ctype_string) != NULL) {
		zend_string_release(BG(ctype_string));
	}
	BG(ctype_string) = regex_locale != NULL ? zend_string_copy(regex_locale) : NULL;
}

/* An array that nobody has written to since is the same. */
static void restore_environment(const zval *kept)
{
	zval *place = weft_superglobal(WEFT_ENV);
	if (Z_TYPE_P(place) == IS_ARRAY && Z_TYPE_P(kept) == IS_ARRAY && Z_ARR_P(place) == Z_ARR_P(kept)) {
		return;
	}
	zval before;
	ZVAL_COPY_VALUE(&before, place);
	ZVAL_COPY(place, kept);
	zval_ptr_dtor(&before);
}

void weft_settings_restore(const weft_settings *settings)
{
	restore_ini(&settings->ini);
	EG(error_reporting) = settings->error_reporting;
	restore_timezone(settings->timezone);
	restore_locale(settings->locale, settings->regex_locale);
	weft_put_mbstring(&settings->mbstring);
	restore_environment(&settings->environment);
	restore_handlers(&settings->handlers);
	restore_save_handler(&settings->save_handler);
}
