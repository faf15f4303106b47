/* cmd_run.c - runs a skill, or a bare command, and ends with its exit status. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/name.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "cli/cli.h"
#include "cli/cli_record.h"
#include "cli/run_notes.h"
#include "cli/run_watch.h"
#include "cli/say.h"
#include "consent/consent.h"
#include "consent/lock.h"
#include "os/file.h"
#include "otel/otel.h"
#include "otel/otel_config.h"
#include "policy/path.h"
#include "report/render.h"
#include "sandbox/sandbox.h"
#include "session/keeper.h"
#include "trace/reader.h"
#include "trace/runs.h"

/* ---- --otel: the export ---------------------------------------------------------------------- */

/* `run --otel` sends the record to the owner's OpenTelemetry collector when the run has ended
 * (otel/otel.h). A failure of the export never affects the run. */
struct otel_export {
	bool on;
	int record; /* fd of the record; -1 until the record exists */
	const struct owner *owner;
	struct otel_config config;
};

static void keep_record(void *arg, int record)
{
	((struct otel_export *)arg)->record = run_watch_reopen(record);
}

/* Prepares the export of the run. Borrows q->owner. If the owner's environment variables are wrong,
 * prints a warning, and nothing is exported. */
static void otel_begin(struct otel_export *o, struct run_request *q)
{
	struct ssb_error err = { 0 };

	if (otel_config_load(&o->config, q->owner, &err) != 0) {
		say_warningf("--otel: %s: %s; nothing will be exported", err.where, err.text);
		return;
	}
	o->on = true;
	o->owner = q->owner;
	run_request_watch(q, (struct ssb_watch){ keep_record, o });
}

/* Must be called after the run is over and its result is printed. */
static void otel_end(struct otel_export *o)
{
	if (!o->on) {
		return;
	}
	if (o->record >= 0) {
		otel_start(o->record, &o->config, o->owner);
	}
	own_close(&o->record);
	otel_config_done(&o->config);
	o->on = false;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Prints one line of JSON, as the last line of standard error, because standard output belongs to
 * the skill. */
static void print_json(const struct ssb_result *r)
{
	auto_buf out = BUF(SAY_MAX);

	if (r->stderr_bytes > 0) {
		/* The skill's last line may lack its newline. */
		buf_addc(&out, '\n');
	}
	struct json j = JSON_TO(&out, false);
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
	json_kuint(&j, "limits_hit", r->limits_hit);
	json_kuint(&j, "violations", r->violations);
	json_kstr(&j, "severity", r->severity);
	json_kstr(&j, "classes", r->classes);
	if (r->end == SSB_END_SESSION) {
		json_kstr(&j, "session_reason", r->session_reason);
	}
	json_kstr(&j, "lost_layers", r->lost_layers);
	json_kstr(&j, "trace", r->trace_path);
	say_kept(&j);
	json_close(&j, '}');
	buf_addc(&out, '\n');
	(void)say_out(STDERR_FILENO, &out);
}

/* ---- the run --------------------------------------------------------------------------------- */

static int run_plan(const struct request *r, const struct ssb_plan *plan, const struct owner *owner)
{
	static const int stdio[3] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	AUTO(otel_end) struct otel_export otel = { .record = -1 }; /* released last */
	AUTO(prepared_done) struct prepared found = { 0 };
	struct ssb_result result = { 0 };
	struct ssb_error err = { 0 };
	struct run_watcher watch = { 0 };
	struct run_request q = run_request_of(plan, stdio);

	q.owner = owner;
	q.still = consent_still;
	run_watch_begin(&watch, r, &q);
	if (request_has(r, FLAG_OTEL)) {
		otel_begin(&otel, &q);
	}
	run_notes_start(r, plan);
	file_limit_raise(MAX_RUN_FILES);
	int rc = keeper_run(&q, request_session(r), &result, &found, &err);
	run_watch_end(&watch);
	if (rc != 0 || result.stdout_bytes > 0 || result.stderr_bytes > 0) {
		/* The skill must not be able to hide our messages about the run. */
		bool same = isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
		say_calm((result.stdout_open && same) || result.stderr_open);
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
	run_notes_end(r, plan, owner, &result, &found);
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
	/* consent_use() counts this run against an approval for a number of runs. It also marks
	 * the copy of the files as used until the latest time at which this run can end. */
	if (plan->approved != NULL && consent_use(owner, plan, &err) != 0) {
		return request_fail(r, &err, EXIT_SANDBOX);
	}
	int status = run_plan(r, plan, owner);
	/* Old copies are removed only after a run that used a copy. A run without a copy does not
	 * lose time with this. */
	if (plan->approved != NULL && plan->approved->snapshot) {
		snapshot_tidy(owner);
	}
	return status;
}

int cmd_run_program(struct request *r, char *const fallback[])
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	struct ssb_error no_script = { 0 };
	int status = EXIT_FINE;

	if (request_plan(r, fallback, &plan, &status) != 0) {
		return status;
	}
	if (request_has(r, FLAG_DRY_RUN)) {
		status = cmd_inspect_print(plan, request_has(r, FLAG_JSON));
	}
	if (status == EXIT_FINE && ssb_plan_refusals(plan) > 0) {
		return refuse_run(r, ssb_plan_refusals(plan));
	}
	/* A missing script is reported before the owner is asked anything. */
	if (status == EXIT_FINE && !request_has(r, FLAG_DRY_RUN) &&
	    plan_check_script(plan, &no_script) != 0) {
		return request_fail(r, &no_script, EXIT_USAGE);
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
			                 .text = "--prove: an attack on the sandbox succeeded or "
			                         "could not be tried; nothing was run" };
		return request_fail(r, &err, EXIT_SANDBOX);
	}
	return start_run(r, plan);
}

int cmd_run(struct request *r)
{
	return cmd_run_program(r, NULL);
}
