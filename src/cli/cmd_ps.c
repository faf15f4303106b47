/* cmd_ps.c - lists the runs whose supervisor is alive. */
#include <string.h>

#include "trace/runs.h"
#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "cli/cli_record.h"
#include "cli/run_rows.h"
#include "cli/say.h"
#include "session/live.h"

#define PING_MS 1000 /* how long to wait for the answers of all keepers */

static int compare_starts(const void *a, const void *b)
{
	return strcmp(((const struct run_facts *)a)->started,
	              ((const struct run_facts *)b)->started);
}

/* `*ret` is new. */
static int find_live_runs(const struct runs *runs, struct run_facts **ret, size_t *ret_n)
{
	auto_free struct run_facts *v = NULL;
	size_t n = 0;

	for (size_t i = 0; i < runs->n; i++) {
		auto_fd fd = runs_record(runs, &runs->v[i]);
		struct run_facts f;
		if (fd < 0 || !run_file_live(fd) || run_facts_read(&f, fd, runs->v[i].id) != 0 ||
		    f.state == RUN_ENDED) {
			continue;
		}
		if (!ARRAY_MORE(v, n)) {
			return -1;
		}
		v[n++] = f;
	}
	if (n > 0) {
		qsort(v, n, sizeof(*v), compare_starts);
	}
	*ret = steal_ptr(&v);
	*ret_n = n;
	return 0;
}

struct live {
	struct run_facts *v;
	size_t n;
};

static void note_session(void *arg, const struct live_reply *r)
{
	const struct live *l = arg;

	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i].id, r->run_id) == 0 && session_id_valid(r->session)) {
			snprintf(l->v[i].session, sizeof(l->v[i].session), "%s", r->session);
		}
	}
}

/* Asks the keeper of each run for the run's session. A keeper that does not answer in time is
 * ignored. */
static void find_sessions(const struct owner *o, struct run_facts *v, size_t n)
{
	struct live l = { v, n };
	auto_fd dir = -1;

	if (n > 0 && live_dir(o->state_dir, false, &dir, &(struct ssb_error){ 0 }) == 0) {
		live_each(dir, PING_MS, note_session, &l);
	}
}

int cmd_ps(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	AUTO(runs_done) struct runs runs = RUNS_NONE;
	struct ssb_error err = { 0 };
	auto_free struct run_facts *live = NULL;
	size_t n = 0;

	if (r->operands.n > 0) {
		return say_fail(EXIT_USAGE, "ps takes no argument");
	}
	if (owner_load(&owner, &err) != 0 || runs_open(&runs, owner.state_dir, &err) != 0) {
		return exit_status_told(&err);
	}
	if (find_live_runs(&runs, &live, &n) != 0) {
		ssb_fail(&err, SSB_E_NOMEM, 0, "", "out of memory");
		return exit_status_told(&err);
	}
	find_sessions(&owner, live, n);
	return run_rows_print(live, n, request_has(r, FLAG_JSON));
}
