/*
 * header() and its like outside of realms, in a process that serves requests: nothing that a task does by these functions would reach a client, and a session would
 * be that of all requests. Code that runs before or beside the tasks, such as a bootstrap, is left alone.
 */
#include "switch.h"
#include "functions/functions.h"

static bool is_refused(void)
{
	return UNEXPECTED(realms.refuses_headers) && EG(active_fiber) != NULL && weft_realm_here() == NULL;
}

static void refuse(const char *name)
{
	zend_throw_error(NULL, "%s() has no effect on a response outside of a realm: return header fields and status in the Response, or serve the application by "
		"Weft\\Http\\RealmHandler or Weft\\Bridge\\Symfony\\SymfonyHandler, which give each request a realm", name);
}

#define CHANGES_RESPONSE(name, is_change) \
	static zif_handler original_##name; \
	static ZEND_NAMED_FUNCTION(own_##name) \
	{ \
		if (is_refused() && (is_change)) { \
			refuse(#name); \
		} else { \
			original_##name(INTERNAL_FUNCTION_PARAM_PASSTHRU); \
		} \
	}

CHANGES_RESPONSE(header, true)
CHANGES_RESPONSE(setcookie, true)
CHANGES_RESPONSE(setrawcookie, true)
/* Without an argument it only reads. */
CHANGES_RESPONSE(http_response_code, ZEND_NUM_ARGS() != 0)
CHANGES_RESPONSE(session_start, true)
CHANGES_RESPONSE(session_regenerate_id, true)

void weft_response_replace_functions(void)
{
	weft_replace_function("header", own_header, &original_header);
	weft_replace_function("setcookie", own_setcookie, &original_setcookie);
	weft_replace_function("setrawcookie", own_setrawcookie, &original_setrawcookie);
	weft_replace_function("http_response_code", own_http_response_code, &original_http_response_code);
	weft_replace_function("session_start", own_session_start, &original_session_start);
	weft_replace_function("session_regenerate_id", own_session_regenerate_id, &original_session_regenerate_id);
}
