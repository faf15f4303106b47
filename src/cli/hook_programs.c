/* hook_programs.c - see hook_programs.h. */
#include "cli/hook_programs.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cli/cli.h"
#include "policy/path.h"

#define NAME "skillsandbox"

/* Start what they are given, by a name that fnmatch(3) knows. */
static const char *const INTERPRETERS[] = {
	"python", "python[0-9]*", "pypy*",      "bash",    "sh",      "dash",   "zsh",  "ksh",
	"fish",   "busybox",      "node",       "nodejs",  "bun",     "deno",   "ruby", "perl",
	"php",    "lua",          "lua[0-9j]*", "Rscript", "tclsh*",  "source", ".",    "eval",
	"exec",   "uv",           "npx",        "tsx",     "ts-node",
};

#define NEVER                                                                                      \
	{                                                                                          \
		NULL                                                                               \
	}

/* Only look, or change files without starting any. `unless`: with an argument that begins
 * so it may do anything. */
static const struct looker {
	const char *name;
	const char *unless[2];
} LOOKERS[] = {
	{ "cat", NEVER },
	{ "head", NEVER },
	{ "tail", NEVER },
	{ "wc", NEVER },
	{ "ls", NEVER },
	{ "stat", NEVER },
	{ "file", NEVER },
	{ "grep", NEVER },
	{ "egrep", NEVER },
	{ "fgrep", NEVER },
	{ "rg", { "--pre", "--hostname-bin" } },
	{ "diff", NEVER },
	{ "cmp", NEVER },
	{ "md5sum", NEVER },
	{ "sha256sum", NEVER },
	{ "sha1sum", NEVER },
	{ "rm", NEVER },
	{ "rmdir", NEVER },
	{ "mkdir", NEVER },
	{ "touch", NEVER },
	{ "chmod", NEVER },
	{ "chown", NEVER },
	{ "echo", NEVER },
	{ "pwd", NEVER },
	{ "true", NEVER },
	{ "false", NEVER },
	{ "test", { "-v", NULL } }, /* the subscript of a variable is evaluated */
	{ "[", { "-v", NULL } },
	{ "cd", NEVER },
	{ "basename", NEVER },
	{ "dirname", NEVER },
	{ "realpath", NEVER },
	{ "readlink", NEVER },
	{ "du", NEVER },
	{ "tree", NEVER },
	{ "nl", NEVER },
	{ "od", NEVER },
	{ "xxd", NEVER },
	{ "hexdump", NEVER },
	{ "strings", NEVER },
	{ "uniq", NEVER },
	{ "cut", NEVER },
	{ "tr", NEVER },
	{ "jq", NEVER },
	{ "less", { "+", NULL } }, /* "+!command" */
	{ "more", { "+", NULL } },
	{ "column", NEVER },
	{ "sort", { "--co", NULL } },
	{ "find", NEVER }, /* but see FIND_STARTS */
	/* Write or check what they are given; their settings are data. */
	{ "black", NEVER },
	{ "ruff", NEVER },
	{ "autopep8", NEVER },
	{ "pyflakes", NEVER },
	{ "pycodestyle", NEVER },
	{ "shellcheck", NEVER },
	{ "shfmt", NEVER },
	{ "clang-format", NEVER },
	{ "gofmt", NEVER },
	{ "rustfmt", NEVER },
};
#undef NEVER
static const char *const FIND_STARTS[] = { "-exec", "-ok", "-fprint", "-fls" };
static const char *const GIT_LOOKS[] = { "add",   "diff",   "log",   "show",     "status",
	                                 "blame", "rm",     "mv",    "ls-files", "commit",
	                                 "tag",   "branch", "stash", "restore" };

/* `gh pr create --body "see skills/x/main.py"`: what is said of a file starts none. */
static const char *const GH_OF[] = { "pr", "issue" };
static const char *const GH_LOOKS[] = { "create", "comment", "edit",   "view",  "list",
	                                "review", "status",  "checks", "close", "reopen" };

/* Modules of Python that read what they are given, and write beside it at most. */
static const char *const CHECKERS[] = { "py_compile", "compileall", "tokenize", "ast",
	                                "dis",        "tabnanny",   "json.tool" };

/* Ours. `second` may be NULL. */
struct own_command {
	const char *first;
	const char *second;
};
static const struct own_command OURS_LOOK[] = {
	{ "inspect", NULL }, { "lint", NULL },      { "diff", NULL },      { "validate", NULL },
	{ "why", NULL },     { "ps", NULL },        { "watch", NULL },     { "doctor", NULL },
	{ "help", NULL },    { "--help", NULL },    { "--version", NULL }, { "audit", "list" },
	{ "audit", "show" }, { "audit", "verify" }, { "session", "list" }, { "session", "show" },
};
static const struct own_command OURS_DECIDE[] = {
	{ "approve", NULL },
	{ "setup", NULL },
	{ "audit", "prune" },
	{ "session", "resume" },
};
/* Theirs is the owner's word only with some options. `looks`: without these they only look,
 * or run a skill as it is declared. */
static const struct own_option {
	const char *first;
	uint64_t command;
	bool looks;
} OURS_BY_OPTION[] = {
	{ "run", ON_RUN, true },      { "approvals", ON_APPROVALS, true },
	{ "serve", ON_SERVE, false }, { "learn", ON_LEARN, false },
	{ "init", ON_INIT, false },
};

/* Stand before a command. `values`: letters of options that take the next word. `own`: words
 * of its own behind the options. `plain`: without options it changes nothing about what is
 * started, and can stay before another command. */
static const struct wrapper {
	const char *name;
	const char *values;
	size_t own;
	bool plain;
} WRAPPERS[] = {
	{ "exec", "a", 0, true },
	{ "command", "", 0, true },
	{ "nohup", "", 0, true },
	{ "time", "fo", 0, true },
	{ "nice", "n", 0, true },
	{ "setsid", "", 0, true },
	{ "env", "uCS", 0, true },
	{ "timeout", "ks", 1, true },
	{ "builtin", "", 0, false },
	{ "sudo", "ugpCThrRtUD", 0, false },
	{ "doas", "uC", 0, false },
	{ "ionice", "cn", 0, false },
	{ "stdbuf", "ioe", 0, false },
	{ "chrt", "TPD", 1, false },
	{ "taskset", "", 1, false },
	/* keywords */
	{ "do", "", 0, false },
	{ "then", "", 0, false },
	{ "else", "", 0, false },
	{ "if", "", 0, false },
	{ "elif", "", 0, false },
	{ "while", "", 0, false },
	{ "until", "", 0, false },
	{ "!", "", 0, false },
	{ "{", "", 0, false },
};
/* Of all of them: options by name that take the next word. */
static const char *const LONG_VALUES[] = {
	"--signal", "--kill-after", "--adjustment", "--unset",  "--chdir", "--user",   "--group",
	"--class",  "--classdata",  "--input",      "--output", "--error", "--prompt", "--host",
};

bool hook_program_among(const char *name, const char *const v[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (fnmatch(v[i], name, 0) == 0) {
			return true;
		}
	}
	return false;
}

bool hook_program_interprets(const char *word)
{
	return hook_program_among(path_base(word), INTERPRETERS, ARRAY_LEN(INTERPRETERS));
}

bool hook_program_checks(const struct shell_command *c, size_t at)
{
	return fnmatch("python*", path_base(c->words[at].text), 0) == 0 && at + 2 < c->n_words &&
	       strcmp(c->words[at + 1].text, "-m") == 0 && c->words[at + 2].plain &&
	       hook_program_among(c->words[at + 2].text, CHECKERS, ARRAY_LEN(CHECKERS));
}

/* An option may stand anywhere among the words. */
static bool begins_with_dash(const struct shell_command *c, size_t at)
{
	for (; at < c->n_words; at++) {
		if (c->words[at].text[0] == '-') {
			return true;
		}
	}
	return false;
}

static bool begins_with_any(const struct shell_command *c, const char *const v[], size_t n)
{
	for (size_t i = 1; i < c->n_words; i++) {
		for (size_t k = 0; k < n && v[k] != NULL; k++) {
			if (strncmp(c->words[i].text, v[k], strlen(v[k])) == 0) {
				return true;
			}
		}
	}
	return false;
}

/* "s/a/b/g", with any delimiter: the flags e and w start and write. */
static bool only_replaces(const char *script)
{
	char delimiter = script[0] == 's' ? script[1] : '\0';
	size_t seen = 0;
	const char *s = script + 1;

	if (delimiter == '\0' || strchr("\\\n", delimiter) != NULL) {
		return false;
	}
	for (; *s != '\0' && seen < 3; s++) {
		if (*s == '\\' && s[1] != '\0') {
			s++;
		} else {
			seen += *s == delimiter ? 1 : 0;
		}
	}
	return seen == 3 && strchr(script, '\n') == NULL && s[strspn(s, "gIip0123456789")] == '\0';
}

/* sed may write and start things, unless it is "-n 1,20p", or replaces text. */
static bool sed_looks(const struct shell_command *c)
{
	static const char *const FLAGS_OF[] = { "-i", "-E", "-r", "-n", "-i.bak" };
	size_t at = 1;

	while (at < c->n_words &&
	       hook_program_among(c->words[at].text, FLAGS_OF, ARRAY_LEN(FLAGS_OF))) {
		at++;
	}
	if (at >= c->n_words || !c->words[at].plain || begins_with_dash(c, at)) {
		return false;
	}
	const char *script = c->words[at].text;
	return script[strspn(script, "0123456789,$p")] == '\0' || only_replaces(script);
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

/* What the library is told is the owner's word, and so is what changes an approval or a
 * manifest; how we show it is not. */
static int refuse_grant(void *ctx, const struct option_row *row, const char *value,
                        struct ssb_error *err)
{
	static const int DECIDE[] = { FLAG_REVOKE, FLAG_WRITE_CONFIG, FLAG_SIDECAR, FLAG_CONNECT };

	(void)ctx;
	(void)value;
	(void)err;
	for (size_t i = 0; i < ARRAY_LEN(DECIDE); i++) {
		if (row->id == DECIDE[i]) {
			return -1;
		}
	}
	return row->id < FLAG_FIRST && row->id != SSB_OPT_TTY ? -1 : 0;
}

/* Without an option by which the owner decides, and nothing that is not known where one
 * could stand. Of `run` these end at DIR. */
static bool decides_nothing(const struct shell_command *c, uint64_t command)
{
	const struct option_parse p = { .rows = FLAGS,
		                        .n_rows = N_FLAGS,
		                        .command = command,
		                        .mixed = command != ON_RUN,
		                        .handler = refuse_grant };
	auto_free char **argv = calloc(c->n_words, sizeof(*argv));
	struct operands found = { 0 };
	struct ssb_error err = { 0 };

	if (argv == NULL) {
		return false;
	}
	for (size_t i = 2; i < c->n_words; i++) {
		argv[i - 2] = c->words[i].text;
	}
	if (cli_options_parse(&p, argv, &found, &err) != 0 || (found.dashes && command == ON_RUN)) {
		return false;
	}
	size_t last = command == ON_RUN ? c->n_words - (size_t)found.n : c->n_words - 1;
	for (size_t i = 2; i < c->n_words && i <= last; i++) {
		if (!c->words[i].plain) {
			return false;
		}
	}
	return true;
}

static const struct own_option *own_option_of(const struct shell_command *c)
{
	for (size_t i = 0; c->n_words > 1 && i < ARRAY_LEN(OURS_BY_OPTION); i++) {
		if (c->words[1].plain && strcmp(c->words[1].text, OURS_BY_OPTION[i].first) == 0) {
			return &OURS_BY_OPTION[i];
		}
	}
	return NULL;
}

static bool ours_looks(const struct shell_command *c)
{
	const struct own_option *o = own_option_of(c);

	return o != NULL ? o->looks && decides_nothing(c, o->command)
	                 : has_words(c, 0, OURS_LOOK, ARRAY_LEN(OURS_LOOK));
}

static bool is_ours(const struct shell_word *w, const char *self)
{
	return strcmp(path_base(w->text), NAME) == 0 || strcmp(w->text, self) == 0;
}

/* A variable or a pattern may be our name. */
static bool may_be_ours(const struct shell_word *w, const char *self)
{
	return is_ours(w, self) || (!w->plain && (fnmatch(w->pattern, NAME, 0) == 0 ||
	                                          fnmatch(w->pattern, "/usr/bin/" NAME, 0) == 0 ||
	                                          fnmatch(w->pattern, self, 0) == 0));
}

/* The command itself is in a variable: `skillsandbox $X`, `skillsandbox session $X`. */
static bool hides_command(const struct shell_command *c)
{
	bool two = false;

	for (size_t i = 0; i < ARRAY_LEN(OURS_DECIDE); i++) {
		two = two || (OURS_DECIDE[i].second != NULL && c->n_words > 2 &&
		              strcmp(c->words[1].text, OURS_DECIDE[i].first) == 0);
	}
	return c->n_words > 1 && (!c->words[1].plain || (two && !c->words[2].plain));
}

/* Does word `at` stand where a program does: in its place, or behind what starts others? */
static bool is_started(const struct shell_command *c, size_t at)
{
	static const char *const STARTERS[] = { "xargs", "parallel", "find", "fd", "fdfind" };
	size_t program = hook_program_word(c, false);

	return at == program ||
	       (program < at && hook_program_among(path_base(c->words[program].text), STARTERS,
	                                           ARRAY_LEN(STARTERS)));
}

/* Behind `word`, where `text` begins with that. NULL: it does not. */
static const char *skip_word(const char *text, const char *word)
{
	return text != NULL && strncmp(text, word, strlen(word)) == 0 ? text + strlen(word) : NULL;
}

/* Behind the spaces that `text` begins with. NULL: it begins with none. */
static const char *skip_spaces(const char *text)
{
	size_t n = text != NULL ? strspn(text, " \t") : 0;

	return n > 0 ? text + n : NULL;
}

/* "skillsandbox approve" within a text that a program is given, which may run it. */
static bool text_decides(const char *text)
{
	for (const char *s = text; (s = strstr(s, NAME)) != NULL; s++) {
		const char *words = skip_spaces(skip_word(s, NAME));
		for (size_t i = 0; i < ARRAY_LEN(OURS_DECIDE); i++) {
			const struct own_command *o = &OURS_DECIDE[i];
			const char *rest = skip_word(words, o->first);
			if (rest != NULL && (o->second == NULL ||
			                     skip_word(skip_spaces(rest), o->second) != NULL)) {
				return true;
			}
		}
	}
	return false;
}

static bool any_text_decides(const struct shell_command *c)
{
	for (size_t i = 0; i < c->n_words; i++) {
		if (text_decides(c->words[i].text)) {
			return true;
		}
	}
	for (size_t i = 0; i < c->n_redirects; i++) {
		const struct shell_redirect *r = &c->redirects[i];
		if (text_decides(r->body != NULL ? r->body : r->target.text)) {
			return true;
		}
	}
	return false;
}

/* Whatever stands before it: sudo, a keyword, xargs. Only a command that starts nothing may
 * speak of ours. */
bool hook_program_decides(const struct shell_command *c, const char *self)
{
	if (hook_program_looks(c, self)) {
		return false;
	}
	for (size_t at = 0; at + 1 < c->n_words; at++) {
		const struct shell_command ours = { .words = c->words + at,
			                            .n_words = c->n_words - at };
		bool surely = is_ours(&c->words[at], self);
		const struct own_option *o = surely ? own_option_of(&ours) : NULL;
		if (!surely && !(may_be_ours(&c->words[at], self) && is_started(c, at))) {
			continue;
		}
		if (has_words(&ours, 0, OURS_DECIDE, ARRAY_LEN(OURS_DECIDE)) ||
		    (o != NULL && !decides_nothing(&ours, o->command)) ||
		    (surely && hides_command(&ours) && is_started(c, at))) {
			return true;
		}
	}
	return any_text_decides(c);
}

bool hook_program_looks(const struct shell_command *c, const char *self)
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
		if (!hook_program_among(name, USUAL, ARRAY_LEN(USUAL))) {
			return false;
		}
		name = path_base(name);
	}
	if (strcmp(name, "sed") == 0) {
		return sed_looks(c);
	}
	if (strcmp(name, "gh") == 0) {
		return c->n_words > 2 && c->words[1].plain && c->words[2].plain &&
		       hook_program_among(c->words[1].text, GH_OF, ARRAY_LEN(GH_OF)) &&
		       hook_program_among(c->words[2].text, GH_LOOKS, ARRAY_LEN(GH_LOOKS));
	}
	if (hook_program_checks(c, 0)) {
		return true;
	}
	if (strcmp(name, "git") == 0) {
		return c->n_words > 1 && c->words[1].plain &&
		       hook_program_among(c->words[1].text, GIT_LOOKS, ARRAY_LEN(GIT_LOOKS)) &&
		       !begins_with_any(c, (const char *const[]){ "--ext", "--textconv" }, 2);
	}
	for (size_t i = 0; i < ARRAY_LEN(LOOKERS); i++) {
		if (strcmp(LOOKERS[i].name, name) != 0) {
			continue;
		}
		if (strcmp(name, "find") == 0) {
			return !begins_with_any(c, FIND_STARTS, ARRAY_LEN(FIND_STARTS));
		}
		return !begins_with_any(c, LOOKERS[i].unless, ARRAY_LEN(LOOKERS[i].unless));
	}
	return false;
}

static const struct wrapper *wrapper_at(const struct shell_command *c, size_t at, bool plain)
{
	for (size_t i = 0; at < c->n_words && i < ARRAY_LEN(WRAPPERS); i++) {
		const struct wrapper *w = &WRAPPERS[i];
		const struct shell_word *word = &c->words[at];
		if (plain ? w->plain && word->bare && strcmp(word->text, w->name) == 0
		          : strcmp(path_base(word->text), w->name) == 0) {
			return w;
		}
	}
	return NULL;
}

/* Does the option take the next word too: "-k 1", but not "-k1" or "--kill-after=1"? */
static bool takes_next(const struct wrapper *w, const char *option)
{
	if (option[1] == '-') {
		return hook_program_among(option, LONG_VALUES, ARRAY_LEN(LONG_VALUES));
	}
	const char *first = strpbrk(option + 1, w->values);
	return w->values[0] != '\0' && first != NULL && first[1] == '\0';
}

/* The word behind a wrapper, its options and its own words. */
static size_t behind(const struct shell_command *c, const struct wrapper *w, size_t at)
{
	for (at++; at < c->n_words && c->words[at].text[0] == '-'; at++) {
		if (strcmp(c->words[at].text, "--") == 0) {
			at++;
			break;
		}
		at += takes_next(w, c->words[at].text) ? 1 : 0;
	}
	return at + w->own;
}

static bool is_duration(const char *word)
{
	return word[0] != '\0' && word[strspn(word, "0123456789.smhd")] == '\0';
}

size_t hook_program_word(const struct shell_command *c, bool plain)
{
	size_t at = 0;

	for (;;) {
		const struct wrapper *w = wrapper_at(c, at, plain);
		size_t next = w != NULL ? behind(c, w, at)
		              : !plain && at < c->n_words && shell_assigns(&c->words[at]) ? at + 1
		                                                                          : at;
		bool odd = plain && w != NULL &&
		           (next != at + 1 + w->own || (w->own > 0 && next <= c->n_words &&
		                                        !is_duration(c->words[at + 1].text)));
		if (next == at || next >= c->n_words || odd) {
			return at;
		}
		at = next;
	}
}
