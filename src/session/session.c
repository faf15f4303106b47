/* session.c - opens the store; starts, changes and expires sessions. */
#include "session/session.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/hex.h"
#include "os/file.h"
#include "policy/policy_file.h"
#include "session/store.h"

#define SWEEP_BATCH 256

/* ---- the store ----------------------------------------------------------- */

/* Loads policy.yaml. If it has findings, the error names the first one. */
static int load_policy(const struct owner *o, struct policy *ret, struct ssb_error *err)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();

	if (diags == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "store", "out of memory");
	}
	return policy_load(o, NULL, ret, diags, err);
}

static bool sqlite_path(const struct owner *o, char out[PATH_MAX])
{
	return (size_t)snprintf(out, PATH_MAX, "%s/sessions.db", o->state_dir) < PATH_MAX;
}

bool session_store_exists(const struct owner *o)
{
	AUTO(policy_done) struct policy policy;
	struct ssb_error why = { 0 };
	char path[PATH_MAX];

	policy_init(&policy);
	/* A bad policy file counts as a store: session_store_open() then reports the file. */
	return load_policy(o, &policy, &why) != 0 || policy.store != NULL ||
	       (sqlite_path(o, path) && (access(path, F_OK) == 0 || errno != ENOENT));
}

static int open_db(const struct owner *o, struct db **ret, struct ssb_error *err)
{
	AUTO(policy_done) struct policy policy;
	char path[PATH_MAX];

	policy_init(&policy);
	if (load_policy(o, &policy, err) != 0) {
		return -1;
	}
	if (policy.store != NULL) {
		return db_open_postgres(policy.store, ret, err);
	}
	if (!sqlite_path(o, path)) {
		return ssb_fail(err, SSB_E_LIMIT, ENAMETOOLONG, "store", "'%s/sessions.db'",
		                o->state_dir);
	}
	auto_fd dir = file_mkdirs(o->state_dir); /* the owner's first command makes the directory */
	if (dir < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "store", "make '%s'", o->state_dir);
	}
	return db_open_sqlite(path, ret, err);
}

int session_store_open(const struct owner *o, struct session_store **ret, struct ssb_error *err)
{
	struct session_store *ss = calloc(1, sizeof(*ss));

	if (ss == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "store", "out of memory");
	}
	record_init(&ss->record);
	ss->owner = o;
	ss->pid = getpid();
	if (open_db(o, &ss->db, err) != 0) {
		session_store_close(ss);
		return -1;
	}
	*ret = ss;
	return 0;
}

void session_store_close(struct session_store *ss)
{
	if (ss == NULL) {
		return;
	}
	act_finish(ss);
	db_close(ss->db);
	store_drop_policies(ss);
	record_done(&ss->record);
	free(ss);
}

/* ---- begin --------------------------------------------------------------- */

static int draw_id(char out[SESSION_ID], struct ssb_error *err)
{
	uint8_t b[10];

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b)) {
		return ssb_fail(err, SSB_E_SYS, errno, "session",
		                "cannot get random bytes for an id");
	}
	hex_encode(b, sizeof(b), out);
	return 0;
}

static int check_request(const struct session_request *req, struct ssb_error *err)
{
	const struct {
		const char *what, *s;
	} ids[] = { { "id", req->id }, { "agent's id", req->agent } };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		if (ids[i].s != NULL && !session_id_valid(ids[i].s)) {
			return ssb_fail(
			        err, SSB_E_USAGE, 0, "",
			        "the %s must have only letters, digits, '.', '_' and '-', begin "
			        "with a letter or digit, and have at most %d characters",
			        ids[i].what, SESSION_ID - 1);
		}
	}
	return 0;
}

/* Makes the new row below its ancestors, all of which must be active. */
static int make_row(struct call *c, const struct session_request *req, struct ssb_error *err)
{
	struct row *up = c->n > 0 ? call_own(c) : NULL;
	struct row *row = &c->chain[c->n];

	for (size_t i = 0; i < c->n; i++) {
		const struct session *s = &c->chain[i].s;
		if (!session_is_active(s->state)) {
			return ssb_fail(err, SSB_E_POLICY, 0, "",
			                "the parent '%s' is %s: no session can start in it", s->id,
			                session_state_name(s->state));
		}
	}
	if (c->n == SESSION_DEPTH) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "",
		                "sessions can be nested at most %d levels deep", SESSION_DEPTH);
	}
	*row = (struct row){
		.parent = up != NULL ? up->n : 0,
		.root = up != NULL ? up->root : 0,
		.depth = (int64_t)c->n + 1,
		.s = { .state = SESSION_ACTIVE, .created_us = c->now, .policy = req->policy }
	};
	snprintf(row->s.agent, sizeof(row->s.agent), "%s",
	         req->agent != NULL ? req->agent : req->policy->agent_id);
	if (up != NULL) {
		memcpy(row->s.parent, up->s.id, sizeof(row->s.parent));
	}
	row->deadline = engine_deadline(&row->s);
	c->n++;
	return req->id != NULL ? (snprintf(row->s.id, sizeof(row->s.id), "%s", req->id), 0)
	                       : draw_id(row->s.id, err);
}

static int insert_row(struct call *c, struct row *row, struct ssb_error *err)
{
	struct session_store *ss = c->ss;
	int64_t known = 0;
	int found = store_ask(ss, "SELECT n FROM sessions WHERE id = $1", DB_ARGS(DB_T(row->s.id)),
	                      &known, err);

	if (found != 0) {
		return found < 0 ? -1
		                 : ssb_fail(err, SSB_E_USAGE, 0, "",
		                            "session '%s' exists already, and an id is never used "
		                            "twice; choose another id",
		                            row->s.id);
	}
	found = store_ask(ss,
	                  "INSERT INTO sessions (id, parent, root, depth, agent, policy, state,"
	                  " alerted, paused_by, reason, created, deadline, ended, spent, reserved,"
	                  " actions, violations, runs, cpu_ms, wall_ms, bytes_out, bytes_in,"
	                  " connections, domains, seq, mono, hash) VALUES ($1, $2, $3, $4, $5, $6,"
	                  " 0, 0, 0, '', $7, $8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '')"
	                  " RETURNING n",
	                  DB_ARGS(DB_T(row->s.id), DB_I(row->parent), DB_I(row->root),
	                          DB_I(row->depth), DB_T(row->s.agent), DB_T(row->policy),
	                          DB_I(row->s.created_us), DB_I(row->deadline)),
	                  &row->n, err);
	if (found != 1) {
		return found < 0 ? -1 : store_damaged(err, "a session has no number");
	}
	if (row->root == 0) {
		row->root = row->n;
		return db_run(ss->db, "UPDATE sessions SET root = $1 WHERE n = $2",
		              DB_ARGS(DB_I(row->n), DB_I(row->n)), NULL, NULL, err);
	}
	return 0;
}

static int put_created(struct call *c, struct row *row, struct ssb_error *err)
{
	const struct session_policy *p = row->s.policy;
	struct json *j = entry_begin(c, row, EV_SESSION_CREATED);

	json_kint(j, "schema", 1);
	json_kstr(j, "parent", row->s.parent[0] != '\0' ? row->s.parent : NULL);
	json_kstr(j, "policy_version", p->version);
	json_kstr(j, "policy_digest", row->policy);
	json_kmillionths(j, "budget_limit", p->max_cost_per_session);
	json_kuint(j, "user", c->ss->owner->uid);
	json_kstr(j, "version", SSB_VERSION);
	return entry_end(c, row, err);
}

int session_start(struct session_store *ss, const struct session_request *req, struct decision *ret,
                  struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };

	assert(req->policy != NULL);
	if (check_request(req, err) != 0 || call_begin(&c, ss, err) != 0) {
		return -1;
	}
	if (req->parent == NULL ? call_time(&c, err) != 0
	                        : call_load(&c, req->parent, err) != 0 || call_due(&c, err) != 0) {
		return -1;
	}
	if (make_row(&c, req, err) != 0) {
		struct ssb_error ignored = { 0 };
		/* If the parent expired during this call, the commit stores its new state. */
		if (c.expired != NULL) {
			(void)call_commit(&c, &ignored);
		}
		return -1;
	}
	struct row *row = call_own(&c);
	if (store_keep_policy(ss, req->policy, row->policy, err) != 0 ||
	    row_policy(ss, row, err) != 0 || insert_row(&c, row, err) != 0 ||
	    send_begin(&c, row, err) != 0 || put_created(&c, row, err) != 0) {
		return -1;
	}
	c.verdict = (struct verdict){ .allowed = true, .act = ACT_LOG, .code = VERDICT_OK };
	return call_finish(&c, NULL, ret, err);
}

/* ---- the owner's word ---------------------------------------------------- */

static enum session_state asked_state(const struct row *row, enum session_state to)
{
	return to == SESSION_ACTIVE && row->s.alerted ? SESSION_ALERT : to;
}

static int may_become(struct call *c, enum session_state to, struct ssb_error *err)
{
	const struct row *row = call_own(c);
	bool resume = to == SESSION_ACTIVE || to == SESSION_ALERT;

	if (resume && row->s.state != SESSION_PAUSED && !session_is_over(row->s.state)) {
		return ssb_fail(err, SSB_E_POLICY, 0, "", "session '%s' is %s, not paused",
		                row->s.id, session_state_name(row->s.state));
	}
	if (!session_may_become(row->s.state, to)) {
		return ssb_fail(err, SSB_E_POLICY, 0, "", "session '%s' is %s%s%s", row->s.id,
		                session_state_name(row->s.state),
		                session_is_over(row->s.state) ? " for ever: " : " already: ",
		                row->s.reason);
	}
	for (size_t i = 0; resume && i + 1 < c->n; i++) {
		if (c->chain[i].s.state == SESSION_PAUSED) {
			return ssb_fail(err, SSB_E_POLICY, 0, "",
			                "session '%s' is in session '%s', which is paused: resume "
			                "the outer session",
			                row->s.id, c->chain[i].s.id);
		}
	}
	return 0;
}

static int become_state(struct session_store *ss, const char *id, enum session_state to,
                        uint64_t grace_ms, const char *reason, struct decision *ret,
                        struct ssb_error *err)
{
	static const enum session_act ACTS[SESSION_STATES] = {
		[SESSION_PAUSED] = ACT_PAUSE,
		[SESSION_KILLED] = ACT_KILL,
		[SESSION_EXPIRED] = ACT_KILL,
	};
	AUTO(call_done) struct call c = { 0 };

	if (to == SESSION_ALERT || (unsigned)to >= SESSION_STATES) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "this state cannot be requested");
	}
	if ((reason != NULL && reason[0] != '\0' &&
	     store_check_text(reason, SESSION_REASON, "the reason", err) != 0) ||
	    call_enter(&c, ss, id, err) != 0) {
		return -1;
	}
	struct row *own = call_own(&c);
	to = asked_state(own, to);
	if (may_become(&c, to, err) != 0) {
		struct ssb_error ignored = { 0 };
		(void)call_commit(
		        &c, &ignored); /* sessions that expired during this call stay expired */
		return -1;
	}
	c.by_owner = true;
	c.owner_grace_ms = grace_ms;
	if (call_become(&c, own, to, reason != NULL ? reason : "", err) != 0) {
		return -1;
	}
	c.decided = own;
	c.verdict = (struct verdict){ .allowed = true, .act = ACTS[to], .code = VERDICT_OWNER };
	snprintf(c.verdict.reason, sizeof(c.verdict.reason), "%s", own->s.reason);
	return call_finish(&c, NULL, ret, err);
}

int session_become(struct session_store *ss, const char *id, enum session_state to,
                   const char *reason, struct decision *ret, struct ssb_error *err)
{
	return become_state(ss, id, to, 0, reason, ret, err); /* no grace */
}

int session_kill(struct session_store *ss, const char *id, uint64_t grace_ms, const char *reason,
                 struct decision *ret, struct ssb_error *err)
{
	return become_state(ss, id, SESSION_KILLED, grace_ms, reason, ret, err);
}

/* ---- what time alone does ------------------------------------------------ */

struct session_ids {
	char v[SWEEP_BATCH][SESSION_ID];
	size_t n;
};

static int add_id(void *arg, const struct db_value *v, size_t n)
{
	struct session_ids *ids = arg;

	if (n == 1 && ids->n < SWEEP_BATCH && store_text(&v[0], ids->v[ids->n], SESSION_ID)) {
		ids->n++;
	}
	return 0;
}

static int find_due(struct session_store *ss, struct session_ids *ret, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };

	ret->n = 0;
	if (call_begin(&c, ss, err) != 0 || call_time(&c, err) != 0 ||
	    db_run(ss->db, "SELECT id FROM sessions WHERE ended = 0 AND deadline < $1 LIMIT 128",
	           DB_ARGS(DB_I(c.now)), add_id, ret, err) != 0 ||
	    db_run(ss->db, "SELECT id FROM sessions WHERE due > 0 AND due <= $1 LIMIT 128",
	           DB_ARGS(DB_I(c.now)), add_id, ret, err) != 0) {
		return -1;
	}
	return 0;
}

/* Returns false if the session is damaged, which must not stop the others from expiring. */
static bool expire_one(struct session_store *ss, const char *id, bool enforce,
                       struct session_swept *swept)
{
	AUTO(call_done) struct call c = { 0 };
	struct ssb_error ignored = { 0 };
	struct decision d = { 0 };

	if (call_enter(&c, ss, id, &ignored) != 0) {
		return false;
	}
	if (c.expired == NULL || !enforce) {
		swept->expired += c.expired != NULL;
		return call_commit(&c, &ignored) == 0;
	}
	call_decide(&c);
	if (call_finish(&c, NULL, &d, &ignored) != 0) {
		return false;
	}
	swept->expired++;
	swept->runs += d.runs.runs;
	if (swept->undone.code == SSB_OK) {
		swept->undone = d.undone;
	}
	return true;
}

int session_expire_due(struct session_store *ss, bool enforce, struct session_swept *ret,
                       struct ssb_error *err)
{
	struct session_swept swept = { 0 };
	struct session_ids ids;
	size_t done = 1;

	for (ids.n = SWEEP_BATCH; ids.n >= SWEEP_BATCH / 2 && done > 0;) {
		done = 0;
		if (find_due(ss, &ids, err) != 0) {
			return -1;
		}
		for (size_t i = 0; i < ids.n; i++) {
			done += expire_one(ss, ids.v[i], enforce, &swept);
		}
	}
	*ret = swept;
	return 0;
}

int session_sweep(struct session_store *ss, struct session_swept *ret, struct ssb_error *err)
{
	return session_expire_due(ss, true, ret, err);
}
