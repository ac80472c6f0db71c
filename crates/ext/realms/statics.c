/* The static properties that each realm has its own values of. */
#include "switch.h"

#include <zend_exceptions.h>

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

zend_result weft_statics_isolate(zend_string *name, bool is_inherited)
{
	weft_static found;
	if (find_static(name, &found) == FAILURE) {
		return FAILURE;
	}
	found.is_inherited = is_inherited;
	for (size_t i = 0; i < realms.static_count; i++) {
		if (realms.statics[i].place == found.place) {
			zval_ptr_dtor(&found.initial);
			return SUCCESS;
		}
	}
	if (realms.count != 0) {
		zend_throw_error(NULL, "The static properties that realms isolate are chosen before the first realm exists; %zu exist, and none isolates %s", realms.count, ZSTR_VAL(name));
		zval_ptr_dtor(&found.initial);
		return FAILURE;
	}
	realms.statics = safe_erealloc(realms.statics, realms.static_count + 1, sizeof(weft_static), 0);
	realms.statics[realms.static_count++] = found;
	realms.base.statics = safe_erealloc(realms.base.statics, realms.static_count, sizeof(zval), 0);
	realms.base.static_count = realms.static_count;
	return SUCCESS;
}

void weft_statics_forget(void)
{
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
