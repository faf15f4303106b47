/* fixture_later.c - tools that take time; other calls continue meanwhile. */
#include <string.h>

#include "base/own.h"
#include "fixture.h"
#include "hang_up.h"

struct later {
	struct loop *loop;
	struct mcp_call *call;
	struct loop_timer *timer;
	uint64_t ms;
	unsigned step;
	later_step *fn;
	char *text;
	bool *ret_gone; /* may be NULL; set to true when this object is freed */
};

static void later_free(struct later *l)
{
	if (l->ret_gone != NULL) {
		*l->ret_gone = true;
	}
	loop_untimer(&l->timer);
	free(l->text);
	free(l);
}

static void later_canceled(void *arg)
{
	struct later *l = arg;
	struct mcp_call *c = l->call;
	later_free(l);
	mcp_tool_done(c, "canceled", NULL, true);
}

static void later_go(void *arg)
{
	struct later *l = arg;
	l->timer = NULL;
	bool more = l->fn(l->call, l->step++, l->text);
	if (more && loop_after(l->loop, l->ms, later_go, l, &l->timer) == 0) {
		return;
	}
	if (more) {
		mcp_on_cancel(l->call, NULL, NULL);
		mcp_fail(l->call, MCP_E_INTERNAL, "no timer");
	}
	later_free(l);
}

void later_start(struct fixture *f, struct mcp_call *c, uint64_t ms, later_step *fn,
                 const char *text)
{
	struct later *l = calloc(1, sizeof(*l));
	char *copy = text != NULL ? strdup(text) : NULL;
	if (l == NULL || (text != NULL && copy == NULL)) {
		free(l);
		free(copy);
		mcp_fail(c, MCP_E_INTERNAL, "no memory");
		return;
	}
	bool gone = false; /* mcp_on_cancel() frees the object if the call is already canceled */
	*l = (struct later){ f->loop, c, NULL, ms, 0, fn, copy, &gone };
	mcp_on_cancel(c, later_canceled, l);
	if (!gone) {
		l->ret_gone = NULL;
		later_go(l);
	}
}

/* Answers the call. A cancel of the call after that has no effect. */
static bool finish(struct mcp_call *c, const char *text, bool is_error)
{
	mcp_on_cancel(c, NULL, NULL);
	mcp_tool_done(c, text, NULL, is_error);
	return false;
}

bool later_text(struct mcp_call *c, unsigned step, const char *text)
{
	return step == 0 || finish(c, text, false);
}

static bool logging_step(struct mcp_call *c, unsigned step, const char *text)
{
	static const char *const LINES[] = { "\"Tool execution started\"",
		                             "\"Tool processing data\"",
		                             "\"Tool execution completed\"" };
	mcp_log(c, MCP_INFO, "fixture", LINES[step]);
	return step < 2 || finish(c, text, false);
}

void tool_logging(void *app, struct mcp_call *c)
{
	later_start(app, c, 50, logging_step, "Tool with logging executed successfully");
}

void tool_logging_once(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_log(c, MCP_INFO, "fixture", "\"Logging evaluated\"");
	mcp_tool_done(c, "Logging evaluated", NULL, false);
}

static bool progress_step(struct mcp_call *c, unsigned step, const char *text)
{
	mcp_progress(c, (uint64_t)step * 50, 100, NULL);
	return step < 2 || finish(c, text, false);
}

void tool_progress(void *app, struct mcp_call *c)
{
	later_start(app, c, 50, progress_step, "All steps done");
}

void tool_streamed(void *app, struct mcp_call *c)
{
	later_start(app, c, 50, progress_step, "Streaming complete");
}

/* Closes the stream to the client. The client must resume the stream to get the answer. */
void tool_reconnection(void *app, struct mcp_call *c)
{
	hang_up(c);
	later_start(app, c, 100, later_text, "Reconnection test completed successfully");
}

void tool_slow(void *app, struct mcp_call *c)
{
	int64_t seconds = mcp_arg_integer(c, "seconds", 0);
	if (seconds == 0) {
		mcp_tool_done(c, "computed at once", NULL, false);
		return;
	}
	(void)mcp_become_task(c, "computing");
	later_start(app, c, (uint64_t)seconds * 1000, later_text, "computed");
}

static bool failing_step(struct mcp_call *c, unsigned step, const char *text)
{
	return step == 0 || finish(c, text, true);
}

/* The call is an error unless the client lets it become a task. */
void tool_failing(void *app, struct mcp_call *c)
{
	if (!mcp_become_task(c, "failing")) {
		mcp_fail_data(c, MCP_E_CAPABILITY,
		              "{\"requiredCapabilities\":{\"extensions\":{\"" TASKS_EXTENSION
		              "\":{}}}}",
		              "this tool works as a task only");
		return;
	}
	later_start(app, c, 200, failing_step, "the job failed, as it always does");
}

static bool breaking_step(struct mcp_call *c, unsigned step, const char *text)
{
	if (step == 0) {
		return true;
	}
	mcp_on_cancel(c, NULL, NULL);
	mcp_fail(c, MCP_E_INTERNAL, "%s", text);
	return false;
}

void tool_breaking(void *app, struct mcp_call *c)
{
	(void)mcp_become_task(c, "breaking");
	later_start(app, c, 200, breaking_step, "the job broke, as it always does");
}
