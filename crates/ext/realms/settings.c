/*
 * The settings of a realm: ini_set(), error_reporting(), time zone, locale, mb_internal_encoding() and its like, and $_ENV.
 *
 * PHP-FPM forgets at the end of a request what it has set. The application of a realm goes on, so its settings are put back to those that it
 * had when it was booted.
 */
#include "realm.h"
#include "switch.h"

#include <locale.h>

#include <ext/standard/basic_functions.h>

void weft_settings_free(weft_settings *settings)
{
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
	zval_ptr_dtor(&settings->server);
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
	ZVAL_COPY_DEREF(&settings->server, weft_superglobal(WEFT_SERVER));
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
	zend_alter_ini_entry_ex(kept->entry->name, kept->value, PHP_INI_USER, weft_ini_stage(kept->entry), true);
	if (weft_has_sessions()) {
		weft_sessions()->set_handler = false;
	}
}

/* Unchanged settings are not touched: some have effects when they are set, and PHP refuses a second change of others. */
static void change_ini(const weft_ini_list *kept)
{
	weft_ini_list in_force = weft_ini_in_force();
	for (size_t i = 0; i < in_force.count; i++) {
		zend_ini_entry *entry = in_force.entries[i].entry;
		if (value_in(kept, entry) == NULL && is_changeable(entry)) {
			zend_restore_ini_entry(entry->name, weft_ini_stage(entry));
		}
	}
	for (size_t i = 0; i < kept->count; i++) {
		const zend_string *value = value_in(&in_force, kept->entries[i].entry);
		if ((value == NULL || !zend_string_equals(value, kept->entries[i].value)) && is_changeable(kept->entries[i].entry)) {
			alter(&kept->entries[i]);
		}
	}
	weft_ini_free(&in_force);
}

static void restore_ini(const weft_ini_list *kept)
{
	weft_ini_list in_force = weft_ini_in_force();
	bool is_equal = weft_ini_is_equal(&in_force, kept);
	weft_ini_free(&in_force);
	if (is_equal) {
		return;
	}
	weft_memory_limit_lift();
	bool has_ended = weft_settings_change(change_ini, kept);
	weft_memory_limit_restore();
	if (!has_ended) {
		zend_bailout();
	}
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
}
