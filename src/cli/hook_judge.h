/* hook_judge.h - decides about a shell command that an agent wants to run.
 *
 *   it only looks (cat, grep, ls)                       passes
 *   it starts a skill as the skill would                becomes `skillsandbox run`
 *   one simple command that starts a skill otherwise    is denied, with what to call instead
 *   anything else that names or may name a skill,
 *   or that is for the owner to decide                  the user is asked
 *   all others                                          pass
 *
 * Only simple commands are understood (hook_line.h). This keeps a skill that is started by its name
 * from running without the sandbox. It confines nothing: it does not see a name that is encoded,
 * copied by an earlier command, or put together by a program. */
#ifndef CLI_HOOK_JUDGE_H
#define CLI_HOOK_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum hook_answer { HOOK_PASS, HOOK_REWRITE, HOOK_ASK, HOOK_DENY };

struct hook_question {
	const char *command;
	size_t len;
	const char *cwd;        /* absolute */
	const char *home;       /* NULL: not known */
	const char *project;    /* CLAUDE_PROJECT_DIR; NULL: not known */
	const char *path;       /* PATH; NULL: not known */
	bool cdpath;            /* CDPATH is set: `cd` may lead anywhere */
	const char *config_dir; /* the owner's; NULL: not known */
	const char *state_dir;  /* the owner's; NULL: not known */
	const char *self;       /* our own executable */
};

/* `text` must be initialised; it gets the new command, or the reason. */
enum hook_answer hook_judge(const struct hook_question *q, struct buf *text);

#endif
