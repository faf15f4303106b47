/* consent_show.h - what an owner is shown before a yes: who asks, what it could do, the
 * worst of it, and the files that it is about.
 *
 * Every line that holds a text of the skill's begins with spaces, or with our own words. */
#ifndef CLI_CONSENT_SHOW_H
#define CLI_CONSENT_SHOW_H

#include "consent/consent.h"
#include "consent/words.h"

struct consent_view {
	const char *dir;
	const struct ssb_plan *plan;
	struct abilities abilities;  /* of the plan, but for what is in `declined` */
	struct string_list declined; /* what was taken out before comes first */
	struct skill_files files;
	bool pinned;             /* `files` is filled */
	struct ssb_error no_pin; /* if not: why */
};

/* Reads the files; -1 without memory. `plan` was made with the owner's `options` and what was
 * `declined` before (may be NULL). */
int consent_view_make(const char *dir, const struct ssb_plan *plan,
                      const struct ssb_options *options, const struct string_list *declined,
                      struct consent_view *ret);
void consent_view_done(struct consent_view *v);

/* Takes the ability out. -1 without memory. */
int consent_view_decline(struct consent_view *v, size_t i);
/* Gives what the plan lacks and is not taken out, and declines what is. */
int consent_view_say(const struct consent_view *v, struct consent_word *w, struct ssb_error *err);
size_t consent_view_never(const struct consent_view *v); /* how many cannot be granted */

/* On standard error. `title` is ours: "was not approved yet". */
void consent_show(const struct consent_view *v, const char *title);
void consent_show_abilities(const struct consent_view *v, bool numbered);
/* What changed since it was approved; `f` has a lock. */
void consent_show_changes(const struct consent_found *f, const struct ssb_plan *plan);

/* "root on terminal"; returns `out`. */
const char *consent_by(const struct owner *o, const char *through, char *out, size_t size);

#endif
