/* diff.h - what changed since a skill was approved: its files, and what it could do. Pure. */
#ifndef CONSENT_DIFF_H
#define CONSENT_DIFF_H

#include "base/json.h"
#include "consent/lock.h"

enum change { CHANGE_ADDED, CHANGE_REMOVED, CHANGE_CONTENT, CHANGE_MODE };

/* What matters most comes first: a list that is cut must not hide it. */
enum file_kind { FILE_MANIFEST, FILE_ENTRY, FILE_EXECUTABLE, FILE_CODE, FILE_OTHER, FILE_KINDS };

struct file_change {
	enum change change;
	enum file_kind kind;
	const struct skill_file *before; /* NULL: added; borrowed, as the next */
	const struct skill_file *now;
};

struct diff {
	struct file_change *files; /* by kind, then by path */
	size_t n_files;
	struct string_list more; /* it asks for these now, and did not before */
	struct string_list less;
	bool same;
};

/* `now` and `plan` are as they are now; NULL `plan`: it cannot be planned any more, only
 * files are compared. */
int diff_make(const struct lock *before, const struct skill_files *now, const struct ssb_plan *plan,
              struct diff *ret);
void diff_done(struct diff *d);
/* What it asks for, and `most` of the files (0: all); others are counted by their kind. */
void diff_text(struct buf *out, const struct diff *d, bool color, size_t most);
/* The same in two parts. */
void diff_asks(struct buf *out, const struct diff *d, bool color);
void diff_files(struct buf *out, const struct diff *d, bool color, size_t most);
/* "2 code, 5 other": the kinds of the files from number `from` on. */
void diff_kinds(struct buf *out, const struct diff *d, size_t from);
void diff_json(struct json *j, const struct diff *d);

#endif
