/* consent.h - decides whether the owner's approval of a skill allows it to run as it is now.
 *
 *   nothing was approved    the owner is asked, or the policy file decides
 *   approved, unchanged     it runs, from the bytes that were approved, without a question
 *   anything changed        it does not run until it is approved again
 *
 * consent_look() compares the skill with its approval. consent_by_approval() or consent_once()
 * makes the consent_input that planning takes as an input. consent_fits() returns whether the
 * resulting plan was made from the approved manifest. consent_use() counts a run right before it
 * starts. */
#ifndef CONSENT_CONSENT_H
#define CONSENT_CONSENT_H

#include "consent/lock.h"

enum consent_state {
	CONSENT_NONE,    /* nothing was approved */
	CONSENT_HOLDS,   /* approved, and unchanged since */
	CONSENT_CHANGED, /* a byte, a name or a mode is different: see diff.h */
	CONSENT_OVER,    /* expired, or no runs are left */
};
const char *consent_state_name(enum consent_state c); /* "none", "holds", "changed", "over" */

struct consent_found {
	enum consent_state state;
	struct lock lock;       /* all zero if CONSENT_NONE */
	struct skill_files now; /* the skill's files as they are now; zero if CONSENT_NONE */
};

/* Compares the skill with its approval, and changes nothing. `dir` must be real and absolute.
 * An approval that cannot be understood is an error. If `dir` has no approval, but another
 * path that leads to `dir` now has one, this is an error, too. On success the caller must pass
 * *ret to consent_found_done(). */
int consent_look(const struct owner *o, const char *dir, struct consent_found *ret,
                 struct ssb_error *err);
/* Like consent_look(), for files that were already read; `tree` is their digest. In every state,
 * ret->now contains only this digest. */
int consent_look_known(const struct owner *o, const char *dir, const uint8_t tree[SHA256_BYTES],
                       struct consent_found *ret, struct ssb_error *err);
void consent_found_done(struct consent_found *f);

/* What the owner decided about a skill, for one run or for every run. If all members are zero,
 * there is no decision. */
struct consent_input {
	/* Borrowed; NULL: there is no approval. Items that it declines stay declined. */
	const struct lock *lock;
	bool holds;          /* the grants of `lock` are given, too */
	struct given *given; /* further grants; owned */
	size_t n_given;
	struct string_list declined; /* further items that are declined */
	char *source;                /* the copy to run from; NULL: the skill's directory */
	char by[128];                /* who approved it; "": nothing was approved */
	char at[40];                 /* when it was approved; RFC 3339 */
	char tree[DIGEST_TEXT];      /* which files */
	bool counted;                /* the approval is for a limited number of runs */
};
void consent_input_done(struct consent_input *in);
/* These two functions return -1 if there is no memory, or if there are too many items. */
int consent_input_give(struct consent_input *in, enum ssb_option option, const char *value);
int consent_input_decline(struct consent_input *in, const char *item);
/* Returns the part of the input that planning needs. The result borrows from `in`. */
struct plan_consent consent_input_plan(const struct consent_input *in);

/* The next two functions replace the input's lock, copy, author, time and tree. They do not change
 * `given` and `declined`. */

/* Uses the stored approval. Items that it declines stay declined, even if the skill changed. If the
 * approval still holds, its grants are given, and its copy is used for the run. If `copied` is
 * true, the caller knows that the copy exists. Otherwise this checks the copy, and makes it again
 * if it was removed or damaged. */
int consent_by_approval(const struct owner *o, const struct consent_found *f, bool copied,
                        struct consent_input *inout, struct ssb_error *err);
/* Uses the owner's yes to one run, for exactly the files that were shown; stores no approval. If
 * `copied` is true, the caller knows that a copy of the files exists. Otherwise this makes it,
 * unless `shown` contains only the digest. A skill that is too large for a copy runs from its
 * directory and is checked when it starts. */
int consent_once(const struct owner *o, const char *dir, const struct skill_files *shown,
                 bool copied, const char *by, struct consent_input *inout, struct ssb_error *err);

/* Returns true if the plan was made from the approved manifest. The owner's own manifest for a
 * skill is not one of the skill's files, so it can change although the files do not. */
bool consent_fits(const struct lock *l, const struct ssb_plan *plan);
/* Returns true if the plan was made from a manifest that is one of these files. */
bool consent_fits_files(const struct ssb_plan *plan, const struct skill_files *files);

/* Checks an approved skill that runs from its own directory: its files must be the approved ones.
 * The caller must call this right before the start with empty marks, which are then filled. It must
 * call it again at the end with the same marks, which then also show whether a file changed during
 * the run. A skill that runs from a copy always passes. */
int consent_still(const struct ssb_plan *plan, struct marks *seen, struct ssb_error *err);
/* Counts one run that is about to start. Returns -1 if no approved run is left. */
int consent_use(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err);
/* Undoes consent_use() if nothing was started. */
int consent_unuse(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err);

/* The terms of an approval. The plan's refusals and withheld items become grants, except for those
 * that are declined now or were declined in the previous approval. A declined item stays declined
 * until the approval is removed, or the owner adds it (`allowed`). */
struct consent_terms {
	const struct string_list *declined; /* may be NULL */
	const char *by;
	int64_t expires; /* seconds since 1970; 0: the policy file decides */
	int64_t uses;    /* number of runs; -1: any number */
	/* If true, only `grants` are granted, not all that the plan lacks. Items that were granted
	 * for the same bytes before stay granted. */
	bool some;
	const struct given *grants;
	size_t n_grants;
	/* Grants that the owner adds, with `at` and `reason`. Those of the previous approval stay
	 * if the plan asks for them and they are not declined. */
	const struct given *allowed;
	size_t n_allowed;
};
/* Stores an approval of `plan`, with a copy of the files. Exactly the files in `shown`, which
 * the owner saw, are approved. They are read again only for the copy, and each byte is then
 * compared. If `shown` contains only a digest, or is NULL, the directory is read now. If its
 * digest differs from the one in `shown`, the error is SSB_E_POLICY. */
int consent_give(const struct owner *o, const char *dir, const struct ssb_plan *plan,
                 const struct skill_files *shown, const struct consent_terms *terms,
                 struct ssb_error *err);
/* Removes the approval. *ret_was is true if there was one. `dir` is as in lock_remove(). */
int consent_revoke(const struct owner *o, const char *dir, bool *ret_was, struct ssb_error *err);

#endif
