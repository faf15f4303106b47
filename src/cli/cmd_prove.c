/* cmd_prove.c - attacks the sandbox that `run` would build. */
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/screen.h"

static const struct {
	const char *word; /* shown in the table */
	const char *name; /* written to JSON */
	enum say_colour colour;
} OUTCOMES[] = {
	[SSB_PROBE_HELD] = { "held      ", "held", SAY_GREEN },
	[SSB_PROBE_LEAKED] = { "LEAKED    ", "leaked", SAY_RED },
	[SSB_PROBE_NO_CONTROL] = { "no control", "no_control", SAY_YELLOW },
};

struct prove_tally {
	size_t of[ARRAY_LEN(OUTCOMES)];
};

static void put_json(struct buf *out, const struct ssb_probe *probes, size_t n,
                     const struct prove_tally *tally)
{
	struct json j = JSON_TO(out, true);

	json_open(&j, '{');
	json_kopen(&j, "probes", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(&j, '{');
		json_kstr(&j, "name", probes[i].name);
		json_kstr(&j, "what", probes[i].what);
		json_kstr(&j, "outcome", OUTCOMES[probes[i].outcome].name);
		json_kstr(&j, "inside", probes[i].inside);
		json_kstr(&j, "outside", probes[i].outside);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	for (size_t i = 0; i < ARRAY_LEN(OUTCOMES); i++) {
		json_kuint(&j, OUTCOMES[i].name, tally->of[i]);
	}
	json_close(&j, '}');
	buf_addc(out, '\n');
}

static void put_row(struct buf *out, int fd, const struct ssb_probe *p)
{
	say_colour(out, fd, OUTCOMES[p->outcome].colour, OUTCOMES[p->outcome].word);
	buf_addf(out, "  %-22s ", p->name);
	visible_addf(out, "%s\n            inside: %s; outside: %s\n", p->what, p->inside,
	             p->outside);
}

static void put_summary(struct buf *out, const struct prove_tally *tally)
{
	buf_addf(out,
	         "%zu held, %zu leaked, %zu without a control (not shown to work outside the "
	         "sandbox, so they prove nothing)\n",
	         tally->of[SSB_PROBE_HELD], tally->of[SSB_PROBE_LEAKED],
	         tally->of[SSB_PROBE_NO_CONTROL]);
}

int cmd_prove_plan(const struct ssb_plan *plan, bool as_json, bool only_leaks)
{
	struct ssb_error err = { 0 };
	auto_free struct ssb_probe *probes = NULL;
	size_t n = 0;
	struct prove_tally tally = { 0 };
	auto_buf out = BUF(SAY_MAX);

	if (ssb_prove(plan, &probes, &n, &err) != 0) {
		say_error(&err);
		return exit_status_of(&err, true);
	}
	int fd = only_leaks ? STDERR_FILENO : STDOUT_FILENO;
	for (size_t i = 0; i < n; i++) {
		tally.of[probes[i].outcome]++;
		if (!as_json && (!only_leaks || probes[i].outcome == SSB_PROBE_LEAKED)) {
			put_row(&out, fd, &probes[i]);
		}
	}
	if (as_json) {
		put_json(&out, probes, n, &tally);
	} else if (!only_leaks) {
		put_summary(&out, &tally);
	}
	int status = (as_json ? say_out : screen_text)(fd, &out);
	if (tally.of[SSB_PROBE_LEAKED] > 0) {
		return EXIT_FINDINGS;
	}
	if (tally.of[SSB_PROBE_HELD] == 0) {
		return say_fail(EXIT_SANDBOX,
		                "every attack that failed in the sandbox also fails outside of it "
		                "on this machine, so nothing is proven");
	}
	return status;
}

int cmd_prove(struct request *r)
{
	static char *const fallback[] = { "/bin/true", NULL };
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	int status = EXIT_FINE;

	if (request_plan(r, fallback, &plan, &status) != 0) {
		return status;
	}
	if (ssb_plan_refusals(plan) > 0) {
		return say_fail(EXIT_SANDBOX,
		                "refused: this plan would not run, so there is nothing to prove");
	}
	return cmd_prove_plan(plan, request_has(r, FLAG_JSON), false);
}
