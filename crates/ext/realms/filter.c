/*
 * filter_input() and its like inside of realms. ext/filter keeps the input of the request in globals that nothing exports, so these functions
 * read that of the realm, and filter it by filter_var() and filter_var_array().
 */
#include "switch.h"
#include "functions/functions.h"

#include <main/php_variables.h>

/* FILTER_NULL_ON_FAILURE of ext/filter. */
#define NULL_ON_FAILURE 0x8000000

static zif_handler filter_has_var, filter_input, filter_input_array;

static bool is_inside(void)
{
	return realms.loaded != NULL && weft_realm_here() == realms.loaded;
}

/* NULL for a number that is no INPUT_ constant, and where the request has no such input. */
static HashTable *input_of(zend_long type)
{
	int track;
	switch (type) {
		case PARSE_POST: track = TRACK_VARS_POST; break;
		case PARSE_GET: track = TRACK_VARS_GET; break;
		case PARSE_COOKIE: track = TRACK_VARS_COOKIE; break;
		case PARSE_SERVER: track = TRACK_VARS_SERVER; break;
		case PARSE_ENV: track = TRACK_VARS_ENV; break;
		default:
			zend_argument_value_error(1, "must be an INPUT_* constant");
			return NULL;
	}
	zval *input = &PG(http_globals)[track];
	return Z_TYPE_P(input) == IS_ARRAY && zend_hash_num_elements(Z_ARRVAL_P(input)) != 0 ? Z_ARRVAL_P(input) : NULL;
}

static void call(const char *name, zval *result, uint32_t count, zval *arguments)
{
	zend_function *function = zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
	if (function != NULL) {
		zend_call_known_function(function, NULL, NULL, result, count, arguments, NULL);
	}
}

static zval *find(HashTable *table, const char *name, size_t length)
{
	zval *value = zend_hash_str_find(table, name, length);
	if (value != NULL) {
		ZVAL_DEREF(value);
	}
	return value;
}

/* What a missing value is: the default of the options, or false where null stands for failure. */
static void missing(zval *result, HashTable *options, zend_long flags)
{
	if (options != NULL) {
		zval *given = find(options, ZEND_STRL("flags"));
		flags = given != NULL ? zval_get_long(given) : 0;
		zval *inner = find(options, ZEND_STRL("options"));
		zval *fallback = inner != NULL && Z_TYPE_P(inner) == IS_ARRAY ? find(Z_ARRVAL_P(inner), ZEND_STRL("default")) : NULL;
		if (fallback != NULL) {
			ZVAL_COPY(result, fallback);
			return;
		}
	}
	ZVAL_NULL(result);
	if ((flags & NULL_ON_FAILURE) != 0) {
		ZVAL_FALSE(result);
	}
}

/* PHP does not count the references to a constant array, such as [] or a literal, which may be in read-only memory. */
static void set_array(zval *value, HashTable *array)
{
	ZVAL_ARR(value, array);
	if ((GC_FLAGS(array) & GC_IMMUTABLE) != 0) {
		Z_TYPE_INFO_P(value) = IS_ARRAY;
	}
}

static ZEND_NAMED_FUNCTION(realm_filter_has_var)
{
	zend_long type;
	zend_string *name;
	if (!is_inside()) {
		filter_has_var(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(type)
		Z_PARAM_STR(name)
	ZEND_PARSE_PARAMETERS_END();
	HashTable *input = input_of(type);
	RETURN_BOOL(input != NULL && zend_symtable_exists(input, name));
}

static ZEND_NAMED_FUNCTION(realm_filter_input)
{
	zend_long type, filter = 516, flags = 0;
	zend_string *name;
	HashTable *options = NULL;
	if (!is_inside()) {
		filter_input(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	ZEND_PARSE_PARAMETERS_START(2, 4)
		Z_PARAM_LONG(type)
		Z_PARAM_STR(name)
		Z_PARAM_OPTIONAL
		Z_PARAM_LONG(filter)
		Z_PARAM_ARRAY_HT_OR_LONG(options, flags)
	ZEND_PARSE_PARAMETERS_END();
	HashTable *input = input_of(type);
	if (EG(exception) != NULL) {
		RETURN_THROWS();
	}
	zval *value = input != NULL ? zend_symtable_find(input, name) : NULL;
	if (value == NULL) {
		missing(return_value, options, flags);
		return;
	}
	zval arguments[3];
	ZVAL_COPY_VALUE(&arguments[0], value);
	ZVAL_LONG(&arguments[1], filter);
	if (options != NULL) {
		set_array(&arguments[2], options);
	} else {
		ZVAL_LONG(&arguments[2], flags);
	}
	call("filter_var", return_value, 3, arguments);
}

static ZEND_NAMED_FUNCTION(realm_filter_input_array)
{
	zend_long type, filter = 516;
	HashTable *options = NULL;
	bool adds_empty = true;
	if (!is_inside()) {
		filter_input_array(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_LONG(type)
		Z_PARAM_OPTIONAL
		Z_PARAM_ARRAY_HT_OR_LONG(options, filter)
		Z_PARAM_BOOL(adds_empty)
	ZEND_PARSE_PARAMETERS_END();
	HashTable *input = input_of(type);
	if (EG(exception) != NULL) {
		RETURN_THROWS();
	}
	if (input == NULL) {
		missing(return_value, options, 0);
		return;
	}
	zval arguments[3];
	set_array(&arguments[0], input);
	if (options != NULL) {
		set_array(&arguments[1], options);
	} else {
		ZVAL_LONG(&arguments[1], filter);
	}
	ZVAL_BOOL(&arguments[2], adds_empty);
	call("filter_var_array", return_value, 3, arguments);
}

void weft_filter_replace_functions(void)
{
	weft_replace_function("filter_has_var", realm_filter_has_var, &filter_has_var);
	weft_replace_function("filter_input", realm_filter_input, &filter_input);
	weft_replace_function("filter_input_array", realm_filter_input_array, &filter_input_array);
}
