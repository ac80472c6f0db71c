/* Weft\Native\Realm: makes realms, enters and leaves them, and gives them requests. */
#include "realm.h"
#include "switch.h"
#include "functions/functions.h"

#include <ext/standard/basic_functions.h>
#include <main/php_streams.h>
#include <zend_exceptions.h>
#include <zend_interfaces.h>

static zend_class_entry *realm_class;
static zend_object_handlers realm_handlers;
static int (*outside_header_handler)(sapi_header_struct *, sapi_header_op_enum, sapi_headers_struct *);

/* These are made when a file that names them is compiled for the first time. In the realm of that moment they would replace the request's. */
static void make_superglobals(void)
{
	for (unsigned i = 0; i < WEFT_SUPERGLOBALS; i++) {
		zend_is_auto_global(realms.names[i]);
	}
}

static weft_realm *from_object(zend_object *object)
{
	return (weft_realm *) ((char *) object - offsetof(weft_realm, std));
}

/* The command line has no headers, so PHP forgets them at once. Inside of a realm they are kept for the response. */
static int header_handler(sapi_header_struct *header, sapi_header_op_enum operation, sapi_headers_struct *headers)
{
	if (realms.loaded != NULL && weft_realm_here() == realms.loaded) {
		return SAPI_HEADER_ADD;
	}
	return outside_header_handler != NULL ? outside_header_handler(header, operation, headers) : SAPI_HEADER_ADD;
}

static void keep_headers(void)
{
	static bool are_kept;
	if (!are_kept) {
		are_kept = true;
		outside_header_handler = sapi_module.header_handler;
		sapi_module.header_handler = header_handler;
	}
}

/* --- life of a realm ---------------------------------------------------------------------------------------------------------------- */

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

static void begin_state(weft_realm_state *state)
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
	if (weft_has_sessions()) {
		begin_session(state);
	}
}

static void free_functions(HashTable *functions)
{
	if (functions != NULL) {
		zend_hash_destroy(functions);
		FREE_HASHTABLE(functions);
	}
}

static void end_state(weft_realm_state *state)
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
		zend_stack_push(&realms.idle_bodies, &state->request_info.request_body);
	}
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
	free_functions(state->shutdown_functions);
	free_functions(state->boot_functions);
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
	}
}

static zend_object *create_realm(zend_class_entry *class)
{
	weft_realm *realm = zend_object_alloc(sizeof(weft_realm), class);
	zend_object_std_init(&realm->std, class);
	object_properties_init(&realm->std, class);
	realm->std.handlers = &realm_handlers;
	if (realms.loaded == NULL) {
		make_superglobals();
	}
	begin_state(&realm->state);
	memset(&realm->booted, 0, sizeof(realm->booted));
	realm->error_reporting = EG(error_reporting);
	realm->fibers = 0;
	realm->tasks = 0;
	realms.is_over = false;
	if (realms.idle_bodies.size == 0) {
		zend_stack_init(&realms.idle_bodies, sizeof(php_stream *));
	}
	realms.count++;
	keep_headers();
	return &realm->std;
}

static void free_realm(zend_object *object)
{
	weft_realm *realm = from_object(object);
	if (realms.loaded == realm) {
		weft_realm_load(NULL);
	}
	realms.count--;
	end_state(&realm->state);
	weft_settings_free(&realm->booted);
	weft_handlers_free(&realm->handlers);
	zend_object_std_dtor(object);
}

/* Everything in a realm that is not in place is reachable only through it. */
static HashTable *realm_gc(zend_object *object, zval **table, int *count)
{
	weft_realm *realm = from_object(object);
	zend_get_gc_buffer *buffer = zend_get_gc_buffer_create();
	if (realms.loaded != realm) {
		for (unsigned i = 0; i < WEFT_SUPERGLOBALS; i++) {
			zend_get_gc_buffer_add_zval(buffer, &realm->state.superglobals[i]);
		}
		for (size_t i = 0; i < realm->state.static_count; i++) {
			zend_get_gc_buffer_add_zval(buffer, &realm->state.statics[i]);
		}
		zend_get_gc_buffer_add_zval(buffer, &realm->state.error_handler);
		zend_get_gc_buffer_add_zval(buffer, &realm->state.exception_handler);
	}
	zend_get_gc_buffer_add_zval(buffer, &realm->booted.environment);
	zend_get_gc_buffer_add_zval(buffer, &realm->booted.server);
	zend_get_gc_buffer_add_zval(buffer, &realm->handlers.error_handler);
	zend_get_gc_buffer_add_zval(buffer, &realm->handlers.exception_handler);
	for (size_t i = 0; i < WEFT_SAVE_HANDLERS; i++) {
		zend_get_gc_buffer_add_zval(buffer, &realm->handlers.save_handlers[i]);
	}
	zend_get_gc_buffer_use(buffer, table, count);
	return zend_std_get_properties(object);
}

/* --- methods ------------------------------------------------------------------------------------------------------------------------ */

static zend_result find_static(zend_string *name, weft_static *found)
{
	const char *colons = zend_memnstr(ZSTR_VAL(name), "::", 2, ZSTR_VAL(name) + ZSTR_LEN(name));
	if (colons == NULL) {
		zend_value_error("\"%s\" names no static property: it must be Class::property", ZSTR_VAL(name));
		return FAILURE;
	}
	zend_string *class_name = zend_string_init(ZSTR_VAL(name), colons - ZSTR_VAL(name), 0);
	zend_class_entry *class = zend_lookup_class(class_name);
	zend_string_release(class_name);
	if (class == NULL) {
		if (EG(exception) == NULL) {
			zend_value_error("The class of the static property %s does not exist", ZSTR_VAL(name));
		}
		return FAILURE;
	}
	const char *property_name = colons + 2 + (colons[2] == '$');
	zend_string *property = zend_string_init(property_name, ZSTR_VAL(name) + ZSTR_LEN(name) - property_name, 0);
	zend_property_info *info = zend_hash_find_ptr(&class->properties_info, property);
	if (info == NULL || (info->flags & ZEND_ACC_STATIC) == 0) {
		zend_value_error("The class %s has no static property $%s", ZSTR_VAL(class->name), ZSTR_VAL(property));
		zend_string_release(property);
		return FAILURE;
	}
	zend_string_release(property);
	if (zend_update_class_constants(class) == FAILURE) {
		return FAILURE;
	}
	if (CE_STATIC_MEMBERS(class) == NULL) {
		zend_class_init_statics(class);
	}
	found->place = CE_STATIC_MEMBERS(class) + info->offset;
	ZVAL_DEINDIRECT(found->place);
	zval *declared = &class->default_static_members_table[info->offset];
	ZVAL_DEINDIRECT(declared);
	ZVAL_COPY_OR_DUP(&found->initial, declared);
	if (Z_TYPE(found->initial) == IS_CONSTANT_AST && zval_update_constant_ex(&found->initial, info->ce) == FAILURE) {
		zval_ptr_dtor(&found->initial);
		return FAILURE;
	}
	return SUCCESS;
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_isolate, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, properties, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, isInherited, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, isolate)
{
	HashTable *properties;
	bool is_inherited;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_ARRAY_HT(properties)
		Z_PARAM_BOOL(is_inherited)
	ZEND_PARSE_PARAMETERS_END();
	zval *name;
	ZEND_HASH_FOREACH_VAL(properties, name) {
		ZVAL_DEREF(name);
		if (Z_TYPE_P(name) != IS_STRING) {
			zend_value_error("The name of a static property must be a string, %s given", zend_zval_type_name(name));
			RETURN_THROWS();
		}
		weft_static found;
		if (find_static(Z_STR_P(name), &found) == FAILURE) {
			RETURN_THROWS();
		}
		found.is_inherited = is_inherited;
		bool is_known = false;
		for (size_t i = 0; i < realms.static_count; i++) {
			is_known = is_known || realms.statics[i].place == found.place;
		}
		if (is_known) {
			zval_ptr_dtor(&found.initial);
			continue;
		}
		if (realms.count != 0) {
			zend_throw_error(NULL, "The static properties that realms isolate are chosen before the first realm exists; %zu exist, and none isolates %s", realms.count, Z_STRVAL_P(name));
			zval_ptr_dtor(&found.initial);
			RETURN_THROWS();
		}
		realms.statics = safe_erealloc(realms.statics, realms.static_count + 1, sizeof(weft_static), 0);
		realms.statics[realms.static_count++] = found;
		realms.base.statics = safe_erealloc(realms.base.statics, realms.static_count, sizeof(zval), 0);
		realms.base.static_count = realms.static_count;
	} ZEND_HASH_FOREACH_END();
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_construct, 0, 0, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, __construct)
{
	ZEND_PARSE_PARAMETERS_NONE();
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_void, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, enter)
{
	ZEND_PARSE_PARAMETERS_NONE();
	weft_realm *realm = from_object(Z_OBJ_P(ZEND_THIS));
	if (EG(active_fiber) == NULL) {
		zend_throw_error(NULL, "A realm can be entered by a task only: start one with Weft\\run()");
		RETURN_THROWS();
	}
	weft_fiber *fiber = weft_fiber_here();
	if (fiber->realm != NULL) {
		zend_throw_error(NULL, "This task is in a realm already: it must leave it before it enters another");
		RETURN_THROWS();
	}
	fiber->realm = realm;
	realm->fibers++;
	GC_ADDREF(&realm->std);
	weft_realm_load(realm);
	EG(error_reporting) = realm->error_reporting;
}

/* Everything, where the setting has no value: that is no 0. */
static int error_reporting_of_process(void)
{
	const char *set = zend_ini_string(ZEND_STRL("error_reporting"), 0);
	return set == NULL || *set == '\0' ? E_ALL : (int) zend_ini_long(ZEND_STRL("error_reporting"), 0);
}

static ZEND_METHOD(Realm, leave)
{
	ZEND_PARSE_PARAMETERS_NONE();
	weft_fiber *fiber = weft_fiber_here();
	weft_realm *realm = fiber->realm;
	if (realm == NULL) {
		return;
	}
	realm->error_reporting = EG(error_reporting);
	fiber->realm = NULL;
	realm->fibers--;
	weft_realm_load(NULL);
	EG(error_reporting) = error_reporting_of_process();
	OBJ_RELEASE(&realm->std);
}

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_current, 0, 0, Weft\\Native\\Realm, 1)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, current)
{
	ZEND_PARSE_PARAMETERS_NONE();
	weft_realm *realm = weft_realm_here();
	if (realm == NULL) {
		RETURN_NULL();
	}
	RETURN_OBJ_COPY(&realm->std);
}

static bool is_inside(zval *object)
{
	if (realms.loaded == from_object(Z_OBJ_P(object))) {
		return true;
	}
	zend_throw_error(NULL, "The realm has not been entered");
	return false;
}

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
static void set_boot_functions_aside(weft_realm *realm)
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
	php_stream *stream = php_stream_temp_create(TEMP_STREAM_DEFAULT, SAPI_POST_BLOCK_SIZE);
	if (stream != NULL) {
		php_stream_auto_cleanup(stream);
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

static void close_input(zend_resource *resource, const php_stream *body)
{
	if (resource->ptr == NULL || resource->type != php_file_le_stream()) {
		return;
	}
	php_stream *stream = resource->ptr;
	if (strcmp(stream->ops->label, "Input") == 0 && stream->abstract != NULL && ((input_handle *) stream->abstract)->body == body) {
		php_stream_free(stream, PHP_STREAM_FREE_KEEP_RSRC | PHP_STREAM_FREE_CLOSE);
	}
}

/* A handle of php://input that the application has kept would read the body of the next request. PHP-FPM closes it at the end of its request as well. */
static void close_inputs(const weft_realm *realm)
{
	const php_stream *body = SG(request_info).request_body;
	zend_ulong end = EG(regular_list).nNextFreeElement;
	zval *entry;
	if (body == NULL) {
		return;
	}
	if (end - realm->first_resource > zend_hash_num_elements(&EG(regular_list))) {
		ZEND_HASH_FOREACH_VAL(&EG(regular_list), entry) {
			close_input(Z_RES_P(entry), body);
		} ZEND_HASH_FOREACH_END();
		return;
	}
	for (zend_ulong number = realm->first_resource; number < end; number++) {
		entry = zend_hash_index_find(&EG(regular_list), number);
		if (entry != NULL) {
			close_input(Z_RES_P(entry), body);
		}
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
	zval_ptr_dtor(&session->http_session_vars);
	ZVAL_UNDEF(&session->http_session_vars);
	session->session_status = php_session_none;
}

static void begin_headers(int status)
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

/* In place of that of the request before, with the settings of the boot. */
static void put_input(weft_realm *realm, zval *arrays[6], HashTable *uploads, zend_string *body)
{
	static const struct { unsigned index; int track; } places[6] = {
		{WEFT_GET, TRACK_VARS_GET}, {WEFT_POST, TRACK_VARS_POST}, {WEFT_COOKIE, TRACK_VARS_COOKIE},
		{WEFT_SERVER, TRACK_VARS_SERVER}, {WEFT_FILES, TRACK_VARS_FILES}, {WEFT_REQUEST, -1},
	};
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
	zval *session = weft_superglobal(WEFT_SESSION);
	zval before;
	ZVAL_COPY_VALUE(&before, session);
	ZVAL_UNDEF(session);
	zval_ptr_dtor(&before);
	put_uploads(uploads);
	weft_strtok_forget();
	close_inputs(realm);
	realm->first_resource = EG(regular_list).nNextFreeElement;
	log_what_destructors_threw();
	weft_last_error_forget();
	if (!set_body(body)) {
		zend_throw_error(NULL, "There is no memory for php://input, a request body of %zu bytes", ZSTR_LEN(body));
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_begin, 0, 7, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, server, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, query, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, form, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, cookies, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, files, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, request, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, body, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, uploads, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, begin)
{
	zval *server, *query, *form, *cookies, *files, *request;
	zend_string *body;
	HashTable *uploads = NULL;
	ZEND_PARSE_PARAMETERS_START(7, 8)
		Z_PARAM_ARRAY(server)
		Z_PARAM_ARRAY(query)
		Z_PARAM_ARRAY(form)
		Z_PARAM_ARRAY(cookies)
		Z_PARAM_ARRAY(files)
		Z_PARAM_ARRAY(request)
		Z_PARAM_STR(body)
		Z_PARAM_OPTIONAL
		Z_PARAM_ARRAY_HT(uploads)
	ZEND_PARSE_PARAMETERS_END();
	if (!is_inside(ZEND_THIS)) {
		RETURN_THROWS();
	}
	weft_realm *realm = from_object(Z_OBJ_P(ZEND_THIS));
	if (!realm->booted.are_kept) {
		weft_settings_keep(&realm->booted);
	}
	set_boot_functions_aside(realm);
	if (!realm->handlers.are_kept && realm->has_begun) {
		weft_handlers_keep(&realm->handlers);
	}
	realm->has_begun = true;
	put_input(realm, (zval *[]) {query, form, cookies, server, files, request}, uploads, body);
	begin_headers(200);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_clear, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

/* Clears the state of a request that has ended, so that a message or a task that runs next does not find it. */
static ZEND_METHOD(Realm, clear)
{
	ZEND_PARSE_PARAMETERS_NONE();
	if (!is_inside(ZEND_THIS)) {
		RETURN_THROWS();
	}
	weft_realm *realm = from_object(Z_OBJ_P(ZEND_THIS));
	zval none;
	ZVAL_EMPTY_ARRAY(&none);
	zval *server = Z_TYPE(realm->booted.server) == IS_ARRAY ? &realm->booted.server : &none;
	put_input(realm, (zval *[]) {&none, &none, &none, server, &none, &none}, NULL, ZSTR_EMPTY_ALLOC());
	begin_headers(0);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_finish, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

/* array{int, list<string>}: status and header lines. */
static ZEND_METHOD(Realm, finish)
{
	ZEND_PARSE_PARAMETERS_NONE();
	if (!is_inside(ZEND_THIS)) {
		RETURN_THROWS();
	}
	zval lines;
	array_init(&lines);
	zend_llist_position position;
	sapi_header_struct *header = zend_llist_get_first_ex(&SG(sapi_headers).headers, &position);
	while (header != NULL) {
		add_next_index_stringl(&lines, header->header, header->header_len);
		header = zend_llist_get_next_ex(&SG(sapi_headers).headers, &position);
	}
	array_init_size(return_value, 2);
	add_next_index_long(return_value, SG(sapi_headers).http_response_code);
	add_next_index_zval(return_value, &lines);
	begin_headers(0);
}

static ZEND_METHOD(Realm, keepSettings)
{
	ZEND_PARSE_PARAMETERS_NONE();
	weft_realm *realm = weft_realm_here();
	if (realm != NULL) {
		set_boot_functions_aside(realm);
		weft_settings_keep(&realm->booted);
	}
}

static ZEND_METHOD(Realm, refuseHeadersOutside)
{
	ZEND_PARSE_PARAMETERS_NONE();
	realms.refuses_headers = true;
}

/* The functions of the engine around it catch what a fatal error unwinds with, because a script that they end has nothing left to run. */
static void end_after_fatal_error(void)
{
	if (CG(unclean_shutdown)) {
		zend_bailout();
	}
}

static ZEND_METHOD(Realm, runShutdownFunctions)
{
	ZEND_PARSE_PARAMETERS_NONE();
	if (!is_inside(ZEND_THIS)) {
		RETURN_THROWS();
	}
	if (BG(user_shutdown_function_names) != NULL) {
		php_call_shutdown_functions();
		end_after_fatal_error();
		php_free_shutdown_functions();
		end_after_fatal_error();
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_until_exit, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_OBJ_INFO(0, work, Closure, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, untilExit)
{
	zend_fcall_info call;
	zend_fcall_info_cache cache;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_FUNC(call, cache)
	ZEND_PARSE_PARAMETERS_END();
	bool has_exited = weft_call_until_exit(&call, &cache);
	if (EG(exception) != NULL) {
		RETURN_THROWS();
	}
	RETURN_BOOL(has_exited);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_hide_buffers, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, areHidden, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, hideBuffers)
{
	bool are_hidden;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_BOOL(are_hidden)
	ZEND_PARSE_PARAMETERS_END();
	weft_buffers_hide(are_hidden);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_close_buffers, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, level, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, areFlushed, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, closeBuffers)
{
	zend_long level;
	bool are_flushed;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(level)
		Z_PARAM_BOOL(are_flushed)
	ZEND_PARSE_PARAMETERS_END();
	weft_buffers_close((int) level, are_flushed);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_has_tasks, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, taskStarted)
{
	ZEND_PARSE_PARAMETERS_NONE();
	from_object(Z_OBJ_P(ZEND_THIS))->tasks++;
}

static ZEND_METHOD(Realm, taskEnded)
{
	ZEND_PARSE_PARAMETERS_NONE();
	from_object(Z_OBJ_P(ZEND_THIS))->tasks--;
}

static ZEND_METHOD(Realm, hasTasks)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(from_object(Z_OBJ_P(ZEND_THIS))->tasks != 0);
}

static const zend_function_entry realm_methods[] = {
	ZEND_ME(Realm, __construct, arginfo_construct, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, isolate, arginfo_isolate, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
	ZEND_ME(Realm, current, arginfo_current, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
	ZEND_ME(Realm, enter, arginfo_void, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, leave, arginfo_void, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
	ZEND_ME(Realm, begin, arginfo_begin, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, finish, arginfo_finish, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, clear, arginfo_clear, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, taskStarted, arginfo_void, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, taskEnded, arginfo_void, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, hasTasks, arginfo_has_tasks, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, keepSettings, arginfo_void, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
	ZEND_ME(Realm, refuseHeadersOutside, arginfo_void, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
	ZEND_ME(Realm, runShutdownFunctions, arginfo_void, ZEND_ACC_PUBLIC)
	ZEND_ME(Realm, hideBuffers, arginfo_hide_buffers, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
	ZEND_ME(Realm, closeBuffers, arginfo_close_buffers, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
	ZEND_ME(Realm, untilExit, arginfo_until_exit, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
	ZEND_FE_END
};

static void replace_functions(void)
{
	weft_buffers_replace_functions();
	weft_filter_replace_functions();
	weft_response_replace_functions();
	weft_exit_replace_functions();
}

bool weft_realms_startup(void)
{
	if (!weft_switch_startup()) {
		/* Without realms as well the server has buffers that tasks must not close. */
		weft_when_functions_are_registered(weft_buffers_replace_functions);
		return false;
	}
	zend_class_entry class;
	INIT_CLASS_ENTRY(class, "Weft\\Native\\Realm", realm_methods);
	realm_class = zend_register_internal_class(&class);
	realm_class->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
	realm_class->create_object = create_realm;
	memcpy(&realm_handlers, &std_object_handlers, sizeof(realm_handlers));
	realm_handlers.offset = offsetof(weft_realm, std);
	realm_handlers.free_obj = free_realm;
	realm_handlers.get_gc = realm_gc;
	realm_handlers.clone_obj = NULL;
	weft_when_functions_are_registered(replace_functions);
	return true;
}

void weft_realms_request_shutdown(void)
{
	weft_realm_load(NULL);
	weft_exit_request_shutdown();
	realms.is_over = true;
	realms.refuses_headers = false;
	if (realms.idle_bodies.size != 0) {
		zend_stack_destroy(&realms.idle_bodies);
		realms.idle_bodies.size = 0;
	}
	for (size_t i = 0; i < realms.static_count; i++) {
		zval_ptr_dtor(&realms.statics[i].initial);
	}
	if (realms.statics != NULL) {
		efree(realms.statics);
		efree(realms.base.statics);
	}
	realms.statics = NULL;
	realms.static_count = 0;
	realms.base.statics = NULL;
	realms.base.static_count = 0;
}
