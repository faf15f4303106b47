/* link.h - between the protocol and its transports.
 *
 * A transport cuts bytes into messages and says who sent them (peer) and where the answers
 * go (out). A transport knows nothing about methods; the protocol knows nothing about fds. */
#ifndef MCP_LINK_H
#define MCP_LINK_H

#include "mcp/mcp.h"

/* One message, checked as JSON-RPC only. */
enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

struct mcp_message {
	struct json_doc doc;
	enum mcp_kind kind;
	char *id;                       /* as written: 1, "a"; NULL: none */
	const char *method;             /* points into doc; NULL for a response */
	const struct json_node *params; /* an object, or NULL */
	const char *version;            /* from _meta, for a modern message; NULL: a legacy one */
	const char *name; /* params.name, uri or taskId, if the method has one; NULL */
};

/* Returns -1, with a JSON-RPC code in *ret_code and a static reason, if the text is not a
 * message: no batches, no null or fractional id; depth and size are capped. `m` must be zero
 * first, and needs mcp_message_done() in any case; it holds the id if that could be read. */
int mcp_message_read(struct mcp_message *m, const char *text, size_t len, int *ret_code,
                     const char **ret_why);
void mcp_message_done(struct mcp_message *m);

/* Where the messages of one request (HTTP), or of all requests (lines), go. */
struct mcp_out {
	/* `status` is the HTTP status, used if nothing has been sent yet: 200, 400, 404.
	 * Copies the message. */
	void (*send)(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
	             size_t len);
	/* Called once for each request that mcp_receive() took: no more messages follow. Its
	 * response has been sent or, after a cancellation, never will be. */
	void (*end)(struct mcp_out *o);
};

/* A sender of messages: a connection of lines (modern from the start, and a legacy session
 * once it has initialized), a legacy HTTP session, or an HTTP connection (modern). Limits on
 * running calls apply to each peer. All HTTP connections share one principal, because the
 * token is all that a client shows. */
struct mcp_peer;

/* `principal` is copied. `news` (borrowed, NULL: nowhere) takes messages that belong to no
 * request. If it is also the `out` of the requests (lines), modern requests can be canceled
 * by id. */
int mcp_peer_new(struct mcp_server *s, const char *principal, struct mcp_out *news,
                 struct mcp_peer **ret);
/* Cancels its calls, refuses its questions, removes its subscriptions. */
void mcp_peer_free(struct mcp_peer *p); /* accepts NULL */
/* Like mcp_peer_free(), but its principal lives on in `heir`, which has the same one: `heir`
 * takes over the calls that became tasks. */
void mcp_peer_leave(struct mcp_peer *p, struct mcp_peer *heir);
bool mcp_peer_initialized(const struct mcp_peer *p);
const char *mcp_peer_version(const struct mcp_peer *p); /* as negotiated, or "" */

/* Takes the message over, and frees it. A request is answered through `out`, which must stay
 * until its end(). `out` is not used for other messages and may be NULL. */
void mcp_receive(struct mcp_peer *p, struct mcp_out *out, struct mcp_message *m);
/* The client behind `out` is gone: its requests are canceled. end() is not called for them,
 * and `out` is not used again. */
void mcp_out_gone(struct mcp_peer *p, struct mcp_out *out);

/* {"jsonrpc":"2.0","id":ID,"error":{"code":..,"message":..,"data":DATA}}. A NULL `id`
 * becomes null. `data` is one finished JSON value, or NULL. */
void mcp_error_text(struct buf *out, const char *id, int code, const char *message,
                    const char *data);

#define MCP_LATEST        "2026-07-28"
#define MCP_LATEST_LEGACY "2025-11-25"
bool mcp_version_known(const char *version);
bool mcp_version_modern(const char *version);

#endif
