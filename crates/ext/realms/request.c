/* Puts the input of a request in place of that of the request before: superglobals, php://input, files, headers, session. */
#include "switch.h"

#include <ext/standard/basic_functions.h>
#include <main/php_streams.h>
#include <zend_exceptions.h>

static void set_superglobal(unsigned index, int track, zval *value)
{
	zval *place = weft_superglobal(index);
	zval before;
	ZVAL_COPY_VALUE(&before, place);
	ZVAL_COPY(place, value);
	zval_ptr_dtor(&before);
	if (track >= 0) {
		ZVAL_COPY_VALUE(&before, &PG(http_globals)[track]);
		ZVAL_COPY(&PG(http_globals)[track], value);
		zval_ptr_dtor(&before);
	}
}

/* What is registered before the first request is the boot's, and afterwards a request's. */
void weft_request_set_boot_functions_aside(weft_realm *realm)
{
	if (BG(user_shutdown_function_names) != NULL && realm->state.boot_functions == NULL) {
		realm->state.boot_functions = BG(user_shutdown_function_names);
		BG(user_shutdown_function_names) = NULL;
	}
}

/* The streams behind php://input live as long as the process and are used again: a handle never reads freed memory. */
static php_stream *body_stream(void)
{
	if (realms.idle_bodies.top > 0) {
		php_stream *stream = *(php_stream **) zend_stack_top(&realms.idle_bodies);
		zend_stack_del_top(&realms.idle_bodies);
		return stream;
	}
	php_stream **held = zend_stack_base(&realms.held_bodies);
	for (int i = 0; i < zend_stack_count(&realms.held_bodies); i++) {
		if (!weft_request_is_read_by_handles(held[i])) {
			php_stream *body = held[i];
			held[i] = *(php_stream **) zend_stack_top(&realms.held_bodies);
			zend_stack_del_top(&realms.held_bodies);
			return body;
		}
	}
	php_stream *stream = php_stream_temp_create(TEMP_STREAM_DEFAULT, SAPI_POST_BLOCK_SIZE);
	if (stream != NULL) {
		php_stream_auto_cleanup(stream);
		zend_stack_push(&realms.bodies, &stream);
	}
	return stream;
}

static bool set_body(zend_string *body)
{
	php_stream *stream = SG(request_info).request_body;
	if (stream == NULL) {
		stream = body_stream();
		if (stream == NULL) {
			return false;
		}
		SG(request_info).request_body = stream;
	}
	php_stream_rewind(stream);
	php_stream_truncate_set_size(stream, 0);
	php_stream_write(stream, ZSTR_VAL(body), ZSTR_LEN(body));
	php_stream_rewind(stream);
	SG(request_info).content_length = (zend_long) ZSTR_LEN(body);
	SG(read_post_bytes) = (int64_t) ZSTR_LEN(body);
	SG(post_read) = 1;
	return true;
}

/* Of main/php_fopen_wrapper.c, which does not export it. */
typedef struct {
	php_stream *body;
} input_handle;

static bool is_input(const zend_resource *resource, const php_stream *body)
{
	if (resource->ptr == NULL || resource->type != php_file_le_stream()) {
		return false;
	}
	const php_stream *stream = resource->ptr;
	return strcmp(stream->ops->label, "Input") == 0 && stream->abstract != NULL && ((const input_handle *) stream->abstract)->body == body;
}

bool weft_request_is_read_by_handles(const php_stream *body)
{
	zval *entry;
	ZEND_HASH_FOREACH_VAL(&EG(regular_list), entry) {
		if (is_input(Z_RES_P(entry), body)) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

/* False if code in C holds the handle, such as an object of SplFileObject or a filter that runs: it would go on with a stream that is gone. */
static bool close_input(zend_ulong number, const php_stream *body)
{
	/* Filters of handles that were closed before have run code. */
	zval *entry = zend_hash_index_find(&EG(regular_list), number);
	if (entry == NULL || !is_input(Z_RES_P(entry), body)) {
		return true;
	}
	php_stream *stream = Z_RES_P(entry)->ptr;
	if ((stream->flags & PHP_STREAM_FLAG_NO_FCLOSE) != 0) {
		return false;
	}
	php_stream_free(stream, PHP_STREAM_FREE_KEEP_RSRC | PHP_STREAM_FREE_CLOSE);
	return true;
}

/*
 * A handle of php://input that the application has kept would read the body of the next request. PHP-FPM closes it at the end of its request as well.
 * One that cannot be closed keeps its body, and the next request has another.
 */
static void close_inputs(const weft_realm *realm)
{
	const php_stream *body = SG(request_info).request_body;
	zend_ulong number, end = EG(regular_list).nNextFreeElement;
	bool are_closed = true;
	if (body == NULL) {
		return;
	}
	if (end - realm->first_resource > zend_hash_num_elements(&EG(regular_list))) {
		zend_ulong *numbers = safe_emalloc(zend_hash_num_elements(&EG(regular_list)), sizeof(*numbers), sizeof(*numbers));
		size_t count = 0;
		zval *entry;
		ZEND_HASH_FOREACH_NUM_KEY_VAL(&EG(regular_list), number, entry) {
			if (is_input(Z_RES_P(entry), body)) {
				numbers[count++] = number;
			}
		} ZEND_HASH_FOREACH_END();
		for (size_t i = 0; i < count; i++) {
			are_closed &= close_input(numbers[i], body);
		}
		efree(numbers);
	} else {
		for (number = realm->first_resource; number < end; number++) {
			are_closed &= close_input(number, body);
		}
	}
	if (!are_closed) {
		zend_stack_push(&realms.held_bodies, &SG(request_info).request_body);
		SG(request_info).request_body = NULL;
	}
}

/* As session_write_close() does. */
static void write_session(void)
{
	zend_function *write = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("session_write_close"));
	/* PHP has ended already where it only preloads. */
	if (write != NULL && EG(active)) {
		zval written;
		ZVAL_UNDEF(&written);
		zend_call_known_function(write, NULL, NULL, &written, 0, NULL, NULL);
		zval_ptr_dtor(&written);
	}
}

static void forget_session(void)
{
	if (!weft_has_sessions()) {
		return;
	}
	php_ps_globals *session = weft_sessions();
	if (session->session_status == php_session_active) {
		return;
	}
	if (session->id != NULL) {
		zend_string_release(session->id);
		session->id = NULL;
	}
	zval before;
	ZVAL_COPY_VALUE(&before, &session->http_session_vars);
	ZVAL_UNDEF(&session->http_session_vars);
	session->session_status = php_session_none;
	/* Last: destructors may use sessions. */
	zval_ptr_dtor(&before);
}

void weft_request_begin_headers(int status)
{
	zend_llist_clean(&SG(sapi_headers).headers);
	if (SG(sapi_headers).mimetype != NULL) {
		efree(SG(sapi_headers).mimetype);
		SG(sapi_headers).mimetype = NULL;
	}
	if (SG(sapi_headers).http_status_line != NULL) {
		efree(SG(sapi_headers).http_status_line);
		SG(sapi_headers).http_status_line = NULL;
	}
	SG(sapi_headers).http_response_code = status;
	SG(sapi_headers).send_default_content_type = 1;
	SG(headers_sent) = 0;
}

/*
 * What the request that has ended leaves is freed in the one that begins. An exception of a destructor is logged, as at the end of a script, and does
 * not fail the one that begins.
 */
static void log_what_destructors_threw(void)
{
	if (EG(exception) != NULL) {
		int status = EG(exit_status);
		zend_exception_error(EG(exception), E_ERROR);
		EG(exit_status) = status;
	}
}

static void put_uploads(HashTable *uploads)
{
	if (SG(rfc1867_uploaded_files) != NULL) {
		zend_hash_destroy(SG(rfc1867_uploaded_files));
		FREE_HASHTABLE(SG(rfc1867_uploaded_files));
		SG(rfc1867_uploaded_files) = NULL;
	}
	if (uploads == NULL || zend_hash_num_elements(uploads) == 0) {
		return;
	}
	ALLOC_HASHTABLE(SG(rfc1867_uploaded_files));
	zend_hash_init(SG(rfc1867_uploaded_files), 8, NULL, ZVAL_PTR_DTOR, 0);
	zval *path;
	ZEND_HASH_FOREACH_VAL(uploads, path) {
		if (Z_TYPE_P(path) == IS_STRING) {
			zval copy;
			ZVAL_STR_COPY(&copy, Z_STR_P(path));
			zend_hash_update(SG(rfc1867_uploaded_files), Z_STR_P(path), &copy);
		}
	} ZEND_HASH_FOREACH_END();
}

static bool has_open_session(void)
{
	return weft_has_sessions() && weft_sessions()->session_status == php_session_active;
}

/* A session that a destructor has opened would be that of the next request. PHP writes it at the end of the request. */
static void end_session_of_destructors(void)
{
	write_session();
	log_what_destructors_threw();
	forget_session();
	weft_superglobal_forget(WEFT_SESSION);
	log_what_destructors_threw();
}

/* In place of that of the request before, with the settings of the boot. */
void weft_request_put_input(weft_realm *realm, zval *arrays[6], HashTable *uploads, zend_string *body)
{
	static const struct { unsigned index; int track; } places[6] = {
		{WEFT_GET, TRACK_VARS_GET}, {WEFT_POST, TRACK_VARS_POST}, {WEFT_COOKIE, TRACK_VARS_COOKIE},
		{WEFT_SERVER, TRACK_VARS_SERVER}, {WEFT_FILES, TRACK_VARS_FILES}, {WEFT_REQUEST, -1},
	};
	/* The application ends its own session. */
	bool had_session = has_open_session();
	for (unsigned i = 0; i < 6; i++) {
		set_superglobal(places[i].index, places[i].track, arrays[i]);
	}
	forget_session();
	if (realm->booted.are_kept) {
		weft_settings_restore(&realm->booted);
	}
	if (realm->handlers.are_kept) {
		weft_handlers_restore(&realm->handlers);
	}
	weft_superglobal_forget(WEFT_SESSION);
	put_uploads(uploads);
	weft_strtok_forget();
	weft_rewriters_forget();
	close_inputs(realm);
	realm->first_resource = EG(regular_list).nNextFreeElement;
	log_what_destructors_threw();
	if (!had_session && has_open_session()) {
		end_session_of_destructors();
	}
	weft_last_error_forget();
	if (!set_body(body)) {
		zend_throw_error(NULL, "There is no memory for php://input, a request body of %zu bytes", ZSTR_LEN(body));
	}
}

static void try_to_write_session(void)
{
	zend_try {
		write_session();
	} zend_end_try();
}

void weft_session_close_left(weft_realm *realm)
{
	const php_ps_globals *session = realms.loaded == realm && weft_has_sessions() ? weft_sessions() : &realm->state.session;
	if (!weft_has_sessions() || session->session_status != php_session_active || realm->fibers != 0 || realms.is_over || realms.is_exchanging) {
		return;
	}
	weft_fiber *fiber = weft_fiber_here();
	weft_realm *here = fiber->realm, *loaded = realms.loaded;
	weft_pending_exception pending = weft_exception_save();
	fiber->realm = realm;
	zend_fiber_switch_block();
	if (weft_realm_exchange(realm)) {
		try_to_write_session();
	}
	zend_fiber_switch_unblock();
	fiber->realm = here;
	weft_realm_exchange(loaded);
	weft_exception_restore(&pending);
	if (CG(unclean_shutdown) && EG(bailout) != NULL) {
		zend_bailout();
	}
}

/*
 * PHP writes an open session when it shuts the extension "session" down, which it does after Weft: a save handler that uses Weft would find it gone.
 */
void weft_session_close(void)
{
	/* After a fatal error that of a realm may still be in place. */
	weft_realm_exchange(NULL);
	if (has_open_session()) {
		try_to_write_session();
	}
}
