/* write.h - a manifest as text: the way back from struct manifest, with the reason of
 * each line behind it. What is written is read by manifest_parse() as the same
 * manifest. Pure. */
#ifndef MANIFEST_WRITE_H
#define MANIFEST_WRITE_H

#include "base/buf.h"
#include "manifest/manifest.h"

enum write_list { WRITE_EGRESS, WRITE_READ, WRITE_WRITE, WRITE_ENV, WRITE_OTHER, WRITE_LISTS };

/* A line that stands in its list as a comment: to be seen, and not asked for. */
struct write_aside {
	enum write_list list;
	const char *text; /* "~/.ssh/id_ed25519" */
	const char *why;
};

/* What stands beside the manifest; all borrowed, all may be absent. Any bytes: what
 * could end a comment, or steer a terminal, is made visible. */
struct write_notes {
	const char *head;                    /* the first lines of the file */
	const char *const *why[WRITE_LISTS]; /* of each item of the list; but WRITE_OTHER */
	const struct write_aside *asides;    /* those of a list in their order */
	size_t n_asides;
};

/* Appends the text; what is as it is without being said is left out. `m` must be as
 * manifest_parse() gives it. The buffer has failed where a text of it cannot be said. */
void manifest_write(struct buf *out, const struct manifest *m, const struct write_notes *notes);

/* No manifest can hold a text that is no UTF-8, has controls in it, or turns the
 * direction of what is read. */
bool manifest_can_say(const char *s);

/* Appends one text as a value: in quotes where YAML would take it for something else. The
 * buffer has failed where it cannot be said. */
void manifest_put_text(struct buf *out, const char *s);

/* Appends to a comment: never more than the rest of its line, whatever is in it. */
void manifest_put_comment(struct buf *out, const char *s);

#endif
