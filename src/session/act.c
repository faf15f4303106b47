/* act.c - carries a decision to the running runs.
 *
 * The request goes to all keepers before the first answer is awaited (fanout.h). A run is dead
 * when its init is dead, because the kernel ends all other processes of the pid namespace first.
 * A pidfd shows that without trusting any process.
 *   kill    If a keeper does not even confirm the request, its run gets no grace. If it confirms
 *           but the run outlives the grace, the run is ended, too. In both cases the init gets
 *           SIGKILL.
 *   pause   A run that cannot be stopped is ended: it would go on unmetered.
 *   resume  The keeper resumes the run. A keeper that does not answer is not ended.
 * If both the keeper and the init of a run are gone, the keeper or the machine died. Such a
 * run is `lost`, and its end is recorded here.
 *
 * The list of runs comes from the store. If the store is lost or one of its rows is damaged,
 * each keeper is asked whether its run is concerned: it knows its session and all ancestors. */
#include "session/act.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"
#include "session/fanout.h"
#include "session/herald.h"
#include "session/place.h"
#include "session/store.h"

struct act_search {
	struct targets t;
	struct session_run here;
	const struct session_run *except;
	size_t elsewhere;
};

static void search_done(struct act_search *s)
{
	targets_done(&s->t);
}

/* ---- which runs ---------------------------------------------------------- */

static int add_run(void *arg, const struct session_run *r)
{
	struct act_search *s = arg;

	if (s->except != NULL && r->n == s->except->n) {
		return 0;
	}
	bool restarted = place_restarted(r, &s->here);
	if (!place_same(r, &s->here) && !restarted) {
		s->elsewhere++;
		return 0;
	}
	const struct target one = { .run = *r, .done = restarted, .lost = restarted };
	return targets_add(&s->t, &one) ? 0 : 1;
}

/* On failure `s` still contains the runs that could be read. */
static int find_runs(struct session_store *ss, const char *id, struct act_search *s,
                     struct ssb_error *err)
{
	if (place_here(&s->here, err) != 0 || session_runs(ss, id, add_run, s, err) != 0) {
		return -1;
	}
	return s->t.full
	               ? ssb_fail(
	                         err, SSB_E_LIMIT, 0, "session",
	                         "there are more than %d runs: run this command again for the rest",
	                         MAX_LIVE)
	               : 0;
}

static void add_keeper(void *arg, const char *name)
{
	struct act_search *s = arg;
	struct target one = { .unsure = true };

	if (s->except != NULL && strcmp(s->except->socket, name) == 0) {
		return;
	}
	for (size_t i = 0; i < s->t.n; i++) {
		if (strcmp(s->t.v[i].run.socket, name) == 0) {
			return;
		}
	}
	snprintf(one.run.socket, sizeof(one.run.socket), "%s", name);
	(void)targets_add(&s->t, &one);
}

/* ---- what is done with them ---------------------------------------------- */

static void count_targets(const struct act_search *s, struct act_report *r)
{
	r->elsewhere += s->elsewhere;
	for (size_t i = 0; i < s->t.n; i++) {
		const struct target *v = &s->t.v[i];
		if (v->silent || v->other) {
			r->silent += v->silent;
			continue;
		}
		r->runs += !v->foreign;
		r->elsewhere += v->foreign;
		r->left += !v->done;
		r->forced += v->forced;
		r->reached += v->done && !v->forced && !v->lost && !v->foreign;
	}
}

/* Records the end of the lost runs. Their keepers, which normally do this, are gone. */
static int close_lost(struct session_store *ss, const struct targets *t, struct ssb_error *err)
{
	int failed = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].lost &&
		    session_run_end(ss, &t->v[i].run, 137, "keeper_lost", err) != 0) {
			failed = -1;
		}
	}
	return failed;
}

static enum live_op op_of(enum session_state state)
{
	return session_is_over(state)    ? LIVE_KILL
	       : state == SESSION_PAUSED ? LIVE_PAUSE
	                                 : LIVE_RESUME;
}

/* A change to alert neither ends, pauses nor resumes a run. Runs are resumed only by a decision
 * of the owner. */
static bool concerns_runs(const struct decision *d, enum session_state state)
{
	return op_of(state) != LIVE_RESUME || d->verdict.code == VERDICT_OWNER;
}

static int act_on_runs(struct session_store *ss, const struct owner *o, const char *id,
                       const struct live_request *q, const struct session_run *except,
                       struct act_report *ret, struct ssb_error *err)
{
	AUTO(search_done) struct act_search s = { .except = except };
	struct ssb_error why = { 0 };
	auto_fd dir = -1;
	int rc = ss != NULL ? find_runs(ss, id, &s, err) : 0;

	/* If the directory of live.h does not exist, no keeper can be listening. */
	if (live_dir(o->state_dir, false, &dir, &why) != 0 && ss == NULL &&
	    why.code != SSB_E_NOT_FOUND) {
		*err = why;
		return -1;
	}
	if ((rc != 0 || ss == NULL) && dir >= 0) {
		live_names(dir, add_keeper, &s);
	}
	fanout(&s.t, dir, q);
	count_targets(&s, ret);
	if (ss != NULL && close_lost(ss, &s.t, rc == 0 ? err : &(struct ssb_error){ 0 }) != 0) {
		rc = -1;
	}
	return rc;
}

/* Acts on the runs of each session in d->acted, the one nearest to the root first. Each step also
 * reaches the runs of all descendants of the session. */
static int act_on_sessions(struct session_store *ss, const struct owner *o,
                           const struct decision *d, const struct session_run *except,
                           struct act_report *ret, struct ssb_error *err)
{
	size_t n = d->n_acted > 0 ? d->n_acted : 1;
	struct ssb_error why = { 0 };
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		bool listed = d->n_acted > 0;
		const char *id = listed ? d->acted[i].id : d->decided;
		enum session_state state = listed ? d->acted[i].state : d->state;
		struct live_request q = { .version = LIVE_VERSION, .op = op_of(state) };
		if (!concerns_runs(d, state)) {
			continue;
		}
		q.grace_ms = listed ? d->acted[i].grace_ms : d->grace_ms;
		snprintf(q.session, sizeof(q.session), "%s", id);
		snprintf(q.reason, sizeof(q.reason), "%s", d->verdict.reason);
		/* If one session cannot be handled, the others must still be handled. */
		if (act_on_runs(ss, o, id, &q, except, ret, &why) != 0 && rc == 0) {
			*err = why;
			rc = -1;
		}
	}
	return rc;
}

void session_act(struct session_store *ss, const struct owner *o, struct decision *d,
                 const struct session_run *except)
{
	uint64_t begun = clock_us();
	struct ssb_error why = { 0 };
	int rc = 0;

	assert(o != NULL && d != NULL);
	d->runs = (struct act_report){ 0 };
	d->undone = (struct ssb_error){ 0 };
	d->unsent[0] = '\0';
	if (d->changed || d->n_acted > 0) {
		rc = act_on_sessions(ss, o, d, except, &d->runs, &d->undone);
		d->runs.took_us = clock_us() - begun;
	}
	if (rc == 0 && d->runs.left > 0) {
		ssb_fail(&d->undone, SSB_E_SYS, 0, "session",
		         "%zu of %zu runs could not be %s: see 'skillsandbox ps'", d->runs.left,
		         d->runs.runs, session_is_over(d->state) ? "ended" : "reached");
	}
	if (d->notify && herald_start(o, &why) != 0) {
		snprintf(d->unsent, sizeof(d->unsent), "%.*s", SESSION_REASON - 1, why.text);
	}
}

/* ---- when ------------------------------------------------------------------ */

void session_defer(struct session_store *ss)
{
	assert(ss != NULL);
	ss->defers = true;
}

bool session_deferred(struct session_store *ss, struct decision *ret)
{
	assert(ss != NULL);
	bool waits = ss->deferred != NULL;

	if (waits) {
		*ret = *ss->deferred;
		free(ss->deferred);
		ss->deferred = NULL;
	}
	return waits;
}

void act_enforce(struct session_store *ss, struct decision *d, const struct session_run *except)
{
	struct decision before;

	assert(d->n_acted <= ARRAY_LEN(d->acted));
	if (session_deferred(ss, &before)) {
		session_act(ss, ss->owner, &before, NULL);
	}
	if (!d->changed && d->n_acted == 0 && !d->notify) {
		return;
	}
	ss->deferred = ss->defers ? malloc(sizeof(*d)) : NULL;
	if (ss->deferred != NULL) {
		*ss->deferred = *d;
	} else {
		session_act(ss, ss->owner, d, except);
	}
}

void act_finish(struct session_store *ss)
{
	struct decision d;

	if (session_deferred(ss, &d)) {
		session_act(ss, ss->owner, &d, NULL);
	}
}

/* ---- kills without the store ----------------------------------------------- */

static struct decision kill_of(const char *id, enum session_state state, uint64_t grace_ms,
                               const char *reason)
{
	struct decision d = {
		.changed = true, .state = state, .grace_ms = grace_ms, .verdict.act = ACT_KILL
	};

	snprintf(d.decided, sizeof(d.decided), "%s", id);
	snprintf(d.verdict.reason, sizeof(d.verdict.reason), "%s", reason);
	return d;
}

void session_kill_unstored(const struct owner *o, const char *id, uint64_t grace_ms,
                           const char *reason, struct decision *ret)
{
	assert(session_id_valid(id));
	*ret = kill_of(id, SESSION_KILLED, grace_ms, reason);
	session_act(NULL, o, ret, NULL);
}

int session_kill_left(struct session_store *ss, const char *id, uint64_t grace_ms,
                      struct decision *ret, struct ssb_error *err)
{
	struct decision d = { 0 };
	struct session s;

	if (session_get(ss, id, &s, err) != 0) {
		return -1;
	}
	if (session_is_over(s.state)) {
		d = kill_of(id, s.state, grace_ms, s.reason);
		session_act(ss, ss->owner, &d, NULL);
	}
	*ret = d;
	return 0;
}

/* ---- runs without a keeper ----------------------------------------------- */

/* A run has a keeper if its socket accepts a connection. */
static bool has_keeper(int dir, const struct target *t)
{
	auto_fd fd = live_connect(dir, t->run.socket);

	return fd >= 0 || (errno != ECONNREFUSED && errno != ENOENT);
}

int session_close_lost(struct session_store *ss, const struct owner *o, const char *id,
                       const struct session_run *except, size_t *ret_closed, struct ssb_error *err)
{
	assert(ss != NULL && o != NULL);
	const struct live_request q = { .version = LIVE_VERSION, .op = LIVE_KILL };
	AUTO(search_done) struct act_search s = { .except = except };
	auto_fd dir = -1;
	size_t closed = 0;
	int rc = find_runs(ss, id, &s, err);

	(void)live_dir(o->state_dir, false, &dir, &(struct ssb_error){ 0 });
	for (size_t i = 0; i < s.t.n; i++) {
		struct target *t = &s.t.v[i];
		t->done = t->done || dir < 0 || !live_name_here(dir, t->run.socket) ||
		          has_keeper(dir, t);
	}
	fanout(&s.t, dir, &q);
	for (size_t i = 0; i < s.t.n; i++) {
		closed += s.t.v[i].lost;
	}
	if (close_lost(ss, &s.t, rc == 0 ? err : &(struct ssb_error){ 0 }) != 0 || rc != 0) {
		return -1;
	}
	*ret_closed = closed;
	return 0;
}
