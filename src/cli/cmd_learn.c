/* cmd_learn.c - runs a skill with decoys, and writes the manifest that it needs. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/learn_talk.h"
#include "cli/proposal.h"
#include "cli/say.h"
#include "learn/propose.h"
#include "policy/owner.h"

static int propose_needs(const struct request *r, const struct owner *owner, const char *dir,
                         struct learned *l, struct ssb_error *err)
{
	auto_buf text = BUF(MAX_YAML_BYTES);
	const char *head = "Learned by 'skillsandbox learn': what it asked for, and no more.";

	if (proposal_name(r, dir, l->base.manifest, err) != 0) {
		return -1;
	}
	if (propose_manifest(l->base.manifest, &l->needs, head, &text) != 0) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "learn",
		                "the skill asks for more than a manifest can contain");
	}
	return proposal_put(r, owner, dir, &text, err);
}

static int learn_and_say(struct request *r, const struct owner *owner, const char *dir,
                         struct ssb_error *err)
{
	AUTO(learn_talk_done) struct learn_talk talk = { 0 };
	AUTO(learned_done) struct learned l = { 0 };
	bool interactive = request_has(r, FLAG_INTERACTIVE);
	char **args = r->operands.v + 1;
	const struct learn_setup setup = {
		.owner = owner,
		.dir = dir,
		.args = args[0] != NULL && strcmp(args[0], "--") == 0 ? args + 1 : args,
		.options = r->options,
		.connect = request_has(r, FLAG_CONNECT),
		.told = learn_told,
		.ask = interactive ? learn_asked : NULL,
		.arg = &talk,
	};

	talk.all = interactive || request_has(r, FLAG_VERBOSE);
	if (learn(&setup, &l, err) != 0) {
		return -1;
	}
	learn_summary(&talk, &l);
	return propose_needs(r, owner, dir, &l, err);
}

int cmd_learn(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };

	if (r->operands.n < 1 || r->operands.dashes) {
		say_errorf("learn needs a DIR");
		return EXIT_USAGE;
	}
	if (request_has(r, FLAG_INTERACTIVE) && !ask_terminal()) {
		say_errorf("learn --interactive needs a terminal");
		return EXIT_USAGE;
	}
	auto_free char *dir = realpath(r->operands.v[0], NULL);
	if (dir == NULL) {
		say_errorf("%s: directory not found", r->operands.v[0]);
		return EXIT_USAGE;
	}
	/* Finds the place of the manifest first: an error there must come before anything runs. */
	auto_free char *place = NULL;
	if (owner_load(&owner, &err) != 0 || proposal_place(r, &owner, dir, &place, &err) != 0 ||
	    learn_and_say(r, &owner, dir, &err) != 0) {
		say_error(&err);
		return exit_status_of(&err, false);
	}
	return EXIT_FINE;
}
