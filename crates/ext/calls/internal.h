/* What the files of this folder share: rules, calls in progress, and the state that calls look at. */
#ifndef WEFT_CALLS_INTERNAL_H
#define WEFT_CALLS_INTERNAL_H

#include <php.h>
#include <zend_exceptions.h>
#include <zend_fibers.h>

#if __has_include("ext/pdo/php_pdo_driver.h")
# include "ext/pdo/php_pdo_driver.h"
# define HAVE_PDO_HEADERS 1
#endif

#include "calls.h"

/* --- which calls are wrapped ----------------------------------------------------------------------------------- */

/* Where a call has its handle. */
enum handle_kind {
	HANDLE_EXEMPT,       /* the call is not wrapped: it only reads what the process has in memory */
	HANDLE_NONE,         /* it has none, or one that tasks may share */
	HANDLE_OUTPUTS,      /* as before, and it fills variables that it is given by reference */
	HANDLE_OBJECT,       /* the object */
	HANDLE_CURL_MULTI,   /* the object, which tasks share between calls: a call does not give way to other tasks, the next one does before it begins */
	HANDLE_INNER,        /* what the object wraps, which other objects may wrap as well: the first pointer of its struct */
	HANDLE_MYSQLI,       /* the connection of a mysqli object */
	HANDLE_MYSQLI_STMT,  /* that of its statement */
	HANDLE_MYSQLI_RESULT,/* that of its result */
	HANDLE_MYSQLI_GIVEN, /* that of the mysqli object which a constructor is given */
	HANDLE_PDO,          /* the connection of a PDO, which persistent connections share */
	HANDLE_PDO_NEW,      /* as before, and the object may have methods of its driver */
	HANDLE_PDO_CONNECT,  /* the persistent connection that PDO::connect() returns again, if there is one */
	HANDLE_PDO_STATEMENT,/* that of its statement */
	HANDLE_AMQP,         /* the connection of a channel, queue or exchange */
	HANDLE_AMQP_GIVEN,   /* the connection that the constructor of a channel is given */
	HANDLE_PGSQL,        /* the connection, or the last one that was opened */
	HANDLE_PGSQL_OPENED, /* none before the call, which returns one */
	HANDLE_PGSQL_KEPT,   /* as before, or the persistent connection that the call returns again */
	HANDLE_REDIS,        /* the connection of a Redis object, which objects share without a pool of persistent connections */
	HANDLE_REDIS_KEPT,   /* as before, and the persistent connection that the call returns again */
	HANDLE_RESOURCE,     /* the stream or process of a resource */
	HANDLE_CLOSED,       /* the stream of a resource, and the transfer of curl that has it and in which another task waits */
	HANDLE_PROCESS,      /* the process of a resource, and those of its pipes in which other tasks wait: PHP closes them */
	HANDLE_FILTER,       /* the side of a stream that a filter is on */
	HANDLE_DIRECTORY,    /* the stream of a Directory or of a resource, or the last directory that was opened */
	HANDLE_DIRECTORY_OPENED, /* none before the call, which returns one */
	HANDLE_SESSION,      /* the session of the realm, or that of the process */
	HANDLE_TREE,         /* the document of a node of DOM or SimpleXML */
	HANDLE_TREE_BEHIND,  /* that of an object of DOM which is no node */
	HANDLE_OBJECT_AND_TREE, /* the object, and the document of the node among the arguments */
	HANDLE_SECOND,       /* the stream of the second argument */
	HANDLE_OBJECT_AND_STREAM, /* the object, and the stream among the arguments */
	HANDLE_COPY,         /* two streams: read from the first, written to the second */
	HANDLE_SQLITE,       /* the connection of an SQLite3 object */
	HANDLE_SQLITE_STMT,  /* that of its statement */
	HANDLE_SOAP,         /* the object; see struct soap_variables */
};

/* What two calls must not do to one handle at the same time, unless both are SHARED: such calls exclude all others, but not each other. */
enum side { READ = 1, WRITE = 2, ALL = READ | WRITE, SHARED = 4 };

static zend_always_inline bool excludes(unsigned char one, unsigned char other)
{
	return (one & other & ALL) != 0 && (one & other & SHARED) == 0;
}

struct rule {
	const char *class; /* in lower case, null for functions */
	const char *name;  /* in lower case; a trailing * stands for any ending */
	/* An enum handle_kind and an enum side. */
	unsigned char kind;
	unsigned char side;
};

/* A wrapped function. It is never freed: the classes of users have copies of the methods they inherit. */
struct wrapped {
	zif_handler original;
	/* An enum handle_kind and an enum side. */
	unsigned char kind;
	unsigned char side;
	/* Exceptions of this module are the library's own. */
	const zend_module_entry *module;
	/* Of a function or constructor that takes the object as its first argument: the class whose struct leads to the handle, null where any of the module does. */
	zend_class_entry *class;
	/* Of HANDLE_AMQP: where the object has its connection, 0 until it is known. */
	uint32_t property;
};

/* Whether the handle is a connection of PDO. */
static zend_always_inline bool is_of_pdo(const struct wrapped *function)
{
	return function->kind == HANDLE_PDO || function->kind == HANDLE_PDO_NEW || function->kind == HANDLE_PDO_CONNECT || function->kind == HANDLE_PDO_STATEMENT;
}

/* Whether the call may open a persistent connection, which is the same for all who ask for it. */
static zend_always_inline bool may_open_persistent(const struct wrapped *function)
{
	return function->kind == HANDLE_PDO_NEW || function->kind == HANDLE_PDO_CONNECT || function->kind == HANDLE_PGSQL_KEPT
		|| function->kind == HANDLE_REDIS_KEPT;
}

/*
 * Whether the handle may be another one after the call has begun: an object that connects has its connection only then. A persistent connection that is not
 * alive is closed, and with PDO::ATTR_PERSISTENT the constructor has freed what the object had.
 */
static zend_always_inline bool may_connect(const struct wrapped *function)
{
	return may_open_persistent(function) || function->kind == HANDLE_MYSQLI || function->kind == HANDLE_REDIS;
}

/* --- calls in progress ----------------------------------------------------------------------------------------- */

struct weft_call;

/* A handle that a call uses. */
struct claim {
	void *handle;
	struct weft_call *call;
	/* Another claim to the same handle, while the call is suspended. */
	struct claim *next;
	unsigned char side;
};

/* A value that is bound to a parameter: a stream, or a string of a variable. */
struct bound {
	/* To the stream; its handle is NULL for a string. */
	struct claim claim;
	/* NULL for a stream. */
	zend_string *string;
};

/* A call in progress in a fiber, on the C stack of that fiber. */
struct weft_call {
	struct wrapped *function;
	zend_execute_data *execute_data;
	zend_fiber_context *context;
	/* The call around it in the same fiber. */
	struct weft_call *outer;
	/* Neighbours in the list of calls from which fibers have switched away. */
	struct weft_call *before, *after;
	/* The exception with which a wait ended. */
	zend_object *interruption;
	struct claim claims[2];
	/* The values bound to the parameters of its statement: see bound.c. NULL where there are none. */
	struct bound *bound;
	uint32_t bound_count, bound_room;
	/*
	 * The object that PHP frees, or that is used without a call of a function: `foreach` takes a row of a result, a property of a node is assigned. Both
	 * NULL where a function is called.
	 */
	zend_object *freed, *operand;
	/* The function has no rule: this exists only while it waits, allocated by emalloc(). */
	bool is_unruled;
	/* It has got other handles while it was in progress, so tasks may queue for those that it had. */
	bool has_moved;
	/* Of HANDLE_SOAP, unless it is nested in a call that has them. */
	struct soap_copies *soap;
	int error_reporting;
	bool is_suspended;
	/* A wait of libc is suspended, and not a callback: nothing but C frames is between the wait and this call. */
	bool waits;
	/* The fiber has been resumed in order to be destroyed. */
	bool is_destroyed;
};

struct weft_calls {
	/* The first of the calls from which fibers have switched away. */
	struct weft_call *suspended;
	/* Releases that wait until handles are free. */
	struct deferred_release *deferred;
	/* The claims of the suspended calls, by handle. */
	HashTable claims;
	/* How many tasks wait for their turn to read, and how many to write, by handle. Tasks that wait for both count twice. */
	HashTable waiters;
	/* Calls that are suspended, and calls that wait for their turn: while there is none, every call may start. */
	uint32_t pending;
	/* The connection that functions of pgsql use when they are given none. */
	void *last_pgsql_connection;
	/* The directory that readdir() and its like use when they are given none. */
	php_stream *last_directory;
	/* An error is being described: calls on the handle that is in use are let through. */
	bool is_describing;
	/* After a fatal error: calls end with a bailout. */
	bool is_abandoning;
};

extern WEFT_HIDDEN struct weft_calls weft_calls;

static zend_always_inline struct weft_call *innermost(void)
{
	return weft_fiber_of(EG(current_fiber_context))->call;
}

static zend_always_inline zend_ulong key(void *handle)
{
	/* The lowest bits of a pointer are all zero; a hash table uses them first. */
	return ((zend_ulong) handle >> 4) | ((zend_ulong) handle << (sizeof(zend_ulong) * 8 - 4));
}

/* The handle of a key. */
static zend_always_inline void *handle_at(zend_ulong key)
{
	return (void *) ((key << 4) | (key >> (sizeof(zend_ulong) * 8 - 4)));
}

static zend_always_inline void begin(struct weft_call *call, struct wrapped *function)
{
	call->interruption = NULL;
	call->function = function;
	call->freed = call->operand = NULL;
	call->is_unruled = call->has_moved = false;
	call->soap = NULL;
	call->bound = NULL;
	call->bound_count = call->bound_room = 0;
	call->is_suspended = call->waits = call->is_destroyed = false;
}

/* --- rules.c --------------------------------------------------------------------------------------------------- */

void weft_rules_startup(void);

/* Whether the class itself has rules, not one that it descends from. In lower case. */
bool weft_has_rules(const char *class);

/* The rule for a method of a class that has rules, or for a function where `class` is NULL; null if it is not wrapped. In lower case. */
const struct rule *weft_rule_of(const char *class, const zend_string *name);

/* The rule for the release of the objects of a class; null if they are not guarded. */
const struct rule *weft_rule_of_guarded(const zend_class_entry *class);

/* A function of the module is wrapped. */
void weft_rules_apply_to(const zend_module_entry *module);

/* Whether a function of the module that is not wrapped may suspend its task. */
bool weft_extension_may_suspend(const zend_module_entry *module);

/* --- handle.c, for handle.h ------------------------------------------------------------------------------------ */

void *weft_amqp_connection(struct wrapped *function, zend_object *object);

/* --- persistent.c ---------------------------------------------------------------------------------------------- */

/*
 * Claims the persistent connection that the call opens, where there is one, and its name: an open connection is asked whether it is alive, and of two
 * that are opened under one name PHP closes the first.
 */
void weft_claim_persistent_connection(struct weft_call *call, struct wrapped *function);

/* --- claims.c -------------------------------------------------------------------------------------------------- */

void weft_claims_startup(void);
void weft_claims_request_startup(void);
void weft_claims_request_shutdown(void);

/* The first pipe in which another fiber waits of a process of proc_open(); NULL if there is none, and of other resources. */
void *weft_pipe_in_use(const zend_resource *resource);

/* The handle of the transfer in which another fiber waits and that has the stream in the first argument; NULL if there is none. */
void *weft_transfer_in_use(zend_execute_data *execute_data);

/* The sides of a handle in which calls of other fibers wait. */
unsigned char weft_sides_in_use(const void *handle);

/* Whether calls of other fibers wait in the handle, or calls in progress in this fiber use it. */
bool weft_is_in_use(const void *handle);

/* --- bound.c --------------------------------------------------------------------------------------------------- */

/* Keeps what is bound to the parameters of the statement that the call executes. To be called each time it is suspended. */
void weft_bound_keep(struct weft_call *call);

/* To be called when the call has ended. */
void weft_bound_release(struct weft_call *call);

/* --- turns.c --------------------------------------------------------------------------------------------------- */

void weft_turns_startup(void);
void weft_turns_request_shutdown(void);

/* Whether the call may start. If not, an exception is pending. */
zend_never_inline bool weft_is_admitted(struct weft_call *call);

/* As weft_is_admitted(), but the call is refused where it would have to wait for its turn. */
zend_never_inline bool weft_is_admitted_at_once(struct weft_call *call);

/*
 * Lets the first of the tasks that wait for a handle of this call go on: one for each side that is free. An exception of the call stays pending.
 * Nothing is free while a call around this one uses the handle.
 */
zend_never_inline void weft_give_turn(struct weft_call *call);

/* --- refusal.c ------------------------------------------------------------------------------------------------- */

/* Throws HandleInUseError. */
void weft_refuse(struct weft_call *call, struct weft_call *holder);

/* The handle as code of PHP knows it, or its name where PHP has no value for it, and what it is connected to where only PHP's structs tell. */
void weft_describe_handle(zval *value, zval *target, const struct weft_call *call);

/* Calls a method of Weft\Runtime\Internal\SharedHandles, whose name is in lower case. */
void weft_call_shared_handles(const char *name, zval *result, uint32_t count, zval *arguments);

/* --- soap.c ---------------------------------------------------------------------------------------------------- */

void weft_soap_find(void);

/* Keeps the variables of ext/soap for the call. False where they are not known: the call must not overlap with others. */
zend_never_inline bool weft_soap_separate(struct weft_call *call);
void weft_soap_suspend(struct weft_call *call);
void weft_soap_resume(struct weft_call *call);

/* --- pdo.c ----------------------------------------------------------------------------------------------------- */

void weft_pdo_startup(void);

#ifdef HAVE_PDO_HEADERS
/* The key under which PDO keeps the persistent connection that the call opens. Null where it opens none. */
zend_string *weft_pdo_key(zend_execute_data *execute_data);

/* The handle and the target of a call of PDO, for weft_describe_handle(). */
void weft_describe_pdo(zval *value, zval *target, const struct weft_call *call);

/* A stream of a large object, whose reads and writes are requests of its connection. */
void weft_claim_connection_of_large_object(struct claim *claim, zend_execute_data *execute_data, uint32_t number);

/* A statement has moved, whose parameters and columns point to it. */
void weft_statement_moved(pdo_stmt_t *statement);
#else
# define weft_pdo_key(execute_data) NULL
# define weft_describe_pdo(value, target, call) ((void) 0)
# define weft_claim_connection_of_large_object(claim, execute_data, number) ((void) 0)
# define weft_statement_moved(statement) ((void) 0)
#endif

ZEND_NAMED_FUNCTION(weft_call_pdo_construct);
ZEND_NAMED_FUNCTION(weft_call_pdo_connect);

/* --- release.c ------------------------------------------------------------------------------------------------- */

void weft_release_startup(void);
void weft_release_request_startup(void);
void weft_release_request_shutdown(void);

/* The release of the objects of a class is a call from now on, where its rules say so. */
void weft_guard_class(zend_class_entry *class);

/* Frees the objects and resources of deferred releases whose handles are free. An exception stays pending. */
zend_never_inline void weft_release_deferred(void);

/* --- iterate.c ------------------------------------------------------------------------------------------------- */

/* A step of an iterator over an object of the class is a call from now on, where its rules say so. */
void weft_iterate_class(zend_class_entry *class);

/* --- trees.c --------------------------------------------------------------------------------------------------- */

/* Assignments to properties of the class's objects are checked from now on, where they change a document. */
void weft_tree_class(zend_class_entry *class);

/* To be called when an event loop starts. */
void weft_trees_find_handlers(void);

/* The address that stands for the document of a node; NULL for other objects. */
void *weft_tree_of(zend_object *object);

/* The document of a node among the arguments in which another fiber waits, and which is not this one; NULL if there is none. */
void *weft_other_tree_in_use(zend_execute_data *execute_data, const void *document);

/* --- call.c ---------------------------------------------------------------------------------------------------- */

/* The handler of wrapped functions. */
ZEND_NAMED_FUNCTION(weft_call_function);
ZEND_NAMED_FUNCTION(weft_call_pgsql_connect);
ZEND_NAMED_FUNCTION(weft_call_opendir);

/*
 * Finds the handles of the call again: while the task was suspended, an object may have got another connection, or none. Those of an object that is being
 * freed stay as they are.
 */
void weft_find_handles(struct weft_call *call);

/* Makes the call throw what has interrupted it. */
zend_never_inline void weft_end_interrupted(struct weft_call *call);

/* --- wait.c ---------------------------------------------------------------------------------------------------- */

/* Resumes the fibers whose libraries wait. The wait fails, the library returns to the wrapper, and the fiber ends there: no code of PHP runs. */
void weft_abandon_waits(void);

/* --- wrap.c ---------------------------------------------------------------------------------------------------- */

void weft_wrap_startup(void);

/* What the wrapper has to know of a function. */
struct wrapped *weft_wrapped_function(const zend_internal_function *function, const struct rule *rule, const zend_module_entry *module);

#endif
