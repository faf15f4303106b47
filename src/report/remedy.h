/* remedy.h - writes the exact change that would allow a denied attempt. */
#ifndef REPORT_REMEDY_H
#define REPORT_REMEDY_H

#include "trace/reader.h"
#include "base/buf.h"
#include "skillsandbox.h"

/* What the first flag of a remedy grants. */
enum remedy_grant { REMEDY_GRANTS_OTHER, REMEDY_GRANTS_WRITE, REMEDY_GRANTS_NET };

/* Appends the remedy that the record contains, or else one that is made from the attempt or from
 * the limit. `bare` is true for a command without a manifest. Appends nothing if there is no
 * remedy. The text is escaped and quoted for a shell, because a skill chooses its paths, and people
 * copy the text that they read. */
enum remedy_grant remedy_text(struct buf *out, const struct line *l, bool bare);

/* Returns the option and the value (new) with which an approval could remember the remedy; NULL: it
 * cannot be remembered. The value comes from the skill, and is not checked. */
char *remedy_value(const struct line *l, enum ssb_option *ret_option);

#endif
