/* cmd_hook.c - answers a coding agent that asks before it uses a tool.
 *
 * Claude Code's PreToolUse sends a JSON object to standard input. The answer on standard output is
 * empty (the hook has no objection) or a JSON object. The answer may replace the command, but does
 * not allow the new command: the user's own rules decide about that. After every failure the exit
 * status is 2, which blocks the call; a failure must not look like an empty answer. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/hook.h"
#include "cli/say.h"
#include "os/file.h"
#include "policy/owner.h"

#define EVENT        "PreToolUse"
#define TOOL         "Bash"
#define HOOK_SECONDS 10 /* seconds; a slow file system must not block the agent */

/* After a rewrite, all members of the tool's input are as they were, except the command. */
static int put_answer(enum hook_answer a, const struct json_doc *doc, const struct json_node *input,
                      const char *text)
{
	const struct json_node *n = a == HOOK_REWRITE ? json_first(doc, input) : NULL;
	auto_buf out = BUF(SAY_MAX);
	struct json j;

	json_init(&j, &out, false);
	json_open(&j, '{');
	json_key(&j, "hookSpecificOutput");
	json_open(&j, '{');
	json_kstr(&j, "hookEventName", EVENT);
	if (a == HOOK_REWRITE) {
		json_key(&j, "updatedInput");
		json_open(&j, '{');
	} else {
		json_kstr(&j, "permissionDecision", "ask");
		json_kstr(&j, "permissionDecisionReason", text);
	}
	for (; n != NULL; n = json_next(doc, n)) {
		json_key(&j, n->key);
		if (strcmp(n->key, "command") == 0) {
			json_str(&j, text);
		} else {
			json_copy(&j, doc, n);
		}
	}
	for (int depth = a == HOOK_REWRITE ? 3 : 2; depth > 0; depth--) {
		json_close(&j, '}');
	}
	buf_addc(&out, '\n');
	return say_out(STDOUT_FILENO, &out) == EXIT_FINE ? EXIT_FINE : EXIT_USAGE;
}

/* Answers only questions about Bash. A question that cannot be read must not pass. */
static int judge_question(const struct json_doc *doc, char *self)
{
	const struct json_node *top = json_top(doc);
	const struct json_node *input = json_member(doc, top, "tool_input");
	const struct json_node *command = json_member(doc, input, "command");
	const char *cwd = json_string(json_member(doc, top, "cwd"), NULL);

	if (!json_is(top, JSON_OBJECT)) {
		say_errorf("hook: standard input is not a JSON object");
		return EXIT_USAGE;
	}
	if (strcmp(json_string(json_member(doc, top, "hook_event_name"), EVENT), EVENT) != 0 ||
	    strcmp(json_string(json_member(doc, top, "tool_name"), TOOL), TOOL) != 0) {
		return EXIT_FINE; /* a question about another tool */
	}
	if (!json_is(command, JSON_STRING) || cwd == NULL || cwd[0] != '/') {
		say_errorf("hook: the question about Bash has no command, or no absolute cwd");
		return EXIT_USAGE;
	}
	if (command->len > MAX_SHELL_BYTES || strlen(command->str) != command->len) {
		say_errorf("hook: the command is longer than %d bytes, or contains a NUL",
		           MAX_SHELL_BYTES);
		return EXIT_USAGE;
	}
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };
	if (owner_load(&owner, &err) != 0) {
		say_error(&err);
		return EXIT_USAGE;
	}
	const struct hook_question q = {
		.command = command->str,
		.cwd = cwd,
		.home = getenv("HOME"),
		.project = getenv("CLAUDE_PROJECT_DIR"),
		.path = getenv("PATH"),
		.cdpath = getenv("CDPATH") != NULL,
		.config_dir = owner.config_dir,
		.state_dir = owner.state_dir,
		.self = self,
	};
	auto_buf text = BUF(SAY_MAX);
	enum hook_answer a = hook_judge(&q, &text);
	return a == HOOK_PASS ? EXIT_FINE : put_answer(a, doc, input, hook_must(buf_steal(&text)));
}

/* Without this handler the signal would end the process with a status that does not block the call.
 */
static void too_late(int signo)
{
	static const char TEXT[] = "skillsandbox: hook: no answer in time\n";

	(void)signo;
	(void)!write(STDERR_FILENO, TEXT, sizeof(TEXT) - 1);
	_exit(EXIT_USAGE);
}

int cmd_hook(struct request *r)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	auto_buf in = BUF(MAX_HOOK_INPUT);
	const char *why = NULL;
	sigset_t set;

	if (r->operands.n != 1 || strcmp(r->operands.v[0], "claude-code") != 0) {
		say_errorf("hook needs the name of a client: claude-code");
		return EXIT_USAGE;
	}
	(void)signal(SIGALRM, too_late);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* the agent may have blocked the signal */
	(void)alarm(HOOK_SECONDS);
	auto_free char *self = realpath("/proc/self/exe", NULL);
	if (self == NULL || file_read_all(STDIN_FILENO, &in) != 0) {
		say_errorf("hook: %s", strerrordesc_np(errno));
		return EXIT_USAGE;
	}
	if (json_read(&doc, in.data != NULL ? in.data : "", in.len, &why) != 0) {
		say_errorf("hook: standard input is not JSON: %s", why);
		return EXIT_USAGE;
	}
	return judge_question(&doc, self);
}
