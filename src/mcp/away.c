/* away.c - a call that a child process answers. The child collects the messages that it would
 * send to the client, each after a header of fixed size, and transfers them to the server. The
 * server sends them as if it had made them itself. */
#include <string.h>

#include "mcp/mcp_priv.h"

struct away_head {
	uint32_t kind; /* enum mcp_kind */
	int32_t status;
	uint64_t len;
	uint64_t body_at; /* for a response: body_at in struct mcp_call */
	bool failed;
};

/* ---- in the child ------------------------------------------------------------ */

/* A child answers only one call, so one variable is enough. */
static struct {
	struct mcp_out out;
	struct mcp_call *call;
	struct buf *to;
} away;

static void away_send(struct mcp_out *o, enum mcp_kind kind, int status, const char *json,
                      size_t len)
{
	struct away_head h;

	(void)o;
	memset(&h, 0, sizeof(h)); /* clears the padding, too, because it is transferred */
	h.kind = (uint32_t)kind;
	h.status = status;
	h.len = len;
	if (kind == MCP_RESPONSE) {
		h.body_at = away.call->body_at;
		h.failed = away.call->failed;
		away.to->failed = away.to->failed || away.call->text.failed;
	}
	buf_add(away.to, &h, sizeof(h));
	buf_add(away.to, json, len);
}

static void away_end(struct mcp_out *o)
{
	(void)o;
}

void mcp_call_away(struct mcp_call *c, struct buf *to)
{
	away.out = (struct mcp_out){ .send = away_send, .end = away_end };
	away.call = c;
	away.to = to;
	c->out = &away.out;
	c->task = NULL; /* the child must not change the task: only the server may */
	c->on_cancel = NULL;
}

/* ---- in the server ----------------------------------------------------------- */

/* Reads the next message of a child. Returns false at the end, or if the bytes are not such a
 * message. */
static bool next_message(const char **data, size_t *len, struct away_head *h, const char **ret)
{
	if (*len < sizeof(*h)) {
		return false;
	}
	memcpy(h, *data, sizeof(*h));
	if (h->len > *len - sizeof(*h) ||
	    (h->kind != MCP_NOTIFICATION && (h->kind != MCP_RESPONSE || h->body_at >= h->len))) {
		return false;
	}
	*ret = *data + sizeof(*h);
	*data = *ret + h->len;
	*len -= sizeof(*h) + h->len;
	return true;
}

/* Returns whether the bytes are notifications (any number) and then exactly one response. */
static bool is_whole(const char *data, size_t len)
{
	const char *text;
	struct away_head h = { .kind = MCP_NOTIFICATION };

	while (h.kind == MCP_NOTIFICATION) {
		if (!next_message(&data, &len, &h, &text)) {
			return false;
		}
	}
	return len == 0;
}

int mcp_call_back(struct mcp_call *c, const char *data, size_t len)
{
	const char *text = NULL;
	struct away_head h = { 0 };

	if (!is_whole(data, len)) {
		return -1;
	}
	mcp_call_hold(c);
	while (next_message(&data, &len, &h, &text) && h.kind == MCP_NOTIFICATION) {
		if (c->out != NULL) {
			c->out->send(c->out, MCP_NOTIFICATION, h.status, text, h.len);
		}
	}
	buf_reset(&c->text);
	buf_add(&c->text, text, h.len);
	c->body_at = h.body_at;
	c->failed = h.failed;
	mcp_call_respond(c, h.status);
	mcp_call_release(c);
	return 0;
}
