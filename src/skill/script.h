/* script.h - decides how a script of a skill is started: by its first line, or by the ending of its
 * name. */
#ifndef SKILL_SCRIPT_H
#define SKILL_SCRIPT_H

#include "base/buf.h"
#include "base/limits.h"
#include "base/string_list.h"
#include "skillsandbox.h"

struct script {
	char *path;                         /* relative to the skill's directory, without "./" */
	char *words[MAX_SHEBANG_WORDS + 1]; /* the interpreter and its arguments; may be none */
	size_t n;
};

/* Finds the script that `word` names, and its interpreter. `dir` is an O_PATH fd of the skill's
 * directory (borrowed); `name` is the path of that directory, needed if `word` is absolute. The
 * script must be a regular file in the directory, and no symlink may lead out of it. On success
 * returns 0, and `ret` is new (script_done()). */
int script_find(int dir, const char *name, const char *word, struct script *ret,
                struct ssb_diags *diags, struct ssb_error *err);
void script_done(struct script *s);

/* Splits a first line "#!...", without its end, into words. Returns 0, or -1 if `text` is not such
 * a line. */
int script_read_shebang(const char *text, size_t len, struct script *ret);

/* Fills the empty list with the scripts that can be started, sorted: at most MAX_SCRIPT_NAMES.
 * Hidden files, and what is deeper than MAX_SCRIPT_DEPTH, are left out. */
void script_list(int dir, struct string_list *out);
/* Appends the same scripts, for people: "scripts/a.py, scripts/b.sh". Appends as
 * many names as fit and the number of the others, with unprintable bytes made visible. Appends
 * nothing if there are none. */
void script_names(int dir, struct buf *out);

#endif
