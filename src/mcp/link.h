/* link.h - between the protocol and its transports.
 *
 * A transport cuts bytes into messages, says who sent them (peer) and where the
 * answers go (out). It knows nothing of methods, and the protocol nothing of fds. */
#ifndef MCP_LINK_H
#define MCP_LINK_H

#include "mcp/mcp.h"

/* One message, understood as JSON-RPC and no further. */
enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

struct mcp_message {
	struct json_doc doc;
	enum mcp_kind kind;
	char *id;                       /* as written: 1, "a"; NULL: none */
	const char *method;             /* in doc; NULL for a response */
	const struct json_node *params; /* an object, or NULL */
	const char *version;            /* of _meta: a modern message; NULL: a legacy one */
	const char *name; /* params.name, uri or taskId where the method has one; NULL */
};

/* -1 with a JSON-RPC code in *ret_code and a reason (static) where it is none: no
 * batches, no null or fractional id, depth and size capped. `m` is zero first, and
 * done afterwards in any case; an id that could be read is there. */
int mcp_message_read(struct mcp_message *m, const char *text, size_t len, int *ret_code,
                     const char **ret_why);
void mcp_message_done(struct mcp_message *m);

/* Where the messages for one request (HTTP), or for everything (lines), go. */
struct mcp_out {
	/* `status` is what HTTP answers with, if nothing has gone out yet: 200, 400, 404.
	 * Copies what it needs. */
	void (*send)(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
	             size_t len);
	/* Once for each request that mcp_receive() took: nothing more comes for it, its
	 * response has been sent, or (canceled) none will be. */
	void (*end)(struct mcp_out *o);
};

/* Whoever sends: a connection of lines (a legacy session of its own once it has
 * initialized, and modern all the time), a legacy session of HTTP, or a connection of
 * HTTP (modern). What one peer may have under way is bounded for it alone. Those of
 * HTTP's connections have one principal, for all that they show is the token. */
struct mcp_peer;

/* `principal` is copied. `news` (borrowed, NULL: nowhere) takes what belongs to no
 * request. Where it is the `out` of the requests too (lines) modern ones can be canceled
 * by their id. */
int mcp_peer_new(struct mcp_server *s, const char *principal, struct mcp_out *news,
                 struct mcp_peer **ret);
/* Its calls are canceled, its questions refused, its subscriptions forgotten. */
void mcp_peer_free(struct mcp_peer *p); /* accepts NULL */
/* The same, but its principal lives on in `heir`, which has the same: the calls that
 * became tasks are `heir`'s from now on. */
void mcp_peer_leave(struct mcp_peer *p, struct mcp_peer *heir);
bool mcp_peer_initialized(const struct mcp_peer *p);
const char *mcp_peer_version(const struct mcp_peer *p); /* negotiated; "" */

/* Takes the message over (done with it). A request is answered through `out`, which
 * must stay until its end(); for the others `out` is not used and may be NULL. */
void mcp_receive(struct mcp_peer *p, struct mcp_out *out, struct mcp_message *m);
/* Whoever waited there is gone: what it asked is canceled. end() is not called for it
 * any more, and `out` is not used again. */
void mcp_out_gone(struct mcp_peer *p, struct mcp_out *out);

/* {"jsonrpc":"2.0","id":ID,"error":{"code":..,"message":..,"data":DATA}}. `id` NULL: null.
 * `data` is one finished JSON value, or NULL. */
void mcp_error_text(struct buf *out, const char *id, int code, const char *message,
                    const char *data);

#define MCP_LATEST        "2026-07-28"
#define MCP_LATEST_LEGACY "2025-11-25"
bool mcp_version_known(const char *version);
bool mcp_version_modern(const char *version);

#endif
