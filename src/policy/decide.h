/* decide.h - one request, one plan.
 *
 * A request holds everything that decides what a run may do: what the skill asks for, the
 * owner's flags and policy file, what the owner approved, and what the caller does without.
 * Planning reads all of it, changes nothing on disk and executes nothing. The returned plan is
 * never changed; a caller that needs another plan makes another request. */
#ifndef POLICY_DECIDE_H
#define POLICY_DECIDE_H

#include "policy/options.h"
#include "policy/plan.h"

/* One thing that an approval gives, written like a flag: SSB_OPT_READ, "~/notes". It counts only
 * if the plan would otherwise lack exactly that, and the policy file does not deny it. */
struct given {
	enum ssb_option option;
	char *value;
};
/* Adds a copy unless it is there already. Returns -1 without memory, or beyond MAX_GRANTS. */
int given_add(struct given **inout, size_t *inout_n, enum ssb_option option, const char *value);
bool given_has(const struct given *v, size_t n, enum ssb_option option, const char *value);
void given_free(struct given *v, size_t n); /* with its values */

/* What the owner approved for this skill. All zero: nothing. Everything in it is borrowed. */
struct plan_consent {
	const struct string_list *declined[2]; /* items of plan->requested that stay out; or NULL */
	const struct given *given[2];          /* [0] permanently, [1] in addition to that */
	size_t n_given[2];
	const char *source; /* the copy that is read and shown instead of the directory; or NULL */
	struct plan_approval approval; /* for the record; all zero: no approval applies */
	const char *state; /* of a plan that is only looked at: "none", "holds"; static; or NULL */
};

/* What a caller does without. All zero: the plan is not narrowed. */
struct narrow {
	bool offline;         /* no network */
	bool read_only;       /* no writable grant remains after the run */
	uint64_t max_seconds; /* upper bound; 0: as planned */
};

struct skill_dir;

/* Everything in it is borrowed; the plan keeps none of it. */
struct plan_request {
	const struct owner *owner;
	const struct ssb_options *options; /* NULL: none given */
	const char *skill;                 /* its directory; NULL: `dir`, or a bare command */
	const struct skill_dir *dir; /* the same directory, already open; NULL: `skill` is opened */
	char *const
	        *args; /* arguments of the skill (NULL: none), or the command and its arguments */
	struct plan_consent consent;
	struct narrow narrow;
	bool served; /* made for a client of the server: no terminal, and the record at its usual
	                place */
};

/* On success *ret_plan is new. Refusals are part of the plan, and stop a run of it. `diags` may
 * be NULL. */
int plan_decide(const struct plan_request *q, struct ssb_plan **ret_plan, struct ssb_diags *diags,
                struct ssb_error *err);

#endif
