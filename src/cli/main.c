/* main.c - the command table, and the start of the program. Work that is done before the
 * command is known delays every run, so there must be as little of it as possible. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "session/herald.h"

const struct command COMMANDS[] = {
	{ "run", "DIR [ARG...] | -- CMD [ARG...]", "run a skill, or a bare command, in a sandbox",
	  ON_RUN, false, true, cmd_run },
	{ "shell", "[DIR]", "open a shell in the sandbox of a skill, or in a bare one", ON_SHELL,
	  true, true, cmd_shell },
	{ "list", "[DIR...]", "list the skills of this machine, and what you approved", ON_SKILLS,
	  true, false, cmd_skills },
	{ "validate", "DIR|FILE...", "check manifests; execute nothing", ON_VALIDATE, true, false,
	  cmd_validate },
	{ "lint", "DIR...", "look for what is risky in skills, and grade them", ON_LINT, true,
	  false, cmd_lint },
	{ "inspect", "DIR", "show what a skill asks for, and what it would get", ON_INSPECT, true,
	  true, cmd_inspect },
	{ "prove", "[DIR | -- CMD [ARG...]]", "attack the sandbox from inside; show what it stops",
	  ON_PROVE, true, true, cmd_prove },
	{ "doctor", "", "show what this machine offers for the sandbox", ON_DOCTOR, true, false,
	  cmd_doctor },
	{ "init", "DIR [SCRIPT]", "write a first manifest, from what a skill's files say", ON_INIT,
	  true, false, cmd_init },
	{ "learn", "DIR [ARG...]", "run a skill with decoys, and write the manifest that it needs",
	  ON_LEARN, false, true, cmd_learn },
	{ "shrink", "DIR", "show, as a patch, what a skill declares but never used", ON_SHRINK,
	  true, false, cmd_shrink },
	{ "check", "DIR|FILE [RUN...]", "ask whether a manifest would have allowed recorded runs",
	  ON_CHECK, true, false, cmd_check },
	{ "approve", "DIR", "show what a skill could do, and approve it as it is", ON_APPROVE, true,
	  true, cmd_approve },
	{ "allow", "DIR | --last [DIR|RUN]", "remember grants for a skill, with its approval",
	  ON_ALLOW, true, true, cmd_allow },
	{ "diff", "DIR", "show what changed in a skill since it was approved", ON_DIFF, true, true,
	  cmd_diff },
	{ "approvals", "[DIR]", "list approvals, or remove one", ON_APPROVALS, true, false,
	  cmd_approvals },
	{ "serve", "", "serve skills to agents, over the Model Context Protocol", ON_SERVE, true,
	  true, cmd_serve },
	{ "ps", "", "list the runs that are running", ON_PS, true, false, cmd_ps },
	{ "watch", "[RUN]", "show what a run does, as it happens", ON_WATCH, true, false,
	  cmd_watch },
	{ "why", "RUN", "explain what a run was denied, and what would allow it", ON_WHY, true,
	  false, cmd_why },
	{ "audit list", "", "list recorded runs", ON_LIST, true, false, cmd_list },
	{ "audit show", "RUN|FILE", "show what a run did", ON_SHOW, true, false, cmd_show },
	{ "audit verify", "RUN|FILE", "check that a record is complete and unchanged", ON_VERIFY,
	  true, false, cmd_verify },
	{ "audit export", "RUN", "write a record to one file that can be verified elsewhere",
	  ON_EXPORT, true, false, cmd_export },
	{ "audit prune", "", "remove old runs", ON_PRUNE, true, false, cmd_prune },
	{ "session start", "", "begin a session with a policy", ON_S_START, true, false,
	  cmd_session_start },
	{ "session list", "", "list sessions", ON_S_LIST, true, false, cmd_session_list },
	{ "session show", "ID", "show a session: budgets, counts, runs, ledger", ON_S_SHOW, true,
	  false, cmd_session_show },
	{ "session check", "ID", "ask whether money may be spent, and reserve it", ON_S_CHECK, true,
	  false, cmd_session_check },
	{ "session settle", "RESERVATION", "record what an action cost", ON_S_SETTLE, true, false,
	  cmd_session_settle },
	{ "session violation", "ID", "count a violation that a scanner found", ON_S_VIOLATION, true,
	  false, cmd_session_violation },
	{ "session pause", "ID", "pause every run of a session", ON_S_PAUSE, true, false,
	  cmd_session_become },
	{ "session resume", "ID", "resume every run of a session", ON_S_RESUME, true, false,
	  cmd_session_become },
	{ "session kill", "ID", "end every run of a session, and refuse new ones", ON_S_KILL, true,
	  false, cmd_session_become },
	{ "session complete", "ID", "end a session that has done its work", ON_S_COMPLETE, true,
	  false, cmd_session_become },
	{ "session expire", "[ID]", "end sessions whose time is over", ON_S_EXPIRE, true, false,
	  cmd_session_become },
	{ "setup", "claude-code|codex|cursor|gemini-cli|goose|openclaw|opencode|vscode",
	  "let an agent use your skills in their sandboxes", ON_SETUP, true, true, cmd_setup },
	{ "hook", "claude-code", "answer an agent that asks before it runs a command", ON_HOOK,
	  true, false, cmd_hook },
	{ "help", "[COMMAND]", "explain a command", ON_HELP, true, false, cmd_help },
};
const size_t N_COMMANDS = ARRAY_LEN(COMMANDS);

const struct command *command_find(char *const words[], int *ret_n)
{
	for (size_t i = 0; words[0] != NULL && i < N_COMMANDS; i++) {
		const char *name = COMMANDS[i].name;
		size_t first = strcspn(name, " ");
		bool two = name[first] == ' ';
		if (strlen(words[0]) != first || memcmp(words[0], name, first) != 0 ||
		    (two && (words[1] == NULL || strcmp(words[1], name + first + 1) != 0))) {
			continue;
		}
		*ret_n = two ? 2 : 1;
		return &COMMANDS[i];
	}
	return NULL;
}

/* If a standard stream is closed, opens /dev/null for it: otherwise the next file that is
 * opened would become this stream. Ignores SIGPIPE, so that a reader that has gone causes an
 * error and does not end this process. */
static int prepare_streams(void)
{
	struct pollfd p[] = { { .fd = 0 }, { .fd = 1 }, { .fd = 2 } };
	(void)poll(p, ARRAY_LEN(p), 0);
	for (size_t i = 0; i < ARRAY_LEN(p); i++) {
		if ((p[i].revents & POLLNVAL) != 0 && open("/dev/null", O_RDWR) != p[i].fd) {
			return -1;
		}
	}
	/* With the caller's umask, this program might be unable to use files that it makes. */
	(void)umask(022);
	/* If the parent ignored SIGCHLD, so does this process, and the kernel would discard
	 * the exit statuses of this process's children. */
	(void)signal(SIGCHLD, SIG_DFL);
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR ? -1 : 0;
}

static int run_command(const struct command *c, char **argv)
{
	AUTO(request_done) struct request r = { 0 };
	struct ssb_error err = { 0 };

	if (request_parse(&r, c, argv, &err) != 0) {
		if (err.where[0] == '\0') {
			snprintf(err.where, sizeof(err.where), "%s", c->name);
		}
		return exit_status_told(&err);
	}
	if (request_has(&r, FLAG_HELP)) {
		return cmd_help_command(c);
	}
	say_quiet(request_has(&r, FLAG_QUIET));
	if (c->bit == ON_RUN && request_has(&r, FLAG_JSON) && !request_has(&r, FLAG_DRY_RUN)) {
		say_keep();
	}
	return c->run(&r);
}

/* Finds the second words of the commands that begin with `first`. Returns their number. */
static size_t find_second_words(const char *first, const char *ret[], size_t max)
{
	size_t len = strlen(first), n = 0;

	for (size_t i = 0; i < N_COMMANDS && n < max; i++) {
		const char *name = COMMANDS[i].name;
		if (strncmp(name, first, len) == 0 && name[len] == ' ') {
			ret[n++] = name + len + 1;
		}
	}
	return n;
}

/* Reports a command of two words whose second word is missing or unknown, such as `skillsandbox
 * audit`. */
static int fail_second(const char *first, const char *word, const char *const words[], size_t n)
{
	const char *near =
	        word == NULL ? NULL : suggest(word, strlen(word), words, n, sizeof(words[0]));
	auto_buf list = { 0 };

	if (near != NULL) {
		say_errorf("unknown command '%s %s'; did you mean '%s %s'?", first, word, first,
		           near);
		return EXIT_USAGE;
	}
	buf_init(&list, SAY_MAX);
	for (size_t i = 0; i < n; i++) {
		buf_addf(&list, "%s%s", i > 0 ? ", " : "", words[i]);
	}
	return say_fail(EXIT_USAGE, "%s needs one of: %s", first, list.failed ? "" : list.data);
}

static int fail_command(char *const words[])
{
	const char *word = words[0];
	const char *second[ARRAY_LEN(COMMANDS)];
	size_t n = find_second_words(word, second, ARRAY_LEN(second));

	if (n > 0 && words[1] != NULL &&
	    (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0)) {
		return cmd_help_group(word);
	}
	if (n > 0) {
		return fail_second(word, words[1], second, n);
	}
	const char *near =
	        suggest(word, strlen(word), &COMMANDS[0].name, N_COMMANDS, sizeof(COMMANDS[0]));

	if (near != NULL) {
		say_errorf("unknown command '%s'; did you mean '%s'?", word, near);
	} else {
		say_errorf("unknown command '%s'; see 'skillsandbox help'", word);
	}
	return EXIT_USAGE;
}

/* With too small a stack, the kernel would kill this process without a message. Raises the soft
 * limit as far as needed, which has an effect at once: the kernel looks at the limit whenever the
 * stack grows. The skill inherits
 * the limit. */
static int prepare_stack(void)
{
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= MIN_STACK_BYTES) {
		return 0;
	}
	if (stack.rlim_max >= MIN_STACK_BYTES) {
		stack.rlim_cur = MIN_STACK_BYTES;
		if (setrlimit(RLIMIT_STACK, &stack) == 0) {
			return 0;
		}
	}
	say_errorf(
	        "the limit of the stack is %llu KiB, and %d KiB are needed; raise it (ulimit -s, "
	        "prlimit --stack)",
	        (unsigned long long)stack.rlim_cur / 1024, MIN_STACK_BYTES / 1024);
	return -1;
}

int main(int argc, char **argv)
{
	if (prepare_streams() != 0 || prepare_stack() != 0) {
		return EXIT_SANDBOX;
	}
	int herald = herald_role(argv);
	if (herald >= 0) {
		return herald;
	}
	if (argc < 2) {
		return cmd_help_short();
	}
	const char *word = argv[1];
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		return cmd_help_version();
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		return cmd_help_usage();
	}
	int n = 0;
	const struct command *c = command_find(argv + 1, &n);
	return c != NULL ? run_command(c, argv + 1 + n) : fail_command(argv + 1);
}
