/* uri.h - the addresses of resources, and cursors of lists. Pure.
 *
 *   skillsandbox://runs/ID            a summary of a run
 *   skillsandbox://runs/ID/trace      the record of the run
 *   skillsandbox://runs/ID/output     the output of the run
 *   ...?from=N                        a later page of a trace or output; the page before gives N
 *   skillsandbox://skills/NAME        a manifest
 *   skillsandbox://skills/NAME/files  a skill's files, and which are not served
 *   skill://PATH/FILE                 a file of a skill (skill_entry.h)
 *
 * An address has exactly one spelling. Another spelling that decodes to the same address is
 * unknown, so that no address is checked in one spelling and used in another. */
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
	char *name;    /* new: the id, the decoded name of the skill, or the part after skill:// */
	uint64_t from; /* where the page begins */
};

/* Reads an address. The kind is URI_NONE if it is not an address of this server. The caller
 * must pass *ret to uri_done() in both cases. */
void uri_read(struct uri *ret, const char *text);
void uri_done(struct uri *u);

/* Decodes the output of percent_encode(). Returns new, or NULL if percent_encode() would write the
 * text in another way, or if it contains a NUL. */
char *uri_decode(const char *text, bool path);

/* Writes a cursor: a position in a list, which the client sends back to get the next page. The
 * cursor is opaque, and is checked when the client sends it back. */
void uri_cursor_write(struct buf *out, const char *place);
char *uri_cursor_read(const char *cursor); /* returns new; NULL: not written by this server */

#endif
