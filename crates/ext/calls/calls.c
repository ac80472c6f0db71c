/*
 * Wrappers around internal functions and methods that may suspend a task while C frames of a library lie below it: PDO::query(),
 * curl_exec(), fread() …
 *
 * The handler of each such function is replaced by weft_call_function(), which does three things the libraries cannot do themselves:
 *
 * - While one task waits in a call, another task's use of the same handle throws HandleInUseError, or waits for its turn. Unguarded, the second
 *   command would be written into the middle of the first one's answer.
 * - A cancellation that arrives while the call waits is what the call throws. Libraries wrap it into an exception of their own, or turn it
 *   into a warning and false.
 * - After a fatal error, calls that still wait return before PHP frees their handles.
 *
 * A call that does not suspend costs a struct on the C stack: nothing is allocated or hashed. Only when a fiber switches away from a call are the
 * handles that it uses entered in a table. The struct is plain data, because a fatal error jumps over it.
 *
 * rules.c     which functions and methods are wrapped, and which objects are guarded
 * wrap.c      puts the wrappers in the place of their handlers
 * call.c      the wrapper
 * handle.h    where a call has its handle
 * claims.c    the handles of suspended calls, entered and struck out when PHP switches fibers
 * turns.c     whether a call may start, and the tasks that wait for their turn
 * refusal.c   HandleInUseError
 * wait.c      the waits of libc inside of a call, and their interruption
 * release.c   objects that are freed, which may be a request on their connection
 * iterate.c   `foreach` over results, which reads rows from their connection
 * bound.c     what is bound to the parameters of statements
 * trees.c     nodes of DOM and SimpleXML, whose properties change their document
 * pdo.c       what is special about PDO
 * soap.c      the variables of ext/soap
 */
#include "internal.h"

struct weft_calls weft_calls;

bool weft_calls_startup(void)
{
	if (!weft_fiber_startup()) {
		return false;
	}
	weft_rules_startup();
	weft_claims_startup();
	weft_turns_startup();
	weft_pdo_startup();
	weft_release_startup();
	weft_wrap_startup();
	return true;
}

void weft_calls_request_startup(void)
{
	if (weft_slot >= 0) {
		weft_calls.pending = 0;
		weft_claims_request_startup();
		weft_release_request_startup();
	}
}

void weft_calls_request_shutdown(void)
{
	if (weft_slot < 0) {
		return;
	}
	if (CG(unclean_shutdown)) {
		weft_abandon_waits();
	}
	weft_calls.pending = 0;
	weft_calls.last_pgsql_connection = NULL;
	weft_calls.last_directory = NULL;
	weft_calls.is_describing = false;
	weft_release_request_shutdown();
	weft_claims_request_shutdown();
	weft_turns_request_shutdown();
}
