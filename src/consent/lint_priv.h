/* lint_priv.h - shared by the parts of lint: functions that add findings, and functions that
 * search. */
#ifndef CONSENT_LINT_PRIV_H
#define CONSENT_LINT_PRIV_H

#include <stdint.h>

#include "consent/lint.h"
#include "manifest/manifest.h"

/* What a text is for. */
enum lint_kind {
	LINT_CODE,  /* executed */
	LINT_PROSE, /* text that people and models read */
	LINT_DATA,
};

/* Adds a finding, unless `file` has MAX_LINT_SAME of this rule already. The formatted text may
 * contain hostile bytes: they are made visible. All findings of one file must be added in one
 * sequence. */
void lint_add(struct lint *l, enum lint_id id, const char *file, unsigned line, const char *fmt,
              ...) __attribute__((format(printf, 5, 6)));
/* Like lint_add(), for prose, which executes nothing: the finding is less severe, and allows a
 * better grade. */
void lint_add_prose(struct lint *l, enum lint_id id, const char *file, unsigned line,
                    const char *text);
/* Returns the line of a place "file:line:column", or 0 if the place has no line. */
unsigned lint_line_of(const char *where);
/* Adds the finding that further findings were dropped. There is always room for it. */
void lint_add_cut(struct lint *l);

/* Checks the requests of a manifest. Pure; `file` is the name of the manifest's file. */
void lint_manifest(struct lint *l, const struct manifest *m, const char *file);
/* Checks that the directory (borrowed) contains the program that the manifest starts. */
void lint_entrypoint(struct lint *l, const struct manifest *m, const char *file, int dir_fd);
/* Returns true if a word of the command names a file that version control keeps in the skill
 * (".git"). */
bool lint_starts_foreign(const struct manifest *m, int dir_fd);

/* Checks one file's bytes. Pure. */
void lint_bytes(struct lint *l, const char *file, bool executable, const char *bytes, size_t len);
/* Checks text, line by line, for suspicious actions and instructions. */
void lint_idioms(struct lint *l, const char *file, enum lint_kind kind, const char *bytes,
                 size_t len);

/* One line, ready for searching. */
struct lint_line {
	const char *low; /* the line in lower case */
	size_t len;
	const char *tight; /* `low` without blanks */
	size_t tight_len;
	uint64_t has[4]; /* one bit for each byte value that `low` contains */
	unsigned no;     /* number of its first line in the file: a shell may join several */
};

/* Calls `fn` for each line. Lines that a shell joins are one line. Comments in code are skipped,
 * because they execute nothing. A line that is too long is passed in pieces that overlap. Returns
 * false if out of memory. */
typedef void lint_line_fn(void *arg, const struct lint_line *l);
bool lint_lines(const char *bytes, size_t len, enum lint_kind kind, lint_line_fn *fn, void *arg);
/* Returns the first byte at or after `at` that is not a blank, or '\0' if there is none. */
char lint_next(const char *line, size_t len, size_t at);
/* Returns true if the line is a row of a table in prose: its bars are not pipes. */
bool lint_is_row(const char *line, size_t len);

/* Returns where the first match at or after `from` ends; SIZE_MAX if there is none.
 * `alternatives` are separated by newlines. An alternative that begins or ends with a letter,
 * digit or "_" matches only whole words at that end. If it begins with "^", it also does not
 * match a member ("a.exec") or a part of a path. */
size_t lint_find(const struct lint_line *l, bool tight, size_t from, const char *alternatives);
/* Returns true if a pipe behind `from` leads into an interpreter that executes its input. */
bool lint_piped(const char *text, size_t len, size_t from);

#endif
