/* What a realm begins with, which is what is in force outside of realms, and how it is freed. */
#include "switch.h"

#include <ext/standard/basic_functions.h>
#include <main/php_streams.h>

static const weft_realm_state *base_in_place_or_kept(void)
{
	return realms.loaded == NULL ? NULL : &realms.base;
}

static void begin_ini(weft_realm_state *state)
{
	const weft_realm_state *kept = base_in_place_or_kept();
	if (kept != NULL) {
		state->ini.count = kept->ini.count;
		state->ini.entries = kept->ini.count != 0 ? safe_emalloc(kept->ini.count, sizeof(weft_ini), 0) : NULL;
		for (size_t i = 0; i < kept->ini.count; i++) {
			state->ini.entries[i] = kept->ini.entries[i];
			zend_string_addref(state->ini.entries[i].value);
		}
		return;
	}
	HashTable *modified = EG(modified_ini_directives);
	if (modified != NULL && zend_hash_num_elements(modified) != 0) {
		state->ini.entries = safe_emalloc(zend_hash_num_elements(modified), sizeof(weft_ini), 0);
		zend_ini_entry *entry;
		ZEND_HASH_FOREACH_PTR(modified, entry) {
			state->ini.entries[state->ini.count++] = (weft_ini) {entry, entry->value != NULL ? zend_string_copy(entry->value) : ZSTR_EMPTY_ALLOC()};
		} ZEND_HASH_FOREACH_END();
	}
}

static void begin_session(weft_realm_state *state)
{
	const weft_realm_state *kept = base_in_place_or_kept();
	php_ps_globals *session = &state->session;
	*session = kept != NULL ? kept->session : *weft_sessions();
	session->id = NULL;
	session->mod_data = NULL;
	session->session_status = php_session_none;
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		ZVAL_UNDEF(weft_save_handlers(session) + i);
	}
	session->mod = session->default_mod != NULL ? session->default_mod : session->mod;
	session->mod_user_implemented = false;
	session->mod_user_is_open = false;
	WEFT_SAVE_HANDLER_OBJECT(session) = WEFT_NO_SAVE_HANDLER_OBJECT;
	session->session_vars = NULL;
	session->rfc1867_progress = NULL;
	session->in_save_handler = false;
#if PHP_VERSION_ID >= 80300
	session->session_started_filename = NULL;
	session->session_started_lineno = 0;
#endif
	ZVAL_UNDEF(&session->http_session_vars);
}

/* An application that boots reads its environment, which the process may have loaded from a file, and handles errors as the process does. */
static void inherit(weft_realm_state *state)
{
	const weft_realm_state *kept = base_in_place_or_kept();
	for (unsigned i = WEFT_SERVER; i <= WEFT_ENV; i++) {
		zval *outside = kept != NULL ? (zval *) &kept->superglobals[i] : weft_superglobal(i);
		if (Z_TYPE_P(outside) == IS_ARRAY) {
			ZVAL_COPY(&state->superglobals[i], outside);
		}
	}
	ZVAL_COPY(&state->error_handler, kept != NULL ? (zval *) &kept->error_handler : &EG(user_error_handler));
	state->error_handler_reporting = kept != NULL ? kept->error_handler_reporting : EG(user_error_handler_error_reporting);
	ZVAL_COPY(&state->exception_handler, kept != NULL ? (zval *) &kept->exception_handler : &EG(user_exception_handler));
	state->mbstring = kept != NULL ? kept->mbstring : weft_mbstring_state();
}

static void begin_locale(weft_realm_state *state)
{
	const weft_realm_state *kept = base_in_place_or_kept();
	if (kept == NULL) {
		state->locale = weft_locale();
	} else if (kept->locale != NULL) {
		state->locale = zend_string_copy(kept->locale);
	}
	zend_string *regex_locale = kept != NULL ? kept->regex_locale : BG(ctype_string);
	state->regex_locale = regex_locale != NULL ? zend_string_copy(regex_locale) : NULL;
}

void weft_state_begin(weft_realm_state *state)
{
	memset(state, 0, sizeof(*state));
	const weft_realm_state *kept = base_in_place_or_kept();
	for (unsigned i = 0; i < WEFT_SUPERGLOBALS; i++) {
		ZVAL_EMPTY_ARRAY(&state->superglobals[i]);
	}
	ZVAL_UNDEF(&state->superglobals[WEFT_SESSION]);
	for (int i = 0; i < WEFT_HTTP_GLOBALS; i++) {
		ZVAL_EMPTY_ARRAY(&state->http_globals[i]);
	}
	state->static_count = realms.static_count;
	state->statics = state->static_count != 0 ? safe_emalloc(state->static_count, sizeof(zval), 0) : NULL;
	for (size_t i = 0; i < state->static_count; i++) {
		const weft_static *listed = &realms.statics[i];
		zval *outside = kept != NULL ? &kept->statics[i] : listed->place;
		ZVAL_COPY_DEREF(&state->statics[i], listed->is_inherited ? outside : (zval *) &listed->initial);
	}
	zend_llist_init(&state->headers.headers, sizeof(sapi_header_struct), (llist_dtor_func_t) sapi_free_header, 0);
	state->headers.send_default_content_type = 1;
	state->request_info = kept != NULL ? kept->request_info : SG(request_info);
	state->request_info.request_body = NULL;
	state->request_info.no_headers = 1;
	inherit(state);
	zend_stack_init(&state->error_handlers, sizeof(zval));
	zend_stack_init(&state->error_handlers_reporting, sizeof(int));
	zend_stack_init(&state->exception_handlers, sizeof(zval));
	const char *timezone = kept != NULL ? kept->timezone : *weft_timezone();
	state->timezone = timezone != NULL ? estrdup(timezone) : NULL;
	begin_locale(state);
	begin_ini(state);
	HashTable *included = kept != NULL ? (HashTable *) &kept->included : &EG(included_files);
	zend_hash_init(&state->included, zend_hash_num_elements(included), NULL, NULL, 0);
	zend_hash_copy(&state->included, included, NULL);
	if (weft_has_sessions()) {
		begin_session(state);
	}
}

static void free_table(HashTable *table)
{
	if (table != NULL) {
		zend_hash_destroy(table);
		FREE_HASHTABLE(table);
	}
}

void weft_state_end(weft_realm_state *state)
{
	for (unsigned i = 0; i < WEFT_SUPERGLOBALS; i++) {
		zval_ptr_dtor(&state->superglobals[i]);
	}
	for (int i = 0; i < WEFT_HTTP_GLOBALS; i++) {
		zval_ptr_dtor(&state->http_globals[i]);
	}
	for (size_t i = 0; i < state->static_count; i++) {
		zval_ptr_dtor(&state->statics[i]);
	}
	if (state->statics != NULL) {
		efree(state->statics);
	}
	if (state->request_info.request_body != NULL && !realms.is_over) {
		php_stream_truncate_set_size(state->request_info.request_body, 0);
		/* A handle that the application has kept would read what others put into it. */
		bool is_read = weft_request_is_read_by_handles(state->request_info.request_body);
		zend_stack_push(is_read ? &realms.held_bodies : &realms.idle_bodies, &state->request_info.request_body);
	}
	free_table(state->uploads);
	zend_llist_destroy(&state->headers.headers);
	if (state->headers.mimetype != NULL) {
		efree(state->headers.mimetype);
	}
	if (state->headers.http_status_line != NULL) {
		efree(state->headers.http_status_line);
	}
	zval_ptr_dtor(&state->error_handler);
	zval_ptr_dtor(&state->exception_handler);
	zend_stack_clean(&state->error_handlers, (void (*)(void *)) ZVAL_PTR_DTOR, 1);
	zend_stack_clean(&state->error_handlers_reporting, NULL, 1);
	zend_stack_clean(&state->exception_handlers, (void (*)(void *)) ZVAL_PTR_DTOR, 1);
	free_table(state->shutdown_functions);
	free_table(state->boot_functions);
	if (state->timezone != NULL) {
		efree(state->timezone);
	}
	weft_ini_free(&state->ini);
	if (state->locale != NULL) {
		zend_string_release(state->locale);
	}
	if (state->regex_locale != NULL) {
		zend_string_release(state->regex_locale);
	}
	weft_last_error_free(&state->last_error);
	if (state->strtok.string != NULL) {
		zend_string_release(state->strtok.string);
	}
	weft_rewriter_free(&state->output_rewriter);
	weft_rewriter_free(&state->session_rewriter);
	zend_hash_destroy(&state->included);
	if (weft_has_sessions()) {
		php_ps_globals *session = &state->session;
		if (session->id != NULL) {
			zend_string_release(session->id);
		}
		zval_ptr_dtor(&session->http_session_vars);
		if (session->session_vars != NULL) {
			zend_string_release(session->session_vars);
		}
		for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
			zval_ptr_dtor(weft_save_handlers(session) + i);
		}
		WEFT_RELEASE_SAVE_HANDLER_OBJECT(WEFT_SAVE_HANDLER_OBJECT(session));
#if PHP_VERSION_ID >= 80300
		if (session->session_started_filename != NULL) {
			zend_string_release(session->session_started_filename);
		}
#endif
	}
}
