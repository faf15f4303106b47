/* cmd_session_show.c - shows the state of a session and its ledger. */
#include <inttypes.h>
#include <string.h>

#include "base/stamp.h"
#include "base/error.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/line.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "cli/session_cli.h"
#include "cli/session_view.h"
#include "report/session_json.h"

#define FLUSH ((size_t)64 * 1024)

/* The state of one 'session show'. */
struct show {
	const struct session_cli *c;
	struct session s;
	struct buf out;
	struct json j;
	struct line line;
	struct buf signature; /* the newest signature line; only this one is shown */
	struct session_story *story;
	size_t rows; /* rows printed so far in the current section */
	size_t bad;
	int status;
};

static void show_done(struct show *w)
{
	session_story_free(w->story);
	line_done(&w->line);
	buf_done(&w->signature);
	buf_done(&w->out);
}

/* ---- the ledger ---------------------------------------------------------- */

static int flush_output(struct show *w)
{
	bool whole = request_has(w->c->r, FLAG_JSON) || request_has(w->c->r, FLAG_LEDGER);

	w->status = (whole ? say_out : screen_text)(STDOUT_FILENO, &w->out);
	buf_reset(&w->out);
	return w->status != EXIT_FINE;
}

static int raw_line(void *arg, const char *line, size_t len)
{
	struct show *w = arg;

	line_render_raw(&w->out, line, len, STDOUT_FILENO);
	return w->out.len > FLUSH ? flush_output(w) : 0;
}

static int short_line(void *arg, const char *line, size_t len)
{
	struct show *w = arg;
	const char *why = NULL;

	if (line_parse(&w->line, line, len, &why) != 0) {
		w->bad++;
		return 0;
	}
	buf_reset(&w->signature);
	session_view_line(w->line.kind == EV_SIGNATURE ? &w->signature : &w->out, &w->line);
	return w->out.len > FLUSH ? flush_output(w) : 0;
}

static int told_line(void *arg, const char *line, size_t len)
{
	struct show *w = arg;
	const char *why = NULL;

	if (line_parse(&w->line, line, len, &why) != 0) {
		w->bad++;
		return 0;
	}
	session_story_add(w->story, &w->line);
	return 0;
}

static int show_ledger(struct show *w, session_line_fn *fn)
{
	struct ssb_error err = { 0 };

	if (session_ledger(w->c->store, w->c->id, fn, w, &err) != 0) {
		(void)flush_output(w);
		return session_cli_fail(w->c, &err);
	}
	return w->status != EXIT_FINE ? w->status : (flush_output(w), w->status);
}

/* ---- text ---------------------------------------------------------------- */

static void print_title(struct show *w, const char *text)
{
	if (w->rows++ == 0) {
		buf_addc(&w->out, '\n');
		say_colour(&w->out, STDOUT_FILENO, SAY_BOLD, text);
		buf_addc(&w->out, '\n');
	}
}

static void add_field(struct buf *out, const char *name, const char *text)
{
	if (text[0] != '\0') {
		buf_addf(out, "%-8s ", name);
		visible_addf(out, "%s\n", text);
	}
}

static void time_field(struct buf *out, const char *name, int64_t us)
{
	struct stamp stamp = STAMP_NONE;

	if (us > 0) {
		add_field(out, name, stamp_text_us(&stamp, us));
	}
}

static void show_head(struct buf *out, const struct session *s)
{
	add_field(out, "session", s->id);
	add_field(out, "agent", s->agent);
	add_field(out, "parent", s->parent);
	buf_addf(out, "%-8s ", "state");
	say_colour(out, STDOUT_FILENO, session_view_colour(s->state), session_state_name(s->state));
	buf_addc(out, '\n');
	add_field(out, "reason", s->reason);
	add_field(out, "blocked", s->blocked);
	time_field(out, "started", s->created_us);
	time_field(out, "ended", s->ended_us);
}

static int count_text(void *arg, const char *name, uint64_t n)
{
	struct show *w = arg;
	const struct session_threshold *t = session_policy_threshold(w->s.policy, name);

	print_title(w, "violations");
	buf_addf(&w->out, "  %6" PRIu64 " x  ", n);
	visible_text(&w->out, name, false);
	if (t != NULL) {
		buf_addf(&w->out, " (at %" PRIu64 ": %s)", t->count, session_act_name(t->act));
	}
	buf_addc(&w->out, '\n');
	return 0;
}

static int run_text(void *arg, const struct session_run *r)
{
	struct show *w = arg;

	print_title(w, "running");
	buf_addf(&w->out, "  %6" PRId64 "  ", r->n);
	visible_addf(&w->out, "%s on %s", r->run_id[0] != '\0' ? r->run_id : "(starting)", r->host);
	if (strcmp(r->session, w->s.id) != 0) {
		visible_addf(&w->out, " in %s", r->session);
	}
	buf_addc(&w->out, '\n');
	return 0;
}

static int show_text(struct show *w, struct ssb_error *err)
{
	show_head(&w->out, &w->s);
	print_title(w, "budgets and limits");
	session_view_bounds(&w->out, &w->s);
	w->rows = 0;
	if (session_counts(w->c->store, w->c->id, count_text, w, err) != 0) {
		return session_cli_fail(w->c, err);
	}
	w->rows = 0;
	if (session_runs(w->c->store, w->c->id, run_text, w, err) != 0) {
		return session_cli_fail(w->c, err);
	}
	w->rows = 0;
	print_title(w, "ledger (UTC)");
	int status = show_ledger(w, short_line);
	return status != EXIT_FINE || w->signature.len == 0
	               ? status
	               : screen_text(STDOUT_FILENO, &w->signature);
}

/* ---- JSON ---------------------------------------------------------------- */

static int count_json(void *arg, const char *name, uint64_t n)
{
	json_kuint(&((struct show *)arg)->j, name, n);
	return 0;
}

static int run_json(void *arg, const struct session_run *r)
{
	struct json *j = &((struct show *)arg)->j;

	json_open(j, '{');
	json_kint(j, "run", r->n);
	json_kstr(j, "run_id", r->run_id[0] != '\0' ? r->run_id : NULL);
	json_kstr(j, "session_id", r->session);
	json_kstr(j, "host", r->host);
	session_json_time(j, "begun_at", r->begun_us);
	json_close(j, '}');
	return 0;
}

static int show_json(struct show *w, struct ssb_error *err)
{
	struct json *j = &w->j;
	const struct session_cli *c = w->c;

	w->story = session_story_new();
	if (w->story == NULL) {
		ssb_fail(err, SSB_E_NOMEM, 0, "session", "out of memory");
		return session_cli_fail(c, err);
	}
	json_init(j, &w->out, true);
	json_open(j, '{');
	session_json_facts(j, &w->s);
	session_json_bounds(j, &w->s);
	json_kopen(j, "violation_counts", '{');
	int rc = session_counts(c->store, c->id, count_json, w, err);
	json_close(j, '}');
	json_kopen(j, "runs", '[');
	rc = rc != 0 ? rc : session_runs(c->store, c->id, run_json, w, err);
	json_close(j, ']');
	if (rc != 0 || session_ledger(c->store, c->id, told_line, w, err) != 0) {
		return session_cli_fail(c, err);
	}
	session_story_json(w->story, j);
	json_close(j, '}');
	buf_addc(&w->out, '\n');
	return session_cli_out(&w->out);
}

int cmd_session_show(struct request *r)
{
	AUTO(session_cli_done) struct session_cli c = { 0 };
	AUTO(show_done) struct show w = { .c = &c };
	struct ssb_error err = { 0 };
	int status = session_cli_begin(&c, r);

	if (status != EXIT_FINE) {
		return status;
	}
	buf_init(&w.out, 8 * SAY_MAX);
	buf_init(&w.signature, SAY_MAX);
	if (session_cli_open(&c, &err) != 0 || session_get(c.store, c.id, &w.s, &err) != 0) {
		return session_cli_fail(&c, &err);
	}
	session_cli_mail(&c);
	if (request_has(r, FLAG_LEDGER)) {
		return show_ledger(&w, raw_line);
	}
	status = request_has(r, FLAG_JSON) ? show_json(&w, &err) : show_text(&w, &err);
	if (status == EXIT_FINE && w.bad > 0) {
		say_errorf("%zu lines of the ledger are damaged; see 'session show --ledger'",
		           w.bad);
		return EXIT_SANDBOX;
	}
	return status;
}
