/* tool_session.c - session_status and report_violation: the session that the client's
 * runs are part of. It can be looked at and blamed from here, never loosened. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "report/session_json.h"
#include "serve/bind.h"
#include "session/act.h"
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

static void answer(struct mcp_call *c, const struct session *s, const struct decision *d)
{
	auto_buf data;
	struct json j;

	buf_init(&data, MAX_TEXT);
	json_init(&j, &data, false);
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
	if (data.failed) {
		mcp_fail(c, MCP_E_INTERNAL, "the session is too large to be told");
		return;
	}
	mcp_tool_done(c, NULL, data.data, false);
}

void tool_session_status(void *app, struct mcp_call *c)
{
	struct serve *s = app;
	struct sessions *store = NULL;
	struct ssb_error err = { 0 };
	const char *id = NULL;
	auto_free struct session *found = calloc(1, sizeof(*found));

	if (found == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	if (session_of(s, c, &id) != 0) {
		return;
	}
	if (sessions_open(&s->owner, &store, &err) == 0 &&
	    session_get(store, id, found, &err) == 0) {
		answer(c, found, NULL);
	} else {
		fail(c, &err);
	}
	sessions_close(store);
}

void tool_report_violation(void *app, struct mcp_call *c)
{
	struct serve *s = app;
	struct sessions *store = NULL;
	struct act_report acted = { 0 };
	struct ssb_error err = { 0 };
	const char *id = NULL;
	auto_free struct decision *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	if (session_of(s, c, &id) != 0) {
		return;
	}
	if (sessions_open(&s->owner, &store, &err) == 0 &&
	    session_violation(store, id, mcp_arg_string(c, "type"), mcp_arg_string(c, "details"), d,
	                      &err) == 0 &&
	    session_act(store, &s->owner, d, NULL, &acted, &err) == 0) {
		answer(c, &d->after, d);
	} else {
		fail(c, &err);
	}
	sessions_close(store);
}
