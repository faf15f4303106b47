/* diff.h - compares a skill with its approval: its files, and what it could do. Pure. */
#ifndef CONSENT_DIFF_H
#define CONSENT_DIFF_H

#include "base/json.h"
#include "consent/lock.h"

enum change { CHANGE_ADDED, CHANGE_REMOVED, CHANGE_CONTENT, CHANGE_MODE };

/* The kinds by importance: a list that is cut shows the most important files. */
enum file_kind { FILE_MANIFEST, FILE_ENTRY, FILE_EXECUTABLE, FILE_CODE, FILE_OTHER, FILE_KINDS };

struct file_change {
	enum change change;
	enum file_kind kind;
	const struct skill_file *before; /* borrowed; NULL: the file was added */
	const struct skill_file *now;    /* borrowed; NULL: the file was removed */
};

struct diff {
	struct file_change *files; /* sorted by kind, then by path */
	size_t n_files;
	struct string_list more; /* requests that are new */
	struct string_list less; /* requests that the skill does not make any more */
	bool same;               /* nothing changed */
};

/* Compares the approval with the skill as it is now. If the skill cannot be planned any more,
 * `plan` is NULL and only files are compared. *ret borrows from `before` and `now`; the caller must
 * pass it to diff_done(). Returns -1 if out of memory. */
int diff_make(const struct lock *before, const struct skill_files *now, const struct ssb_plan *plan,
              struct diff *ret);
void diff_done(struct diff *d);
/* Writes how the skill's requests changed, and at most `most` of the changed files (0: all). The
 * other files are only counted, by their kind. */
void diff_text(struct buf *out, const struct diff *d, bool color, size_t most);
/* The two parts of diff_text(): requests, and files. */
void diff_asks(struct buf *out, const struct diff *d, bool color);
void diff_files(struct buf *out, const struct diff *d, bool color, size_t most);
/* Counts the files from index `from` on by their kind, and writes "2 code, 5 other". */
void diff_kinds(struct buf *out, const struct diff *d, size_t from);
void diff_json(struct json *j, const struct diff *d);

#endif
