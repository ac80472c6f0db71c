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
	settings->mbstring = weft_mbstring_state();
	ZVAL_COPY_DEREF(&settings->environment, weft_superglobal(WEFT_ENV));
}

static bool is_of_session(const zend_ini_entry *entry)
{
	return zend_string_starts_with_literal(entry->name, "session.");
}

static void restore_ini(const weft_ini_list *kept)
{
	weft_ini_list in_force = weft_ini_in_force();
	if (!weft_ini_is_equal(&in_force, kept)) {
		/* PHP refuses a change of these while a session is active. */
		bool skips_session = weft_has_sessions() && weft_sessions()->session_status == php_session_active;
		for (size_t i = 0; i < in_force.count; i++) {
			if (!skips_session || !is_of_session(in_force.entries[i].entry)) {
				zend_restore_ini_entry(in_force.entries[i].entry->name, ZEND_INI_STAGE_RUNTIME);
			}
		}
		for (size_t i = 0; i < kept->count; i++) {
			if (!skips_session || !is_of_session(kept->entries[i].entry)) {
				zend_alter_ini_entry_ex(kept->entries[i].entry->name, kept->entries[i].value, PHP_INI_USER, PHP_INI_STAGE_RUNTIME, true);
			}
		}
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
	if (BG(locale_changed) || settings->locale != NULL) {
		weft_put_locale(settings->locale);
	}
	weft_put_mbstring(&settings->mbstring);
	restore_environment(&settings->environment);
}
