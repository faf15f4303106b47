/* remedy.h - the exact change that would allow what was denied. */
#ifndef REPORT_REMEDY_H
#define REPORT_REMEDY_H

#include "trace/reader.h"
#include "base/buf.h"

/* Appends the remedy that the record names, or else one made from what was tried; nothing if
 * there is none. It is escaped, and quoted for a shell: a skill chooses its paths, and people
 * copy what they read. */
void remedy_text(struct buf *out, const struct line *l);

#endif
