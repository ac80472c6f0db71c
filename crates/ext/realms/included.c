/*
 * The files that include_once and require_once skip: those that the realm has included. PHP has one list for the process, by which a file that checks who has
 * logged in would run for the first request only.
 *
 * A file that declares functions or classes, or registers what loads them, cannot run twice, because they are the process's: it counts as included in every
 * realm. Constants are the process's, too: in a realm a constant may be declared again with the value that it has.
 */
#include "switch.h"
#include "functions/functions.h"

#include <zend_constants.h>

static zend_op_array *(*compile_outside)(zend_file_handle *file, int type);

/* The function that the instruction is about to call by its name, in lower case and without a namespace; NULL for other instructions. */
static const zend_string *name_of_call(const zend_op *instruction)
{
	/* Behind a name as it is written are that in lower case and, in a namespace, the one without it. */
	switch (instruction->opcode) {
		case ZEND_INIT_FCALL:
			return Z_STR_P(RT_CONSTANT(instruction, instruction->op2));
		case ZEND_INIT_FCALL_BY_NAME:
			return Z_STR_P(RT_CONSTANT(instruction, instruction->op2) + 1);
		case ZEND_INIT_NS_FCALL_BY_NAME:
			return Z_STR_P(RT_CONSTANT(instruction, instruction->op2) + 2);
		default:
			return NULL;
	}
}

static bool is_one_of(const zend_string *name, const char *const *names)
{
	for (; *names != NULL; names++) {
		if (zend_string_equals_cstr(name, *names, strlen(*names))) {
			return true;
		}
	}
	return false;
}

/* What these declare is the process's as well. */
static const char *const declaring_functions[] = {"class_alias", "spl_autoload_register", "stream_filter_register", "stream_wrapper_register", NULL};
/* What declarations are made with beside these. */
static const char *const harmless_functions[] = {
	"class_exists", "define", "defined", "enum_exists", "extension_loaded", "function_exists", "interface_exists", "trait_exists", "version_compare", NULL,
};

static bool declares(const zend_op_array *code)
{
	for (uint32_t i = 0; i < code->last; i++) {
		const zend_op *instruction = &code->opcodes[i];
		switch (instruction->opcode) {
			case ZEND_DECLARE_FUNCTION:
			case ZEND_DECLARE_CLASS:
			case ZEND_DECLARE_CLASS_DELAYED:
				return true;
		}
		const zend_string *name = name_of_call(instruction);
		if (name != NULL && is_one_of(name, declaring_functions)) {
			return true;
		}
	}
	return false;
}

/* Whether it prints, assigns, ends the request or calls something, beside what it declares. */
static bool does_more(const zend_op_array *code)
{
	for (uint32_t i = 0; i < code->last; i++) {
		const zend_op *instruction = &code->opcodes[i];
		switch (instruction->opcode) {
			case ZEND_ASSIGN:
			case ZEND_ASSIGN_DIM:
			case ZEND_ECHO:
			case ZEND_INIT_DYNAMIC_CALL:
			case ZEND_INIT_METHOD_CALL:
			case ZEND_INIT_STATIC_METHOD_CALL:
			case ZEND_NEW:
			case ZEND_THROW:
#ifdef ZEND_EXIT
			case ZEND_EXIT:
#endif
				return true;
		}
		const zend_string *name = name_of_call(instruction);
		if (name != NULL && !is_one_of(name, declaring_functions) && !is_one_of(name, harmless_functions)) {
			return true;
		}
	}
	return false;
}

static void warn(const zend_string *file)
{
	char *message;
	spprintf(&message, 0, "weft: %s declares functions or classes and does more than that. What it does beside runs for the first request of this process only: "
		"move the declarations to a file of their own", ZSTR_VAL(file));
	php_log_err_with_severity(message, LOG_WARNING);
	efree(message);
}

/* Others, such as the container that Symfony writes, run again in each realm in any case. */
static bool is_included_once(void)
{
	const zend_execute_data *caller = EG(current_execute_data);
	if (caller == NULL || caller->func == NULL || !ZEND_USER_CODE(caller->func->type) || caller->opline->opcode != ZEND_INCLUDE_OR_EVAL) {
		return false;
	}
	return caller->opline->extended_value == ZEND_INCLUDE_ONCE || caller->opline->extended_value == ZEND_REQUIRE_ONCE;
}

static zend_op_array *compile(zend_file_handle *file, int type)
{
	if (!realms.are_files_known) {
		return compile_outside(file, type);
	}
	uint32_t functions = zend_hash_num_elements(EG(function_table));
	uint32_t classes = zend_hash_num_elements(EG(class_table));
	zend_op_array *code = compile_outside(file, type);
	if (code == NULL || code->filename == NULL) {
		return code;
	}
	bool has_declared = zend_hash_num_elements(EG(function_table)) != functions || zend_hash_num_elements(EG(class_table)) != classes;
	if ((has_declared || declares(code)) && zend_hash_add_empty_element(&realms.declaring, code->filename) != NULL) {
		if (weft_realm_here() != NULL && is_included_once() && does_more(code)) {
			warn(code->filename);
		}
	}
	return code;
}

/* --- constants ----------------------------------------------------------------------------------------------------------------------- */

static bool has_value_already(zend_string *name, zval *value)
{
	if (zend_memnstr(ZSTR_VAL(name), "::", 2, ZSTR_VAL(name) + ZSTR_LEN(name)) != NULL) {
		return false;
	}
	zval *defined = zend_get_constant_ex(name, NULL, ZEND_FETCH_CLASS_SILENT);
	return defined != NULL && zend_is_identical(defined, value);
}

static zif_handler original_define;

static ZEND_NAMED_FUNCTION(own_define)
{
	if (UNEXPECTED(realms.count != 0) && weft_realm_here() != NULL && ZEND_NUM_ARGS() >= 2) {
		zval *name = ZEND_CALL_ARG(execute_data, 1);
		if (Z_TYPE_P(name) == IS_STRING && has_value_already(Z_STR_P(name), ZEND_CALL_ARG(execute_data, 2))) {
			RETURN_TRUE;
		}
	}
	original_define(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static user_opcode_handler_t outside_const_handler;

static int const_instruction(zend_execute_data *execute_data)
{
	const zend_op *opline = EX(opline);
	if (UNEXPECTED(realms.count != 0) && weft_realm_here() != NULL && has_value_already(Z_STR_P(RT_CONSTANT(opline, opline->op1)), RT_CONSTANT(opline, opline->op2))) {
		EX(opline) = opline + 1;
		return ZEND_USER_OPCODE_CONTINUE;
	}
	return outside_const_handler != NULL ? outside_const_handler(execute_data) : ZEND_USER_OPCODE_DISPATCH;
}

void weft_included_replace_functions(void)
{
	weft_replace_function("define", own_define, &original_define);
}

/* --- the beginning and the end --------------------------------------------------------------------------------------------------------- */

/*
 * With the first realm: after Opcache and the others that compile files have taken their places, and after the JIT has looked whether an extension handles
 * instructions, for which it would disable itself. What was compiled before keeps PHP's own instruction.
 */
void weft_included_begin(void)
{
	if (realms.are_files_known) {
		return;
	}
	zend_hash_init(&realms.declaring, 64, NULL, NULL, 0);
	realms.are_files_known = true;
	if (compile_outside == NULL) {
		compile_outside = zend_compile_file;
		zend_compile_file = compile;
		outside_const_handler = zend_get_user_opcode_handler(ZEND_DECLARE_CONST);
		zend_set_user_opcode_handler(ZEND_DECLARE_CONST, const_instruction);
	}
}

void weft_included_end(void)
{
	if (realms.are_files_known) {
		realms.are_files_known = false;
		zend_hash_destroy(&realms.declaring);
		realms.base.declaring_known = 0;
	}
}

bool weft_included_is_behind(const weft_realm_state *state)
{
	return realms.are_files_known && state->declaring_known < realms.declaring.nNumUsed;
}

void weft_included_catch_up(weft_realm_state *state)
{
	/* Nothing is ever taken out of it, so the files that came later are behind the others. */
	for (; weft_included_is_behind(state); state->declaring_known++) {
		zend_hash_add_empty_element(&EG(included_files), realms.declaring.arData[state->declaring_known].key);
	}
}
