/* remedy.h - writes the exact change that would allow a denied attempt. */
#ifndef REPORT_REMEDY_H
#define REPORT_REMEDY_H

#include "trace/reader.h"
#include "base/buf.h"

/* Appends the remedy that the record contains, or else one that is made from the attempt. Appends
 * nothing if there is none. The text is escaped and quoted for a shell, because a skill chooses its
 * paths, and people copy the text that they read. */
void remedy_text(struct buf *out, const struct line *l);

#endif
