/* engine.c - decides in the order that engine.h gives, and the first refusal wins. Meters
 * and violations are judged together, and the hardest verdict wins. Sums and products are
 * 128 bits wide, so that no policy and no total can make them overflow. */
#include "session/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PPM 1000000

__extension__ typedef __int128 wide;

/* ---- words --------------------------------------------------------------- */

/* Returns `act`. If the policy has turned the kill switch off (kill_enabled), a kill becomes a
 * block. */
static enum session_act lower_act(const struct session *s, enum session_act act)
{
	return act == ACT_KILL && !s->policy->kill_enabled ? ACT_BLOCK : act;
}

static struct verdict make_verdict(enum session_act act, enum verdict_code code, const char *fmt,
                                   ...) __attribute__((format(printf, 3, 4)));

static struct verdict make_verdict(enum session_act act, enum verdict_code code, const char *fmt,
                                   ...)
{
	struct verdict v = { .allowed = act < ACT_BLOCK, .act = act, .code = code };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(v.reason, sizeof(v.reason), fmt, ap);
	va_end(ap);
	return v;
}

static struct verdict all_good(void)
{
	return (struct verdict){
		.allowed = true, .act = ACT_LOG, .code = VERDICT_OK, .reason = "within the policy"
	};
}

static bool is_ok(const struct verdict *v)
{
	return v->code == VERDICT_OK;
}

/* Keeps the harder of the two verdicts and appends the reason of the other. */
static void add_verdict(struct verdict *v, const struct verdict *more)
{
	bool wins = more->act > v->act || is_ok(v);
	struct verdict other = wins ? *v : *more;

	if (wins) {
		*v = *more;
	}
	v->tells = v->tells || other.tells;
	size_t len = strlen(v->reason);
	if (!is_ok(&other)) {
		snprintf(v->reason + len, sizeof(v->reason) - len, "; %s", other.reason);
	}
}

/* ---- states -------------------------------------------------------------- */

enum session_state engine_next(const struct session *s, enum session_act act)
{
	assert(s->policy != NULL && (unsigned)act < SESSION_ACTS);

	enum session_state to = s->state;

	switch (lower_act(s, act)) {
	case ACT_LOG:
	case ACT_BLOCK:
	case SESSION_ACTS:
		break;
	case ACT_ALERT:
		/* The table allows a paused session to become alert. That would resume it, which
		 * only the owner may do. */
		to = s->state == SESSION_ACTIVE ? SESSION_ALERT : to;
		break;
	case ACT_PAUSE:
		to = SESSION_PAUSED;
		break;
	case ACT_KILL:
		to = SESSION_KILLED;
		break;
	}
	return session_may_become(s->state, to) ? to : s->state;
}

int64_t engine_deadline(const struct session *s)
{
	assert(s->policy != NULL);
	wide at = (wide)s->created_us + (wide)s->policy->max_duration_ms * 1000;

	return at > INT64_MAX ? INT64_MAX : (int64_t)at;
}

static struct verdict is_over(const struct session *s)
{
	return make_verdict(ACT_BLOCK, VERDICT_OVER, "the session is %s%s%s",
	                    session_state_name(s->state), s->reason[0] != '\0' ? ": " : "",
	                    s->reason);
}

/* kill_enabled does not apply to expiry: no run may continue in a session that has expired. */
static struct verdict time_is_over(const struct session *s)
{
	return make_verdict(ACT_KILL, VERDICT_MAX_DURATION,
	                    "the session is older than %" PRIu64 ".%03u seconds",
	                    s->policy->max_duration_ms / 1000,
	                    (unsigned)(s->policy->max_duration_ms % 1000));
}

/* The checks that actions and runs have in common. */
static struct verdict may_begin(const struct session *s, int64_t now_us)
{
	if (session_is_over(s->state)) {
		return is_over(s);
	}
	if (s->state == SESSION_PAUSED) {
		return make_verdict(ACT_BLOCK, VERDICT_PAUSED, "the session is paused%s%s",
		                    s->reason[0] != '\0' ? ": " : "", s->reason);
	}
	if (now_us > engine_deadline(s)) {
		return time_is_over(s);
	}
	if (s->blocked[0] != '\0') {
		return make_verdict(ACT_BLOCK, VERDICT_THRESHOLD, "%s", s->blocked);
	}
	if (s->actions >= s->policy->max_actions) {
		return make_verdict(lower_act(s, ACT_KILL), VERDICT_MAX_ACTIONS,
		                    "the session has used all its %" PRIu64 " actions",
		                    s->policy->max_actions);
	}
	return all_good();
}

/* ---- money --------------------------------------------------------------- */

/* Returns true if `used` has reached the share `ppm` (millionths) of `max`. If both `used` and
 * `max` are 0, a share above 0 is not reached. */
static bool reaches_share(wide used, wide max, unsigned ppm)
{
	return (used > 0 || ppm == 0) && used * PPM >= max * ppm;
}

static micros clamp_shown(wide v)
{
	return v > INT64_MAX ? INT64_MAX : (micros)v;
}

/* `total` is all money that is spent or reserved, and is compared with the alert share of the
 * budget. `sure` is the part of `total` that is compared with the budget itself. */
static struct verdict of_budget(const struct session *s, wide sure, wide total)
{
	const struct session_policy *p = s->policy;
	char a[MONEY_TEXT];
	char b[MONEY_TEXT];
	bool alert = reaches_share(total, p->max_cost_per_session, p->alert_at_ppm);

	if (sure > p->max_cost_per_session) {
		enum session_act act = lower_act(s, p->on_exceed);
		if (act == ACT_LOG && alert && s->state == SESSION_ACTIVE) {
			/* The cost passed the alert share and the budget in one step: the alert
			 * must still be sent. */
			act = ACT_ALERT;
		}
		return make_verdict(act, VERDICT_MAX_COST_PER_SESSION,
		                    "a total of %s is more than the session's budget of %s",
		                    money_show(clamp_shown(sure), a),
		                    money_show(p->max_cost_per_session, b));
	}
	if (alert) {
		return make_verdict(ACT_ALERT, VERDICT_ALERT_AT, "%s of %s is spent or reserved",
		                    money_show(clamp_shown(total), a),
		                    money_show(p->max_cost_per_session, b));
	}
	return all_good();
}

struct verdict engine_check(const struct session *s, micros estimate, int64_t now_us)
{
	assert(s->policy != NULL);

	struct verdict v = may_begin(s, now_us);
	char a[MONEY_TEXT];
	char b[MONEY_TEXT];

	if (!v.allowed) {
		return v;
	}
	if (estimate < 0 || estimate > MAX_MICROS) {
		return make_verdict(ACT_BLOCK, VERDICT_AMOUNT,
		                    "%s is not an amount that can be spent",
		                    money_show(estimate, a));
	}
	if (estimate > s->policy->max_cost_per_action) {
		return make_verdict(
		        ACT_BLOCK, VERDICT_MAX_COST_PER_ACTION,
		        "an action of %s costs more than the %s that one action may cost",
		        money_show(estimate, a), money_show(s->policy->max_cost_per_action, b));
	}
	wide total = (wide)s->spent + s->reserved + estimate;
	return of_budget(s, total, total);
}

struct verdict engine_settle(const struct session *s, micros actual, micros estimate)
{
	assert(s->policy != NULL && actual >= 0 && estimate >= 0);

	const struct session_policy *p = s->policy;
	char a[MONEY_TEXT];
	char b[MONEY_TEXT];

	if (session_is_over(s->state)) {
		return make_verdict(ACT_LOG, VERDICT_OVER,
		                    "the session is %s; the cost is recorded",
		                    session_state_name(s->state));
	}
	struct verdict v = of_budget(s, s->spent, (wide)s->spent + s->reserved);
	if (actual > p->max_cost_per_action) {
		struct verdict dear = make_verdict(ACT_ALERT, VERDICT_MAX_COST_PER_ACTION,
		                                   "an action that was estimated at %s has cost %s",
		                                   money_show(estimate, a), money_show(actual, b));
		add_verdict(&v, &dear);
	}
	/* The money is already spent, so a block cannot refuse it. A message is the only way in
	 * which the owner learns of the block. */
	v.tells = v.act >= ACT_ALERT;
	v.allowed = true;
	return v;
}

/* ---- violations ---------------------------------------------------------- */

/* Returns true if `count` is exactly `at`, or is above `at` and `act` still has an effect. */
static bool acts_at(const struct session *s, enum session_act act, uint64_t count, uint64_t at)
{
	return count == at || (count > at && (act == ACT_BLOCK || engine_next(s, act) != s->state));
}

static struct verdict of_total(const struct session *s)
{
	const struct session_limit *l = &s->policy->all_violations;
	enum session_act act = lower_act(s, l->act);

	if (l->max == SESSION_NO_LIMIT || !acts_at(s, act, s->violations, l->max + 1)) {
		return all_good();
	}
	return make_verdict(act, VERDICT_VIOLATIONS,
	                    "%" PRIu64 " violations, more than the limit of %" PRIu64,
	                    s->violations, l->max);
}

struct verdict engine_violation(const struct session *s, const char *name, uint64_t count)
{
	assert(s->policy != NULL && name != NULL);

	const struct session_threshold *t = session_policy_threshold(s->policy, name);
	struct verdict v = all_good();

	if (session_is_over(s->state)) {
		return is_over(s);
	}
	if (t != NULL && acts_at(s, lower_act(s, t->act), count, t->count)) {
		v = make_verdict(lower_act(s, t->act), VERDICT_THRESHOLD,
		                 "%s: %" PRIu64 " times, the threshold is %" PRIu64, name, count,
		                 t->count);
	}
	struct verdict total = of_total(s);
	add_verdict(&v, &total);
	return v;
}

/* ---- runs and meters ----------------------------------------------------- */

static const char *meter_text(enum session_meter m, uint64_t v, char out[48])
{
	if (session_meter_is_time(m)) {
		snprintf(out, 48, "%" PRIu64 ".%03u", v / 1000, (unsigned)(v % 1000));
	} else {
		snprintf(out, 48, "%" PRIu64, v);
	}
	return out;
}

/* Judges a meter that grew from `before` to `now`. A limit acts when it is passed. A limit that
 * blocks or kills acts again at each later report, because every other run has to learn of it. A
 * limit that pauses does not: if the owner resumed the session, it continues. */
static struct verdict of_meter(const struct session *s, enum session_meter m, uint64_t before,
                               uint64_t now)
{
	const struct session_limit *l = &s->policy->limits[m];
	enum session_act act = lower_act(s, l->act);
	unsigned ppm = s->policy->alert_at_ppm;
	char a[48];
	char b[48];

	if (l->max == SESSION_NO_LIMIT) {
		return all_good();
	}
	bool nearly = now > before && reaches_share(now, l->max, ppm) &&
	              (before == 0 || !reaches_share(before, l->max, ppm));
	struct verdict v = all_good();
	if (now > l->max && (before <= l->max || act == ACT_BLOCK || act == ACT_KILL)) {
		v = make_verdict(act, VERDICT_METER + m, "%s: %s, more than %s",
		                 session_meter_name(m), meter_text(m, now, a),
		                 meter_text(m, l->max, b));
	} else if (now <= l->max && nearly) {
		v = make_verdict(ACT_ALERT, VERDICT_METER + m, "%s: %s of %s",
		                 session_meter_name(m), meter_text(m, now, a),
		                 meter_text(m, l->max, b));
	}
	v.tells = nearly; /* true even if the meter passed alert_at and the limit in one step */
	return v;
}

bool engine_blocks(const struct verdict *v)
{
	return v->act == ACT_BLOCK &&
	       (v->code == VERDICT_THRESHOLD || v->code == VERDICT_VIOLATIONS);
}

struct verdict engine_run(const struct session *s, int64_t now_us)
{
	assert(s->policy != NULL);

	struct verdict v = may_begin(s, now_us);

	if (!v.allowed) {
		return v;
	}
	v = of_total(s);
	if (v.allowed) {
		v = all_good(); /* the alert was given when the violation was counted */
	}
	for (enum session_meter m = METER_RUNS; m < SESSION_METERS; m++) {
		uint64_t now = s->meters[m] + (m == METER_RUNS ? 1 : 0);
		enum session_act act = lower_act(s, s->policy->limits[m].act);
		/* A limit that was passed earlier still refuses. With `before` as 0, of_meter()
		 * acts again. */
		bool refuses = act == ACT_BLOCK || act == ACT_KILL ||
		               (m == METER_RUNS && act == ACT_PAUSE);
		struct verdict one = of_meter(
		        s, m, refuses && now > s->policy->limits[m].max ? 0 : s->meters[m], now);
		add_verdict(&v, &one);
	}
	return v;
}

struct verdict engine_meter(const struct session *s, const uint64_t before[SESSION_METERS],
                            int64_t now_us)
{
	struct verdict v = all_good();

	assert(s->policy != NULL);
	if (session_is_over(s->state)) {
		return is_over(s);
	}
	if (now_us > engine_deadline(s)) {
		return time_is_over(s);
	}
	for (enum session_meter m = METER_RUNS; m < SESSION_METERS; m++) {
		struct verdict one = of_meter(s, m, before[m], s->meters[m]);
		add_verdict(&v, &one);
	}
	return v;
}
