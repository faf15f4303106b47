/* decide.h - one request, one plan.
 *
 * A request holds everything that has a say in what a run may do: what the skill asks for,
 * the owner's flags and policy file, what the owner approved, and what the caller does without.
 * Planning reads all of it, changes nothing on disk and executes nothing. The plan that it
 * returns is never changed again: whoever wants another one makes another request. */
#ifndef POLICY_DECIDE_H
#define POLICY_DECIDE_H

#include "policy/options.h"
#include "policy/plan.h"

/* One thing that an approval gives, in the words of a flag: SSB_OPT_READ, "~/notes". It counts
 * only where the plan would lack just that, and the policy file does not deny it. */
struct given {
	enum ssb_option option;
	char *value;
};
/* A copy, once; -1 without memory, or past MAX_GRANTS. */
int given_add(struct given **inout, size_t *inout_n, enum ssb_option option, const char *value);
bool given_has(const struct given *v, size_t n, enum ssb_option option, const char *value);
void given_free(struct given *v, size_t n); /* and its values */

/* What the owner approved of this skill. Zero: nothing. All of it is borrowed. */
struct plan_consent {
	const struct string_list *declined[2]; /* items of plan->requested that stay out; or NULL */
	const struct given *given[2];          /* for good, and beside that */
	size_t n_given[2];
	const char *source; /* the copy that is read and shown instead of the directory; or NULL */
	struct plan_approval approval; /* for the record; zero: no approval holds */
	const char *state; /* for a plan that is only looked at: "none", "holds"; static; or NULL */
};

/* What a caller does without. Zero narrows nothing. */
struct narrow {
	bool offline;         /* no network */
	bool read_only;       /* no writable grant outlives the run */
	uint64_t max_seconds; /* at most; 0: as planned */
};

struct skill_dir;

/* All of it is borrowed; the plan keeps none of it. */
struct plan_request {
	const struct owner *owner;
	const struct ssb_options *options; /* NULL: none were given */
	const char *skill;                 /* its directory; NULL: `dir`, or a bare command */
	const struct skill_dir *dir;       /* the same, open already; NULL: `skill` is opened */
	char *const *args; /* of the skill, NULL: none; or the command and its arguments */
	struct plan_consent consent;
	struct narrow narrow;
	bool served; /* for a client of the server: no terminal, and the usual place of the record
	              */
};

/* On success *ret_plan is new. What is refused is in it, and stops a run of it. `diags` may be
 * NULL. */
int plan_decide(const struct plan_request *q, struct ssb_plan **ret_plan, struct ssb_diags *diags,
                struct ssb_error *err);

#endif
