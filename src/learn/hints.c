/* hints.c - finds hosts, variables, programs and files that the text of a skill mentions.
 *
 * This is not a parser: it recognises a few ways of writing that are common in many languages. If a
 * need is missed here, a run shows it; if a hint is wrong, the author removes it. Text that is not
 * code (Markdown, comments, data) says what a skill is about rather than what it does: a hint from
 * there is proposed only as a comment.
 *
 * The text is hostile: the search never looks past the end of a line. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "learn/hints_priv.h"

#define PROSE "only a comment or prose mentions it"

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

void hints_add(struct hint_scan *s, struct need *n)
{
	char *why = NULL;

	if (asprintf(&why, "%s:%u", s->file, s->line) < 0) {
		s->nomem = true;
		return;
	}
	n->why = why;
	n->hint = true;
	if (n->danger == NULL && s->prose) {
		n->danger = PROSE;
	}
	s->nomem |= needs_add(s->out, n) != 0;
	free(why);
}

/* ---- files by their names ------------------------------------------------------ */

static bool ends_with(const char *s, const char *end)
{
	size_t a = strlen(s);
	size_t b = strlen(end);

	return a >= b && strcasecmp(s + a - b, end) == 0;
}

static const struct {
	const char *end;
	enum text_kind kind;
} KINDS[] = {
	{ ".md", TEXT_MARKDOWN },
	{ ".markdown", TEXT_MARKDOWN },
	{ ".sh", TEXT_SHELL },
	{ ".bash", TEXT_SHELL },
	{ ".zsh", TEXT_SHELL },
	{ ".txt", TEXT_PROSE },
	{ ".rst", TEXT_PROSE },
	{ ".html", TEXT_PROSE },
	{ ".xml", TEXT_PROSE },
	{ ".svg", TEXT_PROSE },
	{ ".css", TEXT_PROSE },
	{ ".json", TEXT_PROSE },
	{ ".yaml", TEXT_PROSE },
	{ ".yml", TEXT_PROSE },
	{ ".toml", TEXT_PROSE },
	{ ".csv", TEXT_PROSE },
	{ ".lock", TEXT_SKIPPED },
	{ "license", TEXT_SKIPPED },
	{ "licence", TEXT_SKIPPED },
	{ "license.txt", TEXT_SKIPPED },
	{ "license.md", TEXT_SKIPPED },
	{ "copying", TEXT_SKIPPED },
	{ "notice", TEXT_SKIPPED },
	{ "changelog.md", TEXT_SKIPPED },
	{ "package-lock.json", TEXT_SKIPPED },
	{ "skillsandbox.yaml", TEXT_SKIPPED },
};

static enum text_kind kind_of(const char *file, const char *text, size_t len)
{
	enum text_kind kind = TEXT_CODE;

	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
		if (ends_with(file, KINDS[i].end)) {
			kind = KINDS[i].kind; /* if several rows match, the last one is used */
		}
	}
	const char *newline = memchr(text, '\n', len);
	size_t first = newline != NULL ? (size_t)(newline - text) : len;
	if (kind == TEXT_CODE && first > 2 && memcmp(text, "#!", 2) == 0 &&
	    memmem(text, first, "sh", 2) != NULL) {
		kind = TEXT_SHELL;
	}
	return kind;
}

/* ---- hosts ------------------------------------------------------------------------ */

static const struct {
	const char *scheme;
	uint16_t port;
	enum protocol protocol;
} SCHEMES[] = {
	{ "https", 443, PROTO_TLS },
	{ "http", 80, PROTO_HTTP },
	{ "wss", 443, PROTO_TLS },
	{ "ws", 80, PROTO_HTTP },
};

/* Reads the port after a host. Returns false if the text there is not a port. If there is no port,
 * *port is untouched. */
static bool take_port(const char *p, const char *end, uint16_t *port)
{
	unsigned long v = 0;

	if (p == end || *p != ':') {
		return true;
	}
	const char *digits = ++p;
	while (p < end && *p >= '0' && *p <= '9' && v <= UINT16_MAX) {
		v = v * 10 + (unsigned long)(*p++ - '0');
	}
	if (p == digits || v == 0 || v > UINT16_MAX) {
		return false;
	}
	*port = (uint16_t)v;
	return true;
}

/* Returns true if it is a name with a dot, or an address that is not the sandbox's own. */
static bool is_host(const char *host, enum host_kind kind)
{
	return kind == HOST_ADDRESS ? strncmp(host, "127.", 4) != 0 && strcmp(host, "0.0.0.0") != 0
	                            : kind == HOST_EXACT && strchr(host, '.') != NULL;
}

/* Reads the host at `p`, which is after "://". */
static void take_host(struct hint_scan *s, const char *p, const char *end, size_t scheme)
{
	uint16_t port = SCHEMES[scheme].port;
	enum host_kind kind = HOST_EXACT;
	auto_free char *host = NULL;
	const char *q = p;

	while (q < end && (is_name_char(*q) || *q == '.' || *q == '-')) {
		q++;
	}
	/* "user@", "{host}", "$HOST" and "*" are no names, or only parts of one */
	if (q == p || q - p > 253 || (q < end && strchr("@{}$*%<", *q) != NULL) ||
	    !take_port(q, end, &port)) {
		return;
	}
	auto_free char *text = strndup(p, (size_t)(q - p));
	if (text == NULL) {
		s->nomem = true;
		return;
	}
	/* Full stops after the name belong to the sentence, not to the name. */
	for (size_t n = (size_t)(q - p); n > 0 && text[n - 1] == '.'; n--) {
		text[n - 1] = '\0';
	}
	if (domain_check(text, &host, &kind) == NULL && is_host(host, kind)) {
		struct need n = { .kind = NEED_NETWORK,
			          .value = host,
			          .port = port,
			          .protocol = SCHEMES[scheme].protocol };
		hints_add(s, &n);
	}
}

static void find_hosts(struct hint_scan *s, const char *line, const char *end)
{
	for (const char *p = line; (p = memmem(p, (size_t)(end - p), "://", 3)) != NULL; p += 3) {
		for (size_t i = 0; i < ARRAY_LEN(SCHEMES); i++) {
			size_t n = strlen(SCHEMES[i].scheme);
			if ((size_t)(p - line) >= n &&
			    strncasecmp(p - n, SCHEMES[i].scheme, n) == 0 &&
			    ((size_t)(p - line) == n || !is_name_char(p[-(long)n - 1]))) {
				take_host(s, p + 3, end, i);
				break;
			}
		}
	}
}

/* ---- words in quotes behind a word ----------------------------------------------- */

char *hints_quoted(struct hint_scan *s, const char *p, const char *end, const char **ret_after)
{
	while (p < end && (*p == ' ' || *p == '(' || *p == '[')) {
		p++;
	}
	if (p == end || (*p != '"' && *p != '\'')) {
		return NULL;
	}
	char quote = *p++;
	const char *q = p;
	while (q < end && *q != quote && *q != ' ') {
		q++;
	}
	char *word = q < end && q > p ? strndup(p, (size_t)(q - p)) : NULL;
	s->nomem |= q < end && q > p && word == NULL;
	*ret_after = q + (q < end);
	return word;
}

const char *hints_skip(const char *p, const char *end, const char *chars)
{
	while (p < end && strchr(chars, *p) != NULL) {
		p++;
	}
	return p;
}

bool hints_begin(const char *p, const char *end, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(end - p) >= n && memcmp(p, with, n) == 0;
}

/* Returns true if the code at `p`, after the name of a variable, has a default for it:
 * `, "x")`, `) or "x"`, ` || x`, ` ?? x`. An empty default does not count. */
static bool has_default(const char *p, const char *end)
{
	static const char *const ORS[] = { ",", "or ", "||", "??" };
	static const char *const NONE[] = { "\"\"", "''", "None", "null", "nil", "undefined", ")" };

	p = hints_skip(p, end, " ");
	/* After a bracket, a comma begins another argument. */
	size_t first = p < end && *p == ',' ? 0 : 1;
	p = first > 0 ? hints_skip(p, end, " )]") : p;
	for (size_t i = first; i < ARRAY_LEN(ORS); i++) {
		if (hints_begin(p, end, ORS[i])) {
			const char *value = hints_skip(p + strlen(ORS[i]), end, " ");
			return value < end &&
			       !ARRAY_HAS(e, NONE, ARRAY_LEN(NONE), hints_begin(value, end, *e));
		}
	}
	return false;
}

static void add_name(struct hint_scan *s, enum need_kind kind, const char *name)
{
	struct need n = { .kind = kind, .value = (char *)(uintptr_t)name };

	hints_add(s, &n);
}

/* Every sandbox has these variables, or a shell sets them. */
static bool is_usual(const char *name)
{
	static const char *const USUAL[] = {
		"HOME",       "PATH",    "PWD",      "OLDPWD", "USER",    "LOGNAME", "SHELL",
		"TMPDIR",     "TMP",     "TEMP",     "LANG",   "LC_ALL",  "TERM",    "IFS",
		"RANDOM",     "SECONDS", "LINENO",   "UID",    "EUID",    "PPID",    "OPTARG",
		"OPTIND",     "REPLY",   "HOSTNAME", "OSTYPE", "COLUMNS", "LINES",   "FUNCNAME",
		"PIPESTATUS", "EDITOR",  "NODE_ENV",
	};

	return ARRAY_HAS(usual, USUAL, ARRAY_LEN(USUAL), strcmp(name, *usual) == 0) ||
	       strncmp(name, "BASH", 4) == 0;
}

static void add_variable(struct hint_scan *s, const char *name, bool optional)
{
	struct need n = { .kind = NEED_ENV,
		          .value = (char *)(uintptr_t)name,
		          .optional = optional };

	if (check_env_name(name) == NULL && strlen(name) > 1 && !is_usual(name)) {
		hints_add(s, &n);
	}
}

/* Words after which the name of a variable follows, in brackets and quotes. */
static const char *const ENV_WORDS[] = { "environ",   "environ.get", "environ.setdefault", "getenv",
	                                 "Getenv",    "LookupEnv",   "env::var",           "ENV",
	                                 "ENV.fetch", "process.env" };
/* Words after which the name of a program follows. */
static const char *const PROGRAM_WORDS[] = {
	"subprocess.run",
	"subprocess.call",
	"subprocess.Popen",
	"subprocess.check_output",
	"subprocess.check_call",
	"shutil.which",
	"os.system",
	"os.popen",
	"create_subprocess_exec",
	"create_subprocess_shell",
	"spawn",
	"spawnSync",
	"execFile",
	"execFileSync",
	"execSync",
	"exec.Command",
	"Command::new",
	"os.execvp",
};

static void find_behind(struct hint_scan *s, const char *line, const char *end,
                        const char *const *words, size_t n_words, enum need_kind kind)
{
	for (size_t i = 0; i < n_words; i++) {
		size_t n = strlen(words[i]);
		const char *p = line;
		for (; (p = memmem(p, (size_t)(end - p), words[i], n)) != NULL; p += n) {
			bool begins = p == line || !is_name_char(p[-1]);
			bool opens = p + n < end && (p[n] == '(' || p[n] == '[');
			const char *after = p;
			auto_free char *word =
			        begins && opens ? hints_quoted(s, p + n, end, &after) : NULL;
			if (word != NULL && kind == NEED_ENV) {
				add_variable(s, word, has_default(after, end));
			} else if (word != NULL && word[0] != '-' &&
			           word[strspn(word, "./")] != '\0' &&
			           strpbrk(word, "{}$%*<>|;&") == NULL) {
				add_name(s, kind, word);
			}
		}
	}
}

/* process.env.NAME */
static void find_members(struct hint_scan *s, const char *line, const char *end)
{
	static const char WORD[] = "process.env.";
	const size_t n = sizeof(WORD) - 1;

	for (const char *p = line; (p = memmem(p, (size_t)(end - p), WORD, n)) != NULL; p += n) {
		const char *q = p + n;
		while (q < end && is_name_char(*q)) {
			q++;
		}
		auto_free char *name = strndup(p + n, (size_t)(q - p) - n);
		if (name == NULL) {
			s->nomem = true;
			return;
		}
		add_variable(s, name, has_default(q, end));
	}
}

/* ---- shells -------------------------------------------------------------------------- */

/* Returns true if the file itself sets the variable: "NAME=", "for NAME", "read NAME". */
static bool is_assigned(struct hint_scan *s, const char *name, size_t n)
{
	const char *end = s->text + s->len;

	if (s->looked++ >= MAX_HINT_LOOKS) {
		s->out->cut = true;
		return true; /* MAX_HINT_LOOKS is reached: no further search */
	}
	for (const char *p = s->text; (p = memmem(p, (size_t)(end - p), name, n)) != NULL; p += n) {
		const char *before = p;
		if (p + n < end && is_name_char(p[n])) {
			continue;
		}
		if (p + n < end && p[n] == '=' &&
		    (p == s->text || strchr(" \t\n;(", p[-1]) != NULL)) {
			return true;
		}
		before -= p - s->text >= 5 && memcmp(p - 5, "read ", 5) == 0  ? 5
		          : p - s->text >= 4 && memcmp(p - 4, "for ", 4) == 0 ? 4
		                                                              : 0;
		if (before < p) {
			return true;
		}
	}
	return false;
}

/* Finds $NAME and ${NAME...} in capitals, the usual form for variables of the environment. */
static void find_dollars(struct hint_scan *s, const char *line, const char *end)
{
	for (const char *p = line; (p = memchr(p, '$', (size_t)(end - p))) != NULL;) {
		bool brace = ++p < end && *p == '{';
		const char *from = p += brace;
		while (p < end &&
		       ((*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_')) {
			p++;
		}
		size_t n = (size_t)(p - from);
		/* "${NAME:-x}" asks for a value from outside, even if the file also sets NAME. */
		bool asks = brace && p + 1 < end && *p == ':' && strchr("-?=+", p[1]) != NULL;
		if (n < 2 || n > 128 || (p < end && is_name_char(*p)) ||
		    (!asks && is_assigned(s, from, n))) {
			continue;
		}
		auto_free char *name = strndup(from, n);
		if (name == NULL) {
			s->nomem = true;
			return;
		}
		bool value = asks && (p[1] == '-' || p[1] == '=') && p + 2 < end && p[2] != '}' &&
		             !hints_begin(p + 2, end, "\"\"");
		add_variable(s, name, value);
	}
}

/* ---- lines -------------------------------------------------------------------------------- */

/* Returns true if the line is text and not code. Also sets `fenced` and `docstring` for the lines
 * after it. */
static bool is_prose(struct hint_scan *s, const char *line, const char *end)
{
	const char *p = line;
	size_t quotes = 0;

	while (p < end && (*p == ' ' || *p == '\t')) {
		p++;
	}
	if (s->kind == TEXT_MARKDOWN) {
		if (hints_begin(p, end, "```") || hints_begin(p, end, "~~~")) {
			s->fenced = !s->fenced;
			return true;
		}
		return !s->fenced || *p == '#';
	}
	bool within = s->docstring;
	for (const char *q = line;
	     s->python && (q = memmem(q, (size_t)(end - q), "\"\"\"", 3)) != NULL; q += 3) {
		quotes++;
	}
	s->docstring ^= quotes % 2 != 0;
	return s->kind == TEXT_PROSE || within || hints_begin(p, end, "\"\"\"") ||
	       hints_begin(p, end, "#") || hints_begin(p, end, "//") || hints_begin(p, end, "/*") ||
	       hints_begin(p, end, "* ") || hints_begin(p, end, "-- ");
}

static void scan_line(struct hint_scan *s, const char *line, const char *end)
{
	s->prose = is_prose(s, line, end);
	find_hosts(s, line, end);
	if (s->prose) {
		return; /* words in a sentence are not names of variables */
	}
	find_behind(s, line, end, ENV_WORDS, ARRAY_LEN(ENV_WORDS), NEED_ENV);
	find_behind(s, line, end, PROGRAM_WORDS, ARRAY_LEN(PROGRAM_WORDS), NEED_PROGRAM);
	find_members(s, line, end);
	hints_find_paths(s, line, end);
	if (s->kind == TEXT_SHELL || s->kind == TEXT_MARKDOWN) {
		find_dollars(s, line, end);
	}
}

int hints_text(const char *file, const char *text, size_t len, struct needs *inout)
{
	assert(file != NULL && inout != NULL);

	struct hint_scan s = { .file = file, .out = inout, .text = text, .len = len };

	if (text == NULL || len == 0 || memchr(text, '\0', len) != NULL) {
		return 0; /* not text */
	}
	const char *end = text + len;
	s.kind = kind_of(file, text, len);
	s.python = ends_with(file, ".py");
	s.makes_dirs =
	        memmem(text, len, "mkd", 3) != NULL || memmem(text, len, "makedirs", 8) != NULL;
	for (const char *line = text; line < end && s.kind != TEXT_SKIPPED && !s.nomem;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *stop = newline != NULL ? newline : end;
		s.line++;
		scan_line(&s, line, stop - line > MAX_LINE ? line + MAX_LINE : stop);
		line = stop + (newline != NULL);
	}
	return s.nomem ? -1 : 0;
}
