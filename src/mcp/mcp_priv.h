/* mcp_priv.h - declarations that the files of the protocol share: servers, peers, calls.
 *
 * Memory: a call exists until its handler has answered it, and until then its peer and its server
 * exist, too. If the client is gone, the call only loses its `out`. mcp_peer_free() unlinks a peer;
 * its memory is freed after its last call.
 *
 * A function that this code calls outside of the protocol (send, end, a handler, on_cancel)
 * may call any function of the protocol again, and may even free the peer. After such a call,
 * this code may use only objects to which it has a reference. */
#ifndef MCP_PRIV_H
#define MCP_PRIV_H

#include <sys/queue.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "mcp/link.h"
#include "mcp/mcp.h"

struct state_store; /* state.h: sealed requestState */
struct subs;        /* subs.h: subscriptions */
struct task_store;  /* task.h: calls that became tasks */
struct task;
struct ask;

struct mcp_server {
	struct loop *loop; /* borrowed */
	const struct mcp_app *app;
	LIST_HEAD(mcp_peers, mcp_peer) peers;
	size_t n_calls;    /* calls of all peers, also of peers that are gone */
	size_t weight;     /* bytes of the messages of all running calls */
	bool freed;        /* freed by its owner; the end of the last call frees the memory */
	uint64_t last_ask; /* id of the last request that was sent to a client */
	struct state_store *states;
	struct subs *subs;
	struct task_store *tasks;
};

struct mcp_peer {
	struct mcp_server *server;
	LIST_ENTRY(mcp_peer) link; /* links the server's peers, until this peer is gone */
	unsigned refs;             /* one for its owner, one for each call */
	bool gone;
	char *principal;
	struct mcp_out *news; /* borrowed; NULL: news is dropped */
	LIST_HEAD(mcp_call_list, mcp_call) calls;
	size_t n_calls;
	uint64_t told; /* number of the last piece of news that was sent (subs.c) */
	size_t weight; /* bytes of the messages of its running calls */

	/* The state of the peer's legacy session. */
	const char *version; /* static; NULL: not initialized */
	enum mcp_level level;
	unsigned abilities; /* bits 1 << enum mcp_ability */
	char *client_name;  /* NULL: the client gave none */
	char *extensions;   /* names, each with a newline: "a\nb\n"; NULL: none */
};

/* An answer of the client, or the fact that it refused. */
struct kept_answer {
	char *key;
	bool refused;
	uint32_t node; /* index of the answer in the call's doc */
	char *text;    /* JSON text of the answer; NULL: it is in the message's text */
};

enum mcp_call_phase {
	CALL_RUNNING, /* the handler has the call */
	CALL_WAITING, /* waits for answers of the client; the handler does not have the call */
	CALL_ENDED,   /* answered; freed when no function on the stack uses the call */
};

struct mcp_call {
	struct mcp_server *server;
	struct mcp_peer *peer;
	LIST_ENTRY(mcp_call) link; /* links the peer's calls */
	struct mcp_out *out;       /* NULL: the client is gone or has its answer */
	struct mcp_message m;
	enum mcp_era era;
	const char *version;          /* static */
	const struct mcp_method *row; /* NULL: refused before the method was found */
	enum mcp_call_phase phase;
	unsigned holds; /* number of functions on the stack that use the call */
	bool running;   /* the handler is on the stack */
	bool again;     /* call the handler again after it returns */
	bool canceled;
	bool answered; /* its response is being sent */
	size_t weight;

	void (*on_cancel)(void *arg);
	void *on_cancel_arg;

	struct buf text; /* text of the response */
	struct json json;
	size_t body_at;    /* offset of the result's or error's object; 0: not begun */
	bool failed;       /* the response is an error */
	uint64_t progress; /* progress value that was sent last */
	bool progressed;

	struct ask *asks; /* the questions of this round */
	size_t n_asks;
	struct kept_answer *answers;
	size_t n_answers;
	unsigned rounds;
	char *state; /* given to mcp_wait(); NULL: none yet */

	struct json_doc defaults; /* default values of the tool's arguments (tools.c) */
	size_t answer_bytes;      /* bytes of the answers of all rounds */

	/* Set by mcp_become_task() before mcp_call_detach(). If it is set, messages go to
	 * task_ended() and task_waits(), and not to `out`. */
	struct task *task;
};

/* ---- notifications ----------------------------------------------------------- */

/* Sends {"jsonrpc":"2.0","method":METHOD,"params":PARAMS}. `params` is one finished JSON object, or
 * NULL. Sends nothing if the client is gone. */
void mcp_call_notify(struct mcp_call *c, const char *method, const char *params);
void mcp_peer_notify(struct mcp_peer *p, const char *method, const char *params);

/* ---- servers and peers --------------------------------------------------------- */

void mcp_peer_unref(struct mcp_peer *p);
void mcp_server_drop_call(struct mcp_server *s); /* may free the server */

/* Returns the capabilities that a client declares, as bits 1 << enum mcp_ability. */
unsigned mcp_client_abilities(const struct json_doc *doc, const struct json_node *capabilities);

/* ---- calls ------------------------------------------------------------------- */

/* Makes a call, links it and counts it. Takes the message. Returns NULL if there is no memory; the
 * message is then unchanged. */
struct mcp_call *mcp_call_new(struct mcp_peer *p, struct mcp_out *out, struct mcp_message *m);
/* Keeps the call in memory, even after its end, until mcp_call_release(). */
void mcp_call_hold(struct mcp_call *c);
void mcp_call_release(struct mcp_call *c);
/* Sends c->text and ends the call. */
void mcp_call_respond(struct mcp_call *c, int status);
void mcp_call_drop(struct mcp_call *c); /* ends the call without a response */
/* Gives a call to another peer. The call must have become a task, and no connection may wait for
 * it. */
void mcp_call_move(struct mcp_call *c, struct mcp_peer *heir);
/* Ends the call with an error before a handler was called. The HTTP status is 400, or 503 if the
 * server has too much to do. */
void mcp_call_refuse(struct mcp_call *c, enum mcp_code code, const char *why, const char *data);
/* Calls the handler, for the first time or again. The call may be freed before this returns. */
void mcp_call_run(struct mcp_call *c);
/* Must be called when the client no longer waits: calls out->end() if there is an `out`, and
 * on_cancel once. A call that waits for answers ends at once. The call may be freed before this
 * returns. */
void mcp_call_cancel(struct mcp_call *c);
/* Must be called when all questions have answers. Calls the handler again. */
void mcp_call_resume(struct mcp_call *c);
/* For mcp_become_task(): sends the finished result {"resultType":"task",...}. The call continues
 * without `out`. */
void mcp_call_detach(struct mcp_call *c, const char *result);
/* Writes the beginning of a response to this call. The result must be written next. */
void mcp_call_begin_response(const struct mcp_call *c, struct json *j);
/* Begins the response in c->text, and returns the JSON writer with the object of the result open.
 */
struct json *mcp_call_begin_result(struct mcp_call *c, const char *type, bool cached);
/* Writes the members that the era requires into an open result. `type` is "complete", for example.
 */
void mcp_call_write_result_head(const struct mcp_call *c, struct json *j, const char *type,
                                bool cached);

/* ---- asking ------------------------------------------------------------------ */

struct ask {
	char *key;
	const char *method; /* static */
	char *params;
	uint64_t id;   /* legacy: id of the request with this question */
	bool answered; /* answered in this round */
};

/* Stores a copy of `node` of `doc` (NULL: the client refused) as the answer to `key`. Returns -1 if
 * there is no memory or there are too many answers. Pointers into mcp_doc() are invalid afterwards.
 */
int mcp_call_keep_answer(struct mcp_call *c, const char *key, const struct json_doc *doc,
                         const struct json_node *node);
/* Writes {"KEY":{"method":..,"params":..},...} for all questions without an answer. */
void mcp_call_write_questions(const struct mcp_call *c, struct json *j);
bool mcp_call_all_answered(const struct mcp_call *c); /* all questions of this round */
void mcp_call_forget_questions(struct mcp_call *c);
void mcp_call_forget_answers(struct mcp_call *c);
void mcp_call_withdraw_questions(struct mcp_call *c); /* tells the client that it need not answer */
/* Modern era: ends the call with a response that contains the questions. */
void mcp_call_send_questions(struct mcp_call *c);
/* Modern era: reads the state and the answers of a retry. Returns -1 if they were refused; the call
 * has then ended. */
int mcp_call_open_state(struct mcp_call *c);
/* Legacy era: handles the client's response to one of the questions. */
void mcp_peer_take_response(struct mcp_peer *p, const struct mcp_message *m);

/* ---- values ------------------------------------------------------------------- */

/* Computes the digest of the members of `object` (NULL: no members) except _meta, inputResponses
 * and requestState. The order of the members does not matter. */
int mcp_params_digest(const struct json_doc *doc, const struct json_node *object,
                      uint8_t ret[SHA256_BYTES]);

/* Returns a new copy of at most `max` bytes that never ends inside of a character. Returns NULL if
 * there is no memory. */
char *mcp_text_cut(const char *text, size_t max);

/* ---- methods of the protocol -------------------------------------------------- */

struct protocol_method {
	struct mcp_method m;
	unsigned needs; /* feature that the application must have; 0: none */
};
/* Returns the row of protocol.c or of the application; NULL: this era has no such method. */
const struct mcp_method *mcp_method_find(const struct mcp_server *s, enum mcp_era era,
                                         const char *name);

/* Writes the server's name, title and version as one JSON object. */
void mcp_write_server_info(const struct mcp_app *app, struct json *j);

#define MESSAGE_ID                                                                                 \
	(MAX_MCP_ID * 6 + 3) /* longest id as JSON text: each byte escaped, with quotes and NUL */
/* Returns whether the server can send this id or progress token back unchanged. */
bool mcp_id_is_valid(const struct json_node *id);
char *mcp_id_text(const struct json_node *id); /* new; NULL: out of memory */

const char *mcp_version_static(const char *version); /* NULL: unknown */
const char *mcp_version_negotiate(const char *wish); /* version that initialize answers with */
void mcp_write_versions(struct json *j);

int mcp_level_parse(const char *word, enum mcp_level *ret); /* -1: unknown word */

#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CLIENT       "io.modelcontextprotocol/clientInfo"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_LOG_LEVEL    "io.modelcontextprotocol/logLevel"
#define META_SERVER       "io.modelcontextprotocol/serverInfo"
#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"
#define EXTENSION_TASKS   "io.modelcontextprotocol/tasks"

#endif
