/* consent_show.h - what the owner is shown before agreeing: which skill asks, what it could do,
 * the worst of that, and the files that the answer is about.
 *
 * A line that holds text of the skill begins with spaces or with our own words, so that it cannot
 * look like a line of ours. */
#ifndef CLI_CONSENT_SHOW_H
#define CLI_CONSENT_SHOW_H

#include "consent/consent.h"
#include "consent/words.h"

struct consent_view {
	const char *dir;
	const struct ssb_plan *plan;
	struct abilities abilities;  /* of the plan, without the items in `declined` */
	struct string_list declined; /* items that were taken out before come first */
	struct skill_files files;
	bool pinned;             /* `files` is filled */
	struct ssb_error no_pin; /* the reason if it is not */
};

/* First: reads the files in `dir` (real, absolute, borrowed). They are not read again: what is
 * shown is what is approved. */
void consent_view_read(struct consent_view *v, const char *dir);
/* Then: `plan` was made with the owner's `options` and what was `declined` before (may be NULL).
 * -1: out of memory. */
int consent_view_make(struct consent_view *v, const struct ssb_plan *plan,
                      const struct ssb_options *options, const struct string_list *declined);
void consent_view_done(struct consent_view *v);

/* Takes ability `i` out. -1: out of memory. */
int consent_view_decline(struct consent_view *v, size_t i);
/* Gives everything that the plan lacks, except what was taken out; that is declined. */
int consent_view_say(const struct consent_view *v, struct consent_word *w, struct ssb_error *err);
size_t consent_view_never(const struct consent_view *v); /* how many can never be granted */

/* These write to standard error. `title` is our text: "was not approved yet". */
void consent_show(const struct consent_view *v, const char *title);
void consent_show_abilities(const struct consent_view *v, bool numbered);
/* What changed since the approval `before`; `now` are all files of the skill. */
void consent_show_changes(const struct lock *before, const struct skill_files *now,
                          const struct ssb_plan *plan);

/* "root on terminal"; returns `out`. */
const char *consent_by(const struct owner *o, const char *through, char *out, size_t size);

#endif
