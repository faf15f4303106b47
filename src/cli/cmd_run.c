/* cmd_run.c - runs a skill, or a bare command, and ends with its exit status. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/name.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "cli/cli.h"
#include "cli/cli_record.h"
#include "cli/line.h"
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

/* ---- --watch: what the skill does, as it happens --------------------------------------------- */

#define TICK_MS   50
#define LAST_MS   5000 /* time limit for printing the last lines after the run has ended */
#define RECORD_FD 3

/* A separate process follows the record and writes to standard error, so that the run never waits
 * for a slow reader. */
struct watcher {
	pid_t pid;    /* pid of the watching process; 0: none */
	bool routine; /* also show what is routine */
};

/* Writes a carriage return before each newline if the terminal of standard error is raw. It is
 * raw while the skill uses a terminal that the sandbox made for it, and then a newline does not
 * return to the first column. */
static void put_returns(struct buf *out)
{
	struct termios t;
	auto_buf wide = BUF(SAY_MAX);

	if (tcgetattr(STDERR_FILENO, &t) != 0 || (t.c_oflag & OPOST) != 0) {
		return;
	}
	for (size_t i = 0; i < out->len; i++) {
		buf_adds(&wide, out->data[i] == '\n' ? "\r" : "");
		buf_addc(&wide, out->data[i]);
	}
	buf_reset(out);
	buf_add(out, wide.data, wide.len);
}

/* Prints all complete lines. Returns false if no line can follow: the last line was printed, or the
 * record is damaged, or the output failed. */
static bool print_lines(const struct watcher *w, struct reader *in, struct line *l, struct buf *out)
{
	const struct render_style style = { STDERR_FILENO, false, w->routine, "" };
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	bool more = true;

	while (more && reader_next(in, &text, &len) == READER_LINE) {
		buf_reset(out);
		if (line_parse(l, text, len, &why) != 0) {
			return false;
		}
		line_render(out, l, &style);
		put_returns(out);
		more = l->kind != EV_SIGNATURE && say_out(STDERR_FILENO, out) == 0;
	}
	return more;
}

static void watch_process(const struct watcher *w)
{
	struct reader in;
	struct line l = { 0 };
	struct buf out = BUF(SAY_MAX);

	reader_init(&in, RECORD_FD, 0);
	/* Signals from the caller are for the run. This process must end only after the run. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	bool live = true;
	while (print_lines(w, &in, &l, &out) && live) {
		(void)poll(NULL, 0, TICK_MS);
		live = run_file_live(RECORD_FD);
	}
	_exit(0);
}

/* Opens the record a second time. run_file_live() tests the lock that shows that the run is
 * running; on a duplicate of `record`, the test would release this lock. */
static int reopen_record(int record)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", record);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Closes all fds except the record and standard error. */
static bool settle_fds(int record)
{
	int fd = reopen_record(record);
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd >= 0 && none >= 0 && dup2(none, STDIN_FILENO) >= 0 &&
	       dup2(none, STDOUT_FILENO) >= 0 && (fd == RECORD_FD || dup2(fd, RECORD_FD) >= 0) &&
	       close_range(RECORD_FD + 1, ~0U, 0) == 0;
}

static void start_watching(void *arg, int record)
{
	struct watcher *w = arg;
	pid_t pid = fork();

	if (pid == 0) {
		if (settle_fds(record)) {
			watch_process(w);
		}
		_exit(1);
	}
	if (pid < 0) {
		say_warningf("--watch: cannot create a process, so events are not shown; the "
		             "record contains them");
	}
	w->pid = pid > 0 ? pid : 0;
}

static void watch_begin(struct watcher *w, struct run_request *q, bool routine)
{
	*w = (struct watcher){ .routine = routine };
	run_request_watch(q, (struct ssb_watch){ start_watching, w });
}

/* Waits until the watching process has printed everything, but at most LAST_MS. */
static void watch_end(struct watcher *w)
{
	for (int left = LAST_MS; w->pid > 0 && left > 0; left -= TICK_MS / 5) {
		if (waitpid(w->pid, NULL, WNOHANG) != 0) {
			w->pid = 0;
			return;
		}
		(void)poll(NULL, 0, TICK_MS / 5);
	}
	if (w->pid > 0) {
		(void)kill(w->pid, SIGKILL);
		(void)waitpid(w->pid, NULL, 0);
		w->pid = 0;
	}
}

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
	((struct otel_export *)arg)->record = reopen_record(record);
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

/* Prints what you should know about the run, such as an end that the skill did not
 * cause. */
static void say_notes(const struct owner *owner, const struct ssb_result *r, bool quiet)
{
	if (r->lost_layers[0] != '\0') {
		say_notef("the skill ran WITHOUT these layers, as --best-effort allows: %s; see %s",
		          r->lost_layers, r->trace_path);
	}
	if (r->classes[0] != '\0') {
		say_notef("looks like: %s (%s)", r->classes, r->severity);
	}
	if (r->end == SSB_END_SESSION) {
		say_errorf("the session ended the skill: %s", r->session_reason);
	}
	/* Print the summary after a failed run, too, even without a violation: a denial that is not
	 * a violation may be the reason for the failure. */
	bool denials = !quiet && (r->violations > 0 || r->exit_status != 0);
	bool told = !quiet && (denials || r->limits_hit > 0) &&
	            cli_record_summary(owner, r->trace_path, r->run_id, denials);
	if (r->limits_hit > 0 && !told) {
		say_notef("a limit of the run was reached; see %s", r->trace_path);
	}
	if (r->violations > 0 && !(told && denials)) {
		say_notef("%zu attempt%s outside the plan, denied; see %s", r->violations,
		          r->violations == 1 ? "" : "s", r->trace_path);
	}
}

static void say_summary(const struct ssb_result *r)
{
	auto_buf out = BUF(SAY_MAX);

	render_end(&out, name_of_end(r->end), r->exit_status);
	buf_addf(&out, ", exit status %d, ", r->exit_status);
	amount_time(&out, (int64_t)r->duration_us);
	buf_adds(&out, ", stdout ");
	amount_bytes(&out, r->stdout_bytes);
	buf_adds(&out, ", stderr ");
	amount_bytes(&out, r->stderr_bytes);
	say_notef("run %s: %s, violations %zu, trace %s", r->run_id, out.data, r->violations,
	          r->trace_path);
}

/* Returns the first argument that names a file relative to the current directory and that the
 * program cannot find, because it starts elsewhere; or NULL. */
static const char *find_named_file(const struct ssb_plan *plan)
{
	const char *found = NULL;

	for (size_t i = 1; i < plan->argv.n && found == NULL; i++) {
		const char *word = plan->argv.v[i];
		bool relative = word[0] != '/' && word[0] != '-' && word[0] != '\0';
		auto_free char *real = relative ? path_real(word) : NULL;
		bool missed =
		        plan->elsewhere || (real != NULL && string_list_has(&plan->named, real));
		found = relative && missed && access(word, R_OK) == 0 ? word : NULL;
	}
	return found;
}

/* Says that the command does not start in the current directory: to a person before the run, and to
 * everybody after a failure if an argument names a file there. */
static void say_workdir(const struct request *r, const struct ssb_plan *plan, bool failed)
{
	bool quiet = request_has(r, FLAG_QUIET);
	const char *file = quiet || !failed ? NULL : find_named_file(plan);

	if (file != NULL) {
		auto_buf word = BUF(SAY_MAX);
		shell_quote(&word, file);
		say_notef(plan->elsewhere ? "the current directory is not in the sandbox, so the "
		                            "program did not "
		                            "find %s; to let it read the file: --read %s"
		                          : "the skill may not read %s, so the program did not "
		                            "find it; to let "
		                            "it read the file: --read %s",
		          word.data, word.data);
	} else if (plan->elsewhere && !quiet && !failed && isatty(STDERR_FILENO)) {
		say_notef("the current directory is not in the sandbox, so the command starts in "
		          "%s; to show it: --read .",
		          plan->workdir);
	}
}

/* ---- the run --------------------------------------------------------------------------------- */

static int run_plan(const struct request *r, const struct ssb_plan *plan, const struct owner *owner)
{
	static const int stdio[3] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	AUTO(otel_end) struct otel_export otel = { .record = -1 }; /* released last */
	AUTO(prepared_done) struct prepared found = { 0 };
	struct ssb_result result = { 0 };
	struct ssb_error err = { 0 };
	struct watcher watch = { 0 };
	struct run_request q = run_request_of(plan, stdio);

	q.owner = owner;
	q.still = consent_still;
	if (request_has(r, FLAG_WATCH)) {
		watch_begin(&watch, &q, request_has(r, FLAG_VERBOSE));
	}
	if (request_has(r, FLAG_OTEL)) {
		otel_begin(&otel, &q);
	}
	say_workdir(r, plan, false);
	file_limit_raise(MAX_RUN_FILES);
	int rc = keeper_run(&q, request_session(r), &result, &found, &err);
	watch_end(&watch);
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
	say_notes(owner, &result, request_has(r, FLAG_QUIET));
	if (result.exit_status != 0) {
		say_workdir(r, plan, true);
	}
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
