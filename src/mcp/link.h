/* link.h - the interface between the protocol and its transports.
 *
 * A transport splits bytes into messages, and gives the protocol their sender (peer) and the
 * destination of the answers (out). A transport knows nothing about methods; the protocol knows
 * nothing about fds. */
#ifndef MCP_LINK_H
#define MCP_LINK_H

#include "mcp/mcp.h"

/* The kind of a message. A message is known to be valid JSON-RPC; its method and parameters are
 * not checked yet. */
enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

struct mcp_message {
	struct json_doc doc;
	enum mcp_kind kind;
	char *id;                       /* JSON text, such as 1 or "a"; NULL: none */
	const char *method;             /* points into doc; NULL for a response */
	const struct json_node *params; /* an object, or NULL */
	/* The version of a modern message, from _meta; NULL: the message is legacy. */
	const char *version;
	/* The member of params that HTTP repeats in a header: params.name, params.uri or
	 * params.taskId; NULL: the method has none of them. */
	const char *name;
};

/* Parses a message. Returns -1, with a JSON-RPC code in *ret_code and a static reason in *ret_why,
 * if the text is not a message. Batches, and ids that are null or not integers or strings, are
 * refused; depth and size are limited. `m` must be zeroed before and must be released with
 * mcp_message_done(), also after a failure. After a failure `m` contains the id if it could be
 * read. */
int mcp_message_read(struct mcp_message *m, const char *text, size_t len, int *ret_code,
                     const char **ret_why);
void mcp_message_done(struct mcp_message *m);

/* The destination of the messages of one request (HTTP), or of all requests (lines). */
struct mcp_out {
	/* Sends a message, which it copies. `status` is the HTTP status: 200, 400 or 404. It is
	 * used only if nothing has been sent yet. */
	void (*send)(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
	             size_t len);
	/* Called once for each request that mcp_receive() accepted. No more messages follow: the
	 * response has been sent or, after a cancellation, will never be sent. */
	void (*end)(struct mcp_out *o);
};

/* A sender of messages. It is one of: a connection of lines (modern, and also legacy after it has
 * initialized), a legacy HTTP session, or an HTTP connection (modern). Limits on running calls are
 * for each peer. All HTTP connections have one principal, because a client identifies itself only
 * by the token. */
struct mcp_peer;

/* Makes a peer. `principal` is copied. `news` (borrowed) is the destination of messages that
 * belong to no request; NULL: they are dropped. If the requests have the same `out` as `news`
 * (lines), modern requests can be canceled by id. */
int mcp_peer_new(struct mcp_server *s, const char *principal, struct mcp_out *news,
                 struct mcp_peer **ret);
/* Cancels the calls of the peer, gives up the questions to it, and removes its subscriptions. */
void mcp_peer_free(struct mcp_peer *p); /* accepts NULL */
/* Like mcp_peer_free(), but calls of the peer that became tasks continue: `heir`, a peer with the
 * same principal, takes them over. The principal is not reported as gone. */
void mcp_peer_leave(struct mcp_peer *p, struct mcp_peer *heir);
bool mcp_peer_initialized(const struct mcp_peer *p);
const char *mcp_peer_version(const struct mcp_peer *p); /* the negotiated version, or "" */

/* Handles the message, and takes and frees it. The answer to a request is sent to `out`, which must
 * stay valid until its end() is called. For other messages `out` is not used and may be NULL. */
void mcp_receive(struct mcp_peer *p, struct mcp_out *out, struct mcp_message *m);
/* Must be called when the client behind `out` is gone. Cancels its requests. end() is not called
 * for them, and `out` is not used again. */
void mcp_out_gone(struct mcp_peer *p, struct mcp_out *out);

/* Appends {"jsonrpc":"2.0","id":ID,"error":{"code":..,"message":..,"data":DATA}}. A NULL `id`
 * becomes null. `data` is one finished JSON value, or NULL for no data. */
void mcp_error_text(struct buf *out, const char *id, int code, const char *message,
                    const char *data);

#define MCP_LATEST        "2026-07-28"
#define MCP_LATEST_LEGACY "2025-11-25"
bool mcp_version_known(const char *version);
bool mcp_version_modern(const char *version);
/* Returns whether clients of this version resume a stream that has not ended. */
bool mcp_version_resumes(const char *version);

#endif
