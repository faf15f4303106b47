/* session_view.c - bars for the budgets and limits of a session. See session_view.h. */
#include "cli/session_view.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/own.h"
#include "cli/say.h"
#include "report/session_json.h"

#define BAR  20
#define FULL 1000000 /* millionths */

enum say_colour session_view_colour(enum session_state s)
{
	static const enum say_colour COLOURS[SESSION_STATES] = {
		[SESSION_ACTIVE] = SAY_GREEN,    [SESSION_ALERT] = SAY_YELLOW,
		[SESSION_PAUSED] = SAY_YELLOW,   [SESSION_KILLED] = SAY_RED,
		[SESSION_COMPLETED] = SAY_PLAIN, [SESSION_EXPIRED] = SAY_RED,
	};

	return COLOURS[s];
}

/* ---- bars ---------------------------------------------------------------- */

/* Returns how many of `parts` equal parts the share of `v` in `max` fills. Returns `parts` if `v`
 * exceeds `max`. */
static uint64_t scale_part(uint64_t v, uint64_t max, uint64_t parts)
{
	if (v >= max) {
		return v == 0 ? 0 : parts;
	}
	return (uint64_t)((double)v / (double)max * (double)parts);
}

/* Appends a bar, [#####++....], for `used` (#) and `reserved` (+); the full length means `max`. The
 * colour shows how near the maximum is. */
static void add_bar(struct buf *out, uint64_t used, uint64_t reserved, uint64_t max,
                    unsigned alert_ppm)
{
	char text[BAR + 3];
	uint64_t both = used + reserved;
	uint64_t solid = scale_part(used, max, BAR);
	uint64_t held = scale_part(both, max, BAR) - solid;
	enum say_colour colour = SAY_GREEN;

	if (both > max) {
		colour = SAY_RED;
	} else if (both > 0 && scale_part(both, max, FULL) >= alert_ppm) {
		colour = SAY_YELLOW;
	}
	text[0] = '[';
	memset(text + 1, '.', BAR);
	memset(text + 1, '#', solid);
	memset(text + 1 + solid, '+', held);
	memcpy(text + 1 + BAR, "]", 2);
	say_colour(out, STDOUT_FILENO, colour, text);
}

static void begin_row(struct buf *out, const char *name)
{
	buf_addf(out, "  %-13s ", name);
}

static void cost_row(struct buf *out, const struct session *s)
{
	const struct session_policy *p = s->policy;
	char spent[MONEY_TEXT];
	char reserved[MONEY_TEXT];
	char max[MONEY_TEXT];

	begin_row(out, "cost");
	add_bar(out, (uint64_t)s->spent, (uint64_t)s->reserved, (uint64_t)p->max_cost_per_session,
	        p->alert_at_ppm);
	buf_addf(out, " %s", money_show(s->spent, spent));
	if (s->reserved > 0) {
		buf_addf(out, " + %s reserved", money_show(s->reserved, reserved));
	}
	buf_addf(out, " of %s (%s)\n", money_show(p->max_cost_per_session, max),
	         session_act_name(p->on_exceed));
}

static void add_amount(struct buf *out, enum session_meter m, uint64_t v)
{
	if (session_meter_is_time(m)) {
		amount_time(out, (int64_t)(v < INT64_MAX / 1000 ? v * 1000 : INT64_MAX));
	} else if (m == METER_BYTES_IN || m == METER_BYTES_OUT) {
		amount_bytes_of_policy(out, v);
	} else {
		buf_addf(out, "%" PRIu64, v);
	}
}

static void limit_row(struct buf *out, const struct session *s, enum session_meter m)
{
	const struct session_limit *l = &s->policy->limits[m];

	if (l->max == SESSION_NO_LIMIT && s->meters[m] == 0) {
		return;
	}
	begin_row(out, session_meter_name(m));
	if (l->max == SESSION_NO_LIMIT) {
		buf_addf(out, "%*s ", BAR + 2, "");
		add_amount(out, m, s->meters[m]);
		buf_addc(out, '\n');
		return;
	}
	add_bar(out, s->meters[m], 0, l->max, s->policy->alert_at_ppm);
	buf_addc(out, ' ');
	add_amount(out, m, s->meters[m]);
	buf_adds(out, " of ");
	add_amount(out, m, l->max);
	buf_addf(out, " (%s)\n", session_act_name(l->act));
}

static void count_row(struct buf *out, const char *name, uint64_t v, uint64_t max, unsigned ppm,
                      enum session_act act)
{
	begin_row(out, name);
	add_bar(out, v, 0, max, ppm);
	buf_addf(out, " %" PRIu64 " of %" PRIu64 " (%s)\n", v, max, session_act_name(act));
}

void session_view_bounds(struct buf *out, const struct session *s)
{
	const struct session_policy *p = s->policy;
	int64_t age = session_age_us(s);

	cost_row(out, s);
	count_row(out, "actions", s->actions, p->max_actions, p->alert_at_ppm,
	          p->kill_enabled ? ACT_KILL : ACT_BLOCK);
	begin_row(out, "time");
	add_bar(out, (uint64_t)age / 1000, 0, p->max_duration_ms, FULL);
	buf_addc(out, ' ');
	amount_time(out, age);
	buf_adds(out, " of ");
	amount_time(out, (int64_t)p->max_duration_ms * 1000);
	buf_adds(out, " (kill)\n");
	for (enum session_meter m = 0; m < SESSION_METERS; m++) {
		limit_row(out, s, m);
	}
	if (p->all_violations.max != SESSION_NO_LIMIT) {
		count_row(out, "violations", s->violations, p->all_violations.max, p->alert_at_ppm,
		          p->all_violations.act);
	}
}
