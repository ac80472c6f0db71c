/* Exchanges the state of realms. */
#include "realm.h"
#include "switch.h"
#include "calls/calls.h"

#include <locale.h>

#include <ext/date/php_date.h>
#include <ext/standard/basic_functions.h>
#include <zend_exceptions.h>
#include <zend_observer.h>
#include <zend_smart_str.h>

#ifdef WEFT_HAS_MBSTRING
/* PHP's own functions in this header compare integers of different signs. */
# pragma GCC diagnostic push
# pragma GCC diagnostic ignored "-Wsign-compare"
# include <ext/mbstring/mbstring.h>
# pragma GCC diagnostic pop
#endif

#ifdef ZTS
# error "Realms need a PHP without thread safety"
#endif

/* Debian and most others build ext/session into PHP. Elsewhere sessions of PHP stay one for the process. */
extern php_ps_globals ps_globals __attribute__((weak));

weft_realms realms;
static zend_date_globals *date;

#ifdef WEFT_HAS_MBSTRING
static zend_mbstring_globals *mbstring;
#endif

static const char *const superglobal_names[WEFT_SUPERGLOBALS] = {"_GET", "_POST", "_COOKIE", "_SERVER", "_ENV", "_FILES", "_REQUEST", "_SESSION"};

bool weft_has_sessions(void)
{
	return &ps_globals != NULL;
}

php_ps_globals *weft_sessions(void)
{
	return &ps_globals;
}

weft_mbstring weft_mbstring_state(void)
{
	weft_mbstring state = {0};
#ifdef WEFT_HAS_MBSTRING
	if (mbstring != NULL) {
		state.internal_encoding = mbstring->current_internal_encoding;
		state.http_output = mbstring->current_http_output_encoding;
		state.language = (int) mbstring->language;
		state.illegal_mode = mbstring->current_filter_illegal_mode;
		state.illegal_character = mbstring->current_filter_illegal_substchar;
	}
#endif
	return state;
}

void weft_put_mbstring(const weft_mbstring *state)
{
#ifdef WEFT_HAS_MBSTRING
	if (mbstring != NULL) {
		mbstring->current_internal_encoding = state->internal_encoding;
		mbstring->current_http_output_encoding = state->http_output;
		mbstring->language = (enum mbfl_no_language) state->language;
		mbstring->current_filter_illegal_mode = state->illegal_mode;
		mbstring->current_filter_illegal_substchar = state->illegal_character;
	}
#endif
}

char **weft_timezone(void)
{
	return &date->timezone;
}

zend_string *weft_locale(void)
{
	if (!BG(locale_changed)) {
		return NULL;
	}
	const char *locale = setlocale(LC_ALL, NULL);
	return zend_string_init(locale, strlen(locale), 0);
}

/* NULL if there is none, as outside of sessions. */
static zval *find_superglobal(unsigned index)
{
	zval *value = zend_hash_find_known_hash(&EG(symbol_table), realms.names[index]);
	return value != NULL && Z_TYPE_P(value) == IS_INDIRECT ? Z_INDIRECT_P(value) : value;
}

zval *weft_superglobal(unsigned index)
{
	zval *value = find_superglobal(index);
	if (value == NULL) {
		zval null;
		ZVAL_NULL(&null);
		value = zend_hash_add_new(&EG(symbol_table), realms.names[index], &null);
	}
	return value;
}

void weft_superglobal_forget(unsigned index)
{
	zend_hash_del_ind(&EG(symbol_table), realms.names[index]);
}

/* --- ini_set() ---------------------------------------------------------------------------------------------------------------------- */

/*
 * What the entry sets is exchanged otherwise: the settings of sessions with everything else of theirs, and each fiber of PHP has an
 * error_reporting of its own.
 */
static bool is_carried_otherwise(const zend_ini_entry *entry)
{
	return zend_string_starts_with_literal(entry->name, "session.") || zend_string_equals_literal(entry->name, "error_reporting");
}

weft_ini_list weft_ini_in_force(void)
{
	weft_ini_list list = {NULL, 0};
	HashTable *modified = EG(modified_ini_directives);
	if (modified == NULL || zend_hash_num_elements(modified) == 0) {
		return list;
	}
	list.entries = safe_emalloc(zend_hash_num_elements(modified), sizeof(weft_ini), 0);
	zend_ini_entry *entry;
	ZEND_HASH_FOREACH_PTR(modified, entry) {
		list.entries[list.count++] = (weft_ini) {entry, entry->value != NULL ? zend_string_copy(entry->value) : ZSTR_EMPTY_ALLOC()};
	} ZEND_HASH_FOREACH_END();
	return list;
}

void weft_ini_free(weft_ini_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		zend_string_release(list->entries[i].value);
	}
	if (list->entries != NULL) {
		efree(list->entries);
	}
	*list = (weft_ini_list) {NULL, 0};
}

bool weft_ini_is_equal(const weft_ini_list *one, const weft_ini_list *other)
{
	if (one->count != other->count) {
		return false;
	}
	for (size_t i = 0; i < one->count; i++) {
		if (one->entries[i].entry != other->entries[i].entry || !zend_string_equals(one->entries[i].value, other->entries[i].value)) {
			return false;
		}
	}
	return true;
}

/*
 * Settings that are equal stay as they are, but the globals of ext/session point into the string of their own realm: that one has to be the
 * entry's, or it would be freed below them.
 */
static void ini_exchange_strings(const weft_ini_list *entered)
{
	for (size_t i = 0; i < entered->count; i++) {
		zend_ini_entry *entry = entered->entries[i].entry;
		/* An entry without a value is listed with an empty one. */
		if (is_carried_otherwise(entry) && entry->value != NULL && entry->value != entered->entries[i].value) {
			zend_string_release(entry->value);
			entry->value = zend_string_copy(entered->entries[i].value);
		}
	}
}

static void ini_reset(const weft_ini_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		/* The setting before may have been the memory limit. */
		weft_memory_limit_lift();
		zend_ini_entry *entry = list->entries[i].entry;
		if (!is_carried_otherwise(entry)) {
			zend_restore_ini_entry(entry->name, weft_ini_stage(entry));
			continue;
		}
		if (entry->value != entry->orig_value) {
			zend_string_release(entry->value);
		}
		entry->value = entry->orig_value;
		entry->modifiable = entry->orig_modifiable;
		entry->modified = 0;
		entry->orig_value = NULL;
		entry->orig_modifiable = 0;
		zend_hash_del(EG(modified_ini_directives), entry->name);
	}
}

static void ini_apply(const weft_ini_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		weft_memory_limit_lift();
		zend_ini_entry *entry = list->entries[i].entry;
		if (!is_carried_otherwise(entry)) {
			zend_alter_ini_entry_ex(entry->name, list->entries[i].value, PHP_INI_USER, weft_ini_stage(entry), true);
			continue;
		}
		if (EG(modified_ini_directives) == NULL) {
			ALLOC_HASHTABLE(EG(modified_ini_directives));
			zend_hash_init(EG(modified_ini_directives), 8, NULL, NULL, 0);
		}
		/* First: PHP puts back what is in the table only. */
		zend_hash_add_ptr(EG(modified_ini_directives), entry->name, entry);
		entry->orig_value = entry->value;
		entry->orig_modifiable = entry->modifiable;
		entry->modified = 1;
		entry->value = zend_string_copy(list->entries[i].value);
	}
}

/* --- error_get_last() and what is reported ------------------------------------------------------------------------------------------- */

/* Those that end the process: its shutdown functions ask which it was. */
#define FATAL (E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR | E_PARSE)

static bool is_ending(void)
{
	return PG(last_error_message) != NULL && (PG(last_error_type) & FATAL) != 0;
}

static weft_last_error take_last_error(void)
{
	weft_last_error taken = {PG(last_error_type), PG(last_error_message), PG(last_error_file), PG(last_error_lineno)};
	PG(last_error_type) = 0;
	PG(last_error_message) = NULL;
	PG(last_error_file) = NULL;
	PG(last_error_lineno) = 0;
	return taken;
}

static void put_last_error(weft_last_error *error)
{
	weft_last_error_forget();
	PG(last_error_type) = error->type;
	PG(last_error_message) = error->message;
	PG(last_error_file) = error->file;
	PG(last_error_lineno) = error->line;
	*error = (weft_last_error) {0};
}

void weft_last_error_free(weft_last_error *error)
{
	if (error->message != NULL) {
		zend_string_release(error->message);
	}
	if (error->file != NULL) {
		zend_string_release(error->file);
	}
	*error = (weft_last_error) {0};
}

void weft_last_error_forget(void)
{
	weft_last_error forgotten = take_last_error();
	weft_last_error_free(&forgotten);
}

static void exchange_last_error(weft_realm_state *left, weft_realm_state *entered)
{
	if (!is_ending()) {
		left->last_error = take_last_error();
		put_last_error(&entered->last_error);
	}
}

static weft_strtok take_strtok(void)
{
	weft_strtok taken = {BG(strtok_string), BG(strtok_last), BG(strtok_len)};
	return taken;
}

static void put_strtok(const weft_strtok *state)
{
	BG(strtok_string) = state->string;
	BG(strtok_last) = state->last;
	BG(strtok_len) = state->length;
}

void weft_strtok_forget(void)
{
	if (BG(strtok_string) != NULL) {
		zend_string_release(BG(strtok_string));
	}
	put_strtok(&(weft_strtok) {0});
}

/* The tags follow a setting, whose exchange frees them. The type says of which of the two it is. */
static void put_rewriter(url_adapt_state_ex_t *place, const url_adapt_state_ex_t *kept)
{
	HashTable *tags = place->tags;
	int type = place->type;
	*place = *kept;
	place->tags = tags;
	place->type = type;
}

void weft_rewriter_free(url_adapt_state_ex_t *rewriter)
{
	smart_str *const texts[] = {
		&rewriter->tag, &rewriter->arg, &rewriter->val, &rewriter->buf, &rewriter->result, &rewriter->form_app, &rewriter->url_app, &rewriter->attr_val,
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		smart_str_free(texts[i]);
	}
	put_rewriter(rewriter, &(url_adapt_state_ex_t) {0});
}

void weft_rewriters_forget(void)
{
	weft_rewriter_free(&BG(url_adapt_output_ex));
	weft_rewriter_free(&BG(url_adapt_session_ex));
}

weft_reports weft_reports_stop(void)
{
	weft_reports stopped = {.error_reporting = EG(error_reporting), .last_error = take_last_error()};
	ZVAL_COPY_VALUE(&stopped.error_handler, &EG(user_error_handler));
	EG(error_reporting) = 0;
	ZVAL_UNDEF(&EG(user_error_handler));
	/* A setting may hold a closure, whose destructors would leave the middle of a switch. */
	zend_fiber_switch_block();
	return stopped;
}

void weft_reports_resume(weft_reports *stopped)
{
	zend_fiber_switch_unblock();
	EG(error_reporting) = stopped->error_reporting;
	ZVAL_COPY_VALUE(&EG(user_error_handler), &stopped->error_handler);
	if (is_ending()) {
		weft_last_error_free(&stopped->last_error);
	} else {
		put_last_error(&stopped->last_error);
	}
}

/* PHP goes on after a fatal error in the function of a setting that it puts back. */
static bool are_changed(void (*change)(const weft_ini_list *list), const weft_ini_list *list)
{
	bool was_unclean = CG(unclean_shutdown);
	bool has_ended = true;
	zend_try {
		change(list);
	} zend_catch {
		has_ended = false;
	} zend_end_try();
	return has_ended && CG(unclean_shutdown) == was_unclean;
}

bool weft_settings_change(void (*change)(const weft_ini_list *list), const weft_ini_list *list)
{
	bool was_blocked = zend_fiber_switch_blocked();
	weft_reports stopped = weft_reports_stop();
	weft_pending_exception pending = weft_exception_save();
	bool has_ended = are_changed(change, list);
	weft_exception_discard(&pending);
	weft_exception_restore(&pending);
	weft_reports_resume(&stopped);
	if (!has_ended) {
		weft_fiber_unblock_after_fatal_error(was_blocked);
		/* Nothing was reported, but this ends the process. */
		if (PG(last_error_message) != NULL) {
			php_log_err(ZSTR_VAL(PG(last_error_message)));
		}
	}
	return has_ended;
}

/* --- the exchange ------------------------------------------------------------------------------------------------------------------- */

#define MOVE(place, kept) memcpy(&(kept), &(place), sizeof(place))

/* Superglobals of the realm that is entered, which the one that is left does not have. */
static bool made[WEFT_SUPERGLOBALS];

static void take_away(weft_realm_state *state)
{
	for (unsigned i = 0; i < WEFT_SUPERGLOBALS; i++) {
		zval *value = find_superglobal(i);
		if (value == NULL) {
			ZVAL_UNDEF(&state->superglobals[i]);
			continue;
		}
		if (made[i]) {
			ZVAL_UNDEF(&state->superglobals[i]);
			continue;
		}
		ZVAL_COPY_VALUE(&state->superglobals[i], value);
		/* It is the state's now. */
		ZVAL_NULL(value);
	}
	MOVE(PG(http_globals), state->http_globals);
	state->mbstring = weft_mbstring_state();
	for (size_t i = 0; i < state->static_count; i++) {
		ZVAL_COPY_VALUE(&state->statics[i], realms.statics[i].place);
	}
	MOVE(SG(sapi_headers), state->headers);
	MOVE(SG(request_info), state->request_info);
	state->read_post_bytes = SG(read_post_bytes);
	state->post_read = SG(post_read);
	state->headers_sent = SG(headers_sent);
	state->uploads = SG(rfc1867_uploaded_files);
	MOVE(EG(user_error_handler), state->error_handler);
	state->error_handler_reporting = EG(user_error_handler_error_reporting);
	MOVE(EG(user_exception_handler), state->exception_handler);
	MOVE(EG(user_error_handlers), state->error_handlers);
	MOVE(EG(user_error_handlers_error_reporting), state->error_handlers_reporting);
	MOVE(EG(user_exception_handlers), state->exception_handlers);
	state->shutdown_functions = BG(user_shutdown_function_names);
	state->timezone = date->timezone;
	state->regex_locale = BG(ctype_string);
	state->strtok = take_strtok();
	state->output_rewriter = BG(url_adapt_output_ex);
	state->session_rewriter = BG(url_adapt_session_ex);
	MOVE(EG(included_files), state->included);
	if (weft_has_sessions()) {
		MOVE(ps_globals, state->session);
	}
}

static void put_in_place(weft_realm_state *state)
{
	for (unsigned i = 0; i < WEFT_SUPERGLOBALS; i++) {
		zval *place = find_superglobal(i);
		if (Z_TYPE(state->superglobals[i]) == IS_UNDEF) {
			if (place != NULL) {
				weft_superglobal_forget(i);
			}
		} else if (place != NULL) {
			ZVAL_COPY_VALUE(place, &state->superglobals[i]);
		}
	}
	MOVE(state->http_globals, PG(http_globals));
	weft_put_mbstring(&state->mbstring);
	for (size_t i = 0; i < state->static_count; i++) {
		ZVAL_COPY_VALUE(realms.statics[i].place, &state->statics[i]);
	}
	MOVE(state->headers, SG(sapi_headers));
	MOVE(state->request_info, SG(request_info));
	SG(read_post_bytes) = state->read_post_bytes;
	SG(post_read) = state->post_read;
	SG(headers_sent) = state->headers_sent;
	SG(rfc1867_uploaded_files) = state->uploads;
	MOVE(state->error_handler, EG(user_error_handler));
	EG(user_error_handler_error_reporting) = state->error_handler_reporting;
	MOVE(state->exception_handler, EG(user_exception_handler));
	MOVE(state->error_handlers, EG(user_error_handlers));
	MOVE(state->error_handlers_reporting, EG(user_error_handlers_error_reporting));
	MOVE(state->exception_handlers, EG(user_exception_handlers));
	BG(user_shutdown_function_names) = state->shutdown_functions;
	date->timezone = state->timezone;
	BG(ctype_string) = state->regex_locale;
	put_strtok(&state->strtok);
	put_rewriter(&BG(url_adapt_output_ex), &state->output_rewriter);
	put_rewriter(&BG(url_adapt_session_ex), &state->session_rewriter);
	MOVE(state->included, EG(included_files));
	if (weft_has_sessions()) {
		MOVE(state->session, ps_globals);
	}
}

/* Without setlocale() PHP has the locale C, with the character set of UTF-8. */
void weft_put_locale(const zend_string *locale)
{
	setlocale(LC_ALL, locale != NULL ? ZSTR_VAL(locale) : "C");
	if (locale == NULL) {
		zend_reset_lc_ctype_locale();
	}
	zend_update_current_locale();
	BG(locale_changed) = locale != NULL;
}

static void exchange_locale(weft_realm_state *left, weft_realm_state *entered)
{
	if (left->locale == NULL && entered->locale == NULL) {
		return;
	}
	if (left->locale == NULL || entered->locale == NULL || !zend_string_equals(left->locale, entered->locale)) {
		weft_put_locale(entered->locale);
	}
	if (entered->locale != NULL) {
		zend_string_release(entered->locale);
		entered->locale = NULL;
	}
}

/* All that the moves need memory for. */
static void prepare(weft_realm_state *left, const weft_realm_state *entered)
{
	weft_ini_free(&left->ini);
	left->ini = weft_ini_in_force();
	/* A name that is here is left from an exchange that has failed. */
	if (left->locale != NULL) {
		zend_string_release(left->locale);
		left->locale = NULL;
	}
	left->locale = weft_locale();
	for (unsigned i = 0; i < WEFT_SUPERGLOBALS; i++) {
		made[i] = Z_TYPE(entered->superglobals[i]) != IS_UNDEF && find_superglobal(i) == NULL;
		if (made[i]) {
			weft_superglobal(i);
		}
	}
}

static bool is_prepared(weft_realm_state *left, const weft_realm_state *entered)
{
	bool has_ended = true;
	zend_try {
		prepare(left, entered);
	} zend_catch {
		has_ended = false;
	} zend_end_try();
	return has_ended;
}

/* Files that cannot run again. */
static bool has_caught_up(weft_realm_state *entered)
{
	bool has_ended = true;
	zend_try {
		weft_included_catch_up(entered);
	} zend_catch {
		has_ended = false;
	} zend_end_try();
	return has_ended;
}

/*
 * Steps that need memory, or call code of PHP, come before the moves or after them, and never between them: a fatal error leaves one of the two realms in place, with
 * some settings of the other.
 */
static bool exchange(weft_realm *realm)
{
	weft_realm_state *left = realms.loaded != NULL ? &realms.loaded->state : &realms.base;
	weft_realm_state *entered = realm != NULL ? &realm->state : &realms.base;
	if (!is_prepared(left, entered)) {
		return false;
	}
	bool ini_differs = !weft_ini_is_equal(&left->ini, &entered->ini);
	bool has_ended = true;
	/* Settings of sessions cannot change while one is active, but these are put back in place as a whole. */
	if (ini_differs) {
		has_ended = weft_settings_change(ini_reset, &left->ini);
	}
	take_away(left);
	put_in_place(entered);
	exchange_last_error(left, entered);
	realms.loaded = realm;
	if (ini_differs) {
		has_ended &= weft_settings_change(ini_apply, &entered->ini);
	} else {
		ini_exchange_strings(&entered->ini);
	}
	/* A setting may have put a limit in force. */
	weft_memory_limit_lift();
	if (weft_included_is_behind(entered)) {
		has_ended &= has_caught_up(entered);
	}
	exchange_locale(left, entered);
	weft_ini_free(&entered->ini);
	return has_ended;
}

bool weft_realm_exchange(weft_realm *realm)
{
	if (realm == realms.loaded || realms.is_exchanging) {
		return true;
	}
	realms.is_exchanging = true;
	weft_memory_limit_lift();
	bool has_ended = exchange(realm);
	weft_memory_limit_restore();
	realms.is_exchanging = false;
	return has_ended;
}

void weft_realm_load(weft_realm *realm)
{
	if (!weft_realm_exchange(realm) && EG(bailout) != NULL) {
		zend_bailout();
	}
}

/* A fiber that code inside of a realm makes belongs to it as well; that of the collector serves all realms. */
static void fiber_made(zend_fiber_context *fiber)
{
	if (realms.count == 0 || weft_is_collector(fiber)) {
		return;
	}
	weft_realm *realm = weft_realm_here();
	weft_fiber_of(fiber)->realm = realm;
	if (realm != NULL) {
		realm->fibers++;
		GC_ADDREF(&realm->std);
	}
}

/* The event loop goes on in the state of whichever realm is in place: it looks at none of it. */
static bool is_left_for_event_loop(const zend_fiber_context *from)
{
	const zend_execute_data *call = EG(current_execute_data), *caller = call != NULL ? call->prev_execute_data : NULL;
	return from->status != ZEND_FIBER_STATUS_DEAD && weft_is_scheduler(caller);
}

/* NULL for the base. */
static weft_realm *realm_after(zend_fiber_context *from, zend_fiber_context *to)
{
	if (to != EG(main_fiber_context)) {
		return weft_fiber_of(weft_represented(to))->realm;
	}
	/* Other code of the main program is the process's; so are the shutdown functions that run after a fatal error inside of a realm. */
	return realms.loaded != NULL && is_left_for_event_loop(from) ? realms.loaded : NULL;
}

static void fiber_switched(zend_fiber_context *from, zend_fiber_context *to)
{
	weft_errors_leave(from);
	if (UNEXPECTED(realms.count != 0) && !weft_realm_exchange(realm_after(from, to))) {
		weft_calls_are_left(from);
		weft_fiber_bailout(from, to);
	}
	weft_errors_enter(to);
}

static void fiber_destroyed(zend_fiber_context *fiber)
{
	weft_realm *realm = weft_fiber_of(fiber)->realm;
	if (realm != NULL) {
		realm->fibers--;
		/* The fiber that runs is the one that has ended: destructors in the last realm must not leave it. */
		weft_release_without_switch(&realm->std);
	}
}

/* Of a module, which does not export them but names them to the engine. Null where the module is missing. */
static void *globals_of(const char *module)
{
	zend_module_entry *entry = zend_hash_str_find_ptr(&module_registry, module, strlen(module));
	return entry != NULL ? entry->globals_ptr : NULL;
}

bool weft_switch_startup(void)
{
	date = globals_of("date");
	if (date == NULL || !weft_fiber_startup()) {
		return false;
	}
#ifdef WEFT_HAS_MBSTRING
	mbstring = globals_of("mbstring");
#endif
	for (unsigned i = 0; i < WEFT_SUPERGLOBALS; i++) {
		realms.names[i] = zend_string_init_interned(superglobal_names[i], strlen(superglobal_names[i]), true);
	}
	zend_observer_fiber_init_register(fiber_made);
	zend_observer_fiber_switch_register(fiber_switched);
	weft_errors_startup();
	weft_fiber_ends(fiber_destroyed);
	return true;
}
