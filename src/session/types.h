/* types.h - the words of a session: states, actions, meters. */
#ifndef SESSION_TYPES_H
#define SESSION_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#define SESSION_ID     65  /* [A-Za-z0-9][A-Za-z0-9._-]{0,63} and the NUL */
#define SESSION_REASON 256 /* why a state was entered, for people */
#define SESSION_DEPTH  8   /* a session, its parent, ... its root */

enum session_state {
	SESSION_ACTIVE,
	SESSION_ALERT, /* active; the owner was told that a budget is nearly used up */
	SESSION_PAUSED,
	SESSION_KILLED,
	SESSION_COMPLETED,
	SESSION_EXPIRED, /* its time is over */
	SESSION_STATES,
};

/* What follows when something is exceeded; the later the harder. */
enum session_act {
	ACT_LOG,   /* written down, allowed */
	ACT_ALERT, /* and the owner is told */
	ACT_BLOCK, /* refused; the session goes on */
	ACT_PAUSE, /* refused, and every run of the session stands still */
	ACT_KILL,  /* refused, and every run of the session is ended */
	SESSION_ACTS,
};

/* What the runtime itself counts, over all runs of the session. */
enum session_meter {
	METER_RUNS,
	METER_CPU_MS,
	METER_WALL_MS, /* of the runs, added up */
	METER_BYTES_OUT,
	METER_BYTES_IN,
	METER_CONNECTIONS,
	METER_DOMAINS, /* different ones */
	SESSION_METERS,
};

/* Which rule a verdict comes from. Its name is in JSON, in ledgers and in messages. */
enum verdict_code {
	VERDICT_NONE, /* no verdict */
	VERDICT_OK,
	VERDICT_OWNER, /* the owner decided, not a rule */
	VERDICT_OVER,
	VERDICT_PAUSED,
	VERDICT_MAX_DURATION,
	VERDICT_MAX_ACTIONS,
	VERDICT_AMOUNT,
	VERDICT_MAX_COST_PER_ACTION,
	VERDICT_MAX_COST_PER_SESSION,
	VERDICT_ALERT_AT,
	VERDICT_THRESHOLD,
	VERDICT_VIOLATIONS, /* their total */
	VERDICT_METER,      /* VERDICT_METER + m: the limit of the meter m */
	VERDICT_CODES = VERDICT_METER + SESSION_METERS,
};

const char *session_state_name(enum session_state s);
const char *session_act_name(enum session_act a);
const char *session_meter_name(enum session_meter m); /* "runs", "cpu_seconds", "bytes_out" */
const char *session_code_name(enum verdict_code c);   /* VERDICT_NONE: NULL */
/* Counted in milliseconds, told in seconds. */
static inline bool session_meter_is_time(enum session_meter m)
{
	return m == METER_CPU_MS || m == METER_WALL_MS;
}

bool session_id_valid(const char *s);
/* Runs may begin, money may be spent. */
static inline bool session_is_active(enum session_state s)
{
	return s == SESSION_ACTIVE || s == SESSION_ALERT;
}
/* For ever. */
static inline bool session_is_over(enum session_state s)
{
	return s == SESSION_KILLED || s == SESSION_COMPLETED || s == SESSION_EXPIRED;
}
/* The one table of transitions. */
bool session_may_become(enum session_state from, enum session_state to);

#endif
