/* consent.h - may this skill run as it is now, by what its owner approved of it?
 *
 *   nothing was approved    the owner is asked, or the policy file decides
 *   approved, unchanged     it runs, from the bytes that were approved, without a question
 *   anything changed        it does not run before it is approved again
 *
 * In this order: consent_look(), and where it holds consent_apply() to the options, a
 * plan, consent_lift() of what that lacks, the plan, consent_hold() of that; consent_use()
 * when it is to run. */
#ifndef CONSENT_CONSENT_H
#define CONSENT_CONSENT_H

#include "consent/lock.h"

enum consent {
	CONSENT_NONE, /* nothing was approved */
	CONSENT_HOLDS,
	CONSENT_CHANGED, /* a byte, a name, a mode: see diff.h */
	CONSENT_OVER,    /* expired, or used up */
};
const char *consent_name(enum consent c); /* "none", "holds", "changed", "over" */

struct consent_found {
	enum consent state;
	struct lock lock;  /* where there is one */
	struct pinned now; /* the skill's files as they are; where there is a lock */
};

/* Looks only. `dir` is real and absolute. An approval that is not understood is an error:
 * nothing is known of it then. */
int consent_look(const struct owner *o, const char *dir, struct consent_found *ret,
                 struct ssb_error *err);
/* The same of files that were looked at already, and have this digest: ret->now has no
 * more than that. */
int consent_look_known(const struct owner *o, const char *dir, const uint8_t tree[SHA256_BYTES],
                       struct consent_found *ret, struct ssb_error *err);
void consent_found_done(struct consent_found *f);
/* What was taken out when it was approved stays out, whatever has changed since: puts it
 * into `options`, as far as it is asked for (`asked`, a plan's; NULL: all). *ret_any (may be
 * NULL): something was put there, so that a plan has to be made anew. */
int consent_stay_out(const struct lock *before, const struct string_list *asked,
                     struct ssb_options *options, bool *ret_any, struct ssb_error *err);
/* CONSENT_HOLDS: puts into `options` what was declined, and the bytes to run from
 * (ssb_options.skill_source). */
int consent_apply(const struct owner *o, const struct consent_found *f, struct ssb_options *options,
                  struct ssb_error *err);
/* Puts into `options` what was granted of what `plan`, made so, lacks. What is not lacked
 * needs no grant, what the policy file denies gets none, and a variable that the owner does
 * not have cannot be passed on. */
int consent_lift(const struct owner *o, const struct consent_found *f, const struct ssb_plan *plan,
                 struct ssb_options *options, struct ssb_error *err);
/* The plan that was made so: is it of the manifest that was approved? One of the owner's
 * own is not among the skill's files. If so the plan says by what it runs, and is checked
 * when it does; if not, f->state changes. */
int consent_hold(struct consent_found *f, struct ssb_plan *plan, struct ssb_error *err);
/* A plan that runs by the owner's word alone, not by a lock: of the files that the owner was
 * shown ("sha256:HEX") and no others: `copied` from their copy, otherwise that is checked
 * when it runs. */
int consent_shown(struct ssb_plan *plan, const char *tree, bool copied, const char *by,
                  struct ssb_error *err);
/* run_request.still, of every run: are the files of an approved skill that runs from its own
 * directory those that were approved? Asked right before it starts, with no marks, which are
 * made then; and with those at its end: was nothing changed meanwhile? 0 also where there is
 * nothing to ask. */
int consent_still(const struct ssb_plan *plan, struct marks *seen, struct ssb_error *err);
/* It is about to run: one run less is left. -1: there is none any more. */
int consent_use(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err);
/* It was refused its start after all: nothing was run, and the use is there again. */
int consent_unuse(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err);

/* ---- once: nothing is stored, and what runs is what was shown all the same ---- */

/* Puts the bytes to run from into `options`, as consent_apply() does; a skill that is too
 * large to be kept runs from its directory. */
int consent_once(const struct owner *o, const char *dir, const struct pinned *shown,
                 struct ssb_options *options, struct ssb_error *err);
/* The plan that was made so says by whose word it runs, and is checked when it does. */
int consent_once_hold(const struct pinned *shown, const char *by, struct ssb_plan *plan,
                      struct ssb_error *err);

/* A lock for `plan`, made from the directory as it is now; `declined`, `by`, `expires` and
 * `uses` are the caller's. The plan's refusals and what was withheld become grants,
 * but for what is declined, now or in the approval that this one takes the place of: that
 * stays out until it is taken back. Stored, with its snapshot. */
struct consent_terms {
	const struct string_list *declined; /* may be NULL */
	const char *by;
	int64_t expires; /* seconds since the epoch; 0: as the policy file says */
	int64_t uses;    /* -1: any number */
	/* Not all that the plan lacks, but these: added to what was granted for the same
	 * bytes before. */
	bool some;
	const struct lock_grant *grants;
	size_t n_grants;
};
/* `shown` are the files that the owner looked at: NULL, as they are now. Where they are
 * others meanwhile: SSB_E_POLICY. */
int consent_give(const struct owner *o, const char *dir, const struct ssb_plan *plan,
                 const struct pinned *shown, const struct consent_terms *terms,
                 struct ssb_error *err);
/* Takes it back; *ret_was: there was one. `dir` as in lock_remove(). */
int consent_revoke(const struct owner *o, const char *dir, bool *ret_was, struct ssb_error *err);

#endif
