/* tool_session.c - session_status and report_violation: the session that the client's runs belong
 * to. Clients can read its state and report violations, but can never loosen its limits.
 *
 * Both tools run in errands: the store has a lock, and an errand may have to wait until the runs of
 * the session have ended, for as long as the session's policy allows. The errand opens and closes
 * the store, so that no process of a run inherits the store. */
#include <stdlib.h>

#include "base/own.h"
#include "base/visible.h"
#include "report/session_json.h"
#include "serve/bind.h"
#include "serve/errand.h"
#include "session/act.h"
#include "session/session.h"

#define MAX_TEXT (1024UL * 1024)
#define LOOK     "the owner can look at it with 'skillsandbox session show'"

static void fail_call(struct mcp_call *c, const struct ssb_error *err)
{
	if (err->code == SSB_E_USAGE) {
		mcp_tool_fail(c, "invalid_arguments", err->text, "correct the arguments");
		return;
	}
	mcp_tool_fail(c, err->code == SSB_E_POLICY ? "session_refused" : "session_unavailable",
	              err->text, LOOK);
}

/* Opens the store that has the session. If this fails, answers the call with an error and returns
 * -1. */
static int open_session(const struct serve *s, struct mcp_call *c, struct bound *ret,
                        struct session_store **ret_store)
{
	struct ssb_error err = { 0 };

	bind_of(s->binding, c, ret);
	if (ret->id[0] == '\0') {
		mcp_tool_fail(c, "no_session", "the runs of this server belong to no session",
		              "the owner can start the server with --session ID or "
		              "--session-policy FILE");
		return -1;
	}
	if (bind_ensure(ret, &err) != 0 || session_store_open(&s->owner, ret_store, &err) != 0) {
		fail_call(c, &err);
		return -1;
	}
	return 0;
}

static int put_count(void *arg, const char *name, uint64_t n)
{
	auto_buf key = BUF(MAX_TEXT);

	/* The name is made visible, because the client that reports a violation chooses its
	 * name. */
	visible_text(&key, name, false);
	json_kuint(arg, key.failed ? "?" : key.data, n);
	return 0;
}

/* Writes the counts. Writes null if the store cannot read them, because 0 would be wrong. */
static void put_counts(struct json *j, struct session_store *store, const char *id)
{
	struct ssb_error err = { 0 };
	auto_buf text = BUF(MAX_TEXT);
	struct json counts = JSON_TO(&text, false);

	json_open(&counts, '{');
	int rc = session_counts(store, id, put_count, &counts, &err);
	json_close(&counts, '}');
	json_key(j, "violation_counts");
	if (rc == 0 && !text.failed) {
		json_raw(j, text.data, text.len);
	} else {
		json_null(j);
	}
}

static void answer_session(struct mcp_call *c, struct session_store *store, const struct session *s,
                           const struct decision *d)
{
	auto_buf data = BUF(MAX_TEXT);
	struct json j = JSON_TO(&data, false);

	json_open(&j, '{');
	if (d != NULL) {
		json_kbool(&j, "allowed", d->verdict.allowed);
		json_kstr(&j, "action_taken", session_act_name(d->verdict.act));
		json_kstr(&j, "reason", d->verdict.reason);
	}
	json_kopen(&j, "session", '{');
	session_json_facts(&j, s);
	session_json_bounds(&j, s);
	put_counts(&j, store, s->id);
	json_close(&j, '}');
	json_close(&j, '}');
	if (data.failed) {
		mcp_fail(c, MCP_E_INTERNAL, "the session is too large for an answer");
		return;
	}
	mcp_tool_done(c, NULL, data.data, false);
}

void tool_session_status(void *app, struct mcp_call *c)
{
	const struct serve *s = app;
	struct session_store *store = NULL;
	struct ssb_error err = { 0 };
	struct bound bound;
	auto_free struct session *found = calloc(1, sizeof(*found));

	if (found == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	if (open_session(s, c, &bound, &store) != 0) {
		return;
	}
	if (session_get(store, bound.id, found, &err) == 0) {
		answer_session(c, store, found, NULL);
	} else {
		fail_call(c, &err);
	}
	session_store_close(store);
}

/* ---- report_violation -------------------------------------------------------------- */

struct session_report {
	struct serve *serve;
	/* the field below is only used in the errand */
	struct session_store *store;
};

static void answer_counted(void *arg, struct mcp_call *c)
{
	struct session_report *r = arg;
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct bound bound;

	if (open_session(r->serve, c, &bound, &r->store) != 0) {
		return;
	}
	session_defer(r->store);
	if (session_violation(r->store, bound.id, mcp_arg_string(c, "type"),
	                      mcp_arg_string(c, "details"), &d, &err) == 0) {
		answer_session(c, r->store, &d.after, &d);
	} else {
		fail_call(c, &err);
	}
}

/* Pauses or ends the runs if the count of violations requires it, even if the client has
 * disconnected. */
static int reach_runs(void *arg)
{
	struct session_report *r = arg;
	struct decision d = { 0 };

	if (r->store != NULL && session_deferred(r->store, &d)) {
		session_act(r->store, &r->serve->owner, &d, NULL);
	}
	session_store_close(r->store);
	return d.undone.code == SSB_OK ? 0 : -1;
}

static void tell_not_reached(void *arg, struct mcp_call *c, const struct errand_end *end)
{
	(void)arg;
	mcp_tool_fail(c, "session_unavailable",
	              end->fate == ERRAND_UNDONE ? "the violation was counted, but not every run "
	                                           "of the session could be reached"
	              : end->fate == ERRAND_LATE ? "the store of sessions is busy: it is not known "
	                                           "yet whether the violation was counted"
	                                         : end->why,
	              LOOK);
}

void tool_report_violation(void *app, struct mcp_call *c)
{
	struct session_report *r = calloc(1, sizeof(*r));
	const struct errand_answer w = { .answer = answer_counted,
		                         .after = reach_runs,
		                         .failed = tell_not_reached,
		                         .free = free,
		                         .arg = r };

	if (r == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	r->serve = app;
	errand_answer(app, c, &w);
}
