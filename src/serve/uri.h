/* uri.h - the addresses of what can be read here, and cursors of lists. Pure.
 *
 *   skillsandbox://runs/ID            a run in short
 *   skillsandbox://runs/ID/trace      its record
 *   skillsandbox://runs/ID/output     what it wrote
 *   ...?from=N                        of these two: a later page, as one before named it
 *   skillsandbox://skills/NAME        a manifest
 *   skillsandbox://skills/NAME/files  a skill's files, and what of them is not served
 *   skill://PATH/FILE                 a file of a skill (skill_entry.h)
 *
 * An address has one spelling: what decodes to the same and is written otherwise is
 * unknown, so that nothing is judged in one form and used in another. */
#ifndef SERVE_URI_H
#define SERVE_URI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define URI_RUNS   "skillsandbox://runs/"
#define URI_SKILLS "skillsandbox://skills/"
#define URI_SKILL  "skill://"

enum uri_kind {
	URI_NONE,
	URI_RUN,
	URI_TRACE,
	URI_OUTPUT,
	URI_MANIFEST,
	URI_FILES,
	URI_SKILL_FILE,
};

struct uri {
	enum uri_kind kind;
	char *name;    /* new: the id, the skill's name decoded, or what follows skill:// */
	uint64_t from; /* of a page */
};

/* URI_NONE where it is none of ours; `ret` is done with uri_done() in any case. */
void uri_read(struct uri *ret, const char *text);
void uri_done(struct uri *u);

/* What percent_encode() made of it; NULL where it is not the one spelling of anything, or has a NUL
 * in it; else new. */
char *uri_decode(const char *text, bool path);

/* A place in a list, for whoever asks for the next page: opaque, and checked when it
 * comes back. */
void uri_cursor_write(struct buf *out, const char *place);
char *uri_cursor_read(const char *cursor); /* new; NULL: none of ours */

#endif
