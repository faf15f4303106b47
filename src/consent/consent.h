/* consent.h - may this skill run as it is now, by what its owner approved of it?
 *
 *   nothing was approved    the owner is asked, or the policy file decides
 *   approved, unchanged     it runs, from the bytes that were approved, without a question
 *   anything changed        it does not run before it is approved again */
#ifndef CONSENT_CONSENT_H
#define CONSENT_CONSENT_H

#include "consent/lock.h"

enum consent {
	CONSENT_NONE, /* nothing was approved */
	CONSENT_HOLDS,
	CONSENT_CHANGED, /* a byte, a name, a mode: see diff.h */
	CONSENT_OVER,    /* expired, or used up */
};

struct consent_found {
	enum consent state;
	struct lock lock;  /* where there is one */
	struct pinned now; /* the skill's files as they are; where there is a lock */
};

/* Looks only. */
int consent_look(const struct owner *o, const char *dir, struct consent_found *ret,
                 struct ssb_error *err);
void consent_found_done(struct consent_found *f);
/* CONSENT_HOLDS: puts into `options` what was granted and declined, and the bytes to run
 * from (ssb_options.skill_source). */
int consent_apply(const struct owner *o, const struct consent_found *f, struct ssb_options *options,
                  struct ssb_error *err);

/* A lock for `plan`, made from the directory as it is now; `declined`, `by`, `expires` and
 * `uses` are the caller's. The plan's refusals and what was withheld become grants,
 * but for what is declined. Stored, with its snapshot. */
struct consent_terms {
	const struct string_list *declined; /* may be NULL */
	const char *by;
	int64_t expires;
	int64_t uses;
};
int consent_give(const struct owner *o, const char *dir, const struct ssb_plan *plan,
                 const struct pinned *shown, const struct consent_terms *terms,
                 struct ssb_error *err);

#endif
