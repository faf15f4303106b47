/* mcp.h - the Model Context Protocol for a server, in both of its eras. What an
 * application sees of it: it gives a table of methods, and answers calls.
 *
 * Legacy revisions (2024-11-05 to 2025-11-25) begin with `initialize` and keep a
 * session; the modern one (2026-07-28) says in each request what it is. The era is
 * chosen for each message, and a handler need not know it.
 *
 * One thread. A handler may answer at once or later; it owns its call until it has
 * answered, whatever becomes of the client in between. Texts are borrowed for the
 * time of the call, unless it says otherwise. */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/json_read.h"
#include "os/loop.h"
#include "skillsandbox.h"

struct mcp_server;
struct mcp_call;

typedef void mcp_handler(void *app, struct mcp_call *call);

enum mcp_method_flag {
	MCP_CACHED = 1, /* its result may be kept: gets ttlMs and cacheScope */
	MCP_ASKS = 2,   /* its handler may ask the client (mcp_ask) */
	MCP_MODERN = 4, /* only in the modern era */
	MCP_LEGACY = 8, /* only in the legacy era */
};

/* A method that the application answers: tools/list, tools/call, resources/list,
 * resources/read, resources/templates/list, prompts/list, prompts/get,
 * completion/complete, and those of extensions. What belongs to the protocol
 * (initialize, ping, server/discover, logging/setLevel, resources/subscribe and
 * unsubscribe, subscriptions/listen, those of tasks, notifications) is answered here. */
struct mcp_method {
	const char *name;
	mcp_handler *handle;
	unsigned flags;
};

enum mcp_feature {
	MCP_TOOLS = 1,
	MCP_RESOURCES = 2,
	MCP_PROMPTS = 4,
	MCP_COMPLETIONS = 8,
	MCP_LOGGING = 16,
	MCP_SUBSCRIBE = 32, /* to resources */
	MCP_TOOLS_CHANGE = 64,
	MCP_RESOURCES_CHANGE = 128,
	MCP_PROMPTS_CHANGE = 256,
	MCP_TASKS = 512, /* the tasks extension */
};

/* What the application is; borrowed for the life of the server. */
struct mcp_app {
	const char *name;
	const char *title;
	const char *version;
	const char *instructions;
	unsigned features;
	const char *extensions; /* members of capabilities.extensions, JSON; NULL: none */
	const struct mcp_method *methods;
	size_t n_methods;
	uint64_t ttl_ms; /* of what may be kept */
	void *arg;       /* for the handlers */
	/* Whoever was this principal is gone for good; NULL: not wanted. */
	void (*gone)(void *arg, const char *principal);
};

int mcp_server_new(struct loop *loop, const struct mcp_app *app, struct mcp_server **ret,
                   struct ssb_error *err);
/* Calls that are under way are canceled, and must be answered all the same before
 * this returns; transports are closed first by their owners. Accepts NULL. */
void mcp_server_free(struct mcp_server *s);
/* No more news: each subscription gets its answer. Before the transports are closed. */
void mcp_server_end(struct mcp_server *s);

/* ---- a call: what was asked ------------------------------------------------- */

enum mcp_era { MCP_ERA_LEGACY, MCP_ERA_MODERN };

const struct json_doc *mcp_doc(const struct mcp_call *c);
const struct json_node *mcp_param(const struct mcp_call *c, const char *);   /* a member; NULL */
const struct json_node *mcp_meta(const struct mcp_call *c, const char *key); /* of _meta; NULL */
/* Who asks, for what is bound to one client: the connection, the legacy session, or
 * (modern, HTTP) whoever holds the token, be they one client or many. Stable for the
 * life of that; never NULL. */
const char *mcp_principal(const struct mcp_call *c);
const char *mcp_client_name(const struct mcp_call *c); /* as it says itself; "" */

enum mcp_ability { MCP_CAN_ELICIT, MCP_CAN_SAMPLE, MCP_CAN_LIST_ROOTS };
bool mcp_can(const struct mcp_call *c, enum mcp_ability what);
bool mcp_has_extension(const struct mcp_call *c, const char *name); /* of the client */

/* Told once, where the client canceled the call or is gone (at once, where that has
 * been so already). The call still is to be answered, soon, and may be from inside of
 * it; nobody will hear it. NULL takes it back, and so does mcp_wait(). */
void mcp_on_cancel(struct mcp_call *c, void (*fn)(void *arg), void *arg);

/* ---- a call: the answer. Each of these is its end, but mcp_result() ---------- */

/* The result's object, open, with what the era wants in it already there; write the
 * other members, then mcp_done(). */
struct json *mcp_result(struct mcp_call *c);
void mcp_done(struct mcp_call *c);

enum mcp_code {
	MCP_E_PARSE = -32700,
	MCP_E_REQUEST = -32600,
	MCP_E_METHOD = -32601,
	MCP_E_PARAMS = -32602,
	MCP_E_INTERNAL = -32603,
	MCP_E_RESOURCE = -32002,   /* legacy: not found. Modern: becomes MCP_E_PARAMS */
	MCP_E_HEADER = -32020,     /* modern, HTTP: a header differs from the body */
	MCP_E_CAPABILITY = -32021, /* modern: the client has not declared what is needed */
	MCP_E_VERSION = -32022,    /* modern: not supported */
};
void mcp_fail(struct mcp_call *c, enum mcp_code code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* With `data`, one finished JSON value. */
void mcp_fail_data(struct mcp_call *c, enum mcp_code code, const char *data, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* ---- on the way ------------------------------------------------------------- */

/* Nothing, unless the client wants to hear of it. `total` 0: unknown. `message` may
 * be NULL; it is data: what is in it must be visible text already. */
bool mcp_wants_progress(const struct mcp_call *c);
void mcp_progress(struct mcp_call *c, uint64_t progress, uint64_t total, const char *message);

enum mcp_level {
	MCP_DEBUG,
	MCP_INFO,
	MCP_NOTICE,
	MCP_WARNING,
	MCP_ERROR,
	MCP_CRITICAL,
	MCP_ALERT,
	MCP_EMERGENCY
};
/* `data` is one finished JSON value. */
void mcp_log(struct mcp_call *c, enum mcp_level level, const char *logger, const char *data);

/* The client has waited long enough: where it declared the tasks extension the call
 * becomes a task now, and its result is for tasks/get. False: it did not, and nothing
 * has changed. The handler goes on as before, either way. */
bool mcp_become_task(struct mcp_call *c, const char *message);

/* ---- asking the client ------------------------------------------------------- *
 *
 * A handler looks for the answers that it needs (mcp_answer). Where one is missing
 * it asks for it (mcp_ask, as often as needed) and leaves by mcp_wait(). When the
 * answers are there, it is called anew from the start: in the legacy era with the
 * same call, in the modern one with the client's retry. So it holds nothing across
 * mcp_wait() but `state`, which is authenticated, bound to the method, its parameters
 * and the principal, good for a short time, and good once. The answers of earlier
 * rounds are there in each later one; one that is canceled in between never comes. */

enum mcp_answer {
	MCP_UNASKED, /* or asked, and the client has sent no answer to it */
	MCP_ANSWERED,
	MCP_REFUSED, /* the client answered with an error, or cannot be asked */
};
/* *ret_answer is the client's result: {"action":"accept","content":{...}}. */
enum mcp_answer mcp_answer(const struct mcp_call *c, const char *key,
                           const struct json_node **ret_answer);
const char *mcp_state(const struct mcp_call *c); /* of mcp_wait(); NULL: the first time */

/* `method` is elicitation/create, sampling/createMessage or roots/list; `params` one
 * finished JSON object. Only what mcp_can(): anything else is refused (legacy), or is
 * the end of the call, MCP_E_CAPABILITY (modern). */
void mcp_ask(struct mcp_call *c, const char *key, const char *method, const char *params);
void mcp_wait(struct mcp_call *c, const char *state);

/* ---- elsewhere --------------------------------------------------------------- *
 *
 * What takes long can be answered in a process that is forked from the server for it.
 * There mcp_call_away() comes first: the answer, and what is told on the way, then go to
 * `to` (borrowed) and to nobody else. Here mcp_call_back() is the end of the call, with
 * these bytes. Such a handler asks the client nothing. */

void mcp_call_away(struct mcp_call *c, struct buf *to);
/* -1: they are no answer; the call is as it was. */
int mcp_call_back(struct mcp_call *c, const char *data, size_t len);

/* ---- news -------------------------------------------------------------------- */

void mcp_resource_updated(struct mcp_server *s, const char *uri);
/* MCP_TOOLS, MCP_RESOURCES or MCP_PROMPTS: the list of them has changed. */
void mcp_list_changed(struct mcp_server *s, enum mcp_feature what);
/* Somebody wants to hear of it. */
bool mcp_resource_wanted(const struct mcp_server *s, const char *uri);

#endif
