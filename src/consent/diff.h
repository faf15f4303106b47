/* diff.h - what changed since a skill was approved: its files, and what it could do. Pure. */
#ifndef CONSENT_DIFF_H
#define CONSENT_DIFF_H

#include "base/json.h"
#include "consent/lock.h"

enum change { CHANGE_ADDED, CHANGE_REMOVED, CHANGE_CONTENT, CHANGE_MODE };

/* The most important kind comes first: a list that is cut must not hide it. */
enum file_kind { FILE_MANIFEST, FILE_ENTRY, FILE_EXECUTABLE, FILE_CODE, FILE_OTHER, FILE_KINDS };

struct file_change {
	enum change change;
	enum file_kind kind;
	const struct skill_file *before; /* borrowed; NULL: added */
	const struct skill_file *now;    /* borrowed; NULL: removed */
};

struct diff {
	struct file_change *files; /* sorted by kind, then by path */
	size_t n_files;
	struct string_list more; /* what it asks for now and did not before */
	struct string_list less; /* what it does not ask for any more */
	bool same;               /* nothing changed */
};

/* Compares the approval with the skill as it is now. If `plan` is NULL, because the skill cannot be
 * planned any more, only files are compared. *ret borrows from `before` and `now`; the caller must
 * pass it to diff_done(). -1: out of memory. */
int diff_make(const struct lock *before, const struct skill_files *now, const struct ssb_plan *plan,
              struct diff *ret);
void diff_done(struct diff *d);
/* Writes what the skill asks for, and at most `most` of the files (0: all). Others are counted by
 * their kind. */
void diff_text(struct buf *out, const struct diff *d, bool color, size_t most);
/* The two parts of diff_text(). */
void diff_asks(struct buf *out, const struct diff *d, bool color);
void diff_files(struct buf *out, const struct diff *d, bool color, size_t most);
/* "2 code, 5 other": the kinds of the files from number `from` on. */
void diff_kinds(struct buf *out, const struct diff *d, size_t from);
void diff_json(struct json *j, const struct diff *d);

#endif
