/* transport.h - the three ways in: lines on two fds, a unix socket, HTTP.
 *
 * The program ignores SIGPIPE. None of them is freed from inside of a handler. */
#ifndef MCP_TRANSPORT_H
#define MCP_TRANSPORT_H

#include "mcp/mcp.h"

/* One message a line, UTF-8; nothing else is ever written to `out`. Both fds are
 * borrowed and made non-blocking. `closed` is called once, when the other end is:
 * what was asked before is canceled. It may free the lines.
 *
 * A client that does not read is not read from either, and loses news (counted) but
 * no answers, up to a cap; past that it is cut off. */
struct mcp_lines;
int mcp_lines_new(struct mcp_server *s, struct loop *loop, int in, int out, loop_fn *closed,
                  void *arg, struct mcp_lines **ret, struct ssb_error *err);
void mcp_lines_free(struct mcp_lines *l);              /* accepts NULL */
uint64_t mcp_lines_dropped(const struct mcp_lines *l); /* notifications; for tests */

/* The same on each connection to a socket of mode 0600, for the same uid, or root
 * (SO_PEERCRED), which could become that uid. A stale socket there is replaced, a live
 * one is an error. */
struct mcp_socket;
int mcp_socket_new(struct mcp_server *s, struct loop *loop, const char *path,
                   struct mcp_socket **ret, struct ssb_error *err);
void mcp_socket_free(struct mcp_socket *x); /* unlinks it; accepts NULL */

/* Streamable HTTP at /mcp: POST, GET and DELETE of the legacy era, POST of the modern
 * one. Loopback only; Host and Origin are checked, and the token. */
struct mcp_http_options {
	const char *address; /* "127.0.0.1:PORT", "[::1]:PORT", "localhost:PORT"; port 0: any */
	const char *token;   /* NULL: none is asked for (tests) */
};
struct mcp_http;
int mcp_http_new(struct mcp_server *s, struct loop *loop, const struct mcp_http_options *o,
                 struct mcp_http **ret, struct ssb_error *err);
void mcp_http_free(struct mcp_http *h);             /* accepts NULL */
const char *mcp_http_url(const struct mcp_http *h); /* "http://127.0.0.1:8080/mcp" */

#endif
