/* run_say.h - the answers to a call of run_skill. */
#ifndef SERVE_RUN_SAY_H
#define SERVE_RUN_SAY_H

#include "serve/job.h"
#include "serve/plans.h"

/* Returns the parts of the plan that the arguments of the call remove. */
struct narrow run_narrow(const struct mcp_call *c);

/* Returns whether the answer needs the record of the run: it had violations, or it failed, and a
 * denial may be the reason. */
bool run_reads_record(const struct ssb_result *r);
/* Answers with the result of a run that has ended. `name` is the skill's name; `withheld`
 * lists the requests that the run was not given (run_withheld()). If run_reads_record() and
 * `unseen` is NULL, reads the record, so it must not be called from the loop. If `unseen` is
 * not NULL, it says why the record cannot be read. */
void run_say_result(const struct serve *s, struct mcp_call *c, const char *name,
                    const struct string_list *withheld, const struct job_end *end,
                    const char *unseen);
/* Lists the items of the plan that are withheld until the owner grants them, one text for each
 * item. Returns -1 if out of memory. */
int run_withheld(const struct ssb_plan *plan, struct string_list *ret);
/* Answers with the error that says why there was no run, and what to do. */
void run_say_error(struct mcp_call *c, const struct ssb_error *err);
/* Answers with the plan of a dry run. */
void run_say_plan(struct mcp_call *c, const char *name, const struct ssb_plan *plan);

/* Writes a member of an open object: "refusals":[{"what","where","why","fix"}] */
void run_json_refusals(struct json *j, const struct ssb_plan *plan);

/* The JSON schema of the answer of run_say_result(). */
extern const char RUN_OUTPUT_SCHEMA[];

#endif
