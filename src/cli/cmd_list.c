/* cmd_list.c - lists recorded runs, newest first. cmd_ps.c lists the running ones. */
#include <limits.h>

#include "trace/index.h"
#include "base/error.h"
#include "base/number.h"
#include "base/own.h"
#include "cli/cli_record.h"
#include "cli/run_rows.h"
#include "cli/say.h"

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
	    index_list(owner.state_dir, &ask, &runs, &n, &err) != 0) {
		return cli_record_fail(&err);
	}
	return run_rows_print(runs, n, request_has(r, FLAG_JSON));
}
