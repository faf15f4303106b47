/* session_driver.c - sessions without the command line, for tests that examine the end of each
 * run:
 *
 *   session_driver start ID [POLICY [PARENT]]
 *   session_driver kill|pause|resume|complete|expire ID [GRACE_MS]
 *   session_driver violation ID TYPE
 *   session_driver spend ID DOLLARS
 *   session_driver settle RESERVATION DOLLARS
 *   session_driver lost ID          ends and closes runs that have no keeper
 *   session_driver show ID          prints state, reason and meters
 *   session_driver runs ID          prints "INIT KEEPER SOCKET SESSION" for each run
 *
 * Every command except `runs` prints one line of JSON, or nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "policy/owner.h"
#include "session/act.h"

#define REASON "by the driver"

static struct session_store *ss;
static struct owner owner;
static struct ssb_error err;

static int fail(void)
{
	fprintf(stderr, "%s: %s\n", err.where, err.text);
	return 1;
}

static int show_decision(const struct decision *d)
{
	const struct act_report *r = &d->runs;
	printf("{\"allowed\": %s, \"state\": \"%s\", \"runs\": %zu, \"reached\": %zu, "
	       "\"forced\": %zu, \"elsewhere\": %zu, \"left\": %zu, \"took_us\": %" PRIu64
	       ", \"reservation\": %" PRId64 "}\n",
	       d->verdict.allowed ? "true" : "false", session_state_name(d->state), r->runs,
	       r->reached, r->forced, r->elsewhere, r->left, r->took_us, d->reservation);
	err = d->undone;
	return d->undone.code != SSB_OK ? fail() : 0;
}

static void diags_freep(struct ssb_diags **d)
{
	ssb_diags_free(*d);
}

static int cmd_start(char **argv)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(session_policy_done) struct session_policy policy = { 0 };
	struct session_request req = { .id = argv[2], .policy = &policy };
	struct decision d;

	if (session_policy_load(argv[3], &policy, diags, &err) != 0) {
		for (size_t i = 0; i < ssb_diags_count(diags); i++) {
			fprintf(stderr, "%s: %s\n", ssb_diags_get(diags, i)->where,
			        ssb_diags_get(diags, i)->text);
		}
		return fail();
	}
	req.parent = argv[3] != NULL ? argv[4] : NULL;
	return session_start(ss, &req, &d, &err) != 0 ? fail() : 0;
}

static int cmd_become(const char *word, char **argv)
{
	static const struct {
		const char *word;
		enum session_state to;
	} WORDS[] = { { "kill", SESSION_KILLED },
		      { "pause", SESSION_PAUSED },
		      { "resume", SESSION_ACTIVE },
		      { "complete", SESSION_COMPLETED },
		      { "expire", SESSION_EXPIRED } };
	struct decision d;

	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
		if (strcmp(word, WORDS[i].word) == 0) {
			uint64_t grace = argv[3] != NULL ? strtoull(argv[3], NULL, 10) : 0;
			int rc = WORDS[i].to == SESSION_KILLED
			                 ? session_kill(ss, argv[2], grace, REASON, &d, &err)
			                 : session_become(ss, argv[2], WORDS[i].to, REASON, &d,
			                                  &err);
			return rc != 0 ? fail() : show_decision(&d);
		}
	}
	return 2;
}

static int cmd_spend(char **argv)
{
	struct decision d;
	const char *why = "";
	micros m = 0;

	if (!money_parse(argv[3], &m, &why)) {
		fprintf(stderr, "%s\n", why);
		return 2;
	}
	int rc = strcmp(argv[1], "settle") == 0
	                 ? session_settle(ss, strtoll(argv[2], NULL, 10), m, &d, &err)
	                 : session_check(ss, argv[2], "spend", m, &d, &err);
	return rc != 0 ? fail() : show_decision(&d);
}

static int cmd_lost(char **argv)
{
	size_t n = 0;

	if (session_close_lost(ss, &owner, argv[2], NULL, &n, &err) != 0) {
		return fail();
	}
	printf("{\"closed\": %zu}\n", n);
	return 0;
}

static int show_run(void *arg, const struct session_run *r)
{
	(void)arg;
	printf("%d %d %s %s\n", (int)r->init, (int)r->keeper, r->socket, r->session);
	return 0;
}

static int cmd_show(char **argv)
{
	struct session s;

	if (session_get(ss, argv[2], &s, &err) != 0) {
		return fail();
	}
	printf("{\"state\": \"%s\", \"reason\": \"%s\", \"violations\": %" PRIu64,
	       session_state_name(s.state), s.reason, s.violations);
	for (enum session_meter m = 0; m < SESSION_METERS; m++) {
		printf(", \"%s\": %" PRIu64, session_meter_name(m), s.meters[m]);
	}
	printf("}\n");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3 || owner_load(&owner, &err) != 0 ||
	    session_store_open(&owner, &ss, &err) != 0) {
		return fail();
	}
	const char *word = argv[1];
	int rc = 2;
	struct decision d;
	if (strcmp(word, "start") == 0) {
		rc = cmd_start(argv);
	} else if (strcmp(word, "show") == 0) {
		rc = cmd_show(argv);
	} else if (strcmp(word, "runs") == 0) {
		rc = session_runs(ss, argv[2], show_run, NULL, &err) != 0 ? fail() : 0;
	} else if (strcmp(word, "lost") == 0) {
		rc = cmd_lost(argv);
	} else if ((strcmp(word, "spend") == 0 || strcmp(word, "settle") == 0) && argc == 4) {
		rc = cmd_spend(argv);
	} else if (strcmp(word, "violation") == 0 && argc == 4) {
		rc = session_violation(ss, argv[2], argv[3], "", &d, &err) != 0 ? fail()
		                                                                : show_decision(&d);
	} else {
		rc = cmd_become(word, argv);
	}
	session_store_close(ss);
	owner_done(&owner);
	return rc;
}
