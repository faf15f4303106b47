/* mcp_world.h - a fake client, which records the messages that are sent to it, and an application
 * with a handler for each kind of test. */
#ifndef MCP_WORLD_H
#define MCP_WORLD_H

#include "base/buf.h"
#include "mcp/mcp_priv.h"

#define WORLD_SENT 64

/* A connection of the fake client. The newest message is the last one. */
struct world_out {
	struct mcp_out out; /* must be the first member: out_send() casts its pointer */
	char *sent[WORLD_SENT];
	enum mcp_kind kinds[WORLD_SENT];
	int statuses[WORLD_SENT];
	size_t n_sent;
	size_t n_ended;
	struct mcp_peer *gone_in_send; /* if set, the next send calls mcp_out_gone() for it */
	struct mcp_peer *free_in_send; /* if set, the next send calls mcp_peer_free() for it */
};

struct world {
	struct mcp_server *server;
	struct mcp_peer *peer; /* NULL: freed */
	struct world_out out;
	struct mcp_app app;
	struct mcp_call *held; /* the last call of "test/hold" or "test/keep"; not answered yet */
	size_t n_canceled;     /* number of cancellations */
	size_t n_handled;      /* number of calls of any handler */
	bool answers_on_cancel;
};

/* The world of the current test. */
extern struct world w;

/* Declares a test after which the world is freed. */
#define IN_WORLD(f) cmocka_unit_test_teardown(f, world_close)
int world_close(void **state);

/* Replaces the world by a new one. The connection of its peer is w.out. */
void world_init(void);
/* Like world_init(). Then the client sends "initialize" with these capabilities. */
void world_begin(const char *capabilities);
void world_done(void);
void world_out_init(struct world_out *o);
void world_out_done(struct world_out *o);
void world_forget(struct world_out *o); /* frees the recorded messages */

/* Sends a message to the server; the text has ' in place of ". Fails the test if the text is not a
 * message. */
void world_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void world_say_to(struct mcp_peer *p, struct mcp_out *out, const char *text);
void world_initialize(const char *capabilities);

/* Returns the last message that was sent, or "" if there is none. */
const char *world_last(const struct world_out *o);
int world_last_status(const struct world_out *o);
/* Returns a copy of the requestState in the last message. */
char *world_state(const struct world_out *o);
/* Fails the test if `text` (with ' in place of ") is not in the last message. */
void world_expect(const struct world_out *o, const char *text);

/* The first member of params in a modern request: "'_meta':{...}" */
#define MODERN_WITH(caps)                                                                          \
	"'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                         \
	"'io.modelcontextprotocol/clientCapabilities':" caps "}"
#define MODERN MODERN_WITH("{}")

#endif
