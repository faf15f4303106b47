/* mcp.h - a server of the Model Context Protocol, in both of its eras. The application gives the
 * server a table of methods, and answers calls.
 *
 * Legacy revisions (2024-11-05 to 2025-11-25) begin with `initialize` and keep a session. In the
 * modern revision (2026-07-28) each request carries its own version and capabilities. The era is
 * determined for each message; a handler does not need to know it.
 *
 * Everything runs in one thread. A handler may answer at once or later. It owns its call until
 * it has answered the call, even if the client is gone. Texts are borrowed for the duration of
 * the function call, unless a comment says otherwise. */
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
	MCP_CACHED = 1, /* the client may cache the result; ttlMs and cacheScope are added */
	MCP_ASKS = 2,   /* the handler may ask the client questions (mcp_ask) */
	MCP_MODERN = 4, /* exists only in the modern era */
	MCP_LEGACY = 8, /* exists only in the legacy era */
};

/* A method that the application answers. It may be tools/list, tools/call, resources/list,
 * resources/read, resources/templates/list, prompts/list, prompts/get, completion/complete, or a
 * method of an extension. This library answers all other methods itself: initialize, ping,
 * server/discover, logging/setLevel, resources/subscribe and unsubscribe, subscriptions/listen, the
 * tasks methods, and notifications. */
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
	MCP_SUBSCRIBE = 32, /* clients can subscribe to resources */
	MCP_TOOLS_CHANGE = 64,
	MCP_RESOURCES_CHANGE = 128,
	MCP_PROMPTS_CHANGE = 256,
	MCP_TASKS = 512, /* the tasks extension */
};

/* Describes the application. Borrowed until the server is freed. */
struct mcp_app {
	const char *name;
	const char *title;
	const char *version;
	const char *instructions;
	unsigned features;
	const char *extensions; /* JSON members for capabilities.extensions; NULL: none */
	const struct mcp_method *methods;
	size_t n_methods;
	uint64_t ttl_ms; /* time in which a client may use an MCP_CACHED result again */
	void *arg;       /* first argument of the handlers */
	/* Called when a principal will not come back; may be NULL. */
	void (*gone)(void *arg, const char *principal);
};

int mcp_server_new(struct loop *loop, const struct mcp_app *app, struct mcp_server **ret,
                   struct ssb_error *err);
/* Frees the server. The transports must be closed before. Cancels the running calls; their handlers
 * must answer before this function returns. Accepts NULL. */
void mcp_server_free(struct mcp_server *s);
/* Answers every open subscription; no news is sent afterwards. Must be called before the
 * transports are closed. */
void mcp_server_end(struct mcp_server *s);

/* ---- a call: the request ---------------------------------------------------- */

enum mcp_era { MCP_ERA_LEGACY, MCP_ERA_MODERN };

const struct json_doc *mcp_doc(const struct mcp_call *c);
/* Returns a member of the parameters; NULL: there is none. */
const struct json_node *mcp_param(const struct mcp_call *c, const char *);
const struct json_node *mcp_meta(const struct mcp_call *c, const char *key); /* a member of _meta */
/* Identifies the client, for data that is bound to one client. It names the connection, the legacy
 * session or, over modern HTTP, the holder of the token; several clients may have the same token.
 * Stable as long as that connection, session or token exists. Never NULL. */
const char *mcp_principal(const struct mcp_call *c);
/* Returns the name that the client gives itself, or "". */
const char *mcp_client_name(const struct mcp_call *c);

enum mcp_ability { MCP_CAN_ELICIT, MCP_CAN_SAMPLE, MCP_CAN_LIST_ROOTS };
bool mcp_can(const struct mcp_call *c, enum mcp_ability what);
/* Returns whether the client declared the extension. */
bool mcp_has_extension(const struct mcp_call *c, const char *name);

/* Sets a function that is called once when the client cancels the call or is gone. If that has
 * happened already, it is called at once. The handler must still answer the call soon, and may do
 * so inside of `fn`; the answer is not sent. NULL removes the function, and mcp_wait() does so,
 * too. */
void mcp_on_cancel(struct mcp_call *c, void (*fn)(void *arg), void *arg);

/* ---- a call: the answer. Each of these functions except mcp_result() ends the call -------- */

/* Begins the result, and returns its open JSON object, which already contains the members that the
 * era requires. Write the other members, then call mcp_done(). */
struct json *mcp_result(struct mcp_call *c);
void mcp_done(struct mcp_call *c);

enum mcp_code {
	MCP_E_PARSE = -32700,
	MCP_E_REQUEST = -32600,
	MCP_E_METHOD = -32601,
	MCP_E_PARAMS = -32602,
	MCP_E_INTERNAL = -32603,
	MCP_E_RESOURCE = -32002,   /* legacy: resource not found; modern: sent as MCP_E_PARAMS */
	MCP_E_HEADER = -32020,     /* modern HTTP: a header differs from the body */
	MCP_E_CAPABILITY = -32021, /* modern: the client has not declared a required capability */
	MCP_E_VERSION = -32022,    /* modern: unsupported protocol version */
};
void mcp_fail(struct mcp_call *c, enum mcp_code code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Like mcp_fail(), with `data`: one finished JSON value. */
void mcp_fail_data(struct mcp_call *c, enum mcp_code code, const char *data, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* ---- while a call runs ------------------------------------------------------ */

/* Progress is sent only if the client asked for it. `total` 0: unknown. `message` may be NULL; the
 * caller must have made its characters visible. */
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
/* Sends a log message to the client. `data` is one finished JSON value. */
void mcp_log(struct mcp_call *c, enum mcp_level level, const char *logger, const char *data);

/* Should be called when the client has waited long enough. If the client declared the tasks
 * extension, the call becomes a task, and the client gets the result with tasks/get. Otherwise
 * returns false and changes nothing. In both cases the handler continues as before. */
bool mcp_become_task(struct mcp_call *c, const char *message);

/* ---- questions to the client --------------------------------------------------
 *
 * A handler looks for the answers that it needs (mcp_answer). If answers are missing, it asks for
 * them (mcp_ask, once for each question), calls mcp_wait() and returns. When the answers have come,
 * the handler is called again from its start: in the legacy era for the same call, in the modern
 * era for the client's retry of the request. Between the two calls of the handler, only `state` is
 * kept. It is authenticated; it is bound to the method, its parameters and the principal; and it is
 * valid only once, for a short time. In each round the answers of all earlier rounds are available.
 * If the client cancels the call before it answers, the handler is not called again. */

enum mcp_answer {
	MCP_UNASKED, /* not asked yet, or the client sent no answer to it */
	MCP_ANSWERED,
	MCP_REFUSED, /* the client answered with an error, or cannot be asked this */
};
/* *ret_answer is the result from the client: {"action":"accept","content":{...}}. */
enum mcp_answer mcp_answer(const struct mcp_call *c, const char *key,
                           const struct json_node **ret_answer);
/* Returns the state that was given to mcp_wait(); NULL in the first round. */
const char *mcp_state(const struct mcp_call *c);

/* Adds a question. `method` is elicitation/create, sampling/createMessage or roots/list; `params`
 * is one finished JSON object. Call it only if mcp_can() allows this method: otherwise the question
 * is refused (legacy) or the call ends with MCP_E_CAPABILITY (modern). */
void mcp_ask(struct mcp_call *c, const char *key, const char *method, const char *params);
void mcp_wait(struct mcp_call *c, const char *state);

/* ---- answering in a child process ---------------------------------------------
 *
 * The server can fork a child to answer a slow call. The child calls mcp_call_away() first: its
 * answer, progress and log messages are then written to `to` (borrowed) and not sent to the client.
 * The parent passes these bytes to mcp_call_back(), which ends the call. Such a handler must not
 * ask the client. */

void mcp_call_away(struct mcp_call *c, struct buf *to);
/* Sends the messages in `data`. Returns -1 if the bytes are not an answer; the call is then
 * unchanged. */
int mcp_call_back(struct mcp_call *c, const char *data, size_t len);

/* ---- news -------------------------------------------------------------------- */

void mcp_resource_updated(struct mcp_server *s, const char *uri);
/* Tells clients that a list has changed: `what` is MCP_TOOLS, MCP_RESOURCES or MCP_PROMPTS. */
void mcp_list_changed(struct mcp_server *s, enum mcp_feature what);
/* Returns whether a client has subscribed to the resource. */
bool mcp_resource_wanted(const struct mcp_server *s, const char *uri);

#endif
