/* cmd_list.c - lists recorded runs, newest first. cmd_ps.c lists the running ones. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "trace/index.h"
#include "trace/search.h"
#include "base/error.h"
#include "base/name.h"
#include "base/number.h"
#include "base/own.h"
#include "base/suggest.h"
#include "cli/cli_record.h"
#include "cli/run_rows.h"
#include "cli/say.h"
#include "os/file.h"
#include "policy/path.h"

static int parse_ask(const struct request *r, struct index_ask *ask, char since[WHEN_SIZE],
                     char until[WHEN_SIZE], struct ssb_error *err)
{
	const char *value = NULL;
	uint64_t limit = 0;

	ask->skill = request_value(r, FLAG_SKILL);
	ask->violations = request_has(r, FLAG_VIOLATIONS);
	ask->rebuild = request_has(r, FLAG_REBUILD);
	if ((value = request_value(r, FLAG_SINCE)) != NULL) {
		if (cli_record_when(value, since, err) != 0) {
			return ssb_wrap(err, "--since");
		}
		ask->since = since;
	}
	if ((value = request_value(r, FLAG_UNTIL)) != NULL) {
		if (cli_record_when(value, until, err) != 0) {
			return ssb_wrap(err, "--until");
		}
		ask->until = until;
	}
	if ((value = request_value(r, FLAG_SEVERITY)) != NULL) {
		ask->severity = classes_severity_from(value);
		if (ask->severity == SEVERITY_NONE) {
			return ssb_fail(
			        err, SSB_E_USAGE, 0, "",
			        "--severity: '%s' is not one of: low, medium, high, critical",
			        value);
		}
	}
	if ((value = request_value(r, FLAG_LIMIT)) != NULL) {
		if (!number_parse(value, 1, LONG_MAX, &limit)) {
			return ssb_fail(err, SSB_E_USAGE, 0, "",
			                "--limit: '%s' is not a whole number of 1 or more", value);
		}
		ask->limit = (long)limit;
	}
	return 0;
}

static int parse_class(const char *name, enum class_id *ret, struct ssb_error *err)
{
	size_t i = name_index(name, &CLASSES[0].name, CLASS_COUNT, sizeof(CLASSES[0]));

	if (i == CLASS_COUNT) {
		const char *near = suggest(name, strlen(name), &CLASSES[0].name, CLASS_COUNT,
		                           sizeof(CLASSES[0]));
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--class: '%.60s' is not a threat class%s%s", name,
		                near != NULL ? "; did you mean " : "", near != NULL ? near : "");
	}
	*ret = (enum class_id)i;
	return 0;
}

static int parse_search(const struct request *r, struct search *s, struct ssb_error *err)
{
	const char *path = request_value(r, FLAG_PATH);
	const char *reason = request_value(r, FLAG_REASON);
	const char *class = request_value(r, FLAG_CLASS);
	auto_free char *cwd = getcwd(NULL, 0);
	auto_free char *whole = path != NULL ? path_from(cwd != NULL ? cwd : "/", path) : NULL;

	*s = (struct search){ .host = request_value(r, FLAG_HOST),
		              .reason = reason_from(reason),
		              .class = CLASS_NONE };
	if (path != NULL && (whole == NULL || (s->path = path_words(whole)) == NULL)) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	if (reason != NULL && (s->reason == REASON_NONE || s->reason == REASON_UNKNOWN)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--reason: '%.60s' is not a reason; 'skillsandbox why' shows the "
		                "reason of each denial in brackets",
		                reason);
	}
	return class != NULL ? parse_class(class, &s->class, err) : 0;
}

/* Removes from the list the runs whose record does not match, and all runs after the first `most`
 * matches (0: no limit). Reads the records one after the other, line by line. */
static int keep_matches(const char *state_dir, const struct search *s, size_t most,
                        struct run_facts *v, size_t *inout_n, struct ssb_error *err)
{
	AUTO(runs_done) struct runs runs = RUNS_NONE;
	size_t kept = 0, unread = 0;

	if (runs_open(&runs, state_dir, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < *inout_n && (most == 0 || kept < most); i++) {
		struct run_entry e = { .has_flat = true };
		memcpy(e.id, v[i].id, sizeof(e.id));
		auto_fd fd = runs.fd >= 0 ? runs_record(&runs, &e) : -1;
		bool whole = fd >= 0 || file_is_missing(errno);
		if (fd >= 0 && search_matches(s, fd, &whole)) {
			v[kept++] = v[i];
		}
		unread += !whole;
	}
	if (unread > 0) {
		say_warningf("%zu record%s could not be read to the end, so the list may lack runs",
		             unread, unread == 1 ? "" : "s");
	}
	*inout_n = kept;
	return 0;
}

static int list_runs(const struct request *r, const struct owner *o, struct index_ask *ask,
                     struct run_facts **ret, size_t *ret_n, struct ssb_error *err)
{
	struct search search = { 0 };
	size_t most = (size_t)ask->limit;

	int rc = parse_search(r, &search, err);
	bool empty = search_is_empty(&search);
	ask->limit = empty ? ask->limit : 0;
	rc = rc == 0 ? index_list(o->state_dir, ask, ret, ret_n, err) : rc;
	if (rc == 0 && !empty) {
		rc = keep_matches(o->state_dir, &search, most, *ret, ret_n, err);
	}
	free(search.path);
	return rc;
}

int cmd_list(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	struct index_ask ask = { 0 };
	struct ssb_error err = { 0 };
	char since[WHEN_SIZE];
	char until[WHEN_SIZE];
	auto_free struct run_facts *runs = NULL;
	size_t n = 0;

	if (r->operands.n > 0) {
		return say_fail(EXIT_USAGE, "audit list takes no argument");
	}
	if (parse_ask(r, &ask, since, until, &err) != 0 || owner_load(&owner, &err) != 0 ||
	    list_runs(r, &owner, &ask, &runs, &n, &err) != 0) {
		return exit_status_told(&err);
	}
	return run_rows_print(runs, n, request_has(r, FLAG_JSON));
}
