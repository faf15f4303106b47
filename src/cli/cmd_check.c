/* cmd_check.c - checks whether a manifest would have allowed what recorded runs did. */
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/needs_view.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "learn/propose.h"
#include "policy/owner.h"

/* Removes the environment variables that were not set in any run: for such a variable it makes no
 * difference whether it is granted or denied. */
static size_t drop_absent(const struct needs *n, size_t *v, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!n->v[v[i]].absent) {
			v[kept++] = v[i];
		}
	}
	return kept;
}

static int print_denied(const struct request *r, const struct needs *n, const size_t *denied,
                        size_t n_denied, size_t runs)
{
	auto_buf out = BUF(SAY_MAX);

	if (request_has(r, FLAG_JSON)) {
		struct json j = JSON_TO(&out, true);
		json_open(&j, '{');
		json_kuint(&j, "runs", runs);
		json_kbool(&j, "allowed", n_denied == 0);
		json_kbool(&j, "incomplete", n->cut || n->nameless);
		json_kopen(&j, "denied", '[');
		for (size_t i = 0; i < n_denied; i++) {
			needs_view_json(&j, &n->v[denied[i]]);
		}
		json_close(&j, ']');
		json_close(&j, '}');
		buf_addc(&out, '\n');
	} else {
		buf_addf(&out,
		         n_denied == 0 ? "the manifest would have allowed everything in %zu run%s\n"
		                       : "in %zu run%s, the manifest would have denied:\n",
		         runs, runs == 1 ? "" : "s");
		for (size_t i = 0; i < n_denied; i++) {
			needs_view_line(&out, &n->v[denied[i]]);
		}
	}
	int status = (request_has(r, FLAG_JSON) ? say_out : screen_text)(STDOUT_FILENO, &out);
	return status != EXIT_FINE ? status : n_denied == 0 ? EXIT_FINE : EXIT_FINDINGS;
}

static int check_runs(const struct request *r, struct owner *o, struct ssb_error *err)
{
	AUTO(skill_found_done) struct skill_found skill = { 0 };
	AUTO(needs_done) struct needs needs = { 0 };
	auto_free size_t *denied = NULL;
	size_t n = 0;
	size_t runs = 0;

	if (needs_skill(o, r->operands.v[0], &skill, err) != 0) {
		return request_fail(r, err, exit_status_of(err, false));
	}
	for (size_t i = 0; i < r->n_skills; i++, runs++) {
		if (needs_from_run(o, r->skills[i], &needs, err) != 0) {
			return request_fail(r, err, exit_status_of(err, false));
		}
	}
	for (int i = 1; i < r->operands.n; i++, runs++) {
		if (needs_from_run(o, r->operands.v[i], &needs, err) != 0) {
			return request_fail(r, err, exit_status_of(err, false));
		}
	}
	if (propose_uncovered(skill.manifest, &needs, &denied, &n) != 0) {
		return say_fail(EXIT_SANDBOX, "out of memory");
	}
	if (needs.cut) {
		say_warningf(
		        "the records are incomplete: things that the runs did may be missing here");
	}
	if (needs.nameless) {
		say_warningf(
		        "the skill asked for a host although it declares none. The record does not "
		        "have the host's name; run 'skillsandbox learn' to find it");
	}
	return print_denied(r, &needs, denied, drop_absent(&needs, denied, n), runs);
}

int cmd_check(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };

	if (r->operands.n < 1 || (r->n_skills == 0 && r->operands.n < 2)) {
		return say_fail(
		        EXIT_USAGE,
		        "check needs a DIR or FILE, and --against RUN: an id from 'skillsandbox "
		        "audit list', 'last', or a file");
	}
	if (owner_load(&owner, &err) != 0) {
		return request_fail(r, &err, exit_status_of(&err, false));
	}
	return check_runs(r, &owner, &err);
}
