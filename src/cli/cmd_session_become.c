/* cmd_session_become.c - what the owner says: pause, resume, kill, complete,
 * expire. */
#include <inttypes.h>
#include <time.h>

#include "base/error.h"
#include "base/own.h"
#include "cli/say.h"
#include "cli/session_cli.h"

#define OWNER "by the owner" /* where no reason is given */

static const struct {
	unsigned bit;
	enum session_state to;
	const char *action;
} WORDS[] = {
	{ ON_S_PAUSE, SESSION_PAUSED, "pause" },
	{ ON_S_RESUME, SESSION_ACTIVE, "resume" },
	{ ON_S_KILL, SESSION_KILLED, "kill" },
	{ ON_S_COMPLETE, SESSION_COMPLETED, "complete" },
	{ ON_S_EXPIRE, SESSION_EXPIRED, "expire" },
};

static size_t word_of(const struct request *r)
{
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(WORDS) && WORDS[i].bit != r->command->bit) {
		i++;
	}
	return i;
}

/* ---- one session --------------------------------------------------------- */

static int parse_words(const struct session_cli *c, uint64_t *ret, struct ssb_error *err)
{
	const char *text = request_value(c->r, FLAG_GRACE);

	if (c->id == NULL && request_has(c->r, FLAG_REASON)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--reason is for one session: name its ID");
	}
	if (text != NULL && !duration_parse(text, ret)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--grace: '%.40s' is no time; write 5s or 1m", text);
	}
	return 0;
}

static int tell(const struct session_cli *c, const struct decision *d, const char *action,
                const struct act_report *runs)
{
	auto_buf out;

	buf_init(&out, SAY_MAX);
	if (request_has(c->r, FLAG_JSON)) {
		return session_cli_json(d,
		                        &(struct session_told){ .action = action, .runs = runs });
	}
	buf_adds(&out, "session '");
	say_escape(&out, d->session, false);
	buf_addf(&out, "' is %s", session_state_name(d->after.state));
	session_cli_runs(&out, d, runs);
	buf_addc(&out, '\n');
	return say_out(STDOUT_FILENO, &out);
}

/* A kill that was cut short is in the store, but not everywhere else: whoever
 * kills once more means it. */
static int end_what_is_left(const struct session_cli *c, struct ssb_error *err)
{
	struct decision d = { .changed = true, .verdict.act = ACT_KILL };
	struct act_report runs = { 0 };
	struct session s;

	if (session_get(c->store, c->id, &s, err) != 0) {
		return -1;
	}
	if (!session_is_over(s.state)) {
		return 0;
	}
	snprintf(d.decided, sizeof(d.decided), "%s", c->id);
	snprintf(d.verdict.reason, sizeof(d.verdict.reason), "%s", s.reason);
	d.state = s.state;
	if (session_cli_act(c, &d, &runs, err) != 0) {
		return -1;
	}
	if (runs.runs > 0) {
		say_notef("%zu run%s that had been left %s ended", runs.runs,
		          runs.runs == 1 ? "" : "s", runs.runs == 1 ? "is" : "are");
	}
	return 0;
}

static int become(const struct session_cli *c, uint64_t grace)
{
	size_t word = word_of(c->r);
	const char *reason = request_value(c->r, FLAG_REASON);
	struct act_report runs = { 0 };
	struct decision d = { 0 };
	struct ssb_error err = { 0 };
	struct ssb_error why = { 0 };

	if (session_become(c->store, c->id, WORDS[word].to,
	                   reason != NULL && reason[0] != '\0' ? reason : OWNER, &d, &err) != 0) {
		if (err.code == SSB_E_POLICY && WORDS[word].to == SESSION_KILLED &&
		    end_what_is_left(c, &why) != 0) {
			return session_cli_fail(c, &why);
		}
		return session_cli_fail(c, &err);
	}
	d.grace_ms = grace;
	int acted = session_cli_act(c, &d, &runs, &err);
	if (acted != 0) {
		say_error(&err);
	}
	int status = tell(c, &d, WORDS[word].action, &runs);
	return acted != 0 ? EXIT_SANDBOX : status;
}

/* ---- all whose time is over ---------------------------------------------- */

struct sweep {
	const struct session_cli *c;
	int64_t since_us;
	size_t expired;
	size_t runs;
	int failed;
};

static int sweep_one(void *arg, const struct session *s)
{
	struct sweep *w = arg;
	struct decision d = { .changed = true, .state = SESSION_EXPIRED };
	struct act_report runs = { 0 };
	struct ssb_error err = { 0 };

	if (s->state != SESSION_EXPIRED || s->ended_us < w->since_us) {
		return 0;
	}
	snprintf(d.decided, sizeof(d.decided), "%s", s->id);
	snprintf(d.verdict.reason, sizeof(d.verdict.reason), "%s", s->reason);
	d.verdict.act = ACT_KILL;
	d.grace_ms = s->policy->grace_ms;
	w->expired++;
	if (session_cli_act(w->c, &d, &runs, &err) != 0) {
		say_error(&err);
		w->failed = EXIT_SANDBOX;
	}
	w->runs += runs.runs;
	return 0;
}

static int64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int sweep(const struct session_cli *c)
{
	struct sweep w = { .c = c, .since_us = now_us() };
	struct ssb_error err = { 0 };
	struct json j;
	auto_buf out;

	buf_init(&out, SAY_MAX);
	/* Listing is what makes them expire; then they are told from the others. */
	if (sessions_each(c->store, true, sweep_one, &w, &err) != 0) {
		return session_cli_fail(c, &err);
	}
	session_cli_mail(c);
	if (request_has(c->r, FLAG_JSON)) {
		json_init(&j, &out, true);
		json_open(&j, '{');
		json_kuint(&j, "expired", w.expired);
		json_kuint(&j, "runs", w.runs);
		json_close(&j, '}');
		buf_addc(&out, '\n');
	} else {
		buf_addf(&out, "%zu session%s expired; %zu run%s ended\n", w.expired,
		         w.expired == 1 ? "" : "s", w.runs, w.runs == 1 ? "" : "s");
	}
	int status = say_out(STDOUT_FILENO, &out);
	return w.failed != 0 ? w.failed : status;
}

int cmd_session_become(struct request *r)
{
	AUTO(session_cli_done) struct session_cli c = { 0 };
	struct ssb_error err = { 0 };
	uint64_t grace = 0;
	int status = session_cli_begin(&c, r);

	if (status != EXIT_FINE) {
		return status;
	}
	if (parse_words(&c, &grace, &err) != 0 || session_cli_open(&c, &err) != 0) {
		return session_cli_fail(&c, &err);
	}
	return c.id != NULL ? become(&c, grace) : sweep(&c);
}
