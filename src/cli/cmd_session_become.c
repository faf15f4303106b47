/* cmd_session_become.c - changes the state of a session: pause, resume, kill, complete,
 * expire. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "cli/session_cli.h"

#define OWNER      "by the owner" /* reason for the record if none is given */
#define PATIENCE_S 1 /* seconds that a kill waits for the store before it acts without it */

static const struct {
	unsigned bit;
	enum session_state to;
	const char *action;
} WORDS[] = {
	{ ON_S_PAUSE, SESSION_PAUSED, "pause" },
	{ ON_S_RESUME, SESSION_ACTIVE, "resume" },
	{ ON_S_KILL, SESSION_KILLED, "kill" },
	{ ON_S_COMPLETE, SESSION_COMPLETED, "complete" },
	{ ON_S_EXPIRE, SESSION_EXPIRED, "expire" },
};

static size_t word_of(const struct request *r)
{
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(WORDS) && WORDS[i].bit != r->command->bit) {
		i++;
	}
	return i;
}

/* ---- one session --------------------------------------------------------- */

static int parse_words(const struct session_cli *c, uint64_t *ret, struct ssb_error *err)
{
	const char *text = request_value(c->r, FLAG_GRACE);

	if (c->id == NULL && request_has(c->r, FLAG_REASON)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--reason is for one session: name its ID");
	}
	if (text != NULL && !session_duration_parse(text, ret)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                "--grace: '%.40s' is not a time; write 5s or 1m", text);
	}
	return 0;
}

static int print_state(const struct session_cli *c, const struct decision *d, const char *action)
{
	auto_buf out = BUF(SAY_MAX);

	if (request_has(c->r, FLAG_JSON)) {
		return session_cli_json(d, &(struct session_told){ .action = action });
	}
	visible_addf(&out, "session '%s' is %s", d->session, session_state_name(d->after.state));
	session_cli_runs(&out, d);
	buf_addc(&out, '\n');
	return screen_text(STDOUT_FILENO, &out);
}

/* ---- kill, even if the store fails -------------------------------------- */

/* A kill goes to the store first: a session that is killed in the store cannot start runs again.
 * But the store may be locked, full, damaged or unreachable, and the runs must still end. So the
 * store has one second to answer. If it does not, this process asks every keeper of this machine
 * whether its run is in the session. Each keeper whose run is in the session ends that run. The
 * store may still answer or fail meanwhile. */
struct kill {
	const struct session_cli *c;
	uint64_t grace;
	const char *reason;
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool answer; /* the store has answered; the answer may be a failure */
	bool alone;  /* keepers were asked without the store; the result is in `unstored` */
	struct decision unstored;
};

static void kill_alone(struct kill *k)
{
	k->alone = true;
	session_kill_unstored(&k->c->owner, k->c->id, k->grace, k->reason, &k->unstored);
}

static void *kill_main(void *arg)
{
	struct kill *k = arg;
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&k->lock);
	for (int rc = 0; !k->answer && rc != ETIMEDOUT;) {
		rc = pthread_cond_clockwait(&k->answered, &k->lock, CLOCK_MONOTONIC, &until);
	}
	bool late = !k->answer;
	pthread_mutex_unlock(&k->lock);
	if (late) {
		kill_alone(k);
	}
	return NULL;
}

/* Records the kill in the store. It does not end the runs: they are ended later, so that their
 * grace does not delay the store. */
static int kill_stored(struct session_cli *c, const struct kill *k, struct decision *d,
                       struct ssb_error *err)
{
	if (session_cli_open(c, err) != 0) {
		return -1;
	}
	session_defer(c->store);
	return session_kill(c->store, c->id, k->grace, k->reason, d, err);
}

static int kill_both(struct session_cli *c, struct kill *k, struct decision *d,
                     struct ssb_error *err)
{
	pthread_t thread;
	int none = pthread_create(&thread, NULL, kill_main, k);
	int rc = kill_stored(c, k, d, err);

	pthread_mutex_lock(&k->lock);
	k->answer = true;
	pthread_cond_signal(&k->answered);
	pthread_mutex_unlock(&k->lock);
	if (none == 0) {
		(void)pthread_join(thread, NULL);
	}
	if (rc == 0 && session_deferred(c->store, d)) {
		session_act(c->store, &c->owner, d, NULL);
	}
	return rc;
}

/* Returns true if the store itself refused, because the session does not exist, or is already
 * over, for example. After any other error it is not recorded that the session was killed. */
static bool is_answer(const struct ssb_error *err)
{
	return err->where[0] == '\0' && (err->code == SSB_E_POLICY || err->code == SSB_E_USAGE ||
	                                 err->code == SSB_E_NOT_FOUND);
}

static void say_unwritten(const struct kill *k)
{
	const struct act_report *r = &k->unstored.runs;
	size_t ended = r->runs - r->left;

	say_warningf("THE KILL OF '%s' IS NOT RECORDED: the store did not accept it. %zu run%s on "
	             "this machine %s ended. Runs on other machines go on, and new runs can start "
	             "as soon as the store answers.",
	             k->c->id, ended, ended == 1 ? "" : "s", ended == 1 ? "was" : "were");
	if (k->unstored.undone.code != SSB_OK && r->left == 0) {
		say_error(&k->unstored.undone);
	}
	if (r->left > 0 || r->silent > 0) {
		say_warningf(
		        "%zu run%s could not be ended, and for %zu other run%s it is not known to "
		        "which session %s: run 'skillsandbox ps', and end these runs by hand",
		        r->left, r->left == 1 ? "" : "s", r->silent, r->silent == 1 ? "" : "s",
		        r->silent == 1 ? "it belongs" : "they belong");
	}
	say_notef("repair the store (see the error above), then run 'skillsandbox session kill %s' "
	          "again",
	          k->c->id);
}

/* Ends the runs that are left because an earlier kill was interrupted. It was recorded in the
 * store, but did not reach every run. */
static int end_what_is_left(const struct session_cli *c, uint64_t grace, struct ssb_error *err)
{
	struct decision d;

	if (session_kill_left(c->store, c->id, grace, &d, err) != 0) {
		return -1;
	}
	if (d.undone.code != SSB_OK) {
		*err = d.undone;
		return -1;
	}
	if (d.runs.runs > 0) {
		say_notef("an earlier kill did not end %zu run%s of this session; %s ended now",
		          d.runs.runs, d.runs.runs == 1 ? "" : "s",
		          d.runs.runs == 1 ? "it is" : "they are");
	}
	return 0;
}

static int kill_failed(const struct session_cli *c, struct kill *k, const struct ssb_error *err)
{
	struct ssb_error why = { 0 };

	/* The session is not in the store, but a keeper may still have a run of it. */
	if (err->code == SSB_E_NOT_FOUND && !k->alone) {
		kill_alone(k);
	}
	if (is_answer(err) && (err->code != SSB_E_NOT_FOUND || k->unstored.runs.runs == 0)) {
		if (err->code == SSB_E_POLICY && end_what_is_left(c, k->grace, &why) != 0) {
			return session_cli_fail(c, &why);
		}
		return session_cli_fail(c, err);
	}
	if (!k->alone) {
		kill_alone(k);
	}
	(void)session_cli_fail(c, err);
	say_unwritten(k);
	return EXIT_SANDBOX;
}

static int print_done(const struct session_cli *c, const struct decision *d, const char *action)
{
	int done = session_cli_done_status(d);
	int status = print_state(c, d, action);

	return done != EXIT_FINE ? done : status;
}

/* Adds the runs that were ended without the store (`before`) to `runs`. The runs of `before` that
 * were not ended are already in `runs`, because the store found them again. */
static void add_report(struct act_report *runs, const struct act_report *before)
{
	runs->runs += before->runs - before->left;
	runs->reached += before->reached;
	runs->forced += before->forced;
	runs->took_us += before->took_us;
}

static int kill_session(struct session_cli *c, uint64_t grace, const char *reason)
{
	struct kill k = { .c = c, .grace = grace, .reason = reason };
	struct decision d = { 0 };
	struct ssb_error err = { 0 };

	if (!session_id_valid(c->id)) {
		ssb_fail(&err, SSB_E_USAGE, 0, "",
		         "'%.80s' cannot be the id of a session; an id has only letters, digits, "
		         "'.', '_' and '-', and at most %d characters",
		         c->id, SESSION_ID - 1);
		return session_cli_fail(c, &err);
	}
	(void)pthread_mutex_init(&k.lock, NULL);
	(void)pthread_cond_init(&k.answered, NULL);
	if (kill_both(c, &k, &d, &err) != 0) {
		return kill_failed(c, &k, &err);
	}
	add_report(&d.runs, &k.unstored.runs);
	return print_done(c, &d, "kill");
}

/* ---- the other states ---------------------------------------------------- */

static int change_state(struct session_cli *c, const char *reason)
{
	size_t word = word_of(c->r);
	struct decision d = { 0 };
	struct ssb_error err = { 0 };

	if (session_cli_open(c, &err) != 0 ||
	    session_become(c->store, c->id, WORDS[word].to, reason, &d, &err) != 0) {
		return session_cli_fail(c, &err);
	}
	return print_done(c, &d, WORDS[word].action);
}

/* ---- all sessions whose time is over ------------------------------------- */

static int expire_all(struct session_cli *c)
{
	struct session_swept w;
	struct ssb_error err = { 0 };
	auto_buf out = BUF(SAY_MAX);

	if (session_cli_open(c, &err) != 0 || session_sweep(c->store, &w, &err) != 0) {
		return session_cli_fail(c, &err);
	}
	if (w.undone.code != SSB_OK) {
		say_error(&w.undone);
	}
	session_cli_mail(c);
	if (request_has(c->r, FLAG_JSON)) {
		struct json j = JSON_TO(&out, true);
		json_open(&j, '{');
		json_kuint(&j, "expired", w.expired);
		json_kuint(&j, "runs", w.runs);
		json_close(&j, '}');
		buf_addc(&out, '\n');
	} else {
		buf_addf(&out, "%zu session%s expired; %zu run%s ended\n", w.expired,
		         w.expired == 1 ? "" : "s", w.runs, w.runs == 1 ? "" : "s");
	}
	int status = say_out(STDOUT_FILENO, &out);
	return w.undone.code != SSB_OK ? EXIT_SANDBOX : status;
}

/* Changes the reason to a form that can be stored: a text that is too long is cut, and control
 * characters are made visible. No text may prevent a kill. */
static void take_reason(const struct request *r, char ret[SESSION_REASON])
{
	const char *said = request_value(r, FLAG_REASON);
	auto_buf text = BUF(SAY_MAX);
	size_t at = 0;
	uint32_t cp;

	visible_text(&text, said != NULL && said[0] != '\0' ? said : OWNER, false);
	if (text.failed) {
		snprintf(ret, SESSION_REASON, "%s", OWNER);
		return;
	}
	for (size_t n; at < text.len; at += n) {
		n = utf8_decode(text.data + at, text.len - at, &cp);
		if (n == 0 || at + n >= SESSION_REASON) {
			break;
		}
	}
	memcpy(ret, text.data, at);
	ret[at] = '\0';
}

int cmd_session_become(struct request *r)
{
	AUTO(session_cli_done) struct session_cli c = { 0 };
	struct ssb_error err = { 0 };
	uint64_t grace = 0;
	int status = session_cli_begin(&c, r);

	if (status != EXIT_FINE) {
		return status;
	}
	if (parse_words(&c, &grace, &err) != 0) {
		return session_cli_fail(&c, &err);
	}
	if (c.id == NULL) {
		return expire_all(&c);
	}
	char reason[SESSION_REASON];
	take_reason(r, reason);
	return r->command->bit == ON_S_KILL ? kill_session(&c, grace, reason)
	                                    : change_state(&c, reason);
}
