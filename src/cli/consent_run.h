/* consent_run.h - makes the plan of a skill that is to run: from its approval, from the owner's
 * answer on the terminal, or from the policy file. */
#ifndef CLI_CONSENT_RUN_H
#define CLI_CONSENT_RUN_H

#include "cli/cli.h"

struct planned {
	struct ssb_plan *plan;
	struct ssb_diags *diags;
};

/* Plans the skill that the operands name. Returns -1 on failure, and also if the skill must
 * not run; in that case the changes since the approval have been printed. For a command that
 * runs nothing, the plan is always made. */
int consent_plan(struct request *r, struct planned *inout, struct ssb_error *err);

#endif
