/* diff.h - what changed since a skill was approved: its files, and what it could do. Pure. */
#ifndef CONSENT_DIFF_H
#define CONSENT_DIFF_H

#include "base/json.h"
#include "consent/lock.h"

enum change { CHANGE_ADDED, CHANGE_REMOVED, CHANGE_CONTENT, CHANGE_MODE };

struct file_change {
	enum change change;
	const struct pinned_file *before; /* NULL: added; borrowed, as the next */
	const struct pinned_file *now;
};

struct diff {
	struct file_change *files;
	size_t n_files;
	struct string_list more; /* it asks for these now, and did not before */
	struct string_list less;
	bool same;
};

/* `now` and `asked` are as they are now (plan->requested); NULL `asked`: it cannot be
 * planned any more, only files are compared. */
int diff_make(const struct lock *before, const struct pinned *now, const struct string_list *asked,
              struct diff *ret);
void diff_done(struct diff *d);
void diff_text(struct buf *out, const struct diff *d, bool color);
void diff_json(struct json *j, const struct diff *d);

#endif
