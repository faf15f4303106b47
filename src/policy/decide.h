/* decide.h - makes one plan for one request.
 *
 * A request contains everything that decides what a run may do: what the skill asks for, the
 * owner's flags and policy file, what the owner approved, and the restrictions of the caller.
 * Planning reads all of it, changes nothing on disk and executes nothing. The returned plan is
 * never changed; a caller that needs another plan makes another request. */
#ifndef POLICY_DECIDE_H
#define POLICY_DECIDE_H

#include "policy/options.h"
#include "policy/plan.h"

/* One permission that an approval gives, as an option and its value: SSB_OPT_READ, "~/notes". It is
 * used only if the plan would not contain this permission without it, and the policy file does not
 * deny it. */
struct given {
	enum ssb_option option;
	char *value;
	char *at;     /* when the owner remembered it, RFC 3339; NULL: not a remembered grant */
	char *reason; /* why, in the owner's words; with `at` */
};
/* Adds a copy of the value unless the list has it already. Returns -1 if there is no memory, or
 * beyond MAX_GRANTS. */
int given_add(struct given **inout, size_t *inout_n, enum ssb_option option, const char *value);
bool given_has(const struct given *v, size_t n, enum ssb_option option, const char *value);
/* Returns the item of plan->requested that asks for this: "read ~/notes"; new. */
char *given_item(enum ssb_option option, const char *value);
void given_free(struct given *v, size_t n); /* frees the values, too */

/* What the owner approved for this skill. All zero: nothing is approved. All members are
 * borrowed. */
struct plan_consent {
	const struct string_list *declined[2]; /* declined items of plan->requested; or NULL */
	/* [0]: the stored approval, [1]: only this request, [2]: the remembered grants */
	const struct given *given[3];
	size_t n_given[3];
	/* The remembered grants. They are judged as further requests of the skill, so they grant
	 * nothing dangerous unless they are in `given`, too. */
	const struct given *asked;
	size_t n_asked;
	const char *source; /* the copy that is read and shown instead of the directory; or NULL */
	/* the approval, for the record of the run; all zero: there is none */
	struct plan_approval approval;
	/* state of the approval, for a plan that is only inspected: "none", "holds"; static; or
	 * NULL */
	const char *state;
};

/* Restrictions that a caller adds to a plan. All zero: none. */
struct narrow {
	bool offline;         /* no network */
	bool read_only;       /* every grant is read-only */
	uint64_t max_seconds; /* upper bound of the time limit; 0: the limit stays as planned */
};

struct skill_dir;

/* All members are borrowed; the plan keeps none of them. */
struct plan_request {
	const struct owner *owner;
	const struct ssb_options *options; /* NULL: none given */
	/* the skill's directory; NULL: `dir` is used, or the request is for a bare command */
	const char *skill;
	const struct skill_dir *dir; /* the same directory, already open; NULL: `skill` is opened */
	char *const
	        *args; /* arguments of the skill (NULL: none), or the command and its arguments */
	struct plan_consent consent;
	struct narrow narrow;
	bool interactive; /* the run will have the terminal of a person */
	/* a client of the server made the request: the run has no terminal, and its record is at
	 * the usual place */
	bool served;
	/* with `served`: the client can ask the owner, so a file that the client names and that is
	 * not granted is refused with an option that would grant it */
	bool asks;
	/* with `served`: the only arguments that are looked up as paths, because a path that a
	 * client names may be on a file system that does not answer. NULL: all that look like
	 * paths. */
	const struct string_list *look;
};

/* Returns true if this argument of a client may be a path. Any other word of a client is only a
 * word, even if it is the name of a file. */
bool arguments_may_be_path(const char *word);

/* Makes the plan for a request. On success *ret_plan is new. The plan may contain refusals, which
 * prevent its run. `diags` may be NULL. */
int plan_decide(const struct plan_request *q, struct ssb_plan **ret_plan, struct ssb_diags *diags,
                struct ssb_error *err);

#endif
