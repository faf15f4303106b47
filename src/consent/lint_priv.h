/* lint_priv.h - the parts of lint: what adds findings, and what looks for them. */
#ifndef CONSENT_LINT_PRIV_H
#define CONSENT_LINT_PRIV_H

#include <stdint.h>

#include "consent/lint.h"
#include "manifest/manifest.h"

/* What a text is for. */
enum lint_kind {
	LINT_CODE,  /* executed */
	LINT_PROSE, /* for people and models */
	LINT_DATA,
};

/* Adds a finding, unless `file` has MAX_LINT_SAME of this rule already. The formatted text may
 * contain hostile bytes: they are made visible. All findings of one file must be added in one
 * sequence. */
void lint_add(struct lint *l, enum lint_id id, const char *file, unsigned line, const char *fmt,
              ...) __attribute__((format(printf, 5, 6)));
/* The same in prose, which executes nothing: less severe, and with a better grade. */
void lint_add_prose(struct lint *l, enum lint_id id, const char *file, unsigned line,
                    const char *text);
/* The line of a place "file:line:column"; 0 if it names none. */
unsigned lint_line_of(const char *where);
/* Adds the finding that there are more findings than are kept. There is always room for it. */
void lint_add_cut(struct lint *l);

/* Looks at what a manifest asks for. Pure; `file` is the name of the manifest's file. */
void lint_manifest(struct lint *l, const struct manifest *m, const char *file);
/* Checks that the program that the manifest starts is in the directory (borrowed). */
void lint_entrypoint(struct lint *l, const struct manifest *m, const char *file, int dir_fd);
/* Does a word of the command name a file that version control keeps in the skill (".git")? */
bool lint_starts_foreign(const struct manifest *m, int dir_fd);

/* Looks at one file's bytes. Pure. */
void lint_bytes(struct lint *l, const char *file, bool executable, const char *bytes, size_t len);
/* Looks at text, line by line, for what it does or says should be done. */
void lint_idioms(struct lint *l, const char *file, enum lint_kind kind, const char *bytes,
                 size_t len);

/* One line, ready for searching. */
struct lint_line {
	const char *low; /* in lower case */
	size_t len;
	const char *tight; /* the same without blanks */
	size_t tight_len;
	uint64_t has[4]; /* one bit for each byte value that `low` contains */
	unsigned no;     /* number of its first line in the file */
};

/* Calls `fn` for each line. Lines that a shell joins are one line here; a comment in code is
 * skipped, because it does nothing; a line that is too long comes in pieces that overlap. False:
 * out of memory. */
typedef void lint_line_fn(void *arg, const struct lint_line *l);
bool lint_lines(const char *bytes, size_t len, enum lint_kind kind, lint_line_fn *fn, void *arg);
/* The first byte at or after `at` that is not a blank; '\0' if there is none. */
char lint_next(const char *line, size_t len, size_t at);
/* Is this a row of a table in prose? Its bars are not pipes. */
bool lint_is_row(const char *line, size_t len);

/* Returns where the first match at or after `from` ends; SIZE_MAX if there is none. `alternatives`
 * are separated by newlines. An alternative that begins or ends with a letter, digit or "_" matches
 * only whole words at that end. "^" in front of it means that it must not be a member ("a.exec") or
 * part of a path either. */
size_t lint_find(const struct lint_line *l, bool tight, size_t from, const char *alternatives);
/* Does a pipe behind `from` lead into an interpreter that executes its input? */
bool lint_piped(const char *text, size_t len, size_t from);

#endif
