/* write.h - writes a manifest as text, with a reason after each line. manifest_parse() turns this
 * text back into the same manifest. No function here has side effects. */
#ifndef MANIFEST_WRITE_H
#define MANIFEST_WRITE_H

#include "base/buf.h"
#include "manifest/manifest.h"

/* Written instead of an entrypoint if there is none. */
#define WRITE_NO_ENTRY "# No entrypoint: the first argument of each run names the script.\n"

enum write_list { WRITE_EGRESS, WRITE_READ, WRITE_WRITE, WRITE_ENV, WRITE_OTHER, WRITE_LISTS };

/* A line that is written into a list as a comment, and requests nothing. */
struct write_aside {
	enum write_list list;
	const char *text; /* "~/.ssh/id_ed25519" */
	const char *why;
};

/* Notes that are written with the manifest; all borrowed, all optional. They may contain any bytes:
 * bytes that could end a comment or control a terminal are made visible. */
struct write_notes {
	const char *head; /* the first lines of the file */
	const char *const
	        *why[WRITE_LISTS]; /* the reason for each item of a list; not for WRITE_OTHER */
	const struct write_aside *asides; /* written in this order into their lists */
	size_t n_asides;
};

/* Appends the manifest. Keys that equal their default are omitted. `m` must be in the form that
 * manifest_parse() returns. If a text of the manifest cannot be expressed, `out` is marked
 * failed. */
void manifest_write(struct buf *out, const struct manifest *m, const struct write_notes *notes);

/* True if a manifest can contain the text: valid UTF-8, without control characters and
 * characters that change the text direction. */
bool manifest_can_say(const char *s);

/* Appends one text as a value, in quotes if YAML would otherwise read it as something else. If the
 * text cannot be expressed, `out` is marked failed. */
void manifest_put_text(struct buf *out, const char *s);

/* Appends a text to a comment. Whatever the text contains, the comment stays on its line. */
void manifest_put_comment(struct buf *out, const char *s);

#endif
