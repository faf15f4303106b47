/* cmd_approve.c - a skill, as it is now, approved by its owner. */
#include <stdlib.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/consent_show.h"
#include "cli/say.h"
#include "policy/owner.h"

static int approve(struct request *r, const struct owner *owner, char *dir)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	struct ssb_error err = { 0 };
	struct consent_terms terms = { .by = "command line", .uses = -1 };

	if (ssb_plan_skill(r->options, dir, NULL, &plan, NULL, &err) != 0) {
		say_error(&err);
		return exit_from_error(&err, false);
	}
	if (!request_has(r, FLAG_YES) || consent_give(owner, dir, plan, NULL, &terms, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	return EXIT_FINE;
}

int cmd_approve(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };

	if (owner_load(&owner, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	auto_free char *dir = realpath(r->operands.v[0], NULL);
	return request_has(r, FLAG_REVOKE) ? approvals_revoke(&owner, r->operands.v[0])
	                                   : approve(r, &owner, dir);
}
