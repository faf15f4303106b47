/* consent.h - does the owner's approval of a skill allow it to run as it is now?
 *
 *   nothing was approved    the owner is asked, or the policy file decides
 *   approved, unchanged     it runs, from the bytes that were approved, without a question
 *   anything changed        it does not run until it is approved again
 *
 * consent_look() compares the skill with its approval. consent_by_approval() or consent_once()
 * makes the consent_word that planning takes as an input. consent_fits() tells whether the
 * resulting plan was made from the approved manifest. consent_use() counts a run right before it
 * starts. */
#ifndef CONSENT_CONSENT_H
#define CONSENT_CONSENT_H

#include "consent/lock.h"

enum consent {
	CONSENT_NONE,    /* nothing was approved */
	CONSENT_HOLDS,   /* approved, and unchanged */
	CONSENT_CHANGED, /* a byte, a name or a mode is different: see diff.h */
	CONSENT_OVER,    /* expired, or no runs are left */
};
const char *consent_name(enum consent c); /* "none", "holds", "changed", "over" */

struct consent_found {
	enum consent state;
	struct lock lock;       /* zero if CONSENT_NONE */
	struct skill_files now; /* the skill's files as they are now; zero if CONSENT_NONE */
};

/* Compares only; changes nothing. `dir` must be real and absolute. An approval that cannot be
 * understood is an error, and so is one of another path that leads to `dir` now if `dir` itself has
 * none. On success the caller must pass *ret to consent_found_done(). */
int consent_look(const struct owner *o, const char *dir, struct consent_found *ret,
                 struct ssb_error *err);
/* The same for files that were read already and whose digest is `tree`. ret->now contains only this
 * digest, in every state. */
int consent_look_known(const struct owner *o, const char *dir, const uint8_t tree[SHA256_BYTES],
                       struct consent_found *ret, struct ssb_error *err);
void consent_found_done(struct consent_found *f);

/* What the owner decided about a skill, for one run or for every run. Zero: nothing. */
struct consent_word {
	const struct lock *lock; /* borrowed; what it declines stays declined; NULL: none */
	bool holds;              /* what `lock` grants is given, too */
	struct given *given;     /* further grants; owned */
	size_t n_given;
	struct string_list declined; /* further items that are declined */
	char *source;                /* the copy to run from; NULL: the skill's directory */
	char by[128];                /* who approved it; "": nothing was approved */
	char at[40];                 /* when; RFC 3339 */
	char tree[DIGEST_TEXT];      /* which files */
	bool counted;                /* the approval is for a limited number of runs */
};
void consent_word_done(struct consent_word *w);
/* Both return -1 if there is no memory, or if there are too many. */
int consent_word_give(struct consent_word *w, enum ssb_option option, const char *value);
int consent_word_decline(struct consent_word *w, const char *item);
/* The word as an input of planning. It borrows from `w`. */
struct plan_consent consent_word_plan(const struct consent_word *w);

/* The next two replace the word's lock, copy, author, time and tree, not `given` or `declined`. */

/* Uses the stored approval. What it declines stays declined, whatever changed since. If it holds,
 * it also grants what it lists and names the copy to run from. `copied`: the caller knows that the
 * copy exists; otherwise it is looked for, and made again if it was removed or damaged. */
int consent_by_approval(const struct owner *o, const struct consent_found *f, bool copied,
                        struct consent_word *inout, struct ssb_error *err);
/* Uses a yes to one run, for exactly the files that the owner was shown; nothing is stored.
 * `copied`: the caller knows that their copy exists; otherwise it is made, unless `shown` contains
 * only their digest. A skill that is too large for a copy runs from its directory and is checked
 * when it starts. */
int consent_once(const struct owner *o, const char *dir, const struct skill_files *shown,
                 bool copied, const char *by, struct consent_word *inout, struct ssb_error *err);

/* Was the plan made from the manifest that was approved? The owner's own manifest for a skill is
 * not one of the skill's files, so it can change without them. */
bool consent_fits(const struct lock *l, const struct ssb_plan *plan);
/* Was the plan made from a manifest that is one of these files? */
bool consent_fits_files(const struct ssb_plan *plan, const struct skill_files *files);

/* For an approved skill that runs from its own directory: are its files those that were approved?
 * The caller must ask right before the start, with empty marks, which are filled then; and again at
 * the end with these marks, which also shows whether a file changed during the run. A skill that
 * runs from a copy always passes. */
int consent_still(const struct ssb_plan *plan, struct marks *seen, struct ssb_error *err);
/* Counts one run that is about to start. -1: no approved run is left. */
int consent_use(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err);
/* Gives the run back, because nothing was started after all. */
int consent_unuse(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err);

/* The terms of an approval. The plan's refusals and what was withheld become grants, except for
 * what is declined now or was declined in the approval that this one replaces: that stays declined
 * until the approval is removed. */
struct consent_terms {
	const struct string_list *declined; /* may be NULL */
	const char *by;
	int64_t expires; /* seconds since the epoch; 0: as the policy file says */
	int64_t uses;    /* runs; -1: any number */
	/* Grants not all that the plan lacks, but `grants`, in addition to what was granted for the
	 * same bytes before. */
	bool some;
	const struct given *grants;
	size_t n_grants;
};
/* Stores an approval of `plan`, with a copy of the files. `shown` are the files that the owner saw,
 * and exactly these are approved: they are not read again, except to copy them, and then each byte
 * is compared. If `shown` contains only their digest, or is NULL, the directory is read now;
 * SSB_E_POLICY: its digest is a different one. */
int consent_give(const struct owner *o, const char *dir, const struct ssb_plan *plan,
                 const struct skill_files *shown, const struct consent_terms *terms,
                 struct ssb_error *err);
/* Removes the approval; *ret_was tells whether there was one. `dir` is as in lock_remove(). */
int consent_revoke(const struct owner *o, const char *dir, bool *ret_was, struct ssb_error *err);

#endif
