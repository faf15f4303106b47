/* script.h - how a script of a skill is started: by its first line, or its ending. */
#ifndef SKILL_SCRIPT_H
#define SKILL_SCRIPT_H

#include "base/buf.h"
#include "base/limits.h"
#include "skillsandbox.h"

struct script {
	char *path;                         /* in the skill, without "./" */
	char *words[MAX_SHEBANG_WORDS + 1]; /* what stands before it; may be none */
	size_t n;
};

/* `dir` is an O_PATH fd of the skill's directory (borrowed), `name` its path for
 * absolute words. The script is a regular file in there, and no symlink leads out. */
int script_find(int dir, const char *name, const char *word, struct script *ret,
                struct ssb_diags *diags, struct ssb_error *err);
void script_done(struct script *s);

/* The words of a first line "#!...", without its end: 0, or -1 where it is none. Pure. */
int script_read_shebang(const char *text, size_t len, struct script *ret);

/* "scripts/a.py, scripts/b.sh" of what can be started, as many as fit, made visible; ""
 * where there are none. */
void script_names(int dir, struct buf *out);

#endif
