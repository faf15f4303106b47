/* lint_idioms.c - suspicious idioms in a text: one table of words in order, and its matcher.
 *
 * A list of words is not a parser, so an author who wants to hide something can do so. The
 * table has the forms that are used every day. The severity and the grade of an idiom are
 * those of its rule (lint_rules.def). */
#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "consent/lint_priv.h"

#define STEPS 3

#define IDIOM(id, when, text, ...)                                                                 \
	{                                                                                          \
		id, when, text,                                                                    \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
/* A fact counts only in code. There it counts even if the line only prints the words. */
#define FACT(fact, when, ...) IDIOM(FACT_##fact, IN_CODE | PRINTED | (when), NULL, __VA_ARGS__)

/* ---- what is looked for ----------------------------------------------------------- */

#define OR "\n"

#define FETCHERS "^curl" OR "^wget" OR "^aria2c" OR "^httpie"
#define DECODERS                                                                                   \
	"base64 -d" OR "base64 --decode" OR "base64 -di" OR "base32 -d" OR "xxd -r" OR             \
	"openssl enc -d" OR "openssl base64 -d" OR "tr 'a-za-z'" OR "tr a-za-z" OR                 \
	"tr '[a-za-z]'" OR "uudecode" OR "basenc -d"
/* Compared with lines from which blanks were removed (TIGHT). */
#define UNHIDES                                                                                    \
	"b64decode(" OR "b32decode(" OR "b85decode(" OR "a85decode(" OR "b16decode(" OR            \
	"decodebytes(" OR "unhexlify(" OR "fromhex(" OR "zlib.decompress(" OR                      \
	"gzip.decompress(" OR "bz2.decompress(" OR "lzma.decompress(" OR "marshal.loads(" OR       \
	"rot13'" OR "rot13\"" OR "rot_13'" OR "rot_13\"" OR "atob(" OR ",'base64')" OR             \
	",\"base64\")" OR ",'hex')" OR ",\"hex\")" OR "base64_decode(" OR "gzinflate(" OR          \
	"str_rot13(" OR "decode_base64("
#define EXECUTES                                                                                   \
	"^exec(" OR "^eval(" OR "newfunction(" OR "getattr(__builtins__" OR "getattr(builtins" OR  \
	"builtins.exec(" OR "builtins.eval("
#define SUBSTITUTES                                                                                \
	"sh -c \"$(" OR "sh -c $(" OR "sh -c \"`" OR "bash -c \"$(" OR "bash -c $(" OR             \
	"bash -c \"`" OR "zsh -c \"$(" OR "eval \"$(" OR "eval $(" OR "eval \"`" OR "eval `" OR    \
	"bash <(" OR "sh <(" OR "zsh <(" OR "source <(" OR "sh <<< \"$(" OR "bash <<< \"$(" OR     \
	"sh <<<\"$(" OR "bash <<<\"$("
#define SENDS                                                                                      \
	"urlopen(" OR "requests.post(" OR "requests.put(" OR "requests.get(" OR "httpx.post(" OR   \
	"socket.socket(" OR "create_connection(" OR "fetch(" OR "axios.post(" OR                   \
	"http.request(" OR "https.request(" OR "httpconnection(" OR "httpsconnection(" OR          \
	"/dev/tcp/" OR "^curl" OR "^wget" OR "^nc" OR "^ncat" OR "net.connect(" OR "sendto(" OR    \
	"smtplib." OR "^scp" OR "gethostbyname(" OR "getaddrinfo("
#define KEY_PLACES                                                                                 \
	".ssh/id_" OR "\".ssh\"" OR "'.ssh'" OR "id_ed25519" OR "id_rsa" OR ".aws/credentials" OR  \
	".config/gh/hosts" OR ".git-credentials" OR "/.netrc" OR "\".netrc\"" OR "'.netrc'" OR     \
	"/etc/shadow" OR ".docker/config.json" OR ".kube/config" OR "cookies.sqlite" OR            \
	"login data" OR "wallet.dat" OR ".bash_history" OR "/proc/1/environ" OR ".gnupg" OR        \
	".password-store" OR ".config/gcloud" OR ".npmrc" OR ".pypirc"

/* A fact is not reported by itself: COMBINATIONS says which facts are a finding if they are in one
 * file. */
enum fact {
	FACT_DECODES = LINT_IDS,
	FACT_EXECUTES,
	FACT_CONNECTS,
	FACT_DUPS,
	FACT_SHELL,
	FACT_SENDS,
	FACT_KEYS,
	MEANINGS
};

enum condition {
	IN_CODE = 1 << LINT_CODE, /* the kinds of text in which the idiom is a finding */
	IN_PROSE = 1 << LINT_PROSE,
	ANYWHERE = IN_CODE | IN_PROSE,
	TIGHT = 1 << 4,    /* search the line without blanks */
	PIPED = 1 << 5,    /* a pipe behind these words leads into an interpreter */
	ARGUED = 1 << 6,   /* an argument follows: otherwise the text only mentions the command */
	REMOTE = 1 << 7,   /* the next word is a host other than this machine, and not a variable */
	PRINTED = 1 << 8,  /* counts even if the line only prints it */
	NOT_REGEX = 1 << 9 /* does not count in a line that searches for such words */
};

static const struct idiom {
	unsigned means; /* an enum lint_id (a finding), or an enum fact */
	unsigned when;  /* conditions, which must all be true */
	const char *text;
	const char *steps[STEPS]; /* words that one line must contain in this order */
} IDIOMS[] = {
	IDIOM(LINT_FETCHED, ANYWHERE | PIPED | ARGUED, "downloaded data goes into an interpreter",
	      FETCHERS),
	IDIOM(LINT_FETCHED, ANYWHERE, "downloaded data is executed by a shell", SUBSTITUTES,
	      FETCHERS),
	IDIOM(LINT_FETCHED, ANYWHERE | TIGHT, "downloaded data is executed",
	      EXECUTES OR "os.system(", "urlopen(" OR "requests.get(" OR "httpx.get("),
	IDIOM(LINT_FETCHED, ANYWHERE, "downloaded data is executed by PowerShell",
	      "iex" OR "invoke-expression",
	      "downloadstring(" OR "iwr" OR "irm" OR "invoke-webrequest"),
	IDIOM(LINT_FETCHED, ANYWHERE, "downloaded data is executed by PowerShell",
	      "iwr" OR "irm" OR "invoke-webrequest" OR "downloadstring(",
	      "| iex" OR "|iex" OR "| invoke-expression"),

	IDIOM(LINT_DECODED, ANYWHERE | PIPED, "decoded data goes into an interpreter", DECODERS),
	IDIOM(LINT_DECODED, ANYWHERE, "decoded data is executed by a shell", SUBSTITUTES, DECODERS),
	IDIOM(LINT_DECODED, ANYWHERE | TIGHT, "decoded data is executed",
	      EXECUTES OR "os.system(" OR "os.popen(", UNHIDES),
	IDIOM(LINT_DECODED, ANYWHERE | TIGHT, "decoded data is executed", "child_process",
	      ".exec(" OR ".execsync(", UNHIDES),

	IDIOM(LINT_SHELL_OUT, ANYWHERE, "an interactive shell is connected to a host",
	      "sh -i" OR "bash -i" OR "zsh -i", "/dev/tcp/"),
	IDIOM(LINT_SHELL_OUT, ANYWHERE, "a shell is connected to a host", "/dev/tcp/",
	      "0>&1" OR "<&1"),
	IDIOM(LINT_SHELL_OUT, ANYWHERE, "every program that connects gets a shell",
	      "^nc" OR "^ncat" OR "^netcat" OR "/nc" OR "/ncat",
	      "-e /bin/" OR "-e sh" OR "-e bash" OR "-c sh" OR "-c bash" OR "-c /bin/" OR
	      "--exec" OR "--sh-exec"),
	IDIOM(LINT_SHELL_OUT, ANYWHERE, "an interactive shell is connected to a host",
	      "sh -i" OR "bash -i", "| nc" OR "|nc" OR "| ncat" OR "|ncat" OR "| telnet"),
	IDIOM(LINT_SHELL_OUT, ANYWHERE, "every program that connects gets a shell", "^socat",
	      "exec:" OR "system:", "sh" OR "bash"),

	IDIOM(LINT_STAYS, IN_CODE, "the crontab (table of scheduled commands) is changed",
	      "| crontab" OR "|crontab" OR "crontab /" OR "crontab $" OR "crontab \"$" OR
	      "crontab <"),
	IDIOM(LINT_STAYS, IN_CODE, "something is added to a file that a shell executes",
	      ">> ~/." OR ">>~/." OR ">> $home/." OR ">>$home/." OR ">> \"$home/." OR ">>\"$home/.",
	      "bashrc" OR "profile" OR "bash_profile" OR "zshrc" OR "zshenv" OR "zprofile"),
	IDIOM(LINT_STAYS, IN_CODE | TIGHT,
	      "the code opens a file that programs later execute or use",
	      "open(" OR "write_text(" OR "appendfilesync(" OR "writefilesync(",
	      ".bashrc" OR ".zshrc" OR ".bash_profile" OR ".profile" OR ".zshenv" OR
	      "authorized_keys" OR "/etc/cron" OR "/var/spool/cron"),
	IDIOM(LINT_STAYS, IN_CODE, "the code writes a file that programs later execute or use", ">",
	      "authorized_keys" OR "/etc/cron.d/" OR "/etc/ld.so.preload"),
	IDIOM(LINT_STAYS, IN_CODE, "a service is set up to start automatically", "systemctl",
	      "enable", ".service" OR ".timer"),

	IDIOM(LINT_ENVIRONMENT, IN_CODE | TIGHT, "the whole environment is put into a text",
	      "dumps(dict(os.environ" OR "dumps(os.environ" OR "urlencode(os.environ" OR
	      "json.stringify(process.env)" OR "str(os.environ)" OR "str(dict(os.environ" OR
	      "repr(dict(os.environ" OR "os.environ.items()" OR "dumps({**os.environ"),
	IDIOM(LINT_ENVIRONMENT, IN_CODE, "the whole environment is sent to another program or host",
	      "env |" OR "env|" OR "printenv |" OR "printenv|" OR "$(env)" OR "$(printenv)",
	      "base64" OR "curl" OR "nc" OR "wget" OR "xxd" OR "/dev/tcp/" OR "gzip"),
	IDIOM(LINT_METADATA, IN_CODE,
	      "the code names the address from which clouds give out credentials",
	      "//169.254.169.254" OR "169.254.169.254/" OR "//metadata.google.internal" OR
	      "//[fd00:ec2::254]"),

	IDIOM(LINT_BOMB, ANYWHERE | TIGHT, "a function only starts two copies of itself, endlessly",
	      ":(){:|:&};:"),
	IDIOM(LINT_BOMB, IN_CODE | TIGHT, "a loop makes processes without end",
	      "whiletrue:os.fork()" OR "while1:os.fork()"),

	IDIOM(LINT_LOADS, IN_CODE | TIGHT, "the loaded data decides what is executed",
	      "pickle.load(" OR "pickle.loads(" OR "joblib.load(" OR "dill.load(" OR
	      "dill.loads(" OR "shelve.open(" OR "yaml.unsafe_load(" OR "yaml.full_load("),

	IDIOM(LINT_PROMPT, IN_PROSE, "the text tells its reader to ignore instructions",
	      "ignore" OR "disregard" OR "forget", "previous" OR "prior" OR "above" OR "earlier",
	      "instructions" OR "instruction" OR "prompts" OR "rules" OR "guidelines"),
	IDIOM(LINT_PROMPT, IN_PROSE, "the text tells its reader to hide something from people",
	      "do not tell the user" OR "don't tell the user" OR "do not inform the user" OR
	      "don't inform the user" OR "do not mention this to the user" OR
	      "without telling the user" OR "without informing the user" OR
	      "without the user's knowledge" OR "hide this from the user" OR
	      "without asking the user" OR "do not ask the user for" OR "never mention this" OR
	      "keep this secret from the user"),
	IDIOM(LINT_PROMPT, IN_PROSE,
	      "the text speaks of running without a sandbox or without permission checks",
	      "--dangerously-skip-permissions" OR "--dangerously-bypass-approvals-and-sandbox" OR
	      "disable the sandbox" OR "turn off the sandbox" OR "without the sandbox" OR
	      "bypass the sandbox"),

	/* Waiting for a service on the same machine is the usual purpose, so only other hosts are
	 * reported. */
	IDIOM(LINT_RAW_TCP, IN_CODE | REMOTE | PRINTED | NOT_REGEX,
	      "a shell opens a network connection itself, without a program such as curl",
	      "/dev/tcp/" OR "/dev/udp/"),

	FACT(DECODES, TIGHT, UNHIDES),
	FACT(EXECUTES, TIGHT, EXECUTES),
	FACT(CONNECTS, TIGHT,
	     "socket.socket(" OR "create_connection(" OR "tcpsocket." OR "net.connect(" OR
	     "net.socket(" OR "fsockopen(" OR "usesocket;"),
	FACT(DUPS, TIGHT,
	     "os.dup2(" OR "pty.spawn(" OR ".pipe(sh.stdin" OR "stdin=s," OR "open(stdin,\">&" OR
	     "dup2(s.fileno()"),
	FACT(SHELL, 0,
	     "/bin/sh" OR "/bin/bash" OR "'sh'" OR "\"sh\"" OR "'bash'" OR "\"bash\"" OR "cmd.exe"),
	FACT(SENDS, TIGHT, SENDS),
	FACT(KEYS, NOT_REGEX, KEY_PLACES),
};

/* Facts that together are a finding, if one file has them all. The finding gets the line of the
 * first fact. */
static const struct {
	enum lint_id id;
	enum lint_id unless; /* a more exact finding: if it was reported, this one is not */
	unsigned facts[STEPS];
	const char *text;
} COMBINATIONS[] = {
	{ LINT_SHELL_OUT,
	  LINT_SHELL_OUT,
	  { FACT_DUPS, FACT_CONNECTS, FACT_SHELL },
	  "a shell is connected to a socket" },
	{ LINT_DECODES,
	  LINT_DECODED,
	  { FACT_EXECUTES, FACT_DECODES },
	  "the file executes text, and it also decodes data" },
	{ LINT_KEYS_OUT,
	  LINT_KEYS_OUT,
	  { FACT_KEYS, FACT_SENDS },
	  "the code names a place where keys are kept, and the same file sends data" },
	{ LINT_KEYS, LINT_KEYS_OUT, { FACT_KEYS }, "the code names a place where keys are kept" },
};

/* ---- the matcher ------------------------------------------------------------------ */

struct idiom_scan {
	struct lint *out;
	const char *file;
	enum lint_kind kind;
	bool payload;            /* so much of the line is base64 that it is not only words */
	unsigned line[MEANINGS]; /* first line of a fact, last line of an id; 0: not found */
};

static void add_once(struct idiom_scan *s, enum lint_id id, unsigned line, const char *text)
{
	if (s->line[id] == line) {
		return; /* another idiom with the same meaning was found in this line */
	}
	s->line[id] = line;
	if (s->kind == LINT_CODE || (id == LINT_DECODED && s->payload)) {
		lint_add(s->out, id, s->file, line, "%s", text);
	} else {
		lint_add_prose(s->out, id, s->file, line, text);
	}
}

static bool is_quoted(const char *text, size_t at)
{
	char open = '\0';

	for (size_t i = 0; i < at; i++) {
		if (text[i] == '\\') {
			i++;
		} else if (open == '\0' && (text[i] == '"' || text[i] == '\'')) {
			open = text[i];
		} else if (text[i] == open) {
			open = '\0';
		}
	}
	return open != '\0';
}

static bool begins_with_any(const char *text, size_t len, const char *const words[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t w = strlen(words[i]);
		if (len >= w && memcmp(text, words[i], w) == 0) {
			return true;
		}
	}
	return false;
}

/* Returns true if the line only prints the words: `echo "curl ... | sh"` tells people what to do,
 * and executes nothing. */
static bool is_printed(const char *text, size_t len, size_t at)
{
	static const char *const words[] = { "echo", "print", "printf", "log",    "console.",
		                             "info", "warn",  "error",  "usage",  "say",
		                             "fail", "die",   "logger", "logging" };
	size_t first = 0;

	while (first < len && (text[first] == ' ' || text[first] == '\t')) {
		first++;
	}
	return begins_with_any(text + first, len - first, words, ARRAY_LEN(words)) &&
	       is_quoted(text, at);
}

static bool is_local(const char *text, size_t len)
{
	static const char *const hosts[] = { "localhost", "127.", "$", "\"$", "{", "::1", "[::1" };

	return begins_with_any(text, len, hosts, ARRAY_LEN(hosts));
}

/* Returns true if the line searches for words: it then names places that it does not read. */
static bool is_regex(const struct lint_line *l)
{
	return lint_find(l, false, 0,
	                 "grep" OR "(?i)" OR "\\." OR "regex" OR "pattern" OR "patterns" OR
	                 "re.compile(" OR "r\"" OR "r'") != SIZE_MAX;
}

/* Finds the words in their order from `at` on, and returns where they end. SIZE_MAX: they are not
 * there. */
static size_t find_steps(const struct idiom *d, const struct lint_line *l, size_t at)
{
	for (size_t i = 0; i < STEPS && d->steps[i] != NULL && at != SIZE_MAX; i++) {
		at = lint_find(l, (d->when & TIGHT) != 0, at, d->steps[i]);
	}
	return at;
}

/* Returns true if the conditions are true for the words that end at `at`. */
static bool is_meant(const struct idiom_scan *s, const struct idiom *d, const struct lint_line *l,
                     size_t at)
{
	bool tight = (d->when & TIGHT) != 0;
	const char *text = tight ? l->tight : l->low;
	size_t len = tight ? l->tight_len : l->len;

	if (s->kind == LINT_CODE && (d->when & PRINTED) == 0 && is_printed(text, len, at)) {
		return false;
	}
	if ((d->when & ARGUED) != 0 && lint_next(text, len, at) == '|') {
		return false;
	}
	if ((d->when & REMOTE) != 0 && is_local(text + at, len - at)) {
		return false;
	}
	if ((d->when & NOT_REGEX) != 0 && is_regex(l)) {
		return false;
	}
	return (d->when & PIPED) == 0 || (!lint_is_row(text, len) && lint_piped(text, len, at));
}

/* Tries every match in the line: if the first one does not meet the conditions, a later one

 * may. */
static bool matches_idiom(struct idiom_scan *s, const struct idiom *d, const struct lint_line *l)
{
	size_t at = 0;

	for (int i = 0; (at = find_steps(d, l, at)) != SIZE_MAX; i++) {
		if (i == MAX_LINT_TRIES) {
			add_once(s, LINT_INCOMPLETE, l->no,
			         "the line repeats some words too often to be checked completely");
			return false;
		}
		if (is_meant(s, d, l, at)) {
			return true;
		}
	}
	return false;
}

static bool is_base64(char c)
{
	return isalnum((unsigned char)c) != 0 || c == '+' || c == '/' || c == '=';
}

/* Returns the length of the longest part of the line that has only characters of base64. */
static size_t longest_run(const struct lint_line *l)
{
	size_t run = 0, longest = 0;

	for (size_t i = 0; i < l->len; i++) {
		run = is_base64(l->low[i]) ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void look_at_line(void *arg, const struct lint_line *l)
{
	struct idiom_scan *s = arg;
	size_t run = longest_run(l);

	s->payload = run >= LINT_PAYLOAD_BYTES;
	for (size_t i = 0; i < ARRAY_LEN(IDIOMS); i++) {
		const struct idiom *d = &IDIOMS[i];
		bool fact = d->means >= LINT_IDS;
		if ((d->when >> s->kind & 1) == 0 || (fact && s->line[d->means] != 0) ||
		    !matches_idiom(s, d, l)) {
			continue;
		}
		if (fact) {
			s->line[d->means] = l->no;
		} else {
			add_once(s, (enum lint_id)d->means, l->no, d->text);
		}
	}
	if (s->kind == LINT_CODE && run >= LINT_BLOB_BYTES) {
		add_once(s, LINT_BLOB, l->no, "a long encoded text");
	}
}

static void combine_facts(struct idiom_scan *s)
{
	for (size_t i = 0; i < ARRAY_LEN(COMBINATIONS); i++) {
		const unsigned *facts = COMBINATIONS[i].facts;
		bool all = s->line[COMBINATIONS[i].unless] == 0;
		for (size_t f = 0; f < STEPS && facts[f] != 0; f++) {
			all = all && s->line[facts[f]] != 0;
		}
		if (all) {
			add_once(s, COMBINATIONS[i].id, s->line[facts[0]], COMBINATIONS[i].text);
		}
	}
}

void lint_idioms(struct lint *l, const char *file, enum lint_kind kind, const char *bytes,
                 size_t len)
{
	assert(l != NULL && file != NULL && (bytes != NULL || len == 0));

	struct idiom_scan s = { .out = l, .file = file, .kind = kind };

	if (kind == LINT_DATA) {
		return;
	}
	if (!lint_lines(bytes, len, kind, look_at_line, &s)) {
		l->cut = true;
	}
	combine_facts(&s);
}
