/*
 * exit() inside of a realm ends the call that `Weft\Native\Realm::untilExit()` has made, and not the process.
 *
 * PHP unwinds exit() by an internal exception, which no `catch` sees and which skips `finally` blocks. Where a guard is below, exit() throws
 * PHP's other internal exception instead, the one that ends suspended fibers: it runs `finally` blocks. The process lives on, and they release
 * locks, connections and timers.
 */
#include "realm.h"
#include "switch.h"
#include "functions/functions.h"

#include <main/php_output.h>
#include <zend_exceptions.h>

/* On the heap: after a fatal error the stacks of fibers are gone, and shutdown functions still call exit(). */
typedef struct weft_exit_guard {
	const zend_fiber_context *fiber;
	/* Output buffers that were open before the call. */
	int output_level;
	/* What unwinds to this guard, or NULL. */
	zend_object *exit;
	struct weft_exit_guard *before;
	struct weft_exit_guard *after;
} guard;

/* The latest of all fibers. */
static guard *latest;

static guard *make_guard(void)
{
	guard *made = emalloc(sizeof(*made));
	*made = (guard) {.fiber = EG(current_fiber_context), .output_level = php_output_get_level(), .before = latest};
	if (latest != NULL) {
		latest->after = made;
	}
	latest = made;
	return made;
}

static void drop_guard(guard *dropped)
{
	if (dropped->before != NULL) {
		dropped->before->after = dropped->after;
	}
	if (dropped->after != NULL) {
		dropped->after->before = dropped->before;
	} else {
		latest = dropped->before;
	}
	if (dropped->exit != NULL) {
		OBJ_RELEASE(dropped->exit);
	}
	efree(dropped);
}

/* The guard to which an exception of the running code gets: of its fiber, or of the one that has resumed it. */
static guard *nearest_guard(void)
{
	const zend_fiber_context *fiber = EG(current_fiber_context);
	while (latest != NULL && fiber != NULL && fiber->kind == zend_ce_fiber) {
		for (guard *candidate = latest; candidate != NULL; candidate = candidate->before) {
			if (candidate->fiber == fiber) {
				return candidate;
			}
		}
		fiber = zend_fiber_from_context((zend_fiber_context *) fiber)->caller;
	}
	return NULL;
}

/*
 * PHP sends what is in the buffers when it exits. A `finally` block may be about to discard the buffers it has opened: it finds empty ones.
 */
static void flush_buffers(int level)
{
	if ((php_output_get_status() & PHP_OUTPUT_LOCKED) != 0) {
		return;
	}
	int flushed = 0;
	while (php_output_get_level() > level && php_output_end() == SUCCESS) {
		flushed++;
	}
	while (flushed-- > 0) {
		php_output_start_default();
	}
}

/* Looked up when the argument of exit() is printed: that may run code, and end the fiber that a guard was of. */
static void exit_to_guard(void)
{
	guard *reached = nearest_guard();
	if (reached == NULL) {
		if (EG(exception) == NULL) {
			zend_throw_unwind_exit();
		}
		return;
	}
	if (EG(exception) == NULL && reached->fiber == EG(current_fiber_context)) {
		flush_buffers(reached->output_level);
	}
	/* A callback of a buffer has thrown. */
	if (EG(exception) != NULL) {
		return;
	}
	zend_throw_graceful_exit();
	if (reached->exit != NULL) {
		OBJ_RELEASE(reached->exit);
	}
	reached->exit = EG(exception);
	GC_ADDREF(reached->exit);
}

/* True if `work` has called exit(). Exceptions pass. */
bool weft_call_until_exit(zend_fcall_info *call, zend_fcall_info_cache *cache)
{
	guard *made = make_guard();
	zval result;
	ZVAL_UNDEF(&result);
	call->retval = &result;
	zend_call_function(call, cache);
	zval_ptr_dtor(&result);
	/* A `finally` block with a `return` discards what unwinds. */
	bool has_exited = made->exit != NULL && (EG(exception) == NULL || EG(exception) == made->exit);
	if (has_exited) {
		zend_clear_exception();
	}
	drop_guard(made);
	return has_exited;
}

struct weft_exit_guard *weft_exit_hide_guards(void)
{
	guard *hidden = latest;
	latest = NULL;
	return hidden;
}

void weft_exit_show_guards(struct weft_exit_guard *hidden)
{
	latest = hidden;
}

void weft_exit_request_shutdown(void)
{
	latest = NULL;
}

#if PHP_VERSION_ID >= 80400
static zend_always_inline void end_realm(zif_handler end_process, INTERNAL_FUNCTION_PARAMETERS)
{
	if (nearest_guard() == NULL) {
		end_process(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	zend_string *text = NULL;
	zend_long status = 0;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_STR_OR_LONG(text, status)
	ZEND_PARSE_PARAMETERS_END();
	if (text != NULL && ZSTR_LEN(text) != 0) {
		zend_write(ZSTR_VAL(text), ZSTR_LEN(text));
	}
	exit_to_guard();
}

static zif_handler original_exit, original_die;

static ZEND_NAMED_FUNCTION(own_exit)
{
	end_realm(original_exit, INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(own_die)
{
	end_realm(original_die, INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void weft_exit_replace_functions(void)
{
	weft_replace_function("exit", own_exit, &original_exit);
	weft_replace_function("die", own_die, &original_die);
}
#else
/* Before PHP 8.4 exit is an instruction and not a function. */
static user_opcode_handler_t outside_exit_handler;

static void print_argument(zend_execute_data *execute_data)
{
	const zend_op *opline = EX(opline);
	zval *argument = zend_get_zval_ptr(opline, opline->op1_type, &opline->op1, execute_data);
	if (Z_TYPE_P(argument) == IS_UNDEF) {
		zend_error(E_WARNING, "Undefined variable $%s", ZSTR_VAL(EX(func)->op_array.vars[EX_VAR_TO_NUM(opline->op1.var)]));
		return;
	}
	ZVAL_DEREF(argument);
	/* A number would be the status of the process. */
	if (Z_TYPE_P(argument) != IS_LONG) {
		zend_print_zval(argument, 0);
	}
}

static int exit_instruction(zend_execute_data *execute_data)
{
	if (nearest_guard() == NULL) {
		return outside_exit_handler != NULL ? outside_exit_handler(execute_data) : ZEND_USER_OPCODE_DISPATCH;
	}
	const zend_op *opline = EX(opline);
	if (opline->op1_type != IS_UNUSED) {
		print_argument(execute_data);
		if ((opline->op1_type & (IS_TMP_VAR | IS_VAR)) != 0) {
			zval_ptr_dtor_nogc(EX_VAR(opline->op1.var));
		}
	}
	exit_to_guard();
	/* With the instruction that handles exceptions. */
	return ZEND_USER_OPCODE_CONTINUE;
}

/*
 * Last of all modules, like the functions: debuggers, uopz and Swoole set handlers that end the process, and call none that was there before. The instruction
 * is compiled in another way from here on. Opcache's cache of files does not mix it up with what processes without Weft have compiled: PHP tells them apart by the
 * place that weft_fiber_startup() takes.
 */
void weft_exit_replace_functions(void)
{
	static bool is_replaced;
	if (!is_replaced) {
		is_replaced = true;
		outside_exit_handler = zend_get_user_opcode_handler(ZEND_EXIT);
		zend_set_user_opcode_handler(ZEND_EXIT, exit_instruction);
	}
}
#endif
