/* consent_show.h - what the owner is shown before agreeing: the name of the skill, what it could
 * do, the most dangerous parts of that, and the files that the answer is valid for.
 *
 * A line that contains text of the skill begins with spaces or with words of this program, so
 * that the skill cannot imitate a line of this program. */
#ifndef CLI_CONSENT_SHOW_H
#define CLI_CONSENT_SHOW_H

#include "consent/consent.h"
#include "consent/words.h"

struct consent_view {
	const char *dir;
	const struct ssb_plan *plan;
	struct abilities abilities;  /* what the plan allows, without the items in `declined` */
	struct string_list declined; /* begins with the items that were taken out earlier */
	struct skill_files files;
	bool pinned;              /* `files` is filled */
	const struct lock *fresh; /* its `allowed` is what the owner adds now; NULL: nothing */
	struct ssb_error no_pin;  /* why `pinned` is false */
};

/* Must be called first. Reads the files in `dir` (real path, absolute, borrowed). They are not read
 * again, so that exactly the files that are shown are approved. */
void consent_view_read(struct consent_view *v, const char *dir);
/* Must be called second. `plan` is a plan made with the owner's `options`; `declined` (may be NULL)
 * contains the items that were taken out earlier. Returns -1 if there is no memory. */
int consent_view_make(struct consent_view *v, const struct ssb_plan *plan,
                      const struct ssb_options *options, const struct string_list *declined);
void consent_view_done(struct consent_view *v);

/* Takes the ability with index `i` out. Returns -1 if there is no memory. */
int consent_view_decline(struct consent_view *v, size_t i);
/* Writes the owner's decision to `in`: everything that the plan lacks is given, and the items that
 * were taken out are declined. */
int consent_view_input(const struct consent_view *v, struct consent_input *in,
                       struct ssb_error *err);
size_t consent_view_never(const struct consent_view *v); /* counts items that nothing can grant */

/* These functions write to standard error. `title` is a text of this program, such as "was not
 * approved yet". */
void consent_show(const struct consent_view *v, const char *title);
void consent_show_abilities(const struct consent_view *v, bool numbered);
/* Shows what changed since the approval `before`, and says if its remembered grants no longer hold.
 * `now` contains all files of the skill. `fresh` is what the owner adds now, and `before` already
 * contains it, too; NULL: nothing. */
void consent_show_changes(const struct lock *before, const struct skill_files *now,
                          const struct ssb_plan *plan, const struct lock *fresh);

/* Writes the user's name and `through`, as in "root on terminal", to `out` and returns it. */
const char *consent_by(const struct owner *o, const char *through, char *out, size_t size);

#endif
