/* Handles that are looked up in what an object has as a property of PHP. */
#include "internal.h"

void *weft_amqp_connection(struct wrapped *function, zend_object *object)
{
	zval *connection;

	if (function->property == 0) {
		zend_class_entry *class;
		zend_property_info *info = NULL;

		for (class = object->ce; class != NULL && info == NULL; class = class->parent) {
			info = class->type == ZEND_INTERNAL_CLASS ? zend_hash_str_find_ptr(&class->properties_info, "connection", sizeof("connection") - 1) : NULL;
		}
		if (info == NULL) {
			return object;
		}
		function->property = info->offset;
	}
	connection = OBJ_PROP(object, function->property);
	ZVAL_DEREF(connection);
	return Z_TYPE_P(connection) == IS_OBJECT ? (void *) Z_OBJ_P(connection) : object;
}
