/* uri.h - the addresses of resources, and cursors of lists. Pure.
 *
 *   skillsandbox://runs/ID            a summary of a run
 *   skillsandbox://runs/ID/trace      its record
 *   skillsandbox://runs/ID/output     what it wrote
 *   ...?from=N                        a later page of the last two, named by the page before
 *   skillsandbox://skills/NAME        a manifest
 *   skillsandbox://skills/NAME/files  a skill's files, and which are not served
 *   skill://PATH/FILE                 a file of a skill (skill_entry.h)
 *
 * An address has exactly one spelling. Another spelling that decodes to the same is unknown, so
 * that nothing is checked in one form and used in another. */
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
	uint64_t from; /* where the page begins */
};

/* Reads an address; URI_NONE if it is not one of ours. The caller must pass *ret to uri_done() in
 * any case. */
void uri_read(struct uri *ret, const char *text);
void uri_done(struct uri *u);

/* Decodes the output of percent_encode(). Returns new, or NULL if the text has another spelling
 * than percent_encode() writes, or contains a NUL. */
char *uri_decode(const char *text, bool path);

/* Writes a cursor: a place in a list, for the client that asks for the next page. It is opaque, and
 * is checked when the client sends it back. */
void uri_cursor_write(struct buf *out, const char *place);
char *uri_cursor_read(const char *cursor); /* returns new; NULL: not a cursor of ours */

#endif
