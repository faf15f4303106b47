/* lint_priv.h - inside lint.h: the parts that find. */
#ifndef CONSENT_LINT_PRIV_H
#define CONSENT_LINT_PRIV_H

#include <stdint.h>

#include "consent/lint.h"
#include "manifest/manifest.h"

/* What a text is to its readers. */
enum lint_kind {
	LINT_CODE,  /* executed */
	LINT_PROSE, /* for people and models */
	LINT_DATA,
};

/* Adds, unless the same rule has been found often enough in this file already. `fmt`
 * may bring hostile text: it is made visible. */
void lint_add(struct lint *l, enum lint_id id, const char *file, unsigned line, const char *fmt,
              ...) __attribute__((format(printf, 5, 6)));
/* The same in a text for people: it does nothing by itself. */
void lint_add_prose(struct lint *l, enum lint_id id, const char *file, unsigned line,
                    const char *text);
/* Of "file:line:column"; 0: it names none. */
unsigned lint_line_of(const char *where);
/* That there is more than is kept: for this one there is room. */
void lint_add_cut(struct lint *l);

/* What a manifest asks for. Pure; `file` is where it stands. */
void lint_manifest(struct lint *l, const struct manifest *m, const char *file);
/* Every file beneath the directory (borrowed); without what version control keeps there,
 * unless `whole`. */
void lint_files(struct lint *l, int dir_fd, bool whole);
/* The entry point is in the directory, where it should be. */
void lint_entrypoint(struct lint *l, const struct manifest *m, const char *file, int dir_fd);
/* A word of it leads into what version control keeps there. */
bool lint_starts_foreign(const struct manifest *m, int dir_fd);

/* One file's bytes. Pure. */
void lint_bytes(struct lint *l, const char *file, bool executable, const char *bytes, size_t len);
/* Of text alone: what is done in it, or said to be done. */
void lint_idioms(struct lint *l, const char *file, enum lint_kind kind, const char *bytes,
                 size_t len);
/* Of a SKILL.md at the top of the skill alone. */
void lint_frontmatter(struct lint *l, const char *file, const char *bytes, size_t len);

/* One line, ready to be searched: in lower case. */
struct lint_line {
	const char *low;
	size_t len;
	const char *tight; /* the same without blanks */
	size_t tight_len;
	uint64_t has[4]; /* the bytes that are in it, a bit for each */
	unsigned no;     /* of its first line */
};

/* Calls `fn` for each; one that is too long comes in pieces that overlap. False: there is
 * no memory. */
typedef void lint_line_fn(void *arg, const struct lint_line *l);
bool lint_lines(const char *bytes, size_t len, enum lint_kind kind, lint_line_fn *fn, void *arg);
/* The first byte that is no blank, at or behind `at`; '\0': there is none. */
char lint_next(const char *line, size_t len, size_t at);
/* A row of a table in prose: its bars are no pipes. */
bool lint_is_row(const char *line, size_t len);

/* Where the first of the alternatives (separated by newlines) ends that stands at or
 * behind `from`; SIZE_MAX: none does. One that begins or ends with a letter, digit or
 * "_" is a whole word there; one with "^" in front is no member and no part of a path
 * either. */
size_t lint_find(const struct lint_line *l, bool tight, size_t from, const char *alternatives);
/* A pipe that goes on from `from` leads into an interpreter that runs what comes. */
bool lint_piped(const char *text, size_t len, size_t from);

#endif
