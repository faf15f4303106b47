/* types.h - the basic types of a session: states, actions, meters. */
#ifndef SESSION_TYPES_H
#define SESSION_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

#define SESSION_ID     65  /* [A-Za-z0-9][A-Za-z0-9._-]{0,63} and the NUL */
#define SESSION_REASON 256 /* bytes of a reason, for people */
#define SESSION_DEPTH  8   /* maximum depth: a session, its parent, ... its root */

enum session_state {
	SESSION_ACTIVE,
	SESSION_ALERT, /* active; a budget is nearly used up, and the owner got a message */
	SESSION_PAUSED,
	SESSION_KILLED,
	SESSION_COMPLETED,
	SESSION_EXPIRED, /* max_duration has passed */
	SESSION_STATES,
};

/* The reaction when a limit is exceeded. Later values are harder. */
enum session_act {
	ACT_LOG,   /* recorded and allowed */
	ACT_ALERT, /* recorded and allowed, and the owner gets a message */
	ACT_BLOCK, /* refused; the session continues */
	ACT_PAUSE, /* refused, and every run of the session is stopped */
	ACT_KILL,  /* refused, and every run of the session is ended */
	SESSION_ACTS,
};

/* The meters. The runtime adds them up over all runs of the session. */
enum session_meter {
	METER_RUNS,
	METER_CPU_MS,
	METER_WALL_MS, /* sum over the runs */
	METER_BYTES_OUT,
	METER_BYTES_IN,
	METER_CONNECTIONS,
	METER_DOMAINS, /* distinct names */
	SESSION_METERS,
};

/* The rule that a verdict comes from. Its name appears in JSON, in ledgers and in messages. */
enum verdict_code {
	VERDICT_NONE, /* no verdict */
	VERDICT_OK,
	VERDICT_OWNER, /* a decision of the owner, not of a rule */
	VERDICT_OVER,
	VERDICT_PAUSED,
	VERDICT_MAX_DURATION,
	VERDICT_MAX_ACTIONS,
	VERDICT_AMOUNT,
	VERDICT_MAX_COST_PER_ACTION,
	VERDICT_MAX_COST_PER_SESSION,
	VERDICT_ALERT_AT,
	VERDICT_THRESHOLD,
	VERDICT_VIOLATIONS, /* total of violations */
	VERDICT_METER,      /* VERDICT_METER + m: the limit of the meter m */
	VERDICT_CODES = VERDICT_METER + SESSION_METERS,
};

/* The kind of receiver of a message. */
enum notify_kind {
	NOTIFY_SLACK,
	NOTIFY_JSON,
	NOTIFY_PAGERDUTY,
	NOTIFY_OTEL, /* never in kill_switch.notify: a part of the ledger, for audit.export */
	NOTIFY_KINDS,
};

/* The state of a message in the database. */
enum outbox_state {
	OUTBOX_WAITING, /* waits for the next try */
	OUTBOX_DELIVERED,
	OUTBOX_GIVEN_UP,
	OUTBOX_STATES,
};

const char *session_state_name(enum session_state s);
const char *session_act_name(enum session_act a);
enum session_act session_act_from(const char *name); /* SESSION_ACTS if unknown or NULL */
const char *session_notify_name(enum notify_kind k);
enum notify_kind session_notify_from(const char *name); /* NOTIFY_KINDS if unknown or NULL */
const char *session_outbox_name(enum outbox_state s);
enum outbox_state session_outbox_from(const char *name); /* OUTBOX_STATES if unknown or NULL */
const char *session_meter_name(enum session_meter m);    /* "runs", "cpu_seconds", "bytes_out" */
const char *session_code_name(enum verdict_code c);      /* VERDICT_NONE: NULL */
/* Returns true if the meter is counted in milliseconds and shown in seconds. */
static inline bool session_meter_is_time(enum session_meter m)
{
	return m == METER_CPU_MS || m == METER_WALL_MS;
}

/* Writes the value of a meter; milliseconds as seconds, which the name of the meter says. */
void session_meter_json(struct json *j, const char *key, enum session_meter m, uint64_t v);

bool session_id_valid(const char *s);
/* Returns true if runs may begin and money may be spent. */
static inline bool session_is_active(enum session_state s)
{
	return s == SESSION_ACTIVE || s == SESSION_ALERT;
}
/* Returns true if the session has ended, which cannot be undone. */
static inline bool session_is_over(enum session_state s)
{
	return s == SESSION_KILLED || s == SESSION_COMPLETED || s == SESSION_EXPIRED;
}
/* Returns true if the table of transitions allows the change. */
bool session_may_become(enum session_state from, enum session_state to);

#endif
