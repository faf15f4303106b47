/* limit_text.h - names the limit of a run that was reached: its value, and how to allow more.
 *
 * Everything that tells people about a limit uses these functions. The facts are members of the
 * line: "limit" (the name in the manifest), "value", "seen", "refused", "stream". */
#ifndef REPORT_LIMIT_TEXT_H
#define REPORT_LIMIT_TEXT_H

#include <stdbool.h>

#include "base/buf.h"
#include "trace/reader.h"

/* Returns whether the line names a limit that this version knows. The other functions need that. */
bool limit_text_known(const struct line *l);

/* Appends what happened: "the private disk (64 MiB) was full". */
void limit_text_what(struct buf *out, const struct line *l);

/* Appends the limit with its value: "64 connections". */
void limit_text_value(struct buf *out, const struct line *l);

/* Appends the flag and the field of the manifest with a larger value: "--max-disk 128M, or
 * resources.max_disk_mb: 128 in the manifest". `bare` is true for a command without a manifest. */
void limit_text_remedy(struct buf *out, const struct line *l, bool bare);

#endif
