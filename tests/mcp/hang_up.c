#include "hang_up.h"

#include <string.h>

#include "mcp/http_priv.h"
#include "mcp/mcp_priv.h"

void hang_up(struct mcp_call *c)
{
	/* Only a call of a legacy HTTP session has a principal "session:ID" and a stream that the
	 * client can resume. In other calls `out` is not a struct http_stream. */
	if (strncmp(mcp_principal(c), "session:", 8) != 0 || c->out == NULL) {
		return;
	}
	struct http_stream *x = (struct http_stream *)c->out;
	struct http_conn *conn = x->conn;
	if (conn == NULL || strcmp(mcp_peer_version(x->peer), "2025-11-25") < 0) {
		return;
	}
	if (!x->begun) {
		http_stream_open(x); /* sends the event id with which the client can resume */
	}
	http_stream_lost(x);
	http_conn_stream_end(conn);
}
