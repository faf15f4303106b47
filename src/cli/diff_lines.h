/* diff_lines.h - the lines of a file that changed since its skill was approved. */
#ifndef CLI_DIFF_LINES_H
#define CLI_DIFF_LINES_H

#include "consent/diff.h"

/* Of files that changed, and of new ones unless nothing is known to run them; of those too
 * with `all`. */
bool diff_has_lines(const struct file_change *f, bool all);
/* Appends a short unified diff of such a file; a new one is compared with nothing. `before` is
 * the snapshot's directory, `now` the skill's. Of a long line it shows the part that differs.
 * Where the file is not text, too large, or not the one that was hashed, a line says so. Every
 * byte of it is made visible. What is long is cut, and that is said, unless `all`; what is
 * very long is written to standard output on the way. */
void diff_lines(struct buf *out, const char *before, const char *now, const struct file_change *f,
                bool all);

#endif
