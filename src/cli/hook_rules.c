/* hook_rules.c - see hook_rules.h. */
#include "cli/hook_rules.h"

#include <regex.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "policy/path.h"

#define ASSIGNMENT "[A-Za-z_][A-Za-z0-9_]*([[][^ ]*)?[+]?="
#define WRAPPER    "exec|command|nohup|time|nice|setsid|env|timeout"
#define ANY_DIR    "([^ ]*/)?"
#define PROGRAM    " " ANY_DIR
#define SHELL      "(sh|bash|dash|zsh|ksh|fish|ash|su|mksh|sg|script|runuser|busybox)"
#define INTERPRETER                                                                                \
	"(python[0-9.]*|pypy[^ ]*|bash|sh|dash|zsh|ksh|fish|busybox|node|nodejs|bun|deno|ruby|"    \
	"perl|php|lua[0-9j.]*|Rscript|tclsh[^ ]*|uv|npx|tsx|ts-node)"
/* A command begins, and its program is next. */
#define BEGIN                                                                                      \
	"([;|&]|" PROGRAM SHELL " ([^;|]* )?-[a-z]*c) (" ASSIGNMENT "[^ ]* |" ANY_DIR "(" WRAPPER  \
	"|builtin) |timeout [0-9][^ ]* |(if|then|elif|else|while|until|do|!) )*"
/* Behind these, any word of the command may be the program. */
#define HIDER                                                                                      \
	PROGRAM "((sudo|doas|ionice|stdbuf|chrt|taskset|coproc|xargs|parallel|eval|watch|trap|"    \
	        "su|runuser|let) |(" WRAPPER ") -)"
#define OURS "skillsandbox"
/* Literal characters in an exact text */
#define DOLLAR  "\1\xa4"
#define BAR     "\1\xfc"
#define BRACKET "\1\xdb"

/* Options of `run` that grant nothing */
#define RUN_OPTION                                                                                 \
	"(-[qv]|--(quiet|verbose|json|watch|prove|dry-run|tty|no-tty)|--session[ =][^- $*?][^ "    \
	"$*?]*)"

/* Commands that only look, or change files, and start no file that they are given. What the
 * settings of a repository name (hooks, filters, a pager), git may start. `unless` finds options
 * that start something; a variable or a brace may become one. */
static const struct {
	const char *look, *unless;
} LOOKS[] = {
	{ "^(cat|head|tail|wc|ls|stat|file|[ef]?grep|diff|cmp|md5sum|sha1sum|sha256sum|rm|rmdir|"
	  "mkdir|touch|chmod|chown|echo|pwd|true|false|cd|basename|dirname|realpath|readlink|du|"
	  "tree|nl|od|xxd|hexdump|strings|uniq|cut|tr|jq|column|uname|date|id|whoami|sleep) ",
	  NULL },
	/* They write or check what they are given; their settings are data. */
	{ "^(black|ruff|autopep8|pyflakes|pycodestyle|shellcheck|shfmt|clang-format|gofmt|"
	  "rustfmt) ",
	  NULL },
	{ "^rg ", " --(pre|hostname-bin)| [^ ]*[$]" },
	/* The subscript of a variable is evaluated: x[$(...)]. */
	{ "^(test|[[]|printf) ", " -v| [^ ]*([[]|" BRACKET ")" },
	{ "^[[][[] ", " -(v|eq|ne|lt|le|gt|ge)" },
	{ "^(less|more) ", " [+]| --le| -[^- ]*k| [^ ]*[$]" }, /* "+!command", lesskey */
	{ "^sort ", " --co| [^ ]*[$]" },
	{ "^find ", " -(exec|ok|fprint|fls)| [^ ]*[$]" },
	/* Modules that read what they are given, and write beside it at most. */
	{ "^python[0-9.]* -m (py_compile|compileall|tokenize|ast|dis|tabnanny|json[.]tool) ",
	  NULL },
	/* Lines to print, and s/a/b/g: other scripts may start and write files. */
	{ "^sed (-i|-n|-E|-Ei|-i[.]bak) ([0-9,p]|" DOLLAR ")* ", "^sed [^ ]* .* -" },
	{ "^sed (-i|-n|-E|-Ei|-i[.]bak) s/[^/ ]*/[^/ ]*/[gIip0-9]* ", "^sed [^ ]* .* -" },
	{ "^sed (-i|-n|-E|-Ei|-i[.]bak) s(" BAR "[^\xfc ]*){2}" BAR "[gIip0-9]* ",
	  "^sed [^ ]* .* -" },
	{ "^git (add|diff|log|show|status|blame|rm|mv|ls-files|commit|tag|branch|stash|restore|"
	  "checkout -b|switch -c) ",
	  " --(ext|textconv)" },
	{ "^gh (pr|issue) (create|comment|edit|view|list|review|status|checks|close|reopen) ",
	  NULL },
	{ "^" OURS " (inspect|lint|diff|validate|why|ps|watch|doctor|help|--help|--version) ",
	  NULL },
	{ "^" OURS " (audit (list|show|verify) |session (list|show) |approvals( --json)? $)",
	  NULL },
	/* A run of a skill as it is declared; behind "--" are the skill's arguments. */
	{ "^" OURS " run (" RUN_OPTION " )*([^- $*?][^ $*?]* )+(-- .*)?$", NULL },
};

/* Of these, what may change a file; "/dev/null" is none. */
#define CHANGE                                                                                     \
	"> ([^/]|/[^d]|/d[^e]|/de[^v]|/dev[^/]|/dev/[^n])|[;|&] " ANY_DIR                          \
	"((rm|rmdir|mkdir|touch|chmod|chown|uniq|xxd|black|ruff|autopep8|shfmt|clang-format|gofmt" \
	"|rustfmt|git|xargs|python[^ ]*) |sed -[^ ]*i|(sort|tree) ([^;|]* )?-[^ ]*o|find "         \
	"[^;|]*-(delete|exec))"

/* Commands that may start a file that no word names. */
static const char *const UNNAMED[] = {
	/* $F; nice -n 3 $F; source $F; eval a $F */
	BEGIN "[^ =<|]*[$]",
	HIDER "[^;|]*[$]",
	BEGIN "(source|[.]) [^;|]*[$]",
	" (eval|watch|trap|let) .*[$]",
	/* python3 -u $F; bash < $F; cat $F | sh */
	PROGRAM INTERPRETER "( -[XWroO] [^ ]*| -[^ ]*)*( <)* [^ ]*[$]",
	"[$].* [|] ([^;|]* )?" ANY_DIR INTERPRETER "( -| -[^cmep ][^ ]*)* [12]? ?[;|)<>]",
	/* make -C $D; make -f $F; cd $D */
	" (-C|--directory|--chdir|--prefix|--cwd)[ =]?[^ ]*[$]",
	" make ([^;|]* )?-f ?[^ ]*[$]",
	" (cd|pushd)( -[^ ]*)* ([^ ]*[$]|- )",
	/* These lead a shell or a program to other files than it would find by itself. */
	" (PATH|HOME|OLDPWD|CDPATH|BASH_ENV|ENV|LD_PRELOAD|LD_LIBRARY_PATH)[+]?=[^ ]*[$]",
	" (PYTHON(PATH|STARTUP)|NODE_PATH|PERL5LIB|RUBYLIB|LUA_PATH)[+]?=[^ ]*[$]",
	/* The names are found, or come from the input. */
	PROGRAM "(xargs|parallel) ",
	" -(exec|ok)(dir)? ",
	" (fd|fdfind) ([^;|]* )?(-[xX]|--exec[^ ]*) ",
	PROGRAM "find ([^;|]* )?[^ ]*[$][^;|]*[}$]", /* find {-exec,python3} {} + */
	" --(pre|hostname-bin)",
	PROGRAM "rg ([^;|]* )?[^ ]*[$][^ ]*,", /* rg {--pre,python3} */
	" [^ =]+=-.*" PROGRAM "rg ([^;|]* )?[^ ]*[$]",
	/* Patterns that glob(3) does not know. */
	"[ =:](globstar|extglob|nocaseglob|dotglob)[ :]",
	PROGRAM "zsh ([^;|]* )?-[a-z]*c .*[*][*]",
};

/* Commands that start a text. */
static const char *const NESTS[] = {
	PROGRAM "(eval|watch|trap|parallel|let) ",
	PROGRAM SHELL " [-+;|<&)]",
	PROGRAM "env ([^;|]* )?(-[a-zA-Z]*S|--s)",
};

/* Options that grant something, of the commands that have any; before "--" */
#define GRANTS                                                                                     \
	"(run|serve|learn|init) (([^-;| ]|-[^- ;|]|--[^ ;|])[^ ]* )*(-[a-z]*[rw]|--(read|write|"   \
	"net|env|policy|connect|sidecar|allow-private|unix-sockets|best-effort|rootfs|image))"
#define UNKNOWN  " ((audit|session) )?[^ ]*[$*?[]"
#define DECISION "(approve|setup|resume|prune|--revoke)"

/* What only the owner may decide. An unknown word may be our program or its command. */
static const char *const DECIDES[] = {
	/* In any order: both flat readings of the line follow each other. */
	" " OURS " (.* )?" DECISION "[ ,]",
	"[$*?[][^ ]* ((approve|setup|audit prune|session resume|approvals [^;|]*--revoke) |" GRANTS
	")",
	/* Programs are looked for elsewhere, or load other files: any may be ours. */
	" ((PATH|ENV|BASH_ENV|LD_PRELOAD|LD_LIBRARY_PATH)([+]?=| )|hash -p).* (" DECISION
	"[ ,]|" GRANTS ")",
	"(" BEGIN "|" HIDER "([^;|]* )?)" OURS UNKNOWN,
	/* Another name for our program: an alias, a variable, a copy, a symlink. */
	"[;|&] ([a-z]+ )*" ASSIGNMENT ANY_DIR OURS " ",
	PROGRAM "(ln|cp|mv|install) ([^;|]*[ /])?" OURS " [^;|]*[;|&]+ [^ ;|&]",
};
/* Their options may grant more or write a manifest; those in `harmless` do not. */
static const struct {
	const char *command, *harmless;
} BY_OPTION[] = {
	{ " " OURS " run ", "^((" RUN_OPTION "|[^- $*?;|&][^ $*?;|&]*) )+(-- |[;|&<)]|&&)" },
	{ " " OURS " (serve|learn|init|approvals) ",
	  "^((-q|--quiet|--json|--skills[ =][^ $*?]*|[^- $*?;|&][^ $*?;|&]*) )*[;|&<)]" },
};

/* Uses of a directory's name N, which stands at "\2": in a path (not at the end of a URL), as a
 * module of Python, attached to an option, alone behind an option or `cd`. */
#define N    "\2"
#define EDGE "[^A-Za-z0-9_.-]"
#define MENTION                                                                                    \
	" ([^ :]|:+/?[^ :/])*:*/" N EDGE "|" EDGE N "/|skills[.]" N "| -[A-Za-z]+" N               \
	"/| -[A-Za-z]*[CDf]" N EDGE "| -m" N "[.]| (cd|pushd|chdir)( -[^ ]*)* " N EDGE             \
	"| (-[^ ]*[CDfw]|--[^ ]*(dir|file)[^ ]*|--prefix|--cwd|--project|--wd|--workspace) " N     \
	        EDGE
/* A directory of skills counts as any word, too. */
#define MENTION_ROOT MENTION "|[ =:]" N EDGE

/* `broken` is the answer if there is no memory for it. */
static bool find_match(const char *ere, const char *text, bool broken, regmatch_t *ret)
{
	regmatch_t found;
	regex_t re;
	int rc = regcomp(&re, ere, REG_EXTENDED);

	if (rc == 0) {
		rc = regexec(&re, text, 1, ret != NULL ? ret : &found, 0);
		regfree(&re);
	}
	return rc == 0 || (rc != REG_NOMATCH && broken);
}

static bool any_matches(const char *const rules[], size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		if (find_match(rules[i], text, true, NULL)) {
			return true;
		}
	}
	return false;
}

/* What `find -exec` and `xargs` start must look, too. */
static const char *skip_starter(const char *command)
{
	regmatch_t m;

	if (find_match("^xargs( -([InPLdsaEj]|-max-[a-z]*s) [^ ]*| -[^ ]*)* ", command, false,
	               &m)) {
		/* Their options may come from the input. */
		const char *rest = command + m.rm_eo;
		return find_match("^([^ ]*/)?(find|rg|sort|xargs|sed|less|more|git|gh|test|[[]|"
		                  "printf|" OURS ") ",
		                  rest, true, NULL)
		               ? ""
		               : rest;
	}
	if (find_match("^find ", command, false, NULL) &&
	    find_match(" -(exec|ok|fprint|fls)[^ ]* ", command, false, &m) &&
	    strncmp(command + m.rm_so, " -exec", 6) == 0) {
		const char *rest = command + m.rm_eo;
		return find_match(" -(exec|ok|fprint|fls)", rest, true, NULL) ||
		                       memchr(command, '$', (size_t)m.rm_so) != NULL
		               ? ""
		               : rest;
	}
	return command;
}

bool hook_rules_look(const char *command, const char *self, bool within)
{
	const char *c = skip_starter(command);
	size_t dir = (size_t)(path_base(self) - self);

	if (strncmp(c, self, strlen(self)) == 0 && c[strlen(self)] == ' ') {
		c += dir;
	} else {
		c += strncmp(c, "/usr/bin/", 9) == 0 ? 9 : strncmp(c, "/bin/", 5) == 0 ? 5 : 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(LOOKS); i++) {
		if (find_match(LOOKS[i].look, c, false, NULL)) {
			return (LOOKS[i].unless == NULL ||
			        !find_match(LOOKS[i].unless, c, true, NULL)) &&
			       !(within && find_match("^(git|gh|python[^ ]*) ", c, true, NULL));
		}
	}
	return false;
}

bool hook_rules_change(const char *text)
{
	return find_match(CHANGE, text, true, NULL);
}

bool hook_rules_start_unnamed(const char *text)
{
	return any_matches(UNNAMED, ARRAY_LEN(UNNAMED), text);
}

bool hook_rules_nest(const char *text)
{
	return any_matches(NESTS, ARRAY_LEN(NESTS), text);
}

bool hook_rules_decide(const char *text, bool nests)
{
	regmatch_t m = { 0 };

	if (any_matches(DECIDES, ARRAY_LEN(DECIDES), text) ||
	    (nests && find_match(" " OURS UNKNOWN, text, true, NULL))) {
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(BY_OPTION); i++) {
		const char *at = text;
		for (; find_match(BY_OPTION[i].command, at, true, &m); at += m.rm_eo - 1) {
			if (!find_match(BY_OPTION[i].harmless, at + m.rm_eo, false, NULL)) {
				return true;
			}
		}
	}
	return false;
}

bool hook_rules_mention(const char *flat, const char *name, bool root)
{
	auto_buf ere, quoted;

	buf_init(&ere, 32 * MAX_PATH_BYTES);
	buf_init(&quoted, 3 * MAX_PATH_BYTES);
	buf_adds(&quoted, "");
	for (const char *c = name; *c != '\0' && strstr(flat, name) != NULL; c++) {
		buf_addf(&quoted, *c == '^' ? "\\%c" : "[%c]", *c);
	}
	for (const char *c = root ? MENTION_ROOT : MENTION; *c != '\0' && quoted.len > 0; c++) {
		buf_add(&ere, *c == *N ? quoted.data : c, *c == *N ? quoted.len : 1);
	}
	return quoted.failed || ere.failed ||
	       (quoted.len > 0 && find_match(ere.data, flat, true, NULL));
}

bool hook_rules_is_interpreter(const char *word)
{
	return find_match("^" ANY_DIR INTERPRETER "$", word, true, NULL);
}

bool hook_rules_is_starter(const char *word)
{
	return hook_rules_is_interpreter(word) || strcmp(word, "source") == 0 ||
	       strcmp(word, ".") == 0;
}

bool hook_rules_is_wrapper(const char *word, const char *before)
{
	return find_match("^(" ASSIGNMENT ".*|" WRAPPER ")$", word, true, NULL) ||
	       (find_match("^timeout$", before, true, NULL) &&
	        find_match("^[0-9]", word, true, NULL));
}

bool hook_rules_is_of_system(const char *program)
{
	return find_match("^(/bin/|/usr/bin/|/usr/local/bin/)?[^/]+$", program, false, NULL);
}
