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

static zend_object *create_realm(zend_class_entry *class)
{
	weft_realm *realm = zend_object_alloc(sizeof(weft_realm), class);
	zend_object_std_init(&realm->std, class);
	object_properties_init(&realm->std, class);
	realm->std.handlers = &realm_handlers;
	if (realms.loaded == NULL) {
		make_superglobals();
	}
	/* One that is made after the request has no state to keep apart, and its constructor throws. */
	if (!realms.is_over) {
		weft_included_begin();
	}
	weft_state_begin(&realm->state);
	memset(&realm->booted, 0, sizeof(realm->booted));
	realm->error_reporting = EG(error_reporting);
	realm->fibers = 0;
	realm->tasks = 0;
	if (realms.idle_bodies.size == 0 && !realms.is_over) {
		zend_stack_init(&realms.idle_bodies, sizeof(php_stream *));
		zend_stack_init(&realms.held_bodies, sizeof(php_stream *));
		zend_stack_init(&realms.bodies, sizeof(php_stream *));
	}
	realms.count++;
	keep_headers();
	return &realm->std;
}

static void destroy_realm(zend_object *object)
{
	weft_session_close_left(from_object(object));
}

static void free_realm(zend_object *object)
{
	weft_realm *realm = from_object(object);
	if (realms.loaded == realm) {
		weft_realm_load(NULL);
	}
	realms.count--;
	weft_state_end(&realm->state);
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

/* Code that PHP runs last, such as the close of a stream, would change what the next request finds. */
static bool is_refused(void)
{
	if (realms.is_over) {
		zend_throw_error(NULL, "Weft was called after the request had ended, by code that PHP runs last, such as the close of a stream");
	}
	return realms.is_over;
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
	if (is_refused()) {
		RETURN_THROWS();
	}
	zval *name;
	ZEND_HASH_FOREACH_VAL(properties, name) {
		ZVAL_DEREF(name);
		if (Z_TYPE_P(name) != IS_STRING) {
			zend_value_error("The name of a static property must be a string, %s given", zend_zval_type_name(name));
			RETURN_THROWS();
		}
		/* The array may hold a reference, which an autoloader can set. */
		zend_string *copy = zend_string_copy(Z_STR_P(name));
		zend_result isolated = weft_statics_isolate(copy, is_inherited);
		zend_string_release(copy);
		if (isolated == FAILURE) {
			RETURN_THROWS();
		}
	} ZEND_HASH_FOREACH_END();
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_construct, 0, 0, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, __construct)
{
	ZEND_PARSE_PARAMETERS_NONE();
	if (is_refused()) {
		RETURN_THROWS();
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_void, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

static ZEND_METHOD(Realm, enter)
{
	ZEND_PARSE_PARAMETERS_NONE();
	weft_realm *realm = from_object(Z_OBJ_P(ZEND_THIS));
	if (is_refused()) {
		RETURN_THROWS();
	}
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
int weft_error_reporting_of_process(void)
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
	EG(error_reporting) = weft_error_reporting_of_process();
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
	weft_request_set_boot_functions_aside(realm);
	if (!realm->handlers.are_kept && realm->has_begun) {
		weft_handlers_keep(&realm->handlers);
	}
	realm->has_begun = true;
	weft_request_put_input(realm, (zval *[]) {query, form, cookies, server, files, request}, uploads, body);
	weft_request_begin_headers(200);
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
	weft_request_put_input(realm, (zval *[]) {&none, &none, &none, server, &none, &none}, NULL, ZSTR_EMPTY_ALLOC());
	weft_request_begin_headers(0);
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
	weft_request_begin_headers(0);
}

static ZEND_METHOD(Realm, keepSettings)
{
	ZEND_PARSE_PARAMETERS_NONE();
	weft_realm *realm = weft_realm_here();
	if (realm != NULL) {
		weft_request_set_boot_functions_aside(realm);
		weft_settings_keep(&realm->booted);
	}
}

static ZEND_METHOD(Realm, refuseHeadersOutside)
{
	ZEND_PARSE_PARAMETERS_NONE();
	if (is_refused()) {
		RETURN_THROWS();
	}
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
	weft_realm *realm = from_object(Z_OBJ_P(ZEND_THIS));
	/* One of the functions that are called asks: those that are left follow it, with what it has registered. */
	if (BG(user_shutdown_function_names) == NULL || realm->are_functions_called) {
		return;
	}
	realm->are_functions_called = true;
	php_call_shutdown_functions();
	realm->are_functions_called = false;
	end_after_fatal_error();
	/* Destructors may register others, for the next time. */
	HashTable *functions = BG(user_shutdown_function_names);
	BG(user_shutdown_function_names) = NULL;
	if (functions != NULL) {
		zend_hash_destroy(functions);
		FREE_HASHTABLE(functions);
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
	weft_included_replace_functions();
	weft_signals_replace_functions();
	weft_resources_replace_functions();
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
	realm_handlers.dtor_obj = destroy_realm;
	realm_handlers.free_obj = free_realm;
	realm_handlers.get_gc = realm_gc;
	realm_handlers.clone_obj = NULL;
	weft_when_functions_are_registered(replace_functions);
	return true;
}

void weft_realms_request_startup(void)
{
	realms.is_over = false;
	realms.loaded = NULL;
	realms.count = 0;
	realms.is_exchanging = false;
	weft_fiber_request_startup();
	weft_buffers_request_startup();
}

void weft_realms_request_shutdown(void)
{
	/* Other modules end as well, whatever a destructor does. */
	weft_realm_exchange(NULL);
	weft_exit_request_shutdown();
	realms.is_over = true;
	realms.refuses_headers = false;
	if (realms.idle_bodies.size != 0) {
		zend_stack_destroy(&realms.idle_bodies);
		zend_stack_destroy(&realms.held_bodies);
		zend_stack_destroy(&realms.bodies);
		realms.bodies = (zend_stack) {0};
		realms.idle_bodies.size = 0;
	}
	weft_statics_forget();
	weft_included_end();
}
