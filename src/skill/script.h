/* script.h - how a script of a skill is started: by its first line, or by its ending. */
#ifndef SKILL_SCRIPT_H
#define SKILL_SCRIPT_H

#include "base/buf.h"
#include "base/limits.h"
#include "skillsandbox.h"

struct script {
	char *path;                         /* in the skill, without "./" */
	char *words[MAX_SHEBANG_WORDS + 1]; /* the words before it; may be none */
	size_t n;
};

/* Finds the script that `word` names. `dir` is an O_PATH fd of the skill's directory (borrowed),
 * `name` its path, for words that are absolute. The script must be a regular file in it, and no
 * symlink may lead out. */
int script_find(int dir, const char *name, const char *word, struct script *ret,
                struct ssb_diags *diags, struct ssb_error *err);
void script_done(struct script *s);

/* Splits a first line "#!...", without its end, into words. Returns 0, or -1 if it is not such a
 * line. Pure. */
int script_read_shebang(const char *text, size_t len, struct script *ret);

/* Appends "scripts/a.py, scripts/b.sh": the scripts that can be started, as many as fit, made
 * visible; "" if there are none. */
void script_names(int dir, struct buf *out);

#endif
