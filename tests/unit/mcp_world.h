/* mcp_world.h - a fake client: an `out` that keeps what is sent to it, and an application whose
 * handlers do what a test says. */
#ifndef MCP_WORLD_H
#define MCP_WORLD_H

#include "base/buf.h"
#include "mcp/mcp_priv.h"

#define WORLD_SENT 64

/* Where messages go. The newest is the last; the texts are kept. */
struct world_out {
	struct mcp_out out; /* first: what is sent is found by it */
	char *sent[WORLD_SENT];
	enum mcp_kind kinds[WORLD_SENT];
	int statuses[WORLD_SENT];
	size_t n_sent;
	size_t n_ended;
	struct mcp_peer *gone_in_send; /* mcp_out_gone() from inside of it; NULL: not */
	struct mcp_peer *free_in_send; /* mcp_peer_free() from inside of it; NULL: not */
};

struct world {
	struct mcp_server *server;
	struct mcp_peer *peer; /* NULL: gone */
	struct world_out out;
	struct mcp_app app;
	struct mcp_call *held; /* by the handler of "test/hold": not answered yet */
	size_t n_canceled;     /* times that it was told */
	size_t n_handled;      /* times that any handler was called */
	bool answers_on_cancel;
};

/* The world of the test. */
extern struct world w;

/* A test whose world ends with it. */
#define IN_WORLD(f) cmocka_unit_test_teardown(f, world_close)
int world_close(void **state);

/* A peer with lines, in place of the one before: `out` is its news too. */
void world_init(void);
/* The same, and the client has said what it can. */
void world_begin(const char *capabilities);
void world_done(void);
void world_out_init(struct world_out *o);
void world_out_done(struct world_out *o);
void world_forget(struct world_out *o); /* what was sent */

/* A message, ' for ". A text that is none fails the test. */
void world_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void world_say_to(struct mcp_peer *p, struct mcp_out *out, const char *text);
void world_initialize(const char *capabilities);

/* The last message that was sent; "" where none was. */
const char *world_last(const struct world_out *o);
int world_last_status(const struct world_out *o);
/* requestState of the last message, new. */
char *world_state(const struct world_out *o);
/* Fails the test where `text` (' for ") is not in the last message. */
void world_expect(const struct world_out *o, const char *text);

/* params of a modern request, to go before other members: "'_meta':{...}" */
#define MODERN_WITH(caps)                                                                          \
	"'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                         \
	"'io.modelcontextprotocol/clientCapabilities':" caps "}"
#define MODERN MODERN_WITH("{}")

#endif
