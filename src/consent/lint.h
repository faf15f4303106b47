/* lint.h - finds requests and contents of a skill that its owner should check.
 *
 * lint only reads; it executes nothing. It judges what is in the directory, not what is around
 * it: the same skill has the same findings on every machine. Each finding belongs to a rule, one
 * row of lint_rules.def, which also gives the best grade that a skill with this finding can have:
 *
 *   A  no effect stays after the run, and no data leaves the machine
 *   B  effects stay or data leaves, only at the places and hosts that the skill names
 *   C  it asks for more than most skills need, or is hard to judge
 *   D  files of yours that it can read can leave the machine, or code may stay after the run
 *   F  do not run it: it hides what it executes, or cannot be understood
 *
 * The grade of a skill is the grade of its worst finding. A skill without findings is not proved to
 * be harmless: the sandbox confines it, not lint. */
#ifndef CONSENT_LINT_H
#define CONSENT_LINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "skillsandbox.h"

enum lint_level { LINT_NOTE, LINT_WARNING, LINT_ERROR };

enum lint_id {
#define RULE(id, ...) LINT_##id,
#include "consent/lint_rules.def"
#undef RULE
	LINT_IDS
};

struct lint_rule {
	const char *id;   /* "SSB101"; never changed, and never used for another rule */
	const char *name; /* "wildcard-egress" */
	enum lint_level level;
	char grade;         /* the best grade with this finding; 'A': the grade stays as it is */
	const char *text;   /* what the rule is about */
	const char *remedy; /* what to do */
};

extern const struct lint_rule LINT_RULES[LINT_IDS];
const char *lint_level_name(enum lint_level l); /* "note", "warning", "error", as in SARIF */

struct lint_finding {
	enum lint_id id;
	enum lint_level level; /* the level of its rule; in prose at most a warning */
	char grade;
	char *file;    /* relative to the skill's directory; may contain any bytes */
	unsigned line; /* 0: the finding is about the whole file */
	char *text;    /* safe to print: bytes that control a terminal are escaped */
};

struct lint {
	char *dir;              /* the path as the caller wrote it */
	char *name;             /* the skill's own name; NULL: none */
	struct lint_finding *v; /* sorted by file, line and rule */
	size_t n;
	bool cut; /* there were more than MAX_LINT_FINDINGS */
	char grade;
};

/* Checks the skill in `dir`. *ret owns the findings; the caller must pass it to lint_done(). Fails
 * if `dir` is not a directory or contains no skill. Any fault in the skill is a finding, not an
 * error. */
int lint_skill(const char *dir, struct lint *ret, struct ssb_error *err);
void lint_done(struct lint *l);
/* Returns the worst level of all findings. If there are none, returns LINT_NOTE and *ret_any is
 * false. */
enum lint_level lint_worst(const struct lint *l, bool *ret_any);

/* Writes the findings for people. Each finding is "dir/file:line: level: text [SSB101 name]" and "
 * help: remedy"; the grade with its reasons follows. */
void lint_text(struct buf *out, const struct lint *l, bool color);
/* Writes the same as one JSON object. */
void lint_json(struct json *j, const struct lint *l);
/* Appends "dir/file", the place of the finding. */
void lint_path(struct buf *out, const struct lint *l, const struct lint_finding *f);

#endif
