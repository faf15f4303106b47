/* run_news.c - sends the progress of a run to the client that waits for it. */
#include "serve/run_news.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/visible.h"
#include "report/render.h"

#define TELL_MS 50 /* milliseconds between notifications: at most 20 a second */

struct run_news {
	struct loop *loop;
	struct mcp_call *call;
	struct loop_timer *timer;
	struct buf raw[2]; /* output that was not sent yet */
	struct buf text;   /* denied attempts, made visible */
	uint64_t left_out; /* bytes that were not sent */
	uint64_t told;
};

/* Returns true if the client wants news now. If the call has become a task, the news is sent as the
 * task's message. */
static bool is_wanted(const struct mcp_call *c)
{
	return mcp_wants_progress(c) || mcp_has_extension(c, "io.modelcontextprotocol/tasks");
}

struct run_news *run_news_new(struct loop *l, struct mcp_call *c)
{
	struct run_news *n = is_wanted(c) ? calloc(1, sizeof(*n)) : NULL;

	if (n != NULL) {
		n->loop = l;
		n->call = c;
		buf_init(&n->raw[0], MAX_NEWS_BYTES);
		buf_init(&n->raw[1], MAX_NEWS_BYTES);
		buf_init(&n->text, MAX_NEWS_BYTES);
	}
	return n;
}

void run_news_free(struct run_news *n)
{
	if (n != NULL) {
		loop_untimer(&n->timer);
		buf_done(&n->raw[0]);
		buf_done(&n->raw[1]);
		buf_done(&n->text);
		free(n);
	}
}

/* Moves whole lines from `raw` to `out`. An incomplete line stays in `raw`, unless it is long. */
static void take_lines(struct buf *out, struct buf *raw)
{
	const char *last = raw->len > 0 ? memrchr(raw->data, '\n', raw->len) : NULL;
	size_t n = last != NULL                     ? (size_t)(last - raw->data) + 1
	           : raw->len >= MAX_NEWS_BYTES / 2 ? raw->len
	                                            : 0;

	if (n > 0) {
		visible_bytes(out, raw->data, n, true);
		memmove(raw->data, raw->data + n, raw->len - n);
		raw->len -= n;
	}
}

static void on_tell(void *arg)
{
	struct run_news *n = arg;
	auto_buf out = BUF((size_t)16 * MAX_NEWS_BYTES);

	take_lines(&out, &n->raw[0]);
	take_lines(&out, &n->raw[1]);
	buf_add(&out, n->text.data, n->text.len);
	buf_reset(&n->text);
	if (n->left_out > 0) {
		buf_addf(&out, "[%llu more bytes that are not shown here]\n",
		         (unsigned long long)n->left_out);
		n->left_out = 0;
	}
	while (out.len > 0 && out.data[out.len - 1] == '\n') {
		out.data[--out.len] = '\0';
	}
	if (!out.failed && out.len > 0) {
		mcp_progress(n->call, ++n->told, 0, out.data);
	}
}

/* Sends the news after TELL_MS, together with news that arrives until then. */
static void tell_soon(struct run_news *n)
{
	if (n->timer == NULL) {
		(void)loop_after(n->loop, TELL_MS, on_tell, n, &n->timer);
	}
}

void run_news_output(struct run_news *n, int stream, const char *data, size_t len)
{
	if (n == NULL) {
		return;
	}
	struct buf *raw = &n->raw[stream == 2];
	size_t room = MAX_NEWS_BYTES / 2 -
	              (raw->len < MAX_NEWS_BYTES / 2 ? raw->len : MAX_NEWS_BYTES / 2);
	size_t take = len < room ? len : room;
	buf_add(raw, data, take);
	n->left_out += len - take;
	tell_soon(n);
}

void run_news_line(struct run_news *n, const struct line *l)
{
	if (n == NULL || !render_is_violation(l)) {
		return;
	}
	auto_buf one = BUF(MAX_NEWS_BYTES);
	buf_adds(&one, "denied: ");
	render_what(&one, l);
	buf_addc(&one, '\n');
	if (!one.failed && n->text.len + one.len < MAX_NEWS_BYTES) {
		buf_add(&n->text, one.data, one.len);
	}
	tell_soon(n);
}
