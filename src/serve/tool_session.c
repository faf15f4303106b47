/* tool_session.c - session_status and report_violation: the session that the client's
 * runs are part of. It can be looked at and blamed from here, never loosened. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "report/session_json.h"
#include "serve/act.h"
#include "serve/bind.h"
#include "session/session.h"

#define MAX_TEXT (1024UL * 1024)

/* The session, or the call is answered. */
static int session_of(struct serve *s, struct mcp_call *c, const char **ret)
{
	struct ssb_error err = { 0 };

	if (binding_of(s->binding, c, ret, &err) != 0) {
		mcp_tool_fail(c, "session_unavailable", err.text,
		              "the owner looks at it with 'skillsandbox session list'");
		return -1;
	}
	if ((*ret)[0] == '\0') {
		mcp_tool_fail(c, "no_session", "runs of this server are part of no session",
		              "the owner starts it with --session ID or --session-policy FILE");
		return -1;
	}
	return 0;
}

static void fail(struct mcp_call *c, const struct ssb_error *err)
{
	mcp_tool_fail(c, err->code == SSB_E_POLICY ? "session_refused" : "session_unavailable",
	              err->text, "the owner looks at it with 'skillsandbox session show'");
}

/* While the store is open: what a session says of its policy is in it. */
static void write_answer(struct buf *out, const struct session *s, const struct decision *d)
{
	struct json j;

	buf_init(out, MAX_TEXT);
	json_init(&j, out, false);
	json_open(&j, '{');
	if (d != NULL) {
		json_kbool(&j, "allowed", d->verdict.allowed);
		json_kstr(&j, "action_taken", session_act_name(d->verdict.act));
		json_kstr(&j, "reason", d->verdict.reason);
	}
	json_key(&j, "session");
	json_open(&j, '{');
	session_json_facts(&j, s);
	session_json_bounds(&j, s);
	json_close(&j, '}');
	json_close(&j, '}');
}

static void answer(struct mcp_call *c, const struct buf *text)
{
	if (text->failed) {
		mcp_fail(c, MCP_E_INTERNAL, "the session is too large to be told");
		return;
	}
	mcp_tool_done(c, NULL, text->data, false);
}

void tool_session_status(void *app, struct mcp_call *c)
{
	struct serve *s = app;
	struct sessions *store = NULL;
	struct ssb_error err = { 0 };
	const char *id = NULL;
	auto_buf text = { 0 };
	auto_free struct session *found = calloc(1, sizeof(*found));

	if (found == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	if (session_of(s, c, &id) != 0) {
		return;
	}
	bool there = sessions_open(&s->owner, &store, &err) == 0 &&
	             session_get(store, id, found, &err) == 0;
	if (there) {
		write_answer(&text, found, NULL);
	}
	sessions_close(store);
	if (there) {
		answer(c, &text);
	} else {
		fail(c, &err);
	}
}

/* ---- report_violation -------------------------------------------------------------- */

struct report {
	struct mcp_call *call;
	struct decision d;
	struct buf text;
};

static void report_freep(struct report **r)
{
	if (*r != NULL) {
		buf_done(&(*r)->text);
	}
	free(*r);
}

static void on_acted(void *arg, bool reached)
{
	AUTO(report_freep) struct report *r = arg;

	if (reached) {
		answer(r->call, &r->text);
		return;
	}
	mcp_tool_fail(r->call, "session_unavailable",
	              "it was counted, but not every run of the session could be reached",
	              "the owner looks at it with 'skillsandbox session show'");
}

/* Counts it. The store is closed again before anything else happens: no process that is
 * forked from here has it open. */
static int count(const struct serve *s, const char *id, struct report *r, struct ssb_error *err)
{
	struct sessions *store = NULL;

	if (sessions_open(&s->owner, &store, err) != 0) {
		return -1;
	}
	int rc = session_violation(store, id, mcp_arg_string(r->call, "type"),
	                           mcp_arg_string(r->call, "details"), &r->d, err);
	if (rc == 0) {
		write_answer(&r->text, &r->d.after, &r->d);
	}
	sessions_close(store);
	return rc;
}

void tool_report_violation(void *app, struct mcp_call *c)
{
	struct serve *s = app;
	struct ssb_error err = { 0 };
	const char *id = NULL;
	AUTO(report_freep) struct report *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	if (session_of(s, c, &id) != 0) {
		return;
	}
	r->call = c;
	if (count(s, id, r, &err) != 0) {
		fail(c, &err);
	} else if (!r->d.changed && r->d.n_acted == 0 && !r->d.notify) {
		answer(c, &r->text);
	} else if (act_start(s, &r->d, on_acted, r, &err) != 0) {
		fail(c, &err);
	} else {
		(void)steal_ptr(&r);
	}
}
