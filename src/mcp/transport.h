/* transport.h - the three transports: lines on two fds, a unix socket, HTTP.
 *
 * The program must ignore SIGPIPE. A handler must not free a transport. */
#ifndef MCP_TRANSPORT_H
#define MCP_TRANSPORT_H

#include "mcp/mcp.h"

/* One message per line, in UTF-8; nothing else is written to `out`. Both fds are borrowed
 * and made non-blocking. `closed` is called once, when the client has closed its end and its
 * calls are canceled; it may free the lines.
 *
 * While a client does not read, the server does not read from it either. It then loses news
 * (counted) but no answers, up to a cap; past the cap it is disconnected. */
struct mcp_lines;
int mcp_lines_new(struct mcp_server *s, struct loop *loop, int in, int out, loop_fn *closed,
                  void *arg, struct mcp_lines **ret, struct ssb_error *err);
void mcp_lines_free(struct mcp_lines *l); /* accepts NULL */
/* number of dropped notifications, for tests */
uint64_t mcp_lines_dropped(const struct mcp_lines *l);

/* Lines on each connection to a socket of mode 0600. Only the same uid and root may connect
 * (SO_PEERCRED); root could become that uid anyway. A stale socket at the path is replaced;
 * a live one is an error. */
struct mcp_socket;
int mcp_socket_new(struct mcp_server *s, struct loop *loop, const char *path,
                   struct mcp_socket **ret, struct ssb_error *err);
void mcp_socket_free(struct mcp_socket *x); /* unlinks the socket; accepts NULL */

/* Streamable HTTP at /mcp: POST, GET and DELETE in the legacy era, POST in the modern era.
 * Listens on a loopback address only; checks Host, Origin and the token. */
struct mcp_http_options {
	const char *address; /* "127.0.0.1:PORT", "[::1]:PORT", "localhost:PORT"; port 0: any free
	                        port */
	const char *token;   /* NULL: clients need no token (tests) */
};
struct mcp_http;
int mcp_http_new(struct mcp_server *s, struct loop *loop, const struct mcp_http_options *o,
                 struct mcp_http **ret, struct ssb_error *err);
void mcp_http_free(struct mcp_http *h);             /* accepts NULL */
const char *mcp_http_url(const struct mcp_http *h); /* "http://127.0.0.1:8080/mcp" */

#endif
