/* consent_run.h - the plan of a skill that is to run: by what its owner approved, by what
 * the owner says now, or by the policy file. */
#ifndef CLI_CONSENT_RUN_H
#define CLI_CONSENT_RUN_H

#include "cli/cli.h"

struct planned {
	struct ssb_plan *plan;
	struct ssb_diags *diags;
};

/* The plan of the skill that the operands name. -1 also where it may not run: what changed
 * since it was approved has been said then. A command that runs nothing gets the plan in
 * any case. */
int consent_plan(struct request *r, struct planned *inout, struct ssb_error *err);

#endif
