/* lint_idioms.c - what is done in a text, line by line: tables of words in order. A list of words
 * is no parser: who wants to hide can; these are the forms in which it is done every day. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "consent/lint_priv.h"

#define OR    "\n"
#define STEPS 3

#define IN_CODE  (1U << LINT_CODE)
#define IN_PROSE (1U << LINT_PROSE)
#define IN_BOTH  (IN_CODE | IN_PROSE)

#define FETCHERS "^curl" OR "^wget" OR "^aria2c" OR "^httpie"
#define DECODERS                                                                                   \
	"base64 -d" OR "base64 --decode" OR "base64 -di" OR "base32 -d" OR "xxd -r" OR             \
	"openssl enc -d" OR "openssl base64 -d" OR "tr 'a-za-z'" OR "tr a-za-z" OR                 \
	"tr '[a-za-z]'" OR "uudecode" OR "basenc -d"
/* Of what the line is without blanks. */
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

/* Words that stand in this order in one line. */
static const struct idiom {
	enum lint_id id;
	unsigned kinds;
	bool tight;  /* of the line without blanks */
	bool piped;  /* and a pipe from there leads into an interpreter */
	bool argued; /* it is told what to fetch: else it is only spoken of */
	const char *steps[STEPS];
	const char *text;
} IDIOMS[] = {
	{ LINT_FETCHED, IN_BOTH, .piped = true, .argued = true, .steps = { FETCHERS },
	  .text = "what is downloaded goes into an interpreter" },
	{ LINT_FETCHED, IN_BOTH, .steps = { SUBSTITUTES, FETCHERS },
	  .text = "what is downloaded is executed by a shell" },
	{ LINT_FETCHED, IN_BOTH, true,
	  .steps = { EXECUTES OR "os.system(", "urlopen(" OR "requests.get(" OR "httpx.get(" },
	  .text = "what is downloaded is executed" },
	{ LINT_FETCHED, IN_BOTH,
	  .steps = { "iex" OR "invoke-expression",
	             "downloadstring(" OR "iwr" OR "irm" OR "invoke-webrequest" },
	  .text = "what is downloaded is executed by PowerShell" },
	{ LINT_FETCHED, IN_BOTH,
	  .steps = { "iwr" OR "irm" OR "invoke-webrequest" OR "downloadstring(",
	             "| iex" OR "|iex" OR "| invoke-expression" },
	  .text = "what is downloaded is executed by PowerShell" },

	{ LINT_DECODED, IN_BOTH, .piped = true, .steps = { DECODERS },
	  .text = "what is decoded goes into an interpreter" },
	{ LINT_DECODED, IN_BOTH, .steps = { SUBSTITUTES, DECODERS },
	  .text = "what is decoded is executed by a shell" },
	{ LINT_DECODED, IN_BOTH, true,
	  .steps = { EXECUTES OR "os.system(" OR "os.popen(", UNHIDES },
	  .text = "what is decoded is executed" },
	{ LINT_DECODED, IN_BOTH, true,
	  .steps = { "child_process", ".exec(" OR ".execsync(", UNHIDES },
	  .text = "what is decoded is executed" },

	{ LINT_SHELL_OUT, IN_BOTH, .steps = { "sh -i" OR "bash -i" OR "zsh -i", "/dev/tcp/" },
	  .text = "an interactive shell is connected to a host" },
	{ LINT_SHELL_OUT, IN_BOTH, .steps = { "/dev/tcp/", "0>&1" OR "<&1" },
	  .text = "a shell is connected to a host" },
	{ LINT_SHELL_OUT, IN_BOTH,
	  .steps = { "^nc" OR "^ncat" OR "^netcat" OR "/nc" OR "/ncat",
	             "-e /bin/" OR "-e sh" OR "-e bash" OR "-c sh" OR "-c bash" OR "-c /bin/" OR
	             "--exec" OR "--sh-exec" },
	  .text = "a shell is given to whoever is connected" },
	{ LINT_SHELL_OUT, IN_BOTH,
	  .steps = { "sh -i" OR "bash -i", "| nc" OR "|nc" OR "| ncat" OR "|ncat" OR "| telnet" },
	  .text = "an interactive shell is connected to a host" },
	{ LINT_SHELL_OUT, IN_BOTH, .steps = { "^socat", "exec:" OR "system:", "sh" OR "bash" },
	  .text = "a shell is given to whoever is connected" },

	{ LINT_STAYS, IN_CODE,
	  .steps = { "| crontab" OR "|crontab" OR "crontab /" OR "crontab $" OR "crontab \"$" OR
	             "crontab <" },
	  .text = "the table of scheduled commands is changed" },
	{ LINT_STAYS, IN_CODE,
	  .steps = { ">> ~/." OR ">>~/." OR ">> $home/." OR ">>$home/." OR ">> \"$home/." OR
	             ">>\"$home/.",
	             "bashrc" OR "profile" OR "bash_profile" OR "zshrc" OR "zshenv" OR "zprofile" },
	  .text = "something is added to a file that a shell obeys" },
	{ LINT_STAYS, IN_CODE, true,
	  .steps = { "open(" OR "write_text(" OR "appendfilesync(" OR "writefilesync(",
	             ".bashrc" OR ".zshrc" OR ".bash_profile" OR ".profile" OR ".zshenv" OR
	             "authorized_keys" OR "/etc/cron" OR "/var/spool/cron" },
	  .text = "a file is opened that is obeyed later" },
	{ LINT_STAYS, IN_CODE,
	  .steps = { ">", "authorized_keys" OR "/etc/cron.d/" OR "/etc/ld.so.preload" },
	  .text = "a file is written that is obeyed later" },
	{ LINT_STAYS, IN_CODE, .steps = { "systemctl", "enable", ".service" OR ".timer" },
	  .text = "a service is made to start by itself" },

	{ LINT_ENVIRONMENT, IN_CODE, true,
	  .steps = { "dumps(dict(os.environ" OR "dumps(os.environ" OR "urlencode(os.environ" OR
	             "json.stringify(process.env)" OR "str(os.environ)" OR "str(dict(os.environ" OR
	             "repr(dict(os.environ" OR "os.environ.items()" OR "dumps({**os.environ" },
	  .text = "the whole environment is put into a text" },
	{ LINT_ENVIRONMENT, IN_CODE,
	  .steps = { "env |" OR "env|" OR "printenv |" OR "printenv|" OR "$(env)" OR "$(printenv)",
	             "base64" OR "curl" OR "nc" OR "wget" OR "xxd" OR "/dev/tcp/" OR "gzip" },
	  .text = "the whole environment is sent on" },
	{ LINT_METADATA, IN_CODE,
	  .steps = { "//169.254.169.254" OR "169.254.169.254/" OR "//metadata.google.internal" OR
	             "//[fd00:ec2::254]" },
	  .text = "it names the address at which clouds hand out credentials" },

	{ LINT_BOMB, IN_BOTH, true, .steps = { ":(){:|:&};:" },
	  .text = "a function that only calls itself, twice" },
	{ LINT_BOMB, IN_CODE, true, .steps = { "whiletrue:os.fork()" OR "while1:os.fork()" },
	  .text = "a loop that makes processes" },

	{ LINT_LOADS, IN_CODE, true,
	  .steps = { "pickle.load(" OR "pickle.loads(" OR "joblib.load(" OR "dill.load(" OR
	             "dill.loads(" OR "shelve.open(" OR "yaml.unsafe_load(" OR "yaml.full_load(" },
	  .text = "what is loaded says what is executed" },

	{ LINT_PROMPT, IN_PROSE,
	  .steps = { "ignore" OR "disregard" OR "forget",
	             "previous" OR "prior" OR "above" OR "earlier",
	             "instructions" OR "instruction" OR "prompts" OR "rules" OR "guidelines" },
	  .text = "it speaks of setting instructions aside" },
	{ LINT_PROMPT, IN_PROSE,
	  .steps = { "do not tell the user" OR "don't tell the user" OR "do not inform the user" OR
	             "don't inform the user" OR "do not mention this to the user" OR
	             "without telling the user" OR "without informing the user" OR
	             "without the user's knowledge" OR "hide this from the user" OR
	             "without asking the user" OR "do not ask the user for" OR
	             "never mention this" OR "keep this secret from the user" },
	  .text = "it speaks of keeping something from people" },
	{ LINT_PROMPT, IN_PROSE,
	  .steps = { "--dangerously-skip-permissions" OR
	             "--dangerously-bypass-approvals-and-sandbox" OR "disable the sandbox" OR
	             "turn off the sandbox" OR "without the sandbox" OR "bypass the sandbox" },
	  .text = "it speaks of running without walls" },
};

/* ---- what is true of a file as a whole -------------------------------------------- */

enum fact {
	FACT_DECODES,
	FACT_EXECUTES,
	FACT_CONNECTS,
	FACT_DUPS,
	FACT_SHELL,
	FACT_SENDS,
	FACT_KEYS,
	FACTS,
};

static const struct {
	bool tight;
	const char *words;
} FACT_WORDS[FACTS] = {
	[FACT_DECODES] = { true, UNHIDES },
	[FACT_EXECUTES] = { true, EXECUTES },
	[FACT_CONNECTS] = { true, "socket.socket(" OR "create_connection(" OR "tcpsocket." OR
	                          "net.connect(" OR "net.socket(" OR "fsockopen(" OR "usesocket;" },
	[FACT_DUPS] = { true, "os.dup2(" OR "pty.spawn(" OR ".pipe(sh.stdin" OR "stdin=s," OR
	                      "open(stdin,\">&" OR "dup2(s.fileno()" },
	[FACT_SHELL] = { false, "/bin/sh" OR "/bin/bash" OR "'sh'" OR "\"sh\"" OR "'bash'" OR
	                        "\"bash\"" OR "cmd.exe" },
	[FACT_SENDS] = { true, SENDS },
	[FACT_KEYS] = { false, ".ssh/id_" OR "\".ssh\"" OR "'.ssh'" OR "id_ed25519" OR "id_rsa" OR
	                       ".aws/credentials" OR ".config/gh/hosts" OR ".git-credentials" OR
	                       "/.netrc" OR "\".netrc\"" OR "'.netrc'" OR "/etc/shadow" OR
	                       ".docker/config.json" OR ".kube/config" OR "cookies.sqlite" OR
	                       "login data" OR "wallet.dat" OR ".bash_history" OR
	                       "/proc/1/environ" OR ".gnupg" OR ".password-store" OR
	                       ".config/gcloud" OR ".npmrc" OR ".pypirc" },
};

#define HAS(f) (1U << (f))

/* The first that is true of each group says it all. */
static const struct {
	enum lint_id id;
	unsigned facts;
	enum fact at;        /* where it is shown */
	enum lint_id unless; /* said already */
	const char *text;
} TOGETHER[] = {
	{ LINT_SHELL_OUT, HAS(FACT_CONNECTS) | HAS(FACT_DUPS) | HAS(FACT_SHELL), FACT_DUPS,
	  LINT_SHELL_OUT, "a shell is connected to a socket" },
	{ LINT_DECODES, HAS(FACT_DECODES) | HAS(FACT_EXECUTES), FACT_EXECUTES, LINT_DECODED,
	  "text is executed in a file that decodes" },
	{ LINT_KEYS_OUT, HAS(FACT_KEYS) | HAS(FACT_SENDS), FACT_KEYS, LINT_KEYS_OUT,
	  "it names a place of keys in a file that sends data" },
	{ LINT_KEYS, HAS(FACT_KEYS), FACT_KEYS, LINT_KEYS_OUT, "it names a place of keys" },
};

struct scan {
	struct lint *out;
	const char *file;
	enum lint_kind kind;
	unsigned first[FACTS];   /* line; 0: not true */
	bool payload;            /* the line has more in it than words */
	unsigned said[LINT_IDS]; /* the line where it was said last; 0: not */
	char *low;               /* MAX_LINT_LINE */
	char *tight;
};

static void tell(struct scan *s, enum lint_id id, unsigned line, const char *text)
{
	if (s->said[id] == line) {
		return; /* two ways to find the same thing */
	}
	s->said[id] = line;
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

/* `echo "curl ... | sh"` tells people what to do, and does nothing. */
static bool only_said(const char *text, size_t len, size_t at)
{
	static const char *const words[] = { "echo", "print", "printf", "log",    "console.",
		                             "info", "warn",  "error",  "usage",  "say",
		                             "fail", "die",   "logger", "logging" };
	size_t first = 0;

	while (first < len && (text[first] == ' ' || text[first] == '\t')) {
		first++;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);
		if (len - first > n && memcmp(text + first, words[i], n) == 0) {
			return is_quoted(text, at);
		}
	}
	return false;
}

/* Where the words in order end, from `at` on; SIZE_MAX: they are not there. */
static size_t find_steps(const struct idiom *d, const struct lint_line *l, size_t at)
{
	for (size_t i = 0; i < STEPS && d->steps[i] != NULL && at != SIZE_MAX; i++) {
		at = lint_find(l, d->tight, at, d->steps[i]);
	}
	return at;
}

static bool counts(const struct scan *s, const struct idiom *d, const char *text, size_t len,
                   size_t at)
{
	if (s->kind == LINT_CODE && only_said(text, len, at)) {
		return false;
	}
	if (d->argued && lint_next(text, len, at) == '|') {
		return false;
	}
	return !d->piped || (!lint_is_row(text, len) && lint_piped(text, len, at));
}

/* What does not count the first time may count the next. */
static bool matches(struct scan *s, const struct idiom *d, const struct lint_line *l)
{
	const char *text = d->tight ? l->tight : l->low;
	size_t len = d->tight ? l->tight_len : l->len;
	size_t at = find_steps(d, l, 0);

	for (int i = 0; i < MAX_LINT_TRIES && at != SIZE_MAX; i++) {
		if (counts(s, d, text, len, at)) {
			return true;
		}
		at = find_steps(d, l, at);
	}
	if (at != SIZE_MAX) {
		tell(s, LINT_INCOMPLETE, l->no, "the line says one thing too often");
	}
	return false;
}

/* A list of words that something else looks for, not a place that is read. */
static bool is_pattern(const struct lint_line *l)
{
	return lint_find(l, false, 0,
	                 "grep" OR "(?i)" OR "\\." OR "regex" OR "pattern" OR "patterns" OR
	                 "re.compile(" OR "r\"" OR "r'") != SIZE_MAX;
}

/* The same host again: waiting for a service of one's own is what it is for. */
static void look_at_tcp(struct scan *s, const struct lint_line *l)
{
	static const char *const own[] = { "localhost", "127.", "$", "\"$", "{", "::1", "[::1" };
	size_t at = lint_find(l, false, 0, "/dev/tcp/" OR "/dev/udp/");

	if (at == SIZE_MAX || s->kind != LINT_CODE || is_pattern(l)) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		size_t n = strlen(own[i]);
		if (l->len - at >= n && memcmp(l->low + at, own[i], n) == 0) {
			return;
		}
	}
	tell(s, LINT_RAW_TCP, l->no, "a shell connects to a host by itself");
}

static bool is_base64(char c)
{
	return isalnum((unsigned char)c) != 0 || c == '+' || c == '/' || c == '=';
}

/* The longest run without a break of what could be encoded. */
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
	struct scan *s = arg;
	size_t run = longest_run(l);

	s->payload = run >= LINT_PAYLOAD_BYTES;
	for (size_t i = 0; i < ARRAY_LEN(IDIOMS); i++) {
		const struct idiom *d = &IDIOMS[i];
		if ((d->kinds >> s->kind & 1) != 0 && matches(s, d, l)) {
			tell(s, d->id, l->no, d->text);
		}
	}
	for (size_t f = 0; f < FACTS && s->kind == LINT_CODE; f++) {
		if (f == FACT_KEYS && is_pattern(l)) {
			continue;
		}
		if (s->first[f] == 0 &&
		    lint_find(l, FACT_WORDS[f].tight, 0, FACT_WORDS[f].words) != SIZE_MAX) {
			s->first[f] = l->no;
		}
	}
	look_at_tcp(s, l);
	if (s->kind == LINT_CODE && run >= LINT_BLOB_BYTES) {
		tell(s, LINT_BLOB, l->no, "a long encoded text");
	}
}

static void look_at_whole(struct scan *s)
{
	for (size_t i = 0; i < ARRAY_LEN(TOGETHER); i++) {
		bool all = s->said[TOGETHER[i].unless] == 0;
		for (size_t f = 0; all && f < FACTS; f++) {
			all = (TOGETHER[i].facts & HAS(f)) == 0 || s->first[f] != 0;
		}
		if (all) {
			tell(s, TOGETHER[i].id, s->first[TOGETHER[i].at], TOGETHER[i].text);
		}
	}
}

void lint_idioms(struct lint *l, const char *file, enum lint_kind kind, const char *bytes,
                 size_t len)
{
	struct scan s = { .out = l, .file = file, .kind = kind };

	if (kind == LINT_DATA) {
		return;
	}
	if (!lint_lines(bytes, len, kind, look_at_line, &s)) {
		l->cut = true;
	}
	look_at_whole(&s);
}
