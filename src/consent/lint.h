/* lint.h - what a skill asks for, and holds, that its owner should look at twice.
 *
 * Reads only and executes nothing. What counts is what stands in the directory, not what
 * exists around it: the same skill has the same findings on every machine. A finding is
 * of a rule, one row of LINT_RULES, which also says to what grade it leads at best:
 *
 *   A  nothing of what it does outlives it, and nothing leaves
 *   B  something does, to places that it names
 *   C  it asks for more than most skills need, or is hard to judge
 *   D  what it can read of yours can leave, or code may stay behind
 *   F  nobody should run it: it hides what it executes, or cannot be understood
 *
 * The grade of a skill is the worst of its findings'. No finding proves a skill to be
 * harmless: what confines it is the sandbox. */
#ifndef CONSENT_LINT_H
#define CONSENT_LINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "skillsandbox.h"

enum lint_level { LINT_NOTE, LINT_WARNING, LINT_ERROR };

enum lint_id {
	/* the manifest */
	LINT_MANIFEST,
	LINT_DESCRIPTION,
	LINT_ENTRYPOINT,
	LINT_FRONTMATTER,
	/* what it asks for */
	LINT_NETWORK,
	LINT_WILDCARD,
	LINT_ADDRESS,
	LINT_RANGE,
	LINT_DROP,
	LINT_PORTS,
	LINT_READS,
	LINT_WRITES,
	LINT_WHOLE,
	LINT_STORE,
	LINT_CODE_DIR,
	LINT_SECRET,
	LINT_PERMISSIVE,
	LINT_LIMITS,
	/* what that comes to together */
	LINT_SECRET_OUT,
	LINT_SECRET_WIDE,
	LINT_READS_OUT,
	LINT_STORE_OUT,
	LINT_EXECUTED,
	LINT_CREDENTIAL_OUT,
	/* its files */
	LINT_SETUID,
	LINT_WORLD,
	LINT_SPECIAL,
	LINT_NATIVE,
	LINT_SYMLINK,
	LINT_PICKLE,
	LINT_PICKLE_RUNS,
	LINT_INCOMPLETE,
	/* what they say */
	LINT_BIDI,
	LINT_INVISIBLE,
	LINT_FETCHED,
	LINT_DECODED,
	LINT_DECODES,
	LINT_BLOB,
	LINT_SHELL_OUT,
	LINT_RAW_TCP,
	LINT_STAYS,
	LINT_KEYS,
	LINT_KEYS_OUT,
	LINT_ENVIRONMENT,
	LINT_METADATA,
	LINT_BOMB,
	LINT_LOADS,
	LINT_PROMPT,
	LINT_IDS
};

struct lint_rule {
	const char *id;   /* "SSB101": for good */
	const char *name; /* "wildcard-egress" */
	enum lint_level level;
	char grade;         /* what it leads to; 'A': it does not count */
	const char *text;   /* what it is about, in general */
	const char *remedy; /* what to do */
};

extern const struct lint_rule LINT_RULES[LINT_IDS];
const char *lint_level_name(enum lint_level l); /* "note", "warning", "error", as SARIF has it */

struct lint_finding {
	enum lint_id id;
	enum lint_level level; /* the rule's; in a text for people at most a warning */
	char grade;
	char *file;    /* from the skill's directory on: hostile bytes */
	unsigned line; /* 0: of the whole file */
	char *text;    /* visible */
};

struct lint {
	char *dir;              /* as it was named */
	char *name;             /* the skill's own; NULL: it has none */
	struct lint_finding *v; /* by file, line and rule */
	size_t n;
	bool cut; /* there were more than MAX_LINT_FINDINGS */
	char grade;
};

/* -1: it is no directory, or there is no skill in it. What is wrong with the skill is a
 * finding. */
int lint_skill(const char *dir, struct lint *ret, struct ssb_error *err);
void lint_done(struct lint *l);
enum lint_level lint_worst(const struct lint *l, bool *ret_any);

/* "dir/file:line: level: text [SSB101 name]", "  help: remedy"; then the grade with its
 * reasons. */
void lint_text(struct buf *out, const struct lint *l);
/* One object. */
void lint_json(struct json *j, const struct lint *l);
/* "dir/file" */
void lint_path(struct buf *out, const struct lint *l, const struct lint_finding *f);

#endif
