/* hook_programs.c - see hook_programs.h. */
#include "cli/hook_programs.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cli/cli.h"
#include "policy/paths.h"

#define NAME "skillsandbox"

/* Start what they are given, by a name that fnmatch(3) knows. */
static const char *const INTERPRETERS[] = {
	"python", "python[0-9]*", "pypy*",      "bash",    "sh",      "dash",   "zsh",  "ksh",
	"fish",   "busybox",      "node",       "nodejs",  "bun",     "deno",   "ruby", "perl",
	"php",    "lua",          "lua[0-9j]*", "Rscript", "tclsh*",  "source", ".",    "eval",
	"exec",   "uv",           "npx",        "tsx",     "ts-node",
};

/* Only look, or change files without starting any. `unless` (may be NULL): an
 * argument that begins so makes it anything. */
static const struct looker {
	const char *name;
	const char *unless;
} LOOKERS[] = {
	{ "cat", NULL },      { "head", NULL },     { "tail", NULL },      { "wc", NULL },
	{ "ls", NULL },       { "stat", NULL },     { "file", NULL },      { "grep", NULL },
	{ "egrep", NULL },    { "fgrep", NULL },    { "rg", "--pre" },     { "diff", NULL },
	{ "cmp", NULL },      { "md5sum", NULL },   { "sha256sum", NULL }, { "sha1sum", NULL },
	{ "rm", NULL },       { "rmdir", NULL },    { "mkdir", NULL },     { "touch", NULL },
	{ "chmod", NULL },    { "chown", NULL },    { "echo", NULL },      { "pwd", NULL },
	{ "true", NULL },     { "false", NULL },    { "test", NULL },      { "[", NULL },
	{ "cd", NULL },       { "basename", NULL }, { "dirname", NULL },   { "realpath", NULL },
	{ "readlink", NULL }, { "du", NULL },       { "tree", NULL },      { "nl", NULL },
	{ "od", NULL },       { "xxd", NULL },      { "hexdump", NULL },   { "strings", NULL },
	{ "uniq", NULL },     { "cut", NULL },      { "tr", NULL },        { "jq", NULL },
	{ "less", NULL },     { "more", NULL },     { "column", NULL },    { "sort", "--co" },
	{ "find", "-exec" },
};
static const char *const FIND_STARTS[] = { "-exec", "-ok", "-fprint", "-fls" };
static const char *const GIT_LOOKS[] = { "add",   "diff",   "log",   "show",     "status",
	                                 "blame", "rm",     "mv",    "ls-files", "commit",
	                                 "tag",   "branch", "stash", "restore" };

/* Modules of Python that read what they are given, and write beside it at most. */
static const char *const CHECKERS[] = { "py_compile", "compileall", "tokenize", "ast",
	                                "dis",        "tabnanny",   "json.tool" };

/* Ours. `second` may be NULL. */
struct own_command {
	const char *first;
	const char *second;
};
static const struct own_command OURS_LOOK[] = {
	{ "inspect", NULL },   { "lint", NULL },    { "diff", NULL },      { "validate", NULL },
	{ "why", NULL },       { "ps", NULL },      { "watch", NULL },     { "doctor", NULL },
	{ "approvals", NULL }, { "help", NULL },    { "--help", NULL },    { "--version", NULL },
	{ "audit", "list" },   { "audit", "show" }, { "audit", "verify" }, { "session", "list" },
	{ "session", "show" },
};
static const struct own_command OURS_DECIDE[] = {
	{ "approve", NULL },
	{ "setup", NULL },
	{ "audit", "prune" },
	{ "session", "resume" },
};

/* May stand before a command and change nothing about what it starts. */
static const char *const WRAPPERS[] = { "exec", "command", "nohup", "time",
	                                "nice", "setsid",  "env",   "timeout" };

bool program_among(const char *name, const char *const v[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fnmatch(v[i], name, 0) == 0) {
			return true;
		}
	}
	return false;
}

bool program_interprets(const char *word)
{
	return program_among(path_base(word), INTERPRETERS, ARRAY_LEN(INTERPRETERS));
}

bool program_checks(const struct shell_command *c, size_t at)
{
	return fnmatch("python*", path_base(c->words[at].text), 0) == 0 && at + 2 < c->n_words &&
	       strcmp(c->words[at + 1].text, "-m") == 0 && c->words[at + 2].plain &&
	       program_among(c->words[at + 2].text, CHECKERS, ARRAY_LEN(CHECKERS));
}

static bool begins_with_any(const struct shell_command *c, const char *const v[], size_t n)
{
	for (size_t i = 1; i < c->n_words; i++) {
		for (size_t k = 0; k < n; k++) {
			if (strncmp(c->words[i].text, v[k], strlen(v[k])) == 0) {
				return true;
			}
		}
	}
	return false;
}

/* sed with anything but "-n 1,20p" may write and start things. */
static bool only_prints(const struct shell_command *c)
{
	return c->n_words >= 3 && strcmp(c->words[1].text, "-n") == 0 &&
	       c->words[2].text[strspn(c->words[2].text, "0123456789,$p")] == '\0';
}

/* Words 1 and 2 of the line are one of these commands. */
static bool has_words(const struct shell_command *c, size_t at, const struct own_command *v,
                      size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *second = v[i].second;
		if (at + 1 < c->n_words && c->words[at + 1].plain &&
		    strcmp(c->words[at + 1].text, v[i].first) == 0 &&
		    (second == NULL || (at + 2 < c->n_words && c->words[at + 2].plain &&
		                        strcmp(c->words[at + 2].text, second) == 0))) {
			return true;
		}
	}
	return false;
}

/* What the library is told is the owner's word; how we show it is not. */
static int refuse_grant(void *ctx, const struct option_row *row, const char *value,
                        struct ssb_error *err)
{
	(void)ctx;
	(void)value;
	(void)err;
	return row->id < FLAG_FIRST && row->id != SSB_OPT_TTY ? -1 : 0;
}

/* `run DIR` as the manifest has it, and nothing in front of DIR that is not known. */
static bool runs_as_declared(const struct shell_command *c)
{
	const struct option_parse p = {
		.rows = FLAGS, .n_rows = N_FLAGS, .command = ON_RUN, .handler = refuse_grant
	};
	auto_free char **argv = calloc(c->n_words, sizeof(*argv));
	struct operands found = { 0 };
	struct ssb_error err = { 0 };

	if (argv == NULL) {
		return false;
	}
	for (size_t i = 2; i < c->n_words; i++) {
		argv[i - 2] = c->words[i].text;
	}
	if (options_parse(&p, argv, &found, &err) != 0 || found.dashes) {
		return false;
	}
	for (size_t i = 2; i < c->n_words && i <= c->n_words - (size_t)found.n; i++) {
		if (!c->words[i].plain) {
			return false;
		}
	}
	return true;
}

static bool ours_looks(const struct shell_command *c)
{
	if (c->n_words > 1 && c->words[1].plain && strcmp(c->words[1].text, "run") == 0) {
		return runs_as_declared(c);
	}
	return has_words(c, 0, OURS_LOOK, ARRAY_LEN(OURS_LOOK));
}

bool program_decides(const struct shell_command *c, const char *self)
{
	static const struct own_command RUN = { "run", NULL };
	size_t at = program_word(c);

	if (at >= c->n_words || (strcmp(path_base(c->words[at].text), NAME) != 0 &&
	                         strcmp(c->words[at].text, self) != 0)) {
		return false;
	}
	const struct shell_command ours = { .words = c->words + at, .n_words = c->n_words - at };
	return has_words(c, at, OURS_DECIDE, ARRAY_LEN(OURS_DECIDE)) ||
	       (has_words(c, at, &RUN, 1) && !runs_as_declared(&ours));
}

bool program_looks(const struct shell_command *c, const char *self)
{
	static const char *const USUAL[] = { "/bin/*", "/usr/bin/*" };

	if (c->n_words == 0) {
		return true; /* a redirection alone */
	}
	const struct shell_word *w = &c->words[0];
	/* "[" is a pattern to the reader, and a program when it stands alone. */
	if ((!w->plain && strcmp(w->text, "[") != 0) || shell_assigns(w)) {
		return false;
	}
	const char *name = w->text;
	if (strcmp(name, NAME) == 0 || strcmp(name, self) == 0) {
		return ours_looks(c);
	}
	if (strchr(name, '/') != NULL) {
		if (!program_among(name, USUAL, ARRAY_LEN(USUAL))) {
			return false;
		}
		name = path_base(name);
	}
	if (strcmp(name, "sed") == 0) {
		return only_prints(c);
	}
	if (strcmp(name, "git") == 0) {
		return c->n_words > 1 && c->words[1].plain &&
		       program_among(c->words[1].text, GIT_LOOKS, ARRAY_LEN(GIT_LOOKS)) &&
		       !begins_with_any(c, (const char *const[]){ "--ext", "--textconv" }, 2);
	}
	for (size_t i = 0; i < ARRAY_LEN(LOOKERS); i++) {
		if (strcmp(LOOKERS[i].name, name) != 0) {
			continue;
		}
		if (strcmp(name, "find") == 0) {
			return !begins_with_any(c, FIND_STARTS, ARRAY_LEN(FIND_STARTS));
		}
		return LOOKERS[i].unless == NULL || !begins_with_any(c, &LOOKERS[i].unless, 1);
	}
	return false;
}

size_t program_word(const struct shell_command *c)
{
	size_t i = 0;

	while (i + 1 < c->n_words && c->words[i].bare &&
	       program_among(c->words[i].text, WRAPPERS, ARRAY_LEN(WRAPPERS))) {
		const char *next = c->words[i + 1].text;
		bool timed = strcmp(c->words[i].text, "timeout") == 0;
		if (timed && (*next == '\0' || next[strspn(next, "0123456789.smhd")] != '\0')) {
			break;
		}
		i += timed ? 2 : 1;
	}
	return i;
}
