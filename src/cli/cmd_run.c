/* cmd_run.c - runs a skill, or a bare command, and ends with its exit status. */
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/name.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/cli_record.h"
#include "cli/run_otel.h"
#include "cli/run_watch.h"
#include "cli/say.h"
#include "consent/consent.h"
#include "consent/lock.h"
#include "os/file.h"
#include "session/keeper.h"

/* Prints one line of JSON, as the last line of standard error, because standard output belongs to
 * the skill. */
static void print_json(const struct ssb_result *r)
{
	struct json j;
	auto_buf out = BUF(SAY_MAX);

	if (r->stderr_bytes > 0) {
		buf_addc(&out, '\n'); /* the skill's last line may have no newline */
	}
	json_init(&j, &out, false);
	json_open(&j, '{');
	json_kstr(&j, "run_id", r->run_id);
	json_kint(&j, "exit_status", r->exit_status);
	json_kstr(&j, "end", name_of_end(r->end));
	json_kint(&j, "signal", r->signal);
	json_kuint(&j, "duration_ms", r->duration_us / 1000);
	json_kuint(&j, "stdout_bytes", r->stdout_bytes);
	json_kuint(&j, "stderr_bytes", r->stderr_bytes);
	json_kbool(&j, "stdout_cut", r->stdout_cut != 0);
	json_kbool(&j, "stderr_cut", r->stderr_cut != 0);
	json_kuint(&j, "violations", r->violations);
	json_kstr(&j, "severity", r->severity);
	json_kstr(&j, "classes", r->classes);
	if (r->end == SSB_END_SESSION) {
		json_kstr(&j, "session_reason", r->session_reason);
	}
	json_kstr(&j, "lost_layers", r->lost_layers);
	json_kstr(&j, "trace", r->trace_path);
	json_close(&j, '}');
	buf_addc(&out, '\n');
	(void)say_out(STDERR_FILENO, &out);
}

/* Prints what you should know about the run, such as an end that the skill did not cause itself. */
static void say_notes(const struct ssb_result *r, bool quiet)
{
	if (r->lost_layers[0] != '\0') {
		say_notef("the skill ran WITHOUT these layers, as --best-effort allows: %s; see %s",
		          r->lost_layers, r->trace_path);
	}
	if (r->violations > 0 && r->classes[0] != '\0') {
		say_notef("what it tried amounts to: %s (%s)", r->classes, r->severity);
	}
	if (r->end == SSB_END_SESSION) {
		say_errorf("the session ended the skill: %s", r->session_reason);
	}
	if (r->end == SSB_END_TIMEOUT) {
		say_notef("the time limit ended the skill; allow more with --timeout, or "
		          "resources.max_runtime_seconds in the manifest");
	}
	if (r->end == SSB_END_MEMORY) {
		say_notef("the memory limit ended the skill; allow more with --memory, or "
		          "resources.memory_mb in the manifest");
	}
	if (r->stdout_cut || r->stderr_cut) {
		say_notef("%s was cut at its limit; allow more with --max-output, or "
		          "resources.max_output_bytes in the manifest",
		          r->stdout_cut && r->stderr_cut ? "the output on stdout and stderr"
		          : r->stdout_cut                ? "stdout"
		                                         : "stderr");
	}
	/* Prints the summary also for a run that failed without a violation: a denial that is not a
	 * violation may be the reason. */
	bool told = !quiet && (r->violations > 0 || r->exit_status != 0) &&
	            cli_record_summary(r->trace_path, r->run_id);
	if (r->violations > 0 && !told) {
		say_notef("%zu attempt%s outside the plan, denied; see %s", r->violations,
		          r->violations == 1 ? "" : "s", r->trace_path);
	}
}

static void say_summary(const struct ssb_result *r)
{
	say_notef("run %s: %s, exit status %d, %.3f s, stdout %ju B, stderr %ju B, "
	          "violations %zu, trace %s",
	          r->run_id, name_of_end(r->end), r->exit_status, (double)r->duration_us / 1e6,
	          (uintmax_t)r->stdout_bytes, (uintmax_t)r->stderr_bytes, r->violations,
	          r->trace_path);
}

static int run_plan(const struct request *r, const struct ssb_plan *plan, const struct owner *owner)
{
	static const int stdio[3] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	AUTO(run_otel_end) struct run_otel otel = RUN_OTEL_NONE; /* released last */
	AUTO(prepared_done) struct prepared found = { 0 };
	struct ssb_result result = { 0 };
	struct ssb_error err = { 0 };
	struct run_watch watch = { 0 };
	struct run_request q = run_request_of(plan, stdio);

	q.owner = owner;
	q.still = consent_still;
	if (request_has(r, FLAG_WATCH)) {
		run_watch_begin(&watch, &q);
	}
	if (request_has(r, FLAG_OTEL)) {
		run_otel_begin(&otel, &q);
	}
	file_limit_raise(MAX_RUN_FILES);
	int rc = keeper_run(&q, request_session(r), &result, &found, &err);
	run_watch_end(&watch);
	if (rc != 0 || result.stdout_bytes > 0 || result.stderr_bytes > 0) {
		/* The skill must not be able to hide our messages about the run. */
		say_calm((result.stdout_open && isatty(STDOUT_FILENO) == 1) || result.stderr_open);
	}
	if (rc != 0) {
		return request_fail(r, &err, exit_status_of(&err, true));
	}
	for (size_t i = 0; i < found.warnings.n; i++) {
		say_warningf("%s", found.warnings.v[i]);
	}
	for (size_t i = 0; request_has(r, FLAG_VERBOSE) && i < found.quiet.n; i++) {
		say_notef("%s", found.quiet.v[i]);
	}
	say_notes(&result, request_has(r, FLAG_QUIET));
	if (request_has(r, FLAG_VERBOSE)) {
		say_summary(&result);
	}
	if (request_has(r, FLAG_JSON)) {
		print_json(&result);
	}
	return result.exit_status;
}

static int refuse_run(const struct request *r, size_t refusals)
{
	struct ssb_error err = { .code = SSB_E_POLICY, .where = "refused" };

	snprintf(err.text, sizeof(err.text), "%zu request%s not granted; nothing was run", refusals,
	         refusals == 1 ? " is" : "s are");
	return request_fail(r, &err, EXIT_SANDBOX);
}

static int start_run(struct request *r, const struct ssb_plan *plan)
{
	struct ssb_error err = { 0 };
	const struct owner *owner = request_owner(r, &err);

	if (owner == NULL) {
		return request_fail(r, &err, exit_status_of(&err, true));
	}
	/* Counts this run, because an approval may be for a number of runs. It also marks the copy
	 * of the files as used for as long as this run may take. */
	if (plan->approved != NULL && consent_use(owner, plan, &err) != 0) {
		return request_fail(r, &err, EXIT_SANDBOX);
	}
	int status = run_plan(r, plan, owner);
	/* Old copies are removed only after a run that used a copy, so that other runs do not lose
	 * time. */
	if (plan->approved != NULL && plan->approved->snapshot) {
		snapshot_tidy(owner);
	}
	return status;
}

/* A missing script is reported before any question is asked. */
static int fail_no_entry(const struct request *r, const struct ssb_plan *plan)
{
	struct ssb_error err = { .code = SSB_E_USAGE, .where = "script" };

	snprintf(err.text, sizeof(err.text), "%s", plan->no_entry);
	return request_fail(r, &err, EXIT_USAGE);
}

int cmd_run(struct request *r)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	int status = EXIT_FINE;

	if (request_plan(r, NULL, &plan, &status) != 0) {
		return status;
	}
	if (request_has(r, FLAG_DRY_RUN)) {
		status = cmd_inspect_print(plan, request_has(r, FLAG_JSON));
	}
	if (status == EXIT_FINE && ssb_plan_refusals(plan) > 0) {
		return refuse_run(r, ssb_plan_refusals(plan));
	}
	if (status == EXIT_FINE && !request_has(r, FLAG_DRY_RUN) && plan->no_entry != NULL) {
		return fail_no_entry(r, plan);
	}
	if (status != EXIT_FINE || request_has(r, FLAG_DRY_RUN)) {
		return status;
	}
	for (size_t i = 0; i < r->n_best_effort; i++) {
		say_warningf("--best-effort %s: if this machine cannot apply that layer, the "
		             "skill runs without it",
		             r->best_effort[i]);
	}
	if (request_has(r, FLAG_PROVE) && cmd_prove_plan(plan, false, true) != EXIT_FINE) {
		struct ssb_error err = { .code = SSB_E_POLICY,
			                 .where = "refused",
			                 .text = "the sandbox does not hold; nothing was run" };
		return request_fail(r, &err, EXIT_SANDBOX);
	}
	return start_run(r, plan);
}
