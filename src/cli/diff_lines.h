/* diff_lines.h - shows the lines of a file that changed since its skill was approved. */
#ifndef CLI_DIFF_LINES_H
#define CLI_DIFF_LINES_H

#include "consent/diff.h"

/* Returns whether diff_lines() shows the file. It does if the file changed, or is new and may be
 * run. With `all` it also shows every other new file. */
bool diff_has_lines(const struct file_change *f, bool all);
/* Appends a short unified diff of the file; a new file is compared with an empty one. `before` is
 * the directory of the snapshot, `now` the directory of the skill. Of a long line only the part
 * that differs is shown. If the file is not text, too large, or not the file that was hashed, one
 * line says so. Every byte is made visible. Unless `all` is set, long output is cut, with a note.
 * Very long output is written to standard output before the function returns. */
void diff_lines(struct buf *out, const char *before, const char *now, const struct file_change *f,
                bool all);

#endif
