/* session_json.c - writes a session. */
#include "report/session_json.h"

#include <assert.h>
#include <time.h>

#include "base/stamp.h"
#include "os/clock.h"

int64_t session_age_us(const struct session *s)
{
	int64_t until = s->ended_us != 0 ? s->ended_us : clock_wall_us();

	return until > s->created_us ? until - s->created_us : 0;
}

void session_json_time(struct json *j, const char *key, int64_t us)
{
	struct stamp stamp = STAMP_NONE;

	json_kstr(j, key, us > 0 ? stamp_text_us(&stamp, us) : NULL);
}

void session_json_facts(struct json *j, const struct session *s)
{
	assert(s->policy != NULL);
	json_kstr(j, "session_id", s->id);
	json_kstr(j, "parent", s->parent[0] != '\0' ? s->parent : NULL);
	json_kstr(j, "agent_id", s->agent);
	json_kstr(j, "state", session_state_name(s->state));
	json_kstr(j, "reason", s->reason);
	json_kstr(j, "blocked", s->blocked[0] != '\0' ? s->blocked : NULL);
	json_kstr(j, "kill_reason",
	          s->state == SESSION_KILLED || s->state == SESSION_EXPIRED ? s->reason : NULL);
	session_json_time(j, "created_at", s->created_us);
	session_json_time(j, "ended_at", s->ended_us);
	json_kmillionths(j, "duration_seconds", session_age_us(s));
	json_kmillionths(j, "total_cost_usd", s->spent);
	json_kmillionths(j, "reserved_usd", s->reserved);
	json_kmillionths(j, "max_cost_usd", s->policy->max_cost_per_session);
	json_kuint(j, "action_count", s->actions);
	json_kuint(j, "violation_count", s->violations);
}

static void put_limits(struct json *j, const struct session *s)
{
	const struct session_policy *p = s->policy;

	json_kopen(j, "limits", '{');
	for (enum session_meter m = 0; m < SESSION_METERS; m++) {
		if (p->limits[m].max == SESSION_NO_LIMIT) {
			continue;
		}
		json_kopen(j, session_meter_name(m), '{');
		session_meter_json(j, "max", m, p->limits[m].max);
		json_kstr(j, "on_exceed", session_act_name(p->limits[m].act));
		json_close(j, '}');
	}
	if (p->all_violations.max != SESSION_NO_LIMIT) {
		json_kopen(j, "violations", '{');
		json_kuint(j, "max", p->all_violations.max);
		json_kstr(j, "on_exceed", session_act_name(p->all_violations.act));
		json_close(j, '}');
	}
	json_close(j, '}');
}

void session_json_bounds(struct json *j, const struct session *s)
{
	const struct session_policy *p = s->policy;

	json_kopen(j, "budget", '{');
	json_kmillionths(j, "max_cost_per_session", p->max_cost_per_session);
	json_kmillionths(j, "max_cost_per_action", p->max_cost_per_action);
	json_kmillionths(j, "alert_at", p->alert_at_ppm); /* a fraction of one, with six decimals */
	json_kstr(j, "on_exceed", session_act_name(p->on_exceed));
	json_kmillionths(j, "max_duration_seconds", (int64_t)p->max_duration_ms * 1000);
	json_kuint(j, "max_actions", p->max_actions);
	json_close(j, '}');
	put_limits(j, s);
	json_kopen(j, "thresholds", '{');
	for (size_t i = 0; i < p->n_thresholds; i++) {
		json_kuint(j, p->thresholds[i].name, p->thresholds[i].count);
	}
	json_close(j, '}');
	json_kopen(j, "meters", '{');
	for (enum session_meter m = 0; m < SESSION_METERS; m++) {
		session_meter_json(j, session_meter_name(m), m, s->meters[m]);
	}
	json_close(j, '}');
}
