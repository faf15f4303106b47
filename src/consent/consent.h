/* consent.h - may this skill run as it is now, by what its owner approved of it?
 *
 *   nothing was approved    the owner is asked, or the policy file decides
 *   approved, unchanged     it runs, from the bytes that were approved, without a question
 *   anything changed        it does not run before it is approved again
 *
 * consent_look() says how it stands. consent_by_approval(), consent_once() or consent_shown()
 * make a word of that, which planning is told, and consent_fits() says whether the
 * plan that came of it is of the manifest that was approved; consent_use() when it is to run. */
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
	struct lock lock;       /* where there is one */
	struct skill_files now; /* the skill's files as they are; where there is a lock */
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

/* What the owner said of a skill, once or for good. Zero: nothing. */
struct consent_word {
	const struct lock *lock; /* borrowed: what that declines stays out; NULL: none */
	bool holds;              /* and what that grants is given */
	struct given *given;     /* beside the lock's; values owned */
	size_t n_given;
	struct string_list declined; /* beside the lock's */
	char *source;                /* the copy to run from, or NULL */
	char by[128];                /* whose word it is; "": nothing was approved */
	char at[40];
	char tree[DIGEST_TEXT];
	bool counted; /* for so many runs */
};
void consent_word_done(struct consent_word *w);
/* -1: no memory, or too much. */
int consent_word_give(struct consent_word *w, enum ssb_option option, const char *value);
int consent_word_decline(struct consent_word *w, const char *item);
/* What planning is told of it, borrowed from the word. */
struct plan_consent consent_word_plan(const struct consent_word *w);

/* Both set the word's lock, copy and signature; what was given or declined beside them stays. */

/* By the approval: what it declines stays out, whatever has changed since. If it holds, it also
 * grants what it lists, and names the copy to run from. `copied`: the copy is known to exist; if
 * not, it is looked for, and made again if it was removed or damaged. */
int consent_by_approval(const struct owner *o, const struct consent_found *f, bool copied,
                        struct consent_word *inout, struct ssb_error *err);
/* For the files that the owner was shown, and no others; nothing is stored. `copied`: their copy
 * is known to exist; if not, it is made, unless `shown` has only their digest. Without a copy
 * (too large for one) the skill runs from its directory and is checked when it starts. */
int consent_once(const struct owner *o, const char *dir, const struct skill_files *shown,
                 bool copied, const char *by, struct consent_word *inout, struct ssb_error *err);

/* Is the plan of the manifest that was approved? The owner's own manifest of a skill is not among
 * its files, and can have changed without them. */
bool consent_fits(const struct lock *l, const struct ssb_plan *plan);
/* Is its manifest one of these files? */
bool consent_fits_files(const struct ssb_plan *plan, const struct skill_files *files);

/* Of an approved skill that runs from its own directory: are its files those that were approved?
 * Asked right before it starts, with no marks, which are made then; and with those at its end:
 * was nothing changed meanwhile? Always true of a skill that runs from a copy. */
int consent_still(const struct ssb_plan *plan, struct marks *seen, struct ssb_error *err);
/* It is about to run: one run less is left. -1: there is none any more. */
int consent_use(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err);
/* It was refused its start after all: nothing was run, and the use is there again. */
int consent_unuse(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err);

/* Stores an approval of `plan` with its copy; `declined`, `by`, `expires` and
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
	const struct given *grants;
	size_t n_grants;
};
/* `shown` are the files that the owner saw, and exactly these are approved: they are not read
 * again, except to copy them, and then each byte is compared. If `shown` has only their digest, or
 * is NULL, the directory is read now; SSB_E_POLICY: its digest is another one. */
int consent_give(const struct owner *o, const char *dir, const struct ssb_plan *plan,
                 const struct skill_files *shown, const struct consent_terms *terms,
                 struct ssb_error *err);
/* Takes it back; *ret_was: there was one. `dir` as in lock_remove(). */
int consent_revoke(const struct owner *o, const char *dir, bool *ret_was, struct ssb_error *err);

#endif
