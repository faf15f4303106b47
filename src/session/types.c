/* types.c - names of states, actions, meters and codes; the table of transitions. */
#include "session/types.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"

static const char *const STATES[SESSION_STATES] = {
	[SESSION_ACTIVE] = "active",       [SESSION_ALERT] = "alert",
	[SESSION_PAUSED] = "paused",       [SESSION_KILLED] = "killed",
	[SESSION_COMPLETED] = "completed", [SESSION_EXPIRED] = "expired",
};

static const char *const ACTS[SESSION_ACTS] = {
	[ACT_LOG] = "log",     [ACT_ALERT] = "alert", [ACT_BLOCK] = "block",
	[ACT_PAUSE] = "pause", [ACT_KILL] = "kill",
};

static const char *const NOTIFIES[NOTIFY_KINDS] = {
	[NOTIFY_SLACK] = "slack",
	[NOTIFY_JSON] = "webhook",
	[NOTIFY_PAGERDUTY] = "pagerduty",
	[NOTIFY_OTEL] = "otel",
};

static const char *const OUTBOX[OUTBOX_STATES] = {
	[OUTBOX_WAITING] = "retry",
	[OUTBOX_DELIVERED] = "sent",
	[OUTBOX_GIVEN_UP] = "failed",
};

/* The names in the policy file, which has seconds instead of milliseconds. */
static const char *const METERS[SESSION_METERS] = {
	[METER_RUNS] = "runs",
	[METER_CPU_MS] = "cpu_seconds",
	[METER_WALL_MS] = "wall_seconds",
	[METER_BYTES_OUT] = "bytes_out",
	[METER_BYTES_IN] = "bytes_in",
	[METER_CONNECTIONS] = "connections",
	[METER_DOMAINS] = "domains",
};

static const char *const CODES[VERDICT_METER] = {
	[VERDICT_OK] = "ok",
	[VERDICT_OWNER] = "owner",
	[VERDICT_OVER] = "session_over",
	[VERDICT_PAUSED] = "session_paused",
	[VERDICT_MAX_DURATION] = "max_duration",
	[VERDICT_MAX_ACTIONS] = "max_actions",
	[VERDICT_AMOUNT] = "amount",
	[VERDICT_MAX_COST_PER_ACTION] = "max_cost_per_action",
	[VERDICT_MAX_COST_PER_SESSION] = "max_cost_per_session",
	[VERDICT_ALERT_AT] = "alert_at",
	[VERDICT_THRESHOLD] = "threshold",
	[VERDICT_VIOLATIONS] = "violations",
};

#define TO(s) (1U << SESSION_##s)

/* The states that may follow each state. No state may follow an end state. */
static const unsigned NEXT[SESSION_STATES] = {
	[SESSION_ACTIVE] = TO(ALERT) | TO(PAUSED) | TO(KILLED) | TO(COMPLETED) | TO(EXPIRED),
	[SESSION_ALERT] = TO(PAUSED) | TO(KILLED) | TO(COMPLETED) | TO(EXPIRED),
	[SESSION_PAUSED] = TO(ACTIVE) | TO(ALERT) | TO(KILLED) | TO(COMPLETED) | TO(EXPIRED),
};

const char *session_state_name(enum session_state s)
{
	assert((unsigned)s < SESSION_STATES);
	return STATES[s];
}

const char *session_act_name(enum session_act a)
{
	assert((unsigned)a < SESSION_ACTS);
	return ACTS[a];
}

enum session_act session_act_from(const char *name)
{
	return (enum session_act)name_index(name, ACTS, SESSION_ACTS, sizeof(ACTS[0]));
}

const char *session_notify_name(enum notify_kind k)
{
	assert((unsigned)k < NOTIFY_KINDS);
	return NOTIFIES[k];
}

enum notify_kind session_notify_from(const char *name)
{
	return (enum notify_kind)name_index(name, NOTIFIES, NOTIFY_KINDS, sizeof(NOTIFIES[0]));
}

const char *session_outbox_name(enum outbox_state s)
{
	assert((unsigned)s < OUTBOX_STATES);
	return OUTBOX[s];
}

enum outbox_state session_outbox_from(const char *name)
{
	return (enum outbox_state)name_index(name, OUTBOX, OUTBOX_STATES, sizeof(OUTBOX[0]));
}

const char *session_meter_name(enum session_meter m)
{
	assert((unsigned)m < SESSION_METERS);
	return METERS[m];
}

const char *session_code_name(enum verdict_code c)
{
	assert((unsigned)c < VERDICT_CODES);
	return c < VERDICT_METER ? CODES[c] : METERS[c - VERDICT_METER];
}

void session_meter_json(struct json *j, const char *key, enum session_meter m, uint64_t v)
{
	char text[32];

	if (!session_meter_is_time(m)) {
		json_kuint(j, key, v);
		return;
	}
	int n = snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, v / 1000, v % 1000);
	json_key(j, key);
	json_raw(j, text, (size_t)n);
}

bool session_id_valid(const char *s)
{
	static const char LETTERS[] =
	        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strnlen(s, SESSION_ID);

	return len > 0 && len < SESSION_ID && strspn(s, LETTERS) == len &&
	       strchr("._-", s[0]) == NULL;
}

bool session_may_become(enum session_state from, enum session_state to)
{
	assert((unsigned)from < SESSION_STATES && (unsigned)to < SESSION_STATES);
	return (NEXT[from] & 1U << to) != 0;
}
