/* consent_run.h - the plan of a skill that is to run: by its approval, by the owner's answer on
 * the terminal, or by the policy file. */
#ifndef CLI_CONSENT_RUN_H
#define CLI_CONSENT_RUN_H

#include "cli/cli.h"

struct planned {
	struct ssb_plan *plan;
	struct ssb_diags *diags;
};

/* Plans the skill that the operands name. -1 also if it must not run; what changed since the
 * approval has been shown then. A command that runs nothing gets the plan in any case. */
int consent_plan(struct request *r, struct planned *inout, struct ssb_error *err);

#endif
