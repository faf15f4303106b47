/* diff_lines.h - the lines of a file that changed since its skill was approved. */
#ifndef CLI_DIFF_LINES_H
#define CLI_DIFF_LINES_H

#include "consent/diff.h"

/* True for files that changed, and for new files that may be run; with `all` for every new file. */
bool diff_has_lines(const struct file_change *f, bool all);
/* Appends a short unified diff of such a file; a new file is compared with an empty one. `before`
 * is the directory of the snapshot, `now` that of the skill. A long line is shown in part, where it
 * differs. A line says so if the file is not text, too large, or not the file that was hashed.
 * Every byte is made visible. Long output is cut, with a note, unless `all`; very long output is
 * written to standard output before the function returns. */
void diff_lines(struct buf *out, const char *before, const char *now, const struct file_change *f,
                bool all);

#endif
