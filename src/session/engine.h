/* engine.h - every decision of a session: data in, data out. No clock, no
 * store, no I/O; the store applies what is decided here within a transaction. */
#ifndef SESSION_ENGINE_H
#define SESSION_ENGINE_H

#include "session/policy.h"

/* A session as the store holds it, with the policy that it began with. */
struct session {
	char id[SESSION_ID];
	char parent[SESSION_ID]; /* "": none */
	char agent[SESSION_ID];
	enum session_state state;
	bool alerted; /* a resumed session is alert again, not active */
	char reason[SESSION_REASON];
	char blocked[SESSION_REASON]; /* why nothing more is allowed; "": it is */
	int64_t created_us;           /* wall clock */
	int64_t ended_us;             /* 0: not over */
	int64_t until_us;             /* until then its runs may live, when it is over */
	micros spent;
	micros reserved;  /* of reservations that are open */
	uint64_t actions; /* checks that were allowed, settled or not */
	uint64_t meters[SESSION_METERS];
	uint64_t violations;
	uint64_t refused;                    /* since it is over */
	const struct session_policy *policy; /* borrowed from the store's cache */
};

struct verdict {
	bool allowed;
	enum session_act act;
	/* After VERDICT_MAX_DURATION the session expires; engine_next() is the state that follows
	 * any other code. */
	enum verdict_code code;
	/* The owner is told of what has happened, whatever else `act` does, unless the
	 * state that it leads to is a message already. */
	bool tells;
	char reason[SESSION_REASON];
};

/* The state that `act` leads to, as far as the table allows; `s` itself for
 * acts that change nothing. With kill_enabled off ACT_KILL is ACT_BLOCK. */
enum session_state engine_next(const struct session *s, enum session_act act);

/* May money be spent? In this order: over or paused; max_duration; violations that
 * block; max_actions; max_cost_per_action (always a block); max_cost_per_session, by spent +
 * reserved + estimate; alert_at. */
struct verdict engine_check(const struct session *s, micros estimate, int64_t now_us);

/* `s` has the actual cost in it, and the reservation out of it. Never refuses
 * (the money is gone): the act is what follows. */
struct verdict engine_settle(const struct session *s, micros actual, micros estimate);

/* One more of this kind was counted; `count` is the new one, and `s` has the new
 * total. Where several come at once, each of them is asked for: a threshold acts
 * at its very count. */
struct verdict engine_violation(const struct session *s, const char *name, uint64_t count);

/* What was refused once is refused from then on: violations that were counted do not
 * become fewer. (Of money, less may be asked for; meters are looked at each time.) */
bool engine_blocks(const struct verdict *v);

/* May a run begin? As engine_check without money, then limits.runs. */
struct verdict engine_run(const struct session *s, int64_t now_us);

/* Meters of `s` have grown from `before`: the hardest of what follows, and an
 * alert for each that has passed alert_at only now. Also the time. */
struct verdict engine_meter(const struct session *s, const uint64_t before[SESSION_METERS],
                            int64_t now_us);

/* When max_duration is over, in wall-clock microseconds. */
int64_t engine_deadline(const struct session *s);

#endif
