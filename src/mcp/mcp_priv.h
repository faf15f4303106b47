/* priv.h - what the files of the protocol share: servers, peers, calls.
 *
 * Who lives how long. A call lives until its handler has answered it, and holds its
 * peer and its server until then; that its client is gone only takes `out` from it.
 * A peer is unlinked by mcp_peer_free() and lives on for the calls that it left.
 *
 * Whatever calls out of here (send, end, handlers, on_cancel) may come back in by any
 * function, also to free the peer: nothing is read again after it that is not held. */
#ifndef MCP_PRIV_H
#define MCP_PRIV_H

#include "base/buf.h"
#include "base/sha256.h"
#include "mcp/link.h"
#include "mcp/mcp.h"

struct state_store; /* state.h: sealed requestState */
struct subs;        /* subs.h: who wants to hear what */
struct task_store;  /* task.h: calls that became tasks */
struct task;
struct ask;

struct mcp_server {
	struct loop *loop; /* borrowed */
	const struct mcp_app *app;
	struct mcp_peer *peers;
	size_t n_calls;    /* of all peers, also of those that are gone */
	size_t weight;     /* bytes of their messages */
	bool freed;        /* by its owner: goes with the last call */
	uint64_t last_ask; /* ids of our own requests */
	struct state_store *states;
	struct subs *subs;
	struct task_store *tasks;
};

struct mcp_peer {
	struct mcp_server *server;
	struct mcp_peer *prev; /* of the server's list; of no list once it is gone */
	struct mcp_peer *next;
	unsigned refs; /* one of its owner, one of each call */
	bool gone;
	char *principal;
	struct mcp_out *news; /* borrowed; NULL: nowhere */
	struct mcp_call *calls;
	size_t n_calls;
	uint64_t told; /* the last piece of news (news.c) */
	size_t weight; /* bytes of their messages */

	/* of its legacy session */
	const char *version; /* static; NULL: it has not initialized */
	enum mcp_level level;
	unsigned abilities; /* bits 1 << enum mcp_ability */
	char *client_name;  /* NULL: it did not say */
	char *extensions;   /* "a\nb\n"; NULL: none */
};

/* An answer of the client, or that it refused. */
struct kept_answer {
	char *key;
	bool refused;
	uint32_t node; /* in the call's doc */
	char *text;    /* what the grafted nodes point into; NULL: the message's own */
};

enum mcp_call_phase {
	CALL_RUNNING, /* its handler has it */
	CALL_WAITING, /* for answers of the client: nobody has it */
	CALL_ENDED,   /* answered; freed when nothing of it is on the stack */
};

struct mcp_call {
	struct mcp_server *server;
	struct mcp_peer *peer;
	struct mcp_call *prev; /* of the peer's list */
	struct mcp_call *next;
	struct mcp_out *out; /* NULL: nobody hears it */
	struct mcp_message m;
	enum mcp_era era;
	const char *version;          /* static */
	const struct mcp_method *row; /* NULL: it was refused before one was found */
	enum mcp_call_phase phase;
	unsigned holds; /* something of it is on the stack */
	bool running;   /* its handler is */
	bool again;     /* it is to be called anew when it has returned */
	bool canceled;
	bool answered; /* its response is being sent */
	size_t weight;

	void (*on_cancel)(void *arg);
	void *on_cancel_arg;

	struct buf text; /* the response */
	struct json json;
	size_t body_at;    /* where the object of the result or error begins in it; 0: not begun */
	bool failed;       /* it is an error */
	uint64_t progress; /* the last one told */
	bool progressed;

	struct ask *asks; /* of this round */
	size_t n_asks;
	struct kept_answer *answers;
	size_t n_answers;
	unsigned rounds;
	char *state; /* of mcp_wait(); NULL: none yet */

	struct json_doc defaults; /* of the arguments that a tool takes (tools.c) */
	size_t answer_bytes;      /* of all rounds */

	/* Set by mcp_become_task(), before mcp_call_detach(): what would go to `out` goes to
	 * task_ended() and task_waits(). */
	struct task *task;
};

/* ---- what is sent ------------------------------------------------------------ */

/* {"jsonrpc":"2.0","method":METHOD,"params":PARAMS}; `params` is one finished JSON
 * object, NULL: none. Nothing where nobody listens. */
void mcp_call_notify(struct mcp_call *c, const char *method, const char *params);
void mcp_peer_notify(struct mcp_peer *p, const char *method, const char *params);

/* ---- servers and peers --------------------------------------------------------- */

void mcp_peer_unref(struct mcp_peer *p);
void mcp_server_drop_call(struct mcp_server *s); /* one call less; it may be gone after it */

/* Of capabilities as a client declares them: bits 1 << enum mcp_ability. */
unsigned mcp_client_abilities(const struct json_doc *doc, const struct json_node *capabilities);

/* ---- calls ------------------------------------------------------------------- */

/* Linked, and counted; takes the message. NULL: no memory, the message is as it was. */
struct mcp_call *mcp_call_new(struct mcp_peer *p, struct mcp_out *out, struct mcp_message *m);
/* While it is held it is there, over or not. */
void mcp_call_hold(struct mcp_call *c);
void mcp_call_release(struct mcp_call *c);
/* Sends c->text; over. */
void mcp_call_respond(struct mcp_call *c, int status);
void mcp_call_drop(struct mcp_call *c); /* over, with nothing sent */
/* One that no connection waits for goes on as another peer's. */
void mcp_call_move(struct mcp_call *c, struct mcp_peer *heir);
/* Over with an error before any handler: 400 on HTTP, 503 where it is too much. */
void mcp_call_refuse(struct mcp_call *c, enum mcp_code code, const char *why, const char *data);
/* The handler of a call, for the first time or anew. The call may be gone after it. */
void mcp_call_run(struct mcp_call *c);
/* Nobody hears it any more: out->end() where there is one, on_cancel told once; one
 * that waits for answers is over at once. May be gone after it. */
void mcp_call_cancel(struct mcp_call *c);
/* What was asked has its answers, they are in: the handler is called anew. */
void mcp_call_resume(struct mcp_call *c);
/* A response that is finished already: {"resultType":"task",...}; the call goes on
 * without `out`. For mcp_become_task(). */
void mcp_call_detach(struct mcp_call *c, const char *result);
/* A response of this call, up to its result, which comes next. */
void mcp_call_begin_response(const struct mcp_call *c, struct json *j);
/* Begins the response in c->text: the result's object is open. */
struct json *mcp_call_begin_result(struct mcp_call *c, const char *type, bool cached);
/* The members of an open result that the era wants; `type` is "complete", ... */
void mcp_call_write_result_head(const struct mcp_call *c, struct json *j, const char *type,
                                bool cached);

/* ---- asking ------------------------------------------------------------------ */

struct ask {
	char *key;
	const char *method; /* static */
	char *params;
	uint64_t id;   /* legacy: of our request */
	bool answered; /* in this round */
};

/* The answer to `key`, a copy of `node` of `doc` (NULL: refused) that mcp_answer()
 * finds. 0; -1: no memory, or too many. Pointers into mcp_doc() are stale after it. */
int mcp_call_keep_answer(struct mcp_call *c, const char *key, const struct json_doc *doc,
                         const struct json_node *node);
/* {"KEY":{"method":..,"params":..},...} of what has no answer yet. */
void mcp_call_write_questions(const struct mcp_call *c, struct json *j);
bool mcp_call_all_answered(const struct mcp_call *c); /* that was asked in this round */
void mcp_call_forget_questions(struct mcp_call *c);
void mcp_call_forget_answers(struct mcp_call *c);
void mcp_call_withdraw_questions(struct mcp_call *c); /* the client need not answer any more */
/* Modern: over, with what it asks for the response. */
void mcp_call_send_questions(struct mcp_call *c);
/* Modern: what a retry brings. -1: it was refused, and the call is over. */
int mcp_call_open_state(struct mcp_call *c);
/* Legacy: a response to one of our questions. */
void mcp_peer_take_response(struct mcp_peer *p, const struct mcp_message *m);

/* ---- values (value.c) --------------------------------------------------------- */

/* Of the members of `object` (NULL: none) but _meta, inputResponses and requestState,
 * in whatever order they come. */
int mcp_params_digest(const struct json_doc *doc, const struct json_node *object,
                      uint8_t ret[SHA256_BYTES]);

/* A copy of at most so many bytes, not cut in the midst of a character; NULL: no memory. */
char *mcp_text_cut(const char *text, size_t max);

/* ---- methods of the protocol -------------------------------------------------- */

struct protocol_method {
	struct mcp_method m;
	unsigned needs; /* a feature that the application must have; 0: none */
};
/* A row of protocol.c or of the application; NULL: none in this era. */
const struct mcp_method *mcp_method_find(const struct mcp_server *s, enum mcp_era era,
                                         const char *name);

/* Its name, version and the like, as one JSON object. */
void mcp_write_server_info(const struct mcp_app *app, struct json *j);

#define MESSAGE_ID (MAX_MCP_ID * 6 + 3) /* as text: each byte escaped, the quotes, the NUL */
/* An id, or a token that is echoed. */
bool mcp_id_is_valid(const struct json_node *id);
char *mcp_id_text(const struct json_node *id); /* new; NULL: no memory */

const char *mcp_version_static(const char *version); /* NULL: unknown */
const char *mcp_version_negotiate(const char *wish); /* what initialize answers */
void mcp_write_versions(struct json *j);

int mcp_level_parse(const char *word, enum mcp_level *ret); /* -1: there is none */

#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CLIENT       "io.modelcontextprotocol/clientInfo"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_LOG_LEVEL    "io.modelcontextprotocol/logLevel"
#define META_SERVER       "io.modelcontextprotocol/serverInfo"
#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"
#define EXTENSION_TASKS   "io.modelcontextprotocol/tasks"

#endif
