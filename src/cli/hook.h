/* hook.h - decides about a shell command that an agent wants to run.
 *
 *   it only looks (cat, grep, ls)                    passes
 *   it is one simple command that starts a skill     becomes `skillsandbox run`
 *   anything else that names or may name a skill,
 *   or that is for the owner to decide               the user is asked
 *   all others                                       pass
 *
 * This keeps a skill that is started by its name from running without the sandbox. It confines
 * nothing: it does not see a name that is encoded, copied by an earlier command, or put together by
 * a program. */
#ifndef CLI_HOOK_H
#define CLI_HOOK_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/string_list.h"

enum hook_answer { HOOK_PASS, HOOK_REWRITE, HOOK_ASK };

/* Of these, all but the first three may be NULL: not known. */
struct hook_question {
	const char *command, *self;         /* the line, and our own executable */
	const char *cwd;                    /* absolute */
	const char *home, *path;            /* HOME, PATH */
	const char *project;                /* CLAUDE_PROJECT_DIR */
	bool cdpath;                        /* CDPATH is set: `cd` may lead anywhere */
	const char *config_dir, *state_dir; /* the owner's */
};

/* `text` must be initialised; it gets the new command, or the reason. */
enum hook_answer hook_judge(const struct hook_question *q, struct buf *text);

/* Returns its argument; without memory, ends the process with the status that blocks a command. */
void *hook_must(void *memory);

/* ---- hook_line.c: reads a line of shell, without a shell and without files ------------------- */

#define HOOK_MASK "\1"

/* POSIX extended regular expressions for a part of a word in a simple command. */
#define HOOK_NAME     "[A-Za-z_][A-Za-z0-9_]*"
#define HOOK_VARIABLE "[$](" HOOK_NAME "|[{]" HOOK_NAME "[}]|[0-9@*#?!-])"
#define HOOK_BARE     "[^[:space:][:cntrl:]'\"\\$`(){}<>;|&#]"
#define HOOK_DOUBLE   "\"([^\"$`\\]|\\\\.|" HOOK_VARIABLE ")*[$]?\""
#define HOOK_BRACES   "[{][^[:space:]'\"\\$`(){}<>;|&]*[}]"
#define HOOK_WORD                                                                                  \
	"(" HOOK_BARE "#*|\\\\.|" HOOK_VARIABLE "|'[^']*'|" HOOK_DOUBLE "|" HOOK_BRACES ")"

/* How quotes and backslashes are read. */
enum hook_reading {
	HOOK_SHOWN, /* as a shell reads them; special characters between them are HOOK_MASK */
	HOOK_FLAT,  /* they vanish: 'a b' is two words, a\b is one; then again, as HOOK_SPLIT */
	HOOK_SPLIT, /* they separate words */
};

/* A variable, and its value if it is known. "HOME" is also "~". */
struct hook_name {
	const char *name, *value;
};

/* Returns the words of the line between single blanks, with " ; " at both ends; new. Substitutions,
 * subshells and here documents are commands like all others. A list is joined by ";", a pipe by
 * "|", redirections are "<" and ">", and an unknown value is "$". `names` ends with a NULL name. */
char *hook_line_read(const char *line, size_t len, const struct hook_name names[],
                     enum hook_reading how);

/* Does the text match the POSIX extended regular expression? `groups` may be NULL. */
bool hook_line_find(const char *text, const char *ere, size_t n, regmatch_t groups[]);
static inline bool hook_line_matches(const char *text, const char *ere)
{
	return hook_line_find(text, ere, 0, NULL);
}

/* ---- hook_skill.c: which skill words name; looks at the file system, changes nothing --------- */

struct hook_skills {
	const struct hook_question *q; /* borrowed */
	char *project;                 /* the real path; its SKILL.md does not make it a skill */
	char *own[2];                  /* the owner's own directories */
	struct string_list bins;       /* directories where programs are */
	struct string_list places;     /* directories that relative names may start from */
	struct string_list roots; /* directories where skills may be: "skills", ".claude/skills" */
	bool unsure;              /* there are too many places: any line may name a skill */
	size_t walked;            /* directory entries that were searched for skills */
	bool names_own;           /* a word leads into the owner's own directories */
	bool names_us;            /* a word is our own program, whatever its name is */
	char *found;              /* the directory of the first skill that was found, or NULL */
};

/* Fills the struct in, except `q`. The first place is the question's directory. */
void hook_skill_init(struct hook_skills *s);
void hook_skill_done(struct hook_skills *s);

/* Does a path, a pattern or a part of a word in the text lead, from any place, into a skill, or
 * contain the name of one that is known there? Each directory becomes a place. */
bool hook_skill_names(struct hook_skills *s, const char *text);

/* Is a skill in a place, at any depth, or is that too large to know? */
bool hook_skill_below(struct hook_skills *s);

/* The directory of the skill that the path leads to from a place; new. NULL if it leads to none.
 * `ret_name` is the path of the file in the skill; new, "" for the skill itself. */
char *hook_skill_at(const struct hook_skills *s, const char *path, char **ret_name);

/* Does `skillsandbox run` start the file, by an interpreter of the same language ("": as the file
 * says)? If so, appends what `run` needs: the directory, " --" if arguments
 * follow (`more`), the script. */
bool hook_skill_run(const struct hook_skills *s, const char *interpreter, const char *file,
                    bool more, struct buf *out);

/* ---- hook_reason.c: says what the user is asked about -----------------------------------------
 */

/* Does the text of a line, as hook_line_read() returns it, contain one of our commands that only
 * the owner may decide about? If so, appends what it would do. */
bool hook_reason_decision(const struct hook_skills *s, const char *text, struct buf *out);

/* Appends which file of which skill the line may start, and how to run it in the sandbox. `named`:
 * the line names the skill. */
void hook_reason_skill(const struct hook_skills *s, const struct hook_name names[], bool named,
                       struct buf *out);

/* Options that grant something; those of them that take the next word as their value; and a command
 * of ours with one in front of "--". An ERE, each. */
#define HOOK_VALUED       "read|write|net|env|policy|allow-private|best-effort|rootfs|image|preset"
#define HOOK_GRANTING     "(-[a-z]*[rw]|--(" HOOK_VALUED "|project|cache|connect|sidecar|unix-sockets))"
#define HOOK_GRANTS(call) call " (([^-;| ]|-[^- ;|]|--[^ ;|])[^ ]* )*" HOOK_GRANTING

#endif
