/* cmd_serve.c - serves skills to agents. Standard output belongs to the protocol: messages for
 * people go to standard error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "serve/serve.h"

#define TOKEN_BYTES    32
#define SHORT_TOKEN    16 /* a shorter token from the environment causes a warning */
#define TOKEN_VARIABLE "SKILLSANDBOX_TOKEN"

static void on_listening(const char *where)
{
	say_notef("listening on %s", where);
}

/* Adds the operands to the directories of --skills. In `--skills ~/s*` the shell makes several
 * words of the pattern, and only the first one is the value of --skills. */
static int take_skills(struct request *r, struct ssb_error *err)
{
	for (int i = 0; i < r->operands.n; i++) {
		if (r->n_skills == 0) {
			return ssb_fail(err, SSB_E_USAGE, 0, "serve",
			                "'%.100s' is not an option; name directories with --skills",
			                r->operands.v[i]);
		}
		if (r->n_skills == MAX_SERVED) {
			return ssb_fail(err, SSB_E_USAGE, 0, "serve", "more than %d --skills",
			                MAX_SERVED);
		}
		r->skills[r->n_skills++] = r->operands.v[i];
	}
	if (r->n_skills == 0) {
		return ssb_fail(err, SSB_E_USAGE, 0, "serve",
		                "no skills; name their directories with --skills DIR");
	}
	return 0;
}

/* Removes the variable, so that no skill can ask for it, and wipes its bytes, because
 * /proc/PID/environ shows the bytes that the process began with. */
static void forget_variable(void)
{
	char *given = getenv(TOKEN_VARIABLE);

	if (given != NULL) {
		explicit_bzero(given, strlen(given));
		(void)unsetenv(TOKEN_VARIABLE);
	}
}

/* Does not use the buffers of say.h, because they would keep a copy of the token. */
static void show_token(char *token)
{
	static char before[] = "skillsandbox: the token for HTTP is ";
	static char after[] = "\n";
	const struct iovec v[] = { { before, strlen(before) },
		                   { token, strlen(token) },
		                   { after, strlen(after) } };

	(void)!writev(STDERR_FILENO, v, ARRAY_LEN(v));
}

/* Takes the token from the environment. If there is none, makes a new one and prints it once. */
static int take_token(char **ret, struct ssb_error *err)
{
	const char *given = getenv(TOKEN_VARIABLE);
	bool is_given = given != NULL && given[0] != '\0';
	auto_free char *token = is_given ? strdup(given) : malloc(2 * TOKEN_BYTES + 1);
	uint8_t bytes[TOKEN_BYTES];

	forget_variable();
	if (token == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	if (!is_given) {
		if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
			return ssb_fail(err, SSB_E_SYS, errno, "serve", "getrandom");
		}
		hex_encode(bytes, sizeof(bytes), token);
		explicit_bzero(bytes, sizeof(bytes));
		show_token(token);
	} else if (strlen(token) < SHORT_TOKEN) {
		say_warningf(TOKEN_VARIABLE " has only %zu bytes, so other users of this machine "
		                            "may guess it; use one of at least %d bytes",
		             strlen(token), SHORT_TOKEN);
	}
	*ret = steal_ptr(&token);
	return 0;
}

static int take_max_runs(const struct request *r, size_t *ret, struct ssb_error *err)
{
	const char *value = request_value(r, FLAG_MAX_RUNS);
	uint64_t n = 0;

	if (value == NULL) {
		return 0;
	}
	if (!number_parse(value, 1, MAX_JOBS, &n)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "serve",
		                "--max-runs: '%.100s' is not a number from 1 to %d", value,
		                MAX_JOBS);
	}
	*ret = n;
	return 0;
}

int cmd_serve(struct request *r)
{
	auto_free char *token = NULL;
	struct ssb_error err = { 0 };
	size_t max_runs = 0;

	if (take_skills(r, &err) != 0 || take_max_runs(r, &max_runs, &err) != 0 ||
	    (request_has(r, FLAG_HTTP) && take_token(&token, &err) != 0)) {
		return request_fail(r, &err, exit_status_of(&err, false));
	}
	forget_variable();
	for (size_t i = 0; i < r->n_best_effort; i++) {
		say_warningf("--best-effort %s: if this machine cannot apply that layer, skills "
		             "run without it",
		             r->best_effort[i]);
	}
	/* If --session-policy is given, SKILLSANDBOX_SESSION is ignored. */
	const char *session = request_has(r, FLAG_SESSION_POLICY) ? request_value(r, FLAG_SESSION)
	                                                          : request_session(r);
	const struct serve_options o = { .skills = r->skills,
		                         .n_skills = r->n_skills,
		                         .owner = r->options,
		                         .session = session,
		                         .session_policy = request_value(r, FLAG_SESSION_POLICY),
		                         .http = request_value(r, FLAG_HTTP),
		                         .socket = request_value(r, FLAG_SOCKET),
		                         .token = token,
		                         .max_runs = max_runs,
		                         .otel = request_has(r, FLAG_OTEL),
		                         .all_runs = request_has(r, FLAG_ALL_RUNS),
		                         .listening = on_listening };
	if (o.http == NULL && o.socket == NULL && isatty(STDIN_FILENO) == 1) {
		say_notef(
		        "'serve' speaks the Model Context Protocol on standard input and output; "
		        "after 'skillsandbox setup', an agent starts it by itself; Ctrl-C ends it");
	}
	if (serve_main(&o, &err) != 0) {
		return request_fail(r, &err, exit_status_of(&err, false));
	}
	return EXIT_FINE;
}
