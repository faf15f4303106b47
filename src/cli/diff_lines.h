/* diff_lines.h - the lines of a file that changed since its skill was approved. */
#ifndef CLI_DIFF_LINES_H
#define CLI_DIFF_LINES_H

#include "consent/diff.h"

/* Appends a short unified diff of a changed file: `before` is the snapshot's directory,
 * `now` the skill's. Where the file is no text, too large, or not the one that was hashed, a
 * line says so. Every byte of it is made visible. */
void diff_lines(struct buf *out, const char *before, const char *now, const struct file_change *f);

#endif
