/*
 * Handlers of pcntl_signal(), which belong to the process as signals do, and run between two instructions of whatever code a signal finds. In the realm of that
 * code they would see the request of one client, change its settings and print into its response; exit() in one of them, which is meant for the process, would
 * end that request. So they run outside of realms.
 */
#include "realm.h"
#include "switch.h"
#include "functions/functions.h"

/* Where the code that was interrupted goes on. */
typedef struct {
	weft_fiber *fiber;
	weft_realm *realm;
	int error_reporting;
	struct weft_exit_guard *guards;
} interrupted_code;

static bool leave_realm(interrupted_code *interrupted)
{
	if (realms.count == 0 || realms.is_over || realms.is_exchanging) {
		return false;
	}
	interrupted->fiber = weft_fiber_here();
	interrupted->realm = interrupted->fiber->realm;
	interrupted->error_reporting = EG(error_reporting);
	interrupted->guards = weft_exit_hide_guards();
	interrupted->fiber->realm = NULL;
	weft_realm_load(NULL);
	if (interrupted->realm != NULL) {
		EG(error_reporting) = weft_error_reporting_of_process();
	}
	return true;
}

/* Handlers cannot wait: the fiber is the same, and nobody else has resumed it. */
static void return_to_realm(const interrupted_code *interrupted)
{
	weft_exit_show_guards(interrupted->guards);
	if (interrupted->realm != NULL) {
		interrupted->fiber->realm = interrupted->realm;
		EG(error_reporting) = interrupted->error_reporting;
		weft_realm_load(interrupted->realm);
	}
}

/* A fatal error has happened when a fiber ended. */
static ZEND_COLD void end_after_switch(void)
{
	weft_realm_exchange(weft_realm_here());
	EG(active_fiber) = NULL;
	zend_bailout();
}

static void (*interrupt_outside)(zend_execute_data *execute_data);

/* PHP interrupts code for signals, and for extensions that look at it from time to time. */
static void interrupt(zend_execute_data *execute_data)
{
	interrupted_code interrupted;
	if (UNEXPECTED(weft_fiber_takes_bailout())) {
		end_after_switch();
	}
	if (interrupt_outside == NULL) {
		return;
	}
	if (!leave_realm(&interrupted)) {
		interrupt_outside(execute_data);
		return;
	}
	interrupt_outside(execute_data);
	return_to_realm(&interrupted);
}

static zif_handler original_pcntl_signal_dispatch;

static ZEND_NAMED_FUNCTION(own_pcntl_signal_dispatch)
{
	interrupted_code interrupted;
	if (!leave_realm(&interrupted)) {
		original_pcntl_signal_dispatch(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	original_pcntl_signal_dispatch(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	return_to_realm(&interrupted);
}

/* After all modules have started, because pcntl calls what was there before, too. */
void weft_signals_replace_functions(void)
{
	static bool is_replaced;
	if (!is_replaced) {
		is_replaced = true;
		interrupt_outside = zend_interrupt_function;
		zend_interrupt_function = interrupt;
	}
	weft_replace_function("pcntl_signal_dispatch", own_pcntl_signal_dispatch, &original_pcntl_signal_dispatch);
}
