/* run_notes.c - what is said about a run on standard error, before it starts and after it ends. */
#include "cli/run_notes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/name.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "cli/cli_record.h"
#include "cli/say.h"
#include "policy/path.h"
#include "report/render.h"
#include "sandbox/sandbox.h"

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

/* Returns whether an argument names a file relative to the current directory. */
static bool names_file(const struct ssb_plan *plan)
{
	bool found = false;

	for (size_t i = 1; i < plan->argv.n && !found; i++) {
		const char *word = plan->argv.v[i];
		found = word[0] != '/' && word[0] != '-' && access(word, F_OK) == 0;
	}
	return found;
}

/* Returns, as a new text, the options with which a file in the private home would be kept; NULL:
 * none are known. */
static char *remedy_for_lost(const struct ssb_plan *plan, const char *file, bool relative)
{
	auto_free char *dir = path_parent(file);
	auto_free char *cwd = getcwd(NULL, 0);
	auto_buf out = BUF(SAY_MAX);
	struct stat st;

	if (relative && plan->elsewhere && cwd != NULL && path_beneath(cwd, plan->home) != NULL &&
	    !path_is_top(cwd) && strcmp(cwd, plan->home) != 0 && access(cwd, W_OK) == 0) {
		return strdup("--project");
	}
	/* The run may have made some of these directories: find the deepest one that exists
	 * outside. */
	while (dir != NULL && access(dir, F_OK) != 0) {
		char *above = path_parent(dir);
		free(dir);
		dir = above;
	}
	bool shared =
	        dir != NULL && path_beneath(plan->home, dir) == NULL && access(dir, W_OK) == 0;
	if (!shared && (lstat(file, &st) != 0 || !S_ISREG(st.st_mode))) {
		return NULL;
	}
	buf_adds(&out, "--write ");
	shell_quote(&out, shared ? dir : file);
	return out.failed ? NULL : buf_steal(&out);
}

/* Says that files were written to the private home, where you will not find them. */
static void say_lost(const struct ssb_plan *plan, const struct prepared *found)
{
	const char *file = found->lost.n > 0 ? found->lost.v[0] : NULL;
	size_t more = found->lost.n - (file != NULL);
	bool full = found->lost.n == MAX_LOST;
	char others[64] = "";

	if (file == NULL) {
		return;
	}
	if (more > 0) {
		snprintf(others, sizeof(others), " and %zu%s other file%s", more,
		         full ? " or more" : "", more == 1 ? "" : "s");
	}
	auto_free char *remedy = remedy_for_lost(plan, file, found->lost_relative);
	const char *in_home = path_beneath(file, plan->home);
	say_notef("~/%s%s %s written to the private home of this run, which is gone; to keep "
	          "%s%s%s",
	          in_home != NULL ? in_home : file, others, more > 0 ? "were" : "was",
	          more > 0 ? "them" : "it", remedy != NULL ? ": " : "",
	          remedy != NULL ? remedy : ", write to a directory that you grant with --write");
}

void run_notes_start(const struct request *r, const struct ssb_plan *plan)
{
	if (plan->elsewhere && !request_has(r, FLAG_QUIET) && isatty(STDERR_FILENO)) {
		say_notef("the current directory is not in the sandbox, so the command starts in "
		          "%s; to show it: --read ., or --project to let the command write it",
		          plan->workdir);
	}
}

void run_notes_end(const struct request *r, const struct ssb_plan *plan, const struct owner *owner,
                   const struct ssb_result *result, const struct prepared *found)
{
	bool quiet = request_has(r, FLAG_QUIET);

	say_notes(owner, result, quiet);
	if (!quiet && plan->elsewhere && result->exit_status != 0 && names_file(plan)) {
		say_notef("the current directory is not in the sandbox, so the command started in "
		          "%s",
		          plan->workdir);
	}
	if (!quiet) {
		say_lost(plan, found);
	}
	if (request_has(r, FLAG_VERBOSE)) {
		say_summary(result);
	}
}
