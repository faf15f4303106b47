/* transport.h - the three transports: lines on two fds, a unix socket, HTTP.
 *
 * The program must ignore SIGPIPE. A handler must not free a transport. */
#ifndef MCP_TRANSPORT_H
#define MCP_TRANSPORT_H

#include "mcp/mcp.h"

/* Each line is one message, in UTF-8. Nothing else is written to `out`. Both fds are borrowed and
 * made non-blocking. `closed` is called once, when the client has closed its end and its calls
 * are canceled. `closed` may free the lines.
 *
 * While a client does not read, the server does not read from that client either. Such a client
 * loses news (which is counted). It loses no answers, but is disconnected if too many bytes of
 * answers wait for it. */
struct mcp_lines;
int mcp_lines_new(struct mcp_server *s, struct loop *loop, int in, int out, loop_fn *closed,
                  void *arg, struct mcp_lines **ret, struct ssb_error *err);
void mcp_lines_free(struct mcp_lines *l); /* accepts NULL */
/* Returns the number of dropped notifications, for tests. */
uint64_t mcp_lines_dropped(const struct mcp_lines *l);

/* A unix socket of mode 0600; each connection has its own lines. Only processes of the same
 * uid and of root may connect (SO_PEERCRED); root could become that uid in any case. A socket
 * at this path is replaced if no server listens on it; otherwise this is an error. */
struct mcp_socket;
int mcp_socket_new(struct mcp_server *s, struct loop *loop, const char *path,
                   struct mcp_socket **ret, struct ssb_error *err);
void mcp_socket_free(struct mcp_socket *x); /* unlinks the socket; accepts NULL */

/* Streamable HTTP at /mcp: POST, GET and DELETE in the legacy era, only POST in the modern era.
 * Listens only on a loopback address. Checks Host, Origin and the token. */
struct mcp_http_options {
	/* "127.0.0.1:PORT", "[::1]:PORT" or "localhost:PORT"; port 0 means any free port. */
	const char *address;
	const char *token; /* NULL: clients need no token (tests) */
};
struct mcp_http;
int mcp_http_new(struct mcp_server *s, struct loop *loop, const struct mcp_http_options *o,
                 struct mcp_http **ret, struct ssb_error *err);
void mcp_http_free(struct mcp_http *h);             /* accepts NULL */
const char *mcp_http_url(const struct mcp_http *h); /* "http://127.0.0.1:8080/mcp" */

#endif
