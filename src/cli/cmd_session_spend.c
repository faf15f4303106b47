/* cmd_session_spend.c - the three things that an agent reports to its session: it wants to
 * spend money, it has spent money, or a scanner has found a violation. */
#include <inttypes.h>

#include "base/error.h"
#include "base/number.h"
#include "base/own.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "cli/session_cli.h"

/* Prints on standard error why the request was refused, or that a limit is near. */
static void say_verdict(const struct decision *d)
{
	const struct verdict *v = &d->verdict;
	auto_buf out = BUF(SAY_MAX);

	if (v->act < ACT_ALERT) {
		return;
	}
	buf_adds(&out, v->reason);
	if (d->changed && d->state != SESSION_ALERT) {
		buf_addf(&out, "; session '%s' is %s", d->decided, session_state_name(d->state));
	}
	session_cli_runs(&out, d);
	const char *text = out.failed ? v->reason : out.data;
	if (v->allowed) {
		say_notef("%s: %s", session_act_name(v->act), text);
	} else {
		say_errorf("refused: %s", text);
	}
}

/* Prints the decision: with --json as JSON, otherwise as `line`, and then only if the decision
 * allows the request. Returns the exit status. */
static int print_decision(const struct session_cli *c, const struct decision *d,
                          const struct session_told *told, const struct buf *line)
{
	int done = session_cli_done_status(d);
	int status = EXIT_FINE;

	if (request_has(c->r, FLAG_JSON)) {
		status = session_cli_json(d, told);
	} else {
		say_verdict(d);
		status = d->verdict.allowed ? screen_text(STDOUT_FILENO, line) : EXIT_FINE;
	}
	return !d->verdict.allowed ? EXIT_FINDINGS : done != EXIT_FINE ? done : status;
}

int cmd_session_check(struct request *r)
{
	AUTO(session_cli_done) struct session_cli c = { 0 };
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	micros estimate = 0;
	bool given = false;
	auto_buf line = BUF(SAY_MAX);
	int status = session_cli_begin(&c, r);
	if (status != EXIT_FINE) {
		return status;
	}
	const char *action = request_value(r, FLAG_ACTION);
	struct session_told told = { .action = action != NULL ? action : "action" };
	if (session_cli_cost(&c, &estimate, &given, &err) != 0 || session_cli_open(&c, &err) != 0 ||
	    session_check(c.store, c.id, told.action, estimate, &d, &err) != 0) {
		return session_cli_fail(&c, &err);
	}
	buf_addf(&line, "%" PRId64 "\n", d.reservation);
	return print_decision(&c, &d, &told, &line);
}

static int parse_reservation(const char *text, int64_t *ret, struct ssb_error *err)
{
	uint64_t n = 0;

	if (!number_parse(text, 0, INT64_MAX, &n)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "'%.40s' is not a reservation; write the number that 'session "
		                "check' printed",
		                text);
	}
	*ret = (int64_t)n;
	return 0;
}

/* Parses the number of the reservation and the cost. With --release the action did not happen,
 * and *ret is negative. */
static int parse_settle(struct session_cli *c, int64_t *ret_n, micros *ret, struct ssb_error *err)
{
	bool release = request_has(c->r, FLAG_RELEASE);
	bool given = false;

	if (parse_reservation(c->id, ret_n, err) != 0 ||
	    session_cli_cost(c, ret, &given, err) != 0) {
		return -1;
	}
	if (given == release) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "session settle needs one of: --cost USD; --model with --tokens-in "
		                "and --tokens-out; --release");
	}
	*ret = release ? -1 : *ret;
	return 0;
}

int cmd_session_settle(struct request *r)
{
	AUTO(session_cli_done) struct session_cli c = { 0 };
	struct session_told told = { .action = "settle" };
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	int64_t n = 0;
	micros actual = 0;
	char cost[MONEY_TEXT];
	char spent[MONEY_TEXT];
	char budget[MONEY_TEXT];
	auto_buf line = BUF(SAY_MAX);
	int status = session_cli_begin(&c, r);
	if (status != EXIT_FINE) {
		return status;
	}
	if (parse_settle(&c, &n, &actual, &err) != 0 || session_cli_open(&c, &err) != 0 ||
	    session_settle(c.store, n, actual, &d, &err) != 0) {
		return session_cli_fail(&c, &err);
	}
	d.reservation = n;
	buf_addf(&line, "%s; session '%s' has spent %s of %s\n",
	         actual < 0 ? "released" : money_show(d.amount, cost), d.session,
	         money_show(d.after.spent, spent),
	         money_show(d.after.policy->max_cost_per_session, budget));
	return print_decision(&c, &d, &told, &line);
}

int cmd_session_violation(struct request *r)
{
	AUTO(session_cli_done) struct session_cli c = { 0 };
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	auto_buf line = BUF(SAY_MAX);
	int status = session_cli_begin(&c, r);
	if (status != EXIT_FINE) {
		return status;
	}
	struct session_told told = { .type = request_value(r, FLAG_TYPE) };
	if (told.type == NULL) {
		ssb_fail(&err, SSB_E_USAGE, 0, "",
		         "session violation needs --type NAME, such as pii_blocked");
		return session_cli_fail(&c, &err);
	}
	if (session_cli_open(&c, &err) != 0 ||
	    session_violation(c.store, c.id, told.type, request_value(r, FLAG_DETAILS), &d, &err) !=
	            0) {
		return session_cli_fail(&c, &err);
	}
	buf_addf(&line, "counted; session '%s' has %" PRIu64 " violation%s\n", d.session,
	         d.after.violations, d.after.violations == 1 ? "" : "s");
	return print_decision(&c, &d, &told, &line);
}
