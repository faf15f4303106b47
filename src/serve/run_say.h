/* run_say.h - what a call of run_skill is answered with. */
#ifndef SERVE_RUN_SAY_H
#define SERVE_RUN_SAY_H

#include "serve/job.h"
#include "serve/plans.h"

/* What the arguments of the call leave out of the plan. */
struct narrow run_narrow(const struct mcp_call *c);

/* A run that has ended by itself or by us: the whole answer. `name` is the skill's,
 * `withheld` what it asked for and ran without (run_withheld()). Where there were violations its
 * record is looked at, which is not for the loop; unless `unseen` says why that is not to be. */
void run_say_result(const struct serve *s, struct mcp_call *c, const char *name,
                    const struct string_list *withheld, const struct job_end *end,
                    const char *unseen);
/* What a plan leaves out until its owner says otherwise, one text each. -1: no memory. */
int run_withheld(const struct ssb_plan *plan, struct string_list *ret);
/* One that did not come about: an error that says what to do. */
void run_say_error(struct mcp_call *c, const struct ssb_error *err);
/* The plan, and nothing was run. */
void run_say_plan(struct mcp_call *c, const char *name, const struct ssb_plan *plan);

/* "refusals":[{"what","where","why","fix"}] */
void run_json_refusals(struct json *j, const struct ssb_plan *plan);

/* Of what run_say_result() answers. */
extern const char RUN_OUTPUT_SCHEMA[];

#endif
