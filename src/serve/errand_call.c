/* errand_call.c - a call that is answered in an errand.
 *
 * What comes back: the messages of the call (mcp_call_back), then what is remembered
 * between two questions about records. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "serve/errand.h"
#include "serve/records.h"

struct errand_call {
	struct serve *serve;
	struct mcp_call *call;
	struct errand_answer how;
};

static void call_freep(struct errand_call **x)
{
	if (*x != NULL && (*x)->how.free != NULL) {
		(*x)->how.free((*x)->how.arg);
	}
	free(*x);
}

/* ---- there ------------------------------------------------------------------------- */

static void run(void *arg, struct buf *out)
{
	struct errand_call *x = arg;

	mcp_call_away(x->call, out);
	x->how.answer(x->how.arg, x->call);
	records_note(x->serve->records, out);
}

static int after(void *arg)
{
	struct errand_call *x = arg;

	return x->how.after(x->how.arg);
}

/* ---- here -------------------------------------------------------------------------- */

static void fail(const struct errand_call *x, const struct errand_end *end)
{
	if (x->how.failed != NULL) {
		x->how.failed(x->how.arg, x->call, end);
	} else if (x->how.tool) {
		mcp_tool_fail(x->call, end->fate == ERRAND_LATE ? "timeout" : "unavailable",
		              end->why, "ask for less, or again later");
	} else {
		mcp_fail(x->call, MCP_E_INTERNAL, "%s", end->why);
	}
}

static void ended(void *arg, const struct errand_end *end)
{
	AUTO(call_freep) struct errand_call *x = arg;
	struct errand_end e = *end;

	mcp_on_cancel(x->call, NULL, NULL);
	if (e.fate == ERRAND_DONE) {
		size_t len = records_take_note(x->serve->records, end->data, end->len);
		if (mcp_call_back(x->call, end->data, len) == 0) {
			return;
		}
		e.fate = ERRAND_CRASHED;
		e.why = "the process that did it gave no answer";
	}
	fail(x, &e);
}

static void on_cancel(void *arg)
{
	errand_cancel(arg);
}

int errand_of_call(struct serve *s, struct mcp_call *c, const struct errand_wish *w,
                   struct ssb_error *err)
{
	struct errand_wish wish = *w;
	struct errand *e = NULL;

	wish.who = mcp_principal(c);
	if (errand_start(s, &wish, &e, err) != 0) {
		return -1;
	}
	mcp_on_cancel(c, on_cancel, e);
	return 0;
}

void errand_answer(struct serve *s, struct mcp_call *c, const struct errand_answer *w)
{
	AUTO(call_freep) struct errand_call *x = calloc(1, sizeof(*x));
	struct ssb_error err = { 0 };

	if (x == NULL) {
		if (w->free != NULL) {
			w->free(w->arg);
		}
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	*x = (struct errand_call){ .serve = s, .call = c, .how = *w };
	const struct errand_wish wish = { .run = run,
		                          .after = w->after != NULL ? after : NULL,
		                          .ended = ended,
		                          .arg = x,
		                          .limit_ms = w->limit_ms };
	if (errand_of_call(s, c, &wish, &err) != 0) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	(void)steal_ptr(&x);
}

void errand_method(struct serve *s, struct mcp_call *c, mcp_handler *handle)
{
	const struct errand_answer w = { .answer = handle, .arg = s };

	errand_answer(s, c, &w);
}

void errand_tool(struct serve *s, struct mcp_call *c, mcp_handler *handle)
{
	const struct errand_answer w = { .answer = handle, .tool = true, .arg = s };

	errand_answer(s, c, &w);
}
