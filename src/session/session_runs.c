/* session_runs.c - the runs of a session: records where they run, and what they use. */
#include <string.h>

#include "base/error.h"
#include "session/store.h"

/* Checks the texts, because the store accepts only UTF-8. */
static int check_place(const struct session_run *run, struct ssb_error *err)
{
	const struct {
		const char *s;
		size_t size;
		const char *what;
	} texts[] = {
		{ run->run_id, sizeof(run->run_id), "the id of a run" },
		{ run->host, sizeof(run->host), "the name of the host" },
		{ run->boot_id, sizeof(run->boot_id), "the boot id" },
		{ run->socket, sizeof(run->socket), "the name of a socket" },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i].s[0] != '\0' &&
		    store_check_text(texts[i].s, texts[i].size, texts[i].what, err) != 0) {
			return -1;
		}
	}
	return run->keeper >= 0 && run->init >= 0
	               ? 0
	               : ssb_fail(err, SSB_E_USAGE, 0, "", "the number of a process is negative");
}

/* ---- begin --------------------------------------------------------------- */

static int insert_run(struct call *c, struct session_run *run, struct ssb_error *err)
{
	struct row *own = call_own(c);
	int found = store_ask(c->ss,
	                      "INSERT INTO runs (session, run_id, host, boot, keeper, socket, init,"
	                      " init_start, begun, ended, exit_status, ending) VALUES ($1, $2, $3,"
	                      " $4, $5, $6, $7, $8, $9, 0, 0, '') RETURNING n",
	                      DB_ARGS(DB_I(own->n), DB_T(run->run_id), DB_T(run->host),
	                              DB_T(run->boot_id), DB_I(run->keeper), DB_T(run->socket),
	                              DB_I(run->init), DB_I(run->init_start), DB_I(c->now)),
	                      &run->n, err);

	if (found != 1) {
		return found < 0 ? -1 : store_damaged(err, "a run has no number");
	}
	for (size_t i = 0; i < c->n; i++) {
		uint64_t *runs = &c->chain[i].s.meters[METER_RUNS];
		*runs = store_add(*runs, 1);
		c->chain[i].dirty = true;
	}
	run->begun_us = c->now;
	memcpy(run->session, own->s.id, sizeof(run->session));
	return 0;
}

static int put_begin(struct call *c, const struct session_run *run, struct ssb_error *err)
{
	struct row *own = call_own(c);
	enum event_kind kind = c->verdict.allowed ? EV_RUN_BEGUN : EV_ACTION_BLOCKED;

	if (entry_only_counts(own)) {
		return 0;
	}
	struct json *j = entry_begin(c, own, kind);
	if (c->verdict.allowed) {
		json_kint(j, "run", run->n);
		json_kstr(j, "host", run->host);
		json_kint(j, "keeper", run->keeper);
	} else {
		json_kstr(j, "action", "run");
		json_kmillionths(j, "session_total_cost_usd", own->s.spent);
	}
	entry_verdict(c, j);
	if (c->decided != own) {
		json_kstr(j, "decided_by", c->decided->s.id);
	}
	return entry_end(c, own, err) == 0 ? entry_ancestors(c, kind, err) : -1;
}

int session_run_begin(struct session_store *ss, const char *id, struct session_run *run,
                      struct decision *ret, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };
	struct session_run r = *run;

	if (check_place(run, err) != 0 || call_enter(&c, ss, id, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < c.n; i++) {
		c.verdicts[i] = engine_run(&c.chain[i].s, c.now);
		c.news[i] = true; /* engine_run() gives each alert only once */
	}
	call_decide(&c);
	for (size_t i = 0; i < c.n && !c.verdict.allowed; i++) {
		c.verdicts[i].tells = false; /* no run began, so no message is sent */
	}
	if ((c.verdict.allowed && insert_run(&c, &r, err) != 0) || put_begin(&c, &r, err) != 0 ||
	    call_apply(&c, err) != 0 || call_finish(&c, &r, ret, err) != 0) {
		return -1;
	}
	*run = r;
	return 0;
}

int session_run_placed(struct session_store *ss, const struct session_run *run,
                       struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };

	if (check_place(run, err) != 0 || call_begin(&c, ss, err) != 0 ||
	    db_run(ss->db,
	           "UPDATE runs SET run_id = $1, socket = $2, keeper = $3, init = $4,"
	           " init_start = $5 WHERE n = $6 AND ended = 0",
	           DB_ARGS(DB_T(run->run_id), DB_T(run->socket), DB_I(run->keeper), DB_I(run->init),
	                   DB_I(run->init_start), DB_I(run->n)),
	           NULL, NULL, err) != 0) {
		return -1;
	}
	if (db_changes(ss->db) != 1) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, "",
		                "the session has no run with this number");
	}
	c.open = false;
	return db_commit(ss->db, err);
}

/* ---- what it uses -------------------------------------------------------- */

static int add_domain(struct call *c, const char *name, struct ssb_error *err)
{
	for (size_t i = 0; i < c->n; i++) {
		struct row *row = &c->chain[i];
		uint64_t *n = &row->s.meters[METER_DOMAINS];
		if (*n >= STORE_MAX_DOMAINS) {
			continue;
		}
		if (db_run(c->ss->db,
		           "INSERT INTO domains (session, name) VALUES ($1, $2)"
		           " ON CONFLICT (session, name) DO NOTHING",
		           DB_ARGS(DB_I(row->n), DB_T(name)), NULL, NULL, err) != 0) {
			return -1;
		}
		*n += db_changes(c->ss->db) == 1 ? 1 : 0;
	}
	return 0;
}

/* Adds the usage to all sessions of the chain. *ret_any is true if anything was used. */
static int add_usage(struct call *c, const struct session_usage *used, bool *ret_any,
                     struct ssb_error *err)
{
	bool any = used->n_domains > 0 || used->n_violations > 0 || used->all_violations > 0;

	for (size_t i = 0; i < c->n; i++) {
		struct session *s = &c->chain[i].s;
		s->violations = store_add(s->violations, used->all_violations);
		for (size_t m = 0; m < SESSION_METERS; m++) {
			if (m != METER_RUNS && m != METER_DOMAINS && used->meters[m] > 0) {
				s->meters[m] = store_add(s->meters[m], used->meters[m]);
				any = true;
			}
		}
	}
	for (size_t i = 0; i < used->n_domains; i++) {
		if (store_check_text(used->domains[i], STORE_TEXT, "a domain", err) != 0 ||
		    add_domain(c, used->domains[i], err) != 0) {
			return -1;
		}
	}
	*ret_any = any;
	return 0;
}

/* Judges the meters, and then the kinds of violations. Keeps the hardest verdict of each
 * session. */
static int judge_usage(struct call *c, const struct session_usage *used,
                       const uint64_t before[SESSION_DEPTH][SESSION_METERS], struct ssb_error *err)
{
	for (size_t i = 0; i < c->n; i++) {
		c->verdicts[i] = engine_meter(&c->chain[i].s, before[i], c->now);
		c->news[i] = true;
	}
	for (size_t i = 0; i < used->n_violations; i++) {
		uint64_t count = 0;
		const char *name = used->violations[i].name;
		if (store_check_text(name, sizeof(((struct session_threshold *)NULL)->name),
		                     "the kind of a violation", err) != 0 ||
		    violations_count(c, name, used->violations[i].n, &count, err) != 0) {
			return -1;
		}
	}
	return 0;
}

static int put_usage(struct call *c, const struct session_run *run,
                     const struct session_usage *used, struct ssb_error *err)
{
	struct row *own = call_own(c);
	struct json *j = entry_begin(c, own, EV_USAGE);

	json_kint(j, "run", run->n);
	json_kopen(j, "used", '{');
	for (enum session_meter m = 0; m < SESSION_METERS; m++) {
		if (m != METER_RUNS && m != METER_DOMAINS && used->meters[m] > 0) {
			session_meter_json(j, session_meter_name(m), m, used->meters[m]);
		}
	}
	json_close(j, '}');
	if (used->n_violations > 0) {
		json_kopen(j, "violations", '{');
		for (size_t i = 0; i < used->n_violations; i++) {
			json_kuint(j, used->violations[i].name, used->violations[i].n);
		}
		json_close(j, '}');
	}
	entry_verdict(c, j);
	return entry_end(c, own, err) == 0 ? entry_ancestors(c, EV_USAGE, err) : -1;
}

/* Sets *ret to true if this report was not counted before. */
static int is_new(struct call *c, const struct session_run *run, const struct session_usage *used,
                  bool *ret, struct ssb_error *err)
{
	if (used->report == 0) {
		*ret = true;
		return 0;
	}
	if (used->report > INT64_MAX ||
	    db_run(c->ss->db,
	           "UPDATE runs SET used = $1 WHERE n = $2 AND session = $3 AND used < $1",
	           DB_ARGS(DB_I(used->report), DB_I(run->n), DB_I(call_own(c)->n)), NULL, NULL,
	           err) != 0) {
		return ssb_fail(err, SSB_E_USAGE, 0, "", "not the number of a report");
	}
	*ret = db_changes(c->ss->db) == 1;
	return 0;
}

int session_run_used(struct session_store *ss, const struct session_run *run,
                     const struct session_usage *used, struct decision *ret, struct ssb_error *err)
{
	static const struct session_usage NOTHING = { 0 };
	AUTO(call_done) struct call c = { 0 };
	uint64_t before[SESSION_DEPTH][SESSION_METERS];
	bool any = false;
	bool new = false;

	if (used->n_violations > ARRAY_LEN(used->violations)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "", "too many kinds of violations at once");
	}
	if (call_enter(&c, ss, run->session, err) != 0 || is_new(&c, run, used, &new, err) != 0) {
		return -1;
	}
	used = new ? used : &NOTHING;
	for (size_t i = 0; i < c.n; i++) {
		memcpy(before[i], c.chain[i].s.meters, sizeof(before[i]));
	}
	if (add_usage(&c, used, &any, err) != 0 || judge_usage(&c, used, before, err) != 0) {
		return -1;
	}
	for (size_t i = 0; any && i < c.n; i++) {
		c.chain[i].dirty = true;
	}
	call_decide(&c);
	if ((any && put_usage(&c, run, used, err) != 0) || call_apply(&c, err) != 0) {
		return -1;
	}
	return call_finish(&c, run, ret, err);
}

/* ---- end ----------------------------------------------------------------- */

int session_run_end(struct session_store *ss, const struct session_run *run, int exit_status,
                    const char *ending, struct ssb_error *err)
{
	AUTO(call_done) struct call c = { 0 };

	if (store_check_text(ending, STORE_TEXT, "how a run ended", err) != 0 ||
	    call_enter(&c, ss, run->session, err) != 0 ||
	    db_run(ss->db,
	           "UPDATE runs SET ended = $1, exit_status = $2, ending = $3, run_id = $4"
	           " WHERE n = $5 AND session = $6 AND ended = 0",
	           DB_ARGS(DB_I(c.now), DB_I(exit_status), DB_T(ending), DB_T(run->run_id),
	                   DB_I(run->n), DB_I(call_own(&c)->n)),
	           NULL, NULL, err) != 0) {
		return -1;
	}
	/* If no row changed, another process found the run dead and recorded its end. */
	if (db_changes(ss->db) == 1) {
		struct row *own = call_own(&c);
		struct json *j = entry_begin(&c, own, EV_RUN_ENDED);
		json_kint(j, "run", run->n);
		if (run->run_id[0] != '\0') {
			json_kstr(j, "run_id", run->run_id);
		}
		json_kint(j, "exit_code", exit_status);
		json_kstr(j, "end", ending);
		if (entry_end(&c, own, err) != 0) {
			return -1;
		}
	}
	return call_commit(&c, err);
}
