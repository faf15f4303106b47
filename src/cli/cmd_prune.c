/* cmd_prune.c - removes the records of old runs, but never the record of a run that is still
 * running. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "skill/digest_cache.h"
#include "trace/runs.h"
#include "base/amount.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/own.h"
#include "cli/cli_record.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "sandbox/caches.h"

/* A record that was written to in the last 10 seconds is never removed: it may belong to a run that
 * has not locked it yet. */
#define FRESH_SECONDS 10

/* The digests of a skill's files are removed if no run has used them for this long. */
#define DIGESTS_SECONDS (30 * 24 * 3600)

struct prune {
	bool dry;
	int64_t before;         /* removes records last written before this, in nanoseconds */
	int64_t digests_before; /* removes digests last used before this, in seconds */
	size_t keep;
	size_t removed;
	size_t failed;
	size_t digests;
	uint64_t bytes;
};

static int parse_count(const char *text, size_t *ret, struct ssb_error *err)
{
	uint64_t n = 0;

	if (!number_parse(text, 0, 999999999, &n)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--keep: '%s' is not a number from 0 to 999999999", text);
	}
	*ret = n;
	return 0;
}

static int parse_request(const struct request *r, struct prune *p, struct ssb_error *err)
{
	const char *older = request_value(r, FLAG_OLDER_THAN);
	const char *keep = request_value(r, FLAG_KEEP);
	int64_t seconds = 0;

	bool caches = request_has(r, FLAG_CACHES);

	if ((caches ? keep != NULL : (older == NULL) == (keep == NULL)) || r->operands.n > 0) {
		return ssb_fail(
		        err, SSB_E_USAGE, 0, "",
		        "audit prune needs --older-than TIME or --keep N, or --caches with or "
		        "without --older-than TIME");
	}
	if ((older != NULL && cli_record_seconds(older, &seconds, err) != 0) ||
	    (keep != NULL && parse_count(keep, &p->keep, err) != 0)) {
		return -1;
	}
	int64_t now = (int64_t)time(NULL);
	p->digests_before = now - (older != NULL ? seconds : DIGESTS_SECONDS);
	seconds = seconds > FRESH_SECONDS ? seconds : FRESH_SECONDS;
	/* A span of a few hundred years would overflow as nanoseconds, so the limit is never
	 * before 1970. */
	p->before = (now > seconds ? now - seconds : 0) * 1000000000;
	p->dry = request_has(r, FLAG_DRY_RUN);
	return 0;
}

static void remove_one(struct prune *p, const struct runs *runs, const struct run_entry *e)
{
	if (p->dry) {
		auto_fd fd = runs_record(runs, e);
		if (fd >= 0 && run_file_live(fd)) {
			return;
		}
	} else if (runs_remove(runs, e) != 0) {
		if (errno != EBUSY) {
			say_warningf("run %s was not removed: %s", e->id, strerrordesc_np(errno));
			p->failed++;
		}
		return;
	}
	p->removed++;
	p->bytes += e->size;
}

static int print_result(const struct request *r, const struct prune *p)
{
	bool caches = request_has(r, FLAG_CACHES);
	auto_buf out = BUF(SAY_MAX);

	if (request_has(r, FLAG_JSON)) {
		struct json j = JSON_TO(&out, true);
		json_open(&j, '{');
		json_kuint(&j, "removed", p->removed);
		json_kuint(&j, "bytes", p->bytes);
		json_kuint(&j, "failed", p->failed);
		json_kuint(&j, "digests", p->digests);
		json_kbool(&j, "dry_run", p->dry);
		json_close(&j, '}');
	} else {
		buf_addf(&out, "%s %zu %s%s; size of the %s: ", p->dry ? "would remove" : "removed",
		         p->removed, caches ? "cache" : "run", p->removed == 1 ? "" : "s",
		         caches ? "caches" : "records");
		amount_bytes(&out, p->bytes);
	}
	buf_addc(&out, '\n');
	return (request_has(r, FLAG_JSON) ? say_out : screen_text)(STDOUT_FILENO, &out);
}

static int finish_prune(const struct request *r, const struct prune *p)
{
	int status = EXIT_FINE;

	if (request_has(r, FLAG_JSON) || !request_has(r, FLAG_QUIET)) {
		status = print_result(r, p);
	}
	return p->failed > 0 ? EXIT_SANDBOX : status;
}

/* Removes caches that no run uses now. With --older-than, removes only those that were last used
 * before that time. */
static int prune_caches(const struct request *r, const struct owner *owner, const struct prune *p)
{
	bool all = request_value(r, FLAG_OLDER_THAN) == NULL;
	struct caches_sum sum;

	caches_prune(owner->state_dir, all ? INT64_MAX : p->digests_before, p->dry, &sum);
	if (sum.busy > 0) {
		say_warningf("%zu cache%s in use by a run, and kept", sum.busy,
		             sum.busy == 1 ? " is" : "s are");
	}
	if (sum.failed > 0) {
		say_warningf("%zu cache%s could not be removed", sum.failed,
		             sum.failed == 1 ? "" : "s");
	}
	const struct prune found = {
		.dry = p->dry, .removed = sum.removed, .failed = sum.failed, .bytes = sum.bytes
	};
	return finish_prune(r, &found);
}

int cmd_prune(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	AUTO(runs_done) struct runs runs = RUNS_NONE;
	struct ssb_error err = { 0 };
	struct prune p = { 0 };

	if (parse_request(r, &p, &err) != 0 || owner_load(&owner, &err) != 0) {
		return exit_status_told(&err);
	}
	if (request_has(r, FLAG_CACHES)) {
		return prune_caches(r, &owner, &p);
	}
	if (runs_open_some(&runs, owner.state_dir, &err) != 0) {
		return exit_status_told(&err);
	}
	if (runs.cut) {
		say_warningf("there are more runs than one call examines; run prune again");
	}
	runs_stat(&runs);
	for (size_t i = p.keep; i < runs.n; i++) {
		if (runs.v[i].mtime < p.before) {
			remove_one(&p, &runs, &runs.v[i]);
		}
	}
	p.digests = digest_cache_prune(owner.state_dir, p.digests_before, p.dry);
	return finish_prune(r, &p);
}
