/* hook_programs.c - see hook_programs.h. */
#include "cli/hook_programs.h"

#include <fnmatch.h>
#include <string.h>

#include "base/own.h"
#include "policy/path.h"

#define NAME       "skillsandbox"
#define MAX_SCRIPT 256 /* bytes: fnmatch(3) recurses for each one that "*([!/])" takes */

static const char INTERPRETERS[] =
        "python python[0-9]* pypy* bash sh dash zsh ksh fish busybox node nodejs bun deno ruby "
        "perl "
        "php lua lua[0-9j]* Rscript tclsh* source . eval exec uv npx tsx ts-node";
/* With an option, or without a word, they start a text. */
static const char SHELLS[] = "sh bash dash zsh ksh fish ash su mksh sg script runuser busybox";
/* Their words are the text. */
static const char EVALS[] = "eval watch trap parallel";
/* They stand before a command and change nothing about it. */
static const char WRAPPERS[] = "exec command nohup time nice setsid env timeout";
/* These have words of their own, or change how the command runs. */
static const char UNUSUAL[] = "builtin sudo doas ionice stdbuf chrt taskset coproc";
static const char KEYWORDS[] = "if then elif else fi for while until do done case esac in { } ! "
                               "select coproc function";
/* They change what later commands of the line do, or start what they are given. */
static const char STATEFUL[] =
        "cd pushd popd dirs source . exec eval export declare typeset local readonly alias set "
        "shopt enable hash trap read readarray mapfile let unset";
static const char DIRECTORY_OPTIONS[] = "-C --directory --chdir --prefix --cwd";
/* They find settings or modules in the directory where they are. */
static const char DEPENDENT[] = "git gh python*";
/* They start the names that they find, or are given on standard input. */
static const char STARTERS[] = "find fd fdfind xargs parallel";
/* Modules of Python that read what they are given, and write beside it at most. */
static const char CHECKERS[] = "py_compile compileall tokenize ast dis tabnanny json.tool";

/* Commands that only look, or change files without starting any. */
static const struct known_command {
	const char *names;
	const char *unless; /* with a word like this they may do anything */
	const char *second; /* what word 1 must be; NULL: anything */
	const char *third;  /* the same of word 2 */
} LOOKERS[] = {
	{ "cat head tail wc ls stat file grep egrep fgrep diff cmp md5sum sha1sum sha256sum rm "
	  "rmdir "
	  "mkdir touch chmod chown echo pwd true false cd basename dirname realpath "
	  "readlink du "
	  "tree nl od xxd hexdump strings uniq cut tr jq column uname date id whoami sleep",
	  "", NULL, NULL },
	/* They write or check what they are given; their settings are data. */
	{ "black ruff autopep8 pyflakes pycodestyle shellcheck shfmt clang-format gofmt rustfmt",
	  "", NULL, NULL },
	{ "rg", "--pre* --hostname-bin*", NULL, NULL },
	/* The subscript of a variable is evaluated: x[$(...)]. */
	{ "test [[] printf", "-v* *[[]*", NULL, NULL },
	{ "[[][[]", "-v* -eq -ne -lt -le -gt -ge", NULL, NULL },
	{ "less more", "+*", NULL, NULL }, /* "+!command" */
	{ "sort", "--co*", NULL, NULL },
	{ "find", "-exec* -ok* -fprint* -fls*", NULL, NULL },
	{ "python*", "", "-m", CHECKERS },
	/* Lines to print, and s/a/b/g: other scripts may start and write files. */
	{ "sed", "-[!inE]* --*", "-i -n -E -Ei -i.bak",
	  "*([0-9,$p]) s/*([!/])/*([!/])/*([gIip0-9]) s|*([!|])|*([!|])|*([gIip0-9])" },
	{ "git", "--ext* --textconv*",
	  "add diff log show status blame rm mv ls-files commit tag branch stash restore", NULL },
	{ "gh", "", "pr issue", "create comment edit view list review status checks close reopen" },
};
/* Our own: those that only look, those that are the owner's, and those whose options may grant more
 * or write a manifest; the options that stand here do not. */
static const struct known_command OURS_LOOK[] = {
	{ "*", "", "inspect lint diff validate why ps watch doctor help --help --version", NULL },
	{ "*", "", "audit", "list show verify" },
	{ "*", "", "session", "list show" },
};
static const struct known_command OURS_DECIDE[] = {
	{ "*", "", "approve setup", NULL },
	{ "*", "", "audit", "prune" },
	{ "*", "", "session", "resume" },
};
static const struct {
	const char *names;
	const char *options;
	bool looks; /* without other options they only look, or run a skill as it is declared */
} OURS_BY_OPTION[] = {
	{ "run",
	  "-q --quiet -v --verbose --json --watch --prove --dry-run --tty --no-tty --session "
	  "--session=*",
	  true },
	{ "approvals", "--json", true },
	{ "serve learn init", "--skills --skills=* --json -q --quiet", false },
};
bool hook_programs_list(const char *list, const char *name)
{
	while (*list != '\0') {
		size_t n = strcspn(list, " ");
		char pattern[48] = "";
		memcpy(pattern, list, n < sizeof(pattern) ? n : 0);
		if (fnmatch(pattern, name, FNM_EXTMATCH) == 0) {
			return true;
		}
		list += n + (list[n] == ' ');
	}
	return false;
}

static bool is_program(const char *list, const struct hook_word *w)
{
	return hook_programs_list(list, path_base(w->text));
}

/* Is word `at` plain, and one of the list? */
static bool is_word(const struct hook_command *c, size_t at, const char *list)
{
	return at < c->n_words && c->words[at].plain && hook_programs_list(list, c->words[at].text);
}

static struct hook_command skip_words(const struct hook_command *c, size_t at)
{
	return (struct hook_command){ .words = c->words + at, .n_words = c->n_words - at };
}

size_t hook_programs_interpreter(const struct hook_command *c)
{
	size_t i = 0;

	while (i < c->n_words && (!is_program(INTERPRETERS, &c->words[i]) ||
	                          (is_program("python*", &c->words[i]) && is_word(c, i + 1, "-m") &&
	                           is_word(c, i + 2, CHECKERS)))) {
		i++;
	}
	return i;
}

size_t hook_programs_word(const struct hook_command *c)
{
	size_t at = 0;

	for (; at < c->n_words; at++) {
		const struct hook_word *w = &c->words[at];
		bool before = w->bare && (hook_programs_list(KEYWORDS, w->text) ||
		                          hook_programs_list(WRAPPERS, w->text));
		if (!before && !hook_line_assigns(w)) {
			break;
		}
		at += strcmp(w->text, "timeout") == 0 && is_word(c, at + 1, "[0-9]*");
	}
	return at;
}

/* Behind `sudo`, `eval`, or `nice` with an option, any word may be the program. */
static bool hides_program(const struct hook_command *c, size_t at)
{
	return at < c->n_words &&
	       ((at > 0 && c->words[at].text[0] == '-') || is_program(WRAPPERS, &c->words[at]) ||
	        is_program(UNUSUAL, &c->words[at]) || is_program(EVALS, &c->words[at]));
}

bool hook_programs_odd(const struct hook_command *c)
{
	size_t program = hook_programs_word(c);

	for (size_t i = 0; i <= program && i < c->n_words; i++) {
		if (c->words[i].bare && hook_programs_list(KEYWORDS, c->words[i].text)) {
			return true;
		}
	}
	return hides_program(c, program);
}

bool hook_programs_nest(const struct hook_command *c)
{
	for (size_t i = 0; i < c->n_words; i++) {
		const char *next = i + 1 < c->n_words ? c->words[i + 1].text : "-";
		if (is_program(EVALS, &c->words[i]) ||
		    (is_program(SHELLS, &c->words[i]) && (next[0] == '-' || next[0] == '+'))) {
			return true;
		}
	}
	return false;
}

static bool is_known(const struct hook_command *c, const struct known_command *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool known = is_program(v[i].names, &c->words[0]) &&
		             (v[i].second == NULL || is_word(c, 1, v[i].second)) &&
		             (v[i].third == NULL ||
		              (c->n_words > 2 && strlen(c->words[2].text) < MAX_SCRIPT &&
		               is_word(c, 2, v[i].third)));
		for (size_t k = 1; k < c->n_words && known; k++) {
			known = !hook_programs_list(v[i].unless, c->words[k].text);
		}
		if (known) {
			return true;
		}
	}
	return false;
}

/* Is `c` one of OURS_BY_OPTION? *ret_decides: with an option that is not in its list, or with a
 * variable where one could stand. What follows "--" belongs to the skill. */
static bool is_ours_by_option(const struct hook_command *c, bool *ret_looks, bool *ret_decides)
{
	for (size_t i = 0; i < ARRAY_LEN(OURS_BY_OPTION); i++) {
		if (!is_word(c, 1, OURS_BY_OPTION[i].names)) {
			continue;
		}
		*ret_looks = OURS_BY_OPTION[i].looks;
		*ret_decides = is_word(c, 2, "--");
		for (size_t k = 2; k < c->n_words && !is_word(c, k, "--"); k++) {
			*ret_decides = *ret_decides || !c->words[k].plain ||
			               (c->words[k].text[0] == '-' &&
			                !is_word(c, k, OURS_BY_OPTION[i].options));
		}
		return true;
	}
	return false;
}

/* Our name, or a variable or pattern that may be it. */
static bool may_be_ours(const struct hook_word *w, const char *self)
{
	return strcmp(path_base(w->text), NAME) == 0 || strcmp(w->text, self) == 0 ||
	       (!w->plain &&
	        (fnmatch(w->text, NAME, 0) == 0 || fnmatch(w->text, "/usr/bin/" NAME, 0) == 0 ||
	         fnmatch(w->text, self, 0) == 0));
}

bool hook_programs_look(const struct hook_command *all, const char *self)
{
	bool looks = false, decides = false;
	size_t at = 0;

	while (at < all->n_words && all->words[at].bare &&
	       hook_programs_list(KEYWORDS, all->words[at].text)) {
		at++;
	}
	const struct hook_command rest = skip_words(all, at), *c = &rest;
	if (c->n_words == 0) {
		return true; /* a redirection alone, or `fi` */
	}
	const struct hook_word *w = &c->words[0];
	if (!w->plain || hook_line_assigns(w)) {
		return false;
	}
	if (strcmp(w->text, NAME) == 0 || strcmp(w->text, self) == 0) {
		return is_ours_by_option(c, &looks, &decides)
		               ? looks && !decides
		               : is_known(c, OURS_LOOK, ARRAY_LEN(OURS_LOOK));
	}
	if (strchr(w->text, '/') != NULL &&
	    (!is_word(c, 0, "/bin/* /usr/bin/*") || strstr(w->text, "..") != NULL)) {
		return false;
	}
	return is_known(c, LOOKERS, ARRAY_LEN(LOOKERS));
}

/* Does the command behind an option of `find` or `fd`, or behind the options of `xargs`, do more
 * than look? */
static bool starts_found(const struct hook_command *c, size_t at, const char *self)
{
	bool by_option = !is_program("xargs parallel", &c->words[at]);

	for (at++; at < c->n_words; at++) {
		const char *text = c->words[at].text;
		if (by_option && !hook_programs_list("-exec* -ok* -x -X --exec*", text)) {
			continue;
		}
		if (!by_option && text[0] == '-') {
			at += hook_programs_list("-[InPLdsaEj] --max-*s", text);
			continue;
		}
		struct hook_command sub = skip_words(c, by_option ? at + 1 : at);
		for (size_t n = 0; n < sub.n_words; n++) {
			sub.n_words = strcmp(sub.words[n].text, ";") == 0 ? n : sub.n_words;
		}
		if (!hook_programs_look(&sub, self)) {
			return true;
		}
		if (!by_option) {
			break;
		}
	}
	return false;
}

bool hook_programs_start_unnamed(const struct hook_command *c, const char *self)
{
	const size_t at = hook_programs_word(c);
	const struct hook_command rest = skip_words(c, at);
	bool hidden = hides_program(c, at);

	if (hook_programs_look(&rest, self)) {
		return false;
	}
	for (size_t i = at; i < c->n_words; i++) {
		if ((is_program(STARTERS, &c->words[i]) && starts_found(c, i, self)) ||
		    (i > at && c->words[i].unknown && is_word(c, i - 1, DIRECTORY_OPTIONS))) {
			return true;
		}
	}
	/* What follows a substitution is not a program. */
	if (rest.words[0].unknown && (at > 0 || c->join != ')')) {
		return true;
	}
	for (size_t i = 1; i < rest.n_words && (hidden || hook_programs_interpreter(&rest) == 0);
	     i++) {
		if (rest.words[i].unknown) {
			return true;
		}
		if (!hidden && rest.words[i].text[0] != '-') {
			break;
		}
	}
	return false;
}

bool hook_programs_reads_script(const struct hook_command *c)
{
	size_t at = hook_programs_interpreter(c) + 1;

	return at == c->n_words || (at < c->n_words && is_word(c, at, "- -[!cmep]*"));
}

bool hook_programs_understand(const struct hook_command *c, const char *self)
{
	return c->n_words > 0 && c->words[0].plain && hook_programs_word(c) == 0 &&
	       !hides_program(c, 0) && !is_program(STATEFUL, &c->words[0]) &&
	       !is_program(STARTERS, &c->words[0]) && !hook_programs_nest(c) &&
	       !hook_programs_start_unnamed(c, self);
}

bool hook_programs_depend(const struct hook_command *c)
{
	return c->n_words > 0 && is_program(DEPENDENT, &c->words[0]);
}

/* Does `c`, which begins with our name, have a command that the owner decides, or one that is not
 * known: `skillsandbox $X`, `skillsandbox session $X`? */
static bool ours_decides(const struct hook_command *c, bool started)
{
	bool looks = false, decides = false;
	bool hidden = !c->words[1].plain ||
	              (c->n_words > 2 && !c->words[2].plain && is_word(c, 1, "audit session"));

	return (started && hidden) || (is_ours_by_option(c, &looks, &decides) && decides);
}

bool hook_programs_decide(const struct hook_command *c, const char *self)
{
	const size_t program = hook_programs_word(c);
	bool hidden = hides_program(c, program) ||
	              (program < c->n_words && is_program(STARTERS, &c->words[program]));

	if (hook_programs_look(c, self)) {
		return false; /* only a command that starts nothing may speak of ours */
	}
	for (size_t at = 0; at + 1 < c->n_words; at++) {
		const struct hook_word *w = &c->words[at];
		const struct hook_command ours = skip_words(c, at);
		bool started = at == program || (hidden && at > program);
		if (!may_be_ours(w, self) || (!w->plain && !started)) {
			continue;
		}
		if (is_known(&ours, OURS_DECIDE, ARRAY_LEN(OURS_DECIDE)) ||
		    (w->plain && ours_decides(&ours, started))) {
			return true;
		}
	}
	return false;
}
