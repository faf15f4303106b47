/* engine.h - every decision about a session, as pure functions: no clock, no store, no I/O.
 * The store applies the decisions within a transaction.
 *
 * In every call, s->policy must not be NULL. */
#ifndef SESSION_ENGINE_H
#define SESSION_ENGINE_H

#include "session/policy.h"

/* A session as the store contains it, with the policy with which it began. */
struct session {
	char id[SESSION_ID];
	char parent[SESSION_ID]; /* "": none */
	char agent[SESSION_ID];
	enum session_state state;
	bool alerted; /* when the session is resumed, it becomes alert again, not active */
	char reason[SESSION_REASON];
	char blocked[SESSION_REASON]; /* why no further action is allowed; "": not blocked */
	int64_t created_us;           /* wall clock */
	int64_t ended_us;             /* 0: the session is not over */
	int64_t until_us; /* when the session is over: the time until which its runs may continue */
	micros spent;
	micros reserved;  /* sum of open reservations */
	uint64_t actions; /* number of allowed checks, settled or not */
	uint64_t meters[SESSION_METERS];
	uint64_t violations;
	uint64_t refused;                    /* requests since the session was over */
	const struct session_policy *policy; /* borrowed from the store's cache */
};

struct verdict {
	bool allowed;
	enum session_act act;
	/* After VERDICT_MAX_DURATION the session expires. After any other code engine_next()
	 * gives the new state. */
	enum verdict_code code;
	/* True if the owner must get a message even if `act` causes none. If the new state already
	 * causes a message, no second one is sent. */
	bool tells;
	char reason[SESSION_REASON];
};

/* Returns the state that `act` leads to. Returns the present state if `act` changes nothing or the
 * table forbids the change. If kill_enabled is off, ACT_KILL counts as ACT_BLOCK. */
enum session_state engine_next(const struct session *s, enum session_act act);

/* Decides whether money may be spent. Checks in this order: session over or paused; max_duration;
 * violations that block; max_actions; max_cost_per_action (always blocks); max_cost_per_session, by
 * spent + reserved + estimate; alert_at. */
struct verdict engine_check(const struct session *s, micros estimate, int64_t now_us);

/* Judges a settled cost. `s` must already include the actual cost and exclude the reservation.
 * Never refuses, because the money is already spent: `act` says what must follow. */
struct verdict engine_settle(const struct session *s, micros actual, micros estimate);

/* Judges a new violation. `count` is the new count of this kind, and `s` must have the new total.
 * If several violations come at once, the caller must call this for each of them: a threshold acts
 * at exactly its count. */
struct verdict engine_violation(const struct session *s, const char *name, uint64_t count);

/* Returns true if the refusal is permanent, because it comes from a number of violations, which
 * never falls. Other refusals are not permanent: a smaller amount may be requested later, and
 * meters are checked each time. */
bool engine_blocks(const struct verdict *v);

/* Decides whether a run may begin. Checks as engine_check() does, without money, and then
 * limits.runs. */
struct verdict engine_run(const struct session *s, int64_t now_us);

/* Judges the meters, which have grown from `before` to s->meters, and the age of the session.
 * Returns the hardest consequence, with an alert for each meter that has just passed alert_at. */
struct verdict engine_meter(const struct session *s, const uint64_t before[SESSION_METERS],
                            int64_t now_us);

/* Returns the time at which max_duration ends, in wall-clock microseconds. */
int64_t engine_deadline(const struct session *s);

#endif
