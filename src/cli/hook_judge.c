/* hook_judge.c - decides about a line of shell.
 *
 * Tables of POSIX extended regular expressions, for the texts of hook_line.c, say what the programs
 * of a line would do, as far as their names tell. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/shell_quote.h"
#include "cli/hook.h"
#include "policy/path.h"

/* A line is simple if it is a list of commands: words with quotes and variables, joined by ";",
 * "&&", "||", "|" and newlines, and redirections to files. */
/* A "$" that no name follows is itself. */
#define SIMPLE "^(" HOOK_WORD "|[$]?[ \t\n]|&&|[|][|]?|;|(>>?|<)[ \t]*" HOOK_WORD "|>&[12])*[$]?$"

#define US         "skillsandbox"
#define PROGRAM    " ([^ ]*/)?"
#define ASSIGNMENT "[A-Za-z_][A-Za-z0-9_]*([[][^ ]*)?[+]?="
#define SHELL      "(sh|bash|dash|zsh|ksh|fish|ash|su|mksh|sg|script|runuser|busybox)"
#define WRAPPER    "(exec|command|nohup|time|nice|setsid|env|timeout|builtin)"
#define INTERPRETER                                                                                \
	"(python[0-9.]*|pypy[^ ]*|bash|sh|dash|zsh|ksh|fish|busybox|node|nodejs|bun|deno|ruby|"    \
	"perl|php|lua[0-9j.]*|Rscript|tclsh[^ ]*|uv|npx|tsx|ts-node)"
/* A command begins, and its program is next. */
#define BEGIN                                                                                      \
	"([;|]| case .*[)]|" PROGRAM SHELL " ([^;|]* )?-[a-z]*c) (" ASSIGNMENT                     \
	"[^ ]* |([^ ]*/)?" WRAPPER " |timeout [0-9][^ ]* |(if|then|elif|else|while|until|do|!) )*"
/* Behind these, any word of the command may be the program. */
#define HIDER                                                                                      \
	PROGRAM "((sudo|doas|ionice|stdbuf|chrt|taskset|coproc|xargs|parallel|watch|su|runuser) "  \
	        "|" WRAPPER " -)"

/* Commands that start no file that they are given: those that only look, and those that change
 * files. What the settings of a repository name (hooks, filters, a pager), git may start. */
#define LOOK                                                                                       \
	"(cat|head|tail|wc|ls|stat|file|[ef]?grep|diff|cmp|md5sum|sha1sum|sha256sum|echo|pwd|true" \
	"|false|cd|basename|dirname|realpath|readlink|du|nl|od|hexdump|strings|cut|tr|jq|column|"  \
	"uname|date|id|whoami|sleep)"
#define CHANGE                                                                                     \
	"(rm|rmdir|mkdir|touch|chmod|chown|tree|uniq|xxd|black|ruff|autopep8|pyflakes|"            \
	"pycodestyle|shellcheck|shfmt|clang-format|gofmt|rustfmt|python[0-9.]* -m (py_compile|"    \
	"compileall|tokenize|ast|dis|tabnanny|json[.]tool)|kill|git (add|rm|mv|branch)|"           \
	"docker (rm|rmi|stop|kill|inspect))"
#define XARGS "xargs( -[0rtx]+| -[InPL] ?[0-9{}%]+)*"
static const struct {
	const char *look;
	const char *unless; /* options that start something; a variable may become one */
	bool changes;
} LOOKS[] = {
	{ "^" LOOK " ", NULL, false },
	{ "^(" XARGS " )?(" LOOK "|" CHANGE ") ", NULL, true },
	/* `less` knows "+!command" and lesskey. */
	{ "^(rg|sort|less) ", " [+]| --(pre|host|co|le)| -[^- ]*[ok]|[$]", false },
	/* The subscript of a variable is evaluated: x[$(...)]. */
	{ "^(test|[[]|printf) ", " -v| [^ ]*[[" HOOK_MASK "]", false },
	{ "^find ", " -(exec|ok|fprint|fls|delete)|[$]", false },
	{ "^find .* -exec (" LOOK "|" CHANGE ") ", " -(execdir|ok|fprint|fls)|-exec.*-exec|[$]",
	  true },
	/* Lines to print, and s/a/b/g: other scripts may start and write files. */
	{ "^sed -n [0-9,p" HOOK_MASK "]+ ", "^sed [^ ]* .* -", false },
	{ "^sed (-i|-n|-E|-Ei|-i[.]bak) s/[^/ ]*/[^/ ]*/[gIip0-9]* ", "^sed [^ ]* .* -", true },
	{ "^(git (add|diff|log|show|status|blame|rm|mv|ls-files|commit|tag|branch|stash|restore|"
	  "checkout -b|switch -c)|gh (pr|issue) (create|comment|edit|view|list|review|status)) ",
	  " --(ext|textconv)", true },
	{ "^" US
	  " (inspect|list|lint|diff|validate|why|ps|watch|doctor|help|--help|--version|audit "
	  "(list|show|verify)|session (list|show|check)) ",
	  NULL, false },
	/* A run of a skill as it is declared, with options that grant nothing; behind "--" are the
	 * skill's arguments. */
	{ "^" US " run ((-[qv]|--(quiet|verbose|json|watch|prove|dry-run|tty|no-tty)|--session[ =]"
	  "[^- $*?][^ $*?]*) )*([^- $*?][^ $*?]* )+(-- .*)?$",
	  NULL, false },
};

/* Commands that may start a file that no word names: $F; sudo $F; source $F; eval a $F */
#define UNKNOWN                                                                                    \
	BEGIN "[^ =<>|]*[$]|" HIDER "[^;|]*[$]|" BEGIN "(source|[.]) [^;|]*[$]|"                   \
	      " (eval|watch|trap|let) .*[$]"
/* python3 -u $F; bash < $F; cat $F | sh */
#define SCRIPTS                                                                                    \
	PROGRAM INTERPRETER "(( -[XWroO] [^ ]*| -[^ ]*)* [^ ]*[$]|[^;|]* [<>] [^;|]*[$])|"         \
	                    "[$].* [|] ([^;|]* )?([^ ]*/)?" INTERPRETER                            \
	                    "( -| -[^cmep ][^ ]*)* [12]? ?[;|)<>]"
/* make -C $D; make -f $F; cd $D; cd a*; cd -; and what leads programs to other files */
#define PLACES                                                                                     \
	" (-C|--directory|--chdir|--prefix|--cwd|make ([^;|]* )?-f)[ =]?[^ ]*[$]|"                 \
	" (cd|pushd) ([^;|]*[$*?[]|([^;|]* )?- )|"                                                 \
	" (PATH|HOME|OLDPWD|CDPATH|BASH_ENV|ENV|LD_PRELOAD|LD_LIBRARY_PATH|PYTHON(PATH|STARTUP)|"  \
	"NODE_PATH|PERL5LIB|RUBYLIB|LUA_PATH)[+]?=[^ ]*[$]"
/* The names are found, come from the input, or from patterns that glob(3) does not know. */
#define FOUND                                                                                      \
	PROGRAM "(xargs|parallel) | -(exec|ok)(dir)? | (fd|fdfind) ([^;|]* )?(-[xX]|--exec)|"      \
	        " --(pre|hostname-bin)[ =]| find ([^;|]* )?[^ ]*[$][^;|]*[}$]| (find|rg) ([^;|]* " \
	        ")?"                                                                               \
	        "[^ ]*[$][^ ]*,| [^ =]+=-.* rg ([^;|]* )?[^ ]*[$]|"                                \
	        "[ =:](globstar|extglob|nocaseglob|dotglob)[ :]| zsh ([^;|]* )?-[a-z]*c .*[*][*]"

/* Commands that start a text. */
#define NESTS                                                                                      \
	PROGRAM "(eval|watch|trap|parallel|let) |" PROGRAM SHELL " [-+;|<&)]|" PROGRAM             \
	        "env ([^;|]* )?(-[a-zA-Z]*S|--s)"

/* What only the owner may decide, if our program is in the line; if any program may be ours,
 * because it is unknown or found elsewhere, with options that grant something. */
#define OWNERS " (approve|allow|setup|resume|prune|--revoke)[ ,]"
#define GRANTS " " HOOK_GRANTS("(run|shell|serve|learn|init)")
#define OURS   OWNERS "| (run|shell|serve|learn|init) | [^ ]*[$*?[]"
#define ANY                                                                                        \
	"[$*?[][^ ]*( (approve|allow|setup|audit prune|session resume|approvals [^;|]*--revoke) "  \
	"|" GRANTS                                                                                 \
	")| ((PATH|ENV|BASH_ENV|LD_PRELOAD|LD_LIBRARY_PATH)([+]?=| )|hash -p).*(" OWNERS           \
	"|" GRANTS ")"

#define WRITES "> ([^/]|/[^d]|/d[^e]|/de[^v]|/dev[^/]|/dev/[^n])"

/* A command that may start a script, as it is in a simple line. */
#define GAP  "[ \t]+"
#define TEXT "([^ \t\n'\"\\<>;|&#]|'[^']*'|\"[^\"\\]*\")+"
#define RUNS                                                                                       \
	"^[ \t\n]*(cd" GAP "(" TEXT ")[ \t]*(&&|[;\n])[ \t\n]*)?((" WRAPPER "|timeout" GAP         \
	"[0-9][^ \t]*)" GAP ")*((/usr/bin/|/bin/|/usr/local/bin/)?(" INTERPRETER ")" GAP           \
	"(-[uB]" GAP ")*)?(" TEXT ")([ \t;|<>]|$)"
enum { MOVES = 2, INTERPRETED = 8, CALLED = 10, SCRIPT = 13, GROUPS = 16 };

struct judging {
	const struct hook_question *q;
	const struct hook_name *names;
	struct hook_skills *skills;
	bool within;  /* the line is in a skill's directory, where git and Python start more */
	bool changes; /* a command that only looks may change files */
	struct buf *text;
};

/* Do the commands in the shown text only look, or change files? */
static bool only_looks(struct judging *j, const char *shown)
{
	size_t n = 0;

	for (const char *c = shown; *(c += strspn(c, " ;|")) != '\0'; c += n) {
		const char *self = j->q->self;
		size_t dir = strncmp(c, self, strlen(self)) == 0 ? (size_t)(path_base(self) - self)
		             : strncmp(c, "/usr/bin/", 9) == 0   ? 9
		             : strncmp(c, "/bin/", 5) == 0       ? 5
		                                                 : 0;
		n = strcspn(c, ";|");
		auto_free char *text = hook_must(strndup(c + dir, n - dir));
		size_t i = j->within && hook_line_matches(text, "(git|gh|python[^ ]*) ")
		                   ? ARRAY_LEN(LOOKS)
		                   : 0;
		while (i < ARRAY_LEN(LOOKS) &&
		       (!hook_line_matches(text, LOOKS[i].look) ||
		        (LOOKS[i].unless != NULL && hook_line_matches(text, LOOKS[i].unless)))) {
			i++;
		}
		if (i == ARRAY_LEN(LOOKS)) {
			return false;
		}
		j->changes |= LOOKS[i].changes;
		j->within |= strncmp(text, "cd ", 3) == 0 && hook_skill_names(j->skills, text);
	}
	return true;
}

/* The bytes that a group of RUNS matched, as a word; new. If no shell would make exactly one of
 * them, the word leads nowhere. */
static char *copy_group(const struct judging *j, const regmatch_t *m)
{
	const char *start = j->q->command + (m->rm_so >= 0 ? m->rm_so : 0);
	auto_free char *text =
	        hook_line_read(start, (size_t)(m->rm_eo - m->rm_so), j->names, HOOK_FLAT);
	const char *word = text + strlen(" ; "), *end = strstr(word, " ; ");

	return hook_must(strndup(word, end != NULL ? (size_t)(end - word) : 0));
}

/* Of "cd DIR; nohup PROGRAM SCRIPT ARGUMENTS | head", replaces PROGRAM and SCRIPT. */
static bool rewrite_line(struct judging *j)
{
	const char *const line = j->q->command;
	auto_buf run = BUF(4 * MAX_PATH_BYTES);
	regmatch_t m[GROUPS] = { 0 };

	if (!hook_line_matches(line, SIMPLE) || !hook_line_find(line, RUNS, GROUPS, m)) {
		return false;
	}
	auto_free char *dir = copy_group(j, &m[MOVES]), *script = copy_group(j, &m[SCRIPT]);
	auto_free char *program = copy_group(j, &m[CALLED]);
	auto_free char *at = hook_must(path_from(j->q->cwd, dir));
	auto_free char *file = hook_must(path_from(at, script));
	const char *behind = line + m[SCRIPT].rm_eo;
	auto_free char *rest = hook_line_read(behind, strlen(behind), j->names, HOOK_SHOWN);
	const char *args = rest + strlen(" ; "), *pipe = strchr(args, '|');
	/* A name with ".." behind a symlink leads a shell elsewhere than the kernel. */
	if (dir[0] == '-' || strstr(dir, "..") != NULL || script[0] == '-' ||
	    (j->q->cdpath && strchr("/.", dir[0]) == NULL) ||
	    (program[0] == '\0' && strchr(script, '/') == NULL) ||
	    strcspn(args, ";") + strlen("; ") != strlen(args) ||
	    (pipe != NULL && !only_looks(j, pipe)) ||
	    !hook_skill_run(j->skills, program, file, strchr(";|", args[0]) == NULL, &run)) {
		return false;
	}
	buf_add(j->text, line, (size_t)m[m[INTERPRETED].rm_so < 0 ? SCRIPT : INTERPRETED].rm_so);
	shell_quote(j->text, j->q->self);
	buf_addf(j->text, " run %s%s", run.data, behind);
	return !run.failed;
}

/* A copy of the line in which a text that a shell passes on as it is, "$(cat <<'EOF'...EOF)", is a
 * word in single quotes; new. */
static char *quote_documents(const char *line)
{
	char *copy = hook_must(strdup(line));
	regmatch_t m[2] = { 0 };

	while (hook_line_find(copy, "\"[$][(]cat <<'([A-Z]+)'\n", 2, m)) {
		char *const quote = copy + m[0].rm_so, *text = copy + m[0].rm_eo, *end = NULL;
		auto_free char *mark =
		        hook_must(strndup(copy + m[1].rm_so, (size_t)(m[1].rm_eo - m[1].rm_so)));
		auto_free char *before = hook_must(strndup(copy, (size_t)m[0].rm_so));
		end = strstr(text, mark);
		size_t n = strlen(mark);
		/* The mark may stand nowhere else, so that all shells end the text here. */
		if (end == NULL || end[-1] != '\n' || strncmp(end + n, "\n)\"", 3) != 0 ||
		    memchr(text, '\'', (size_t)(end - text)) != NULL ||
		    !hook_line_matches(before, SIMPLE)) {
			break;
		}
		for (char *c = quote; c < end + n + 3; c++) {
			*c = *c == '\'' ? HOOK_MASK[0] : *c; /* as in any quotes */
		}
		*quote = '\'';
		end[n + 2] = '\'';
	}
	return copy;
}

/* `xargs rm` starts no file that it finds: the word xargs goes. */
static void forget_harmless(char *text)
{
	regmatch_t m[1] = { 0 };

	while (hook_line_find(text, "[;|] " XARGS " (" LOOK "|" CHANGE ") ", 1, m)) {
		text[m[0].rm_so + 2] = '_';
	}
}

enum hook_answer hook_judge(const struct hook_question *q, struct buf *text)
{
	AUTO(hook_skill_done) struct hook_skills s = { .q = q };
	const char *const line = q->command;
	bool moves = strstr(line, "cd") != NULL || strstr(line, "pushd") != NULL, names = false;
	const struct hook_name known[] = {
		/* The values of variables, unless the line may change them. */
		{ "PWD", moves ? NULL : q->cwd },
		{ "PATH", "/usr/bin:/bin" }, /* so that more can be added to it */
		{ "HOME", strstr(line, "HOME=") != NULL ? NULL : q->home },
		{ "CLAUDE_PROJECT_DIR", strstr(line, "DIR=") != NULL ? NULL : q->project },
		{ NULL, NULL }
	};
	struct judging j = { .q = q, .names = known, .skills = &s, .text = text };
	auto_free char *quoted = quote_documents(line);
	auto_free char *shown = hook_line_read(quoted, strlen(quoted), known, HOOK_SHOWN);
	auto_free char *flat = hook_line_read(line, strlen(line), known, HOOK_FLAT);
	const bool simple = hook_line_matches(quoted, SIMPLE);

	hook_skill_init(&s);
	j.within = hook_skill_names(&s, ".");
	bool looks = simple && only_looks(&j, shown);
	if (looks && !j.changes && !hook_line_matches(shown, WRITES)) {
		return HOOK_PASS;
	}
	for (size_t pass = 0; pass < 2; pass++) { /* in the second, all places are known */
		names = hook_skill_names(&s, shown) | hook_skill_names(&s, flat) | j.within;
	}
	/* In simple commands a quoted text is not taken for a start of what it does not name. */
	const char *starts = simple && !hook_line_matches(shown, NESTS) ? shown : flat;
	forget_harmless(shown);
	const bool ours =
	        (s.names_us && hook_line_matches(flat, OURS)) || hook_line_matches(flat, ANY);
	if (s.names_own || strstr(flat, "$/skillsandbox/") != NULL) {
		buf_adds(text, "skillsandbox: this may change your own settings or records of "
		               "skillsandbox, which say what skills may do");
		return HOOK_ASK;
	}
	if (simple && rewrite_line(&j)) {
		return HOOK_REWRITE;
	}
	if (looks) {
		return HOOK_PASS;
	}
	if (ours &&
	    (hook_reason_decision(&s, shown, text) || hook_reason_decision(&s, flat, text))) {
		return HOOK_ASK;
	}
	if (names || (hook_line_matches(starts, UNKNOWN "|" SCRIPTS "|" PLACES "|" FOUND) &&
	              hook_skill_below(&s))) {
		hook_reason_skill(&s, known, names, text);
		return HOOK_ASK;
	}
	if (!ours) {
		return HOOK_PASS;
	}
	buf_adds(text, "skillsandbox: this may start skillsandbox in a way that changes what "
	               "skills may do");
	return HOOK_ASK;
}
