/* cmd_session_list.c - lists sessions, newest first. */
#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "cli/session_cli.h"
#include "cli/session_view.h"
#include "report/session_json.h"

#define ID_COLUMNS 12 /* a longer id moves the rest of its row */

struct list {
	struct buf out;
	struct json j;
	bool as_json;
	size_t n;
};

static void row_json(struct json *j, const struct session *s)
{
	json_open(j, '{');
	session_json_facts(j, s);
	json_close(j, '}');
}

static void row_text(struct buf *out, const struct session *s)
{
	char spent[MONEY_TEXT];
	char budget[MONEY_TEXT];
	char cost[2 * MONEY_TEXT + 8];
	char state[16];
	auto_buf age = BUF(SAY_MAX);

	amount_time(&age, session_age_us(s));
	visible_addf(out, "%s", s->id);
	buf_addf(out, "%*s  ", strlen(s->id) < ID_COLUMNS ? (int)(ID_COLUMNS - strlen(s->id)) : 0,
	         "");
	snprintf(state, sizeof(state), "%-9s", session_state_name(s->state));
	say_colour(out, STDOUT_FILENO, session_view_colour(s->state), state);
	snprintf(cost, sizeof(cost), "%s of %s", money_show(s->spent, spent),
	         money_show(s->policy->max_cost_per_session, budget));
	buf_addf(out, "  %7s  %-15s  %7" PRIu64 "  %10" PRIu64 "  ", age.data, cost, s->actions,
	         s->violations);
	visible_addf(out, "%s%s%s\n", s->agent, s->parent[0] != '\0' ? " in " : "", s->parent);
}

static int add_row(void *arg, const struct session *s)
{
	struct list *l = arg;

	if (l->as_json) {
		row_json(&l->j, s);
	} else {
		if (l->n == 0) {
			buf_adds(&l->out,
			         "session       state          age  spent            actions"
			         "  violations  agent\n");
		}
		row_text(&l->out, s);
	}
	l->n++;
	return 0;
}

static void list_done(struct list *l)
{
	buf_done(&l->out);
}

int cmd_session_list(struct request *r)
{
	AUTO(session_cli_done) struct session_cli c = { 0 };
	AUTO(list_done) struct list l = { .as_json = request_has(r, FLAG_JSON) };
	struct ssb_error err = { 0 };
	int status = session_cli_begin(&c, r);

	if (status != EXIT_FINE) {
		return status;
	}
	if (session_cli_open(&c, &err) != 0) {
		return session_cli_fail(&c, &err);
	}
	buf_init(&l.out, 8 * SAY_MAX);
	if (l.as_json) {
		json_init(&l.j, &l.out, true);
		json_open(&l.j, '{');
		json_kopen(&l.j, "sessions", '[');
	}
	int rc = session_each(c.store, request_has(r, FLAG_ALL), add_row, &l, &err);
	session_cli_mail(&c);
	if (rc != 0 && l.as_json) {
		return session_cli_fail(&c, &err);
	}
	if (l.as_json) {
		json_close(&l.j, ']');
		json_close(&l.j, '}');
		buf_addc(&l.out, '\n');
	}
	status = l.as_json ? session_cli_out(&l.out)
	                   : screen_rows(STDOUT_FILENO,
	                                 &l.out); /* prints the readable rows even after an error */
	return rc != 0 ? session_cli_fail(&c, &err) : status;
}
