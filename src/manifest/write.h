/* write.h - a manifest as text: the reverse of parsing, with a reason after each line.
 * manifest_parse() reads the text as the same manifest. Without side effects. */
#ifndef MANIFEST_WRITE_H
#define MANIFEST_WRITE_H

#include "base/buf.h"
#include "manifest/manifest.h"

enum write_list { WRITE_EGRESS, WRITE_READ, WRITE_WRITE, WRITE_ENV, WRITE_OTHER, WRITE_LISTS };

/* A line that is shown in its list as a comment, and requests nothing. */
struct write_aside {
	enum write_list list;
	const char *text; /* "~/.ssh/id_ed25519" */
	const char *why;
};

/* Notes beside the manifest; all borrowed, all optional. They may contain any bytes: those
 * that could end a comment, or control a terminal, are made visible. */
struct write_notes {
	const char *head; /* the first lines of the file */
	const char *const
	        *why[WRITE_LISTS]; /* the reason for each item of a list; not for WRITE_OTHER */
	const struct write_aside *asides; /* those of one list in their order */
	size_t n_asides;
};

/* Appends the text. Keys that equal their default are omitted. `m` must be in the form that
 * manifest_parse() returns. The buffer has failed if a text of it cannot be expressed. */
void manifest_write(struct buf *out, const struct manifest *m, const struct write_notes *notes);

/* True if a manifest can contain the text: valid UTF-8, without control characters and
 * characters that change the text direction. */
bool manifest_can_say(const char *s);

/* Appends one text as a value, in quotes if YAML would take it for something else. The
 * buffer has failed if it cannot be expressed. */
void manifest_put_text(struct buf *out, const char *s);

/* Appends to a comment. The text never goes beyond the line, whatever it contains. */
void manifest_put_comment(struct buf *out, const char *s);

#endif
