/* hook_skill.h - which skill's file a word of a command line names, and whether it
 * is what the skill itself would start. Looks at the file system, changes nothing. */
#ifndef CLI_HOOK_SKILL_H
#define CLI_HOOK_SKILL_H

#include <limits.h>
#include <stdbool.h>

#include "cli/shell_words.h"
#include "skillsandbox.h"

/* Directories that relative names of one command line may start from: where it
 * begins, and wherever it changes to. Real paths. */
struct hook_places {
	char *v[16]; /* MAX_HOOK_PLACES */
	size_t n;
	bool too_many;
	const char *home; /* what "~/" means to a program that is given it; borrowed */
	/* Where the agent works, a real path of its own; may be NULL. A SKILL.md there says
	 * how the project is used, and does not make all of its files a skill's. */
	char *project;
};

void hook_places_add(struct hook_places *p, const char *dir, const struct shell_word *to);
void hook_places_done(struct hook_places *p);

/* The nearest directory that is a skill, of any format, at or above what `path` names (from
 * `dir` where it is relative): by its real place, else by the place of its name.
 * *ret is new. False: not of a skill. */
bool hook_skill_of(const struct hook_places *p, const char *dir, const char *path, char **ret);
/* Is the directory itself one? */
bool hook_is_skill(const struct hook_places *p, const char *dir);

/* Does the word name, from any of the places, a skill's file or directory: itself, a
 * part of it, or one of the names that it may stand for? *ret (where not NULL yet)
 * is the skill's directory, new. */
bool hook_word_names(const struct hook_places *p, const struct shell_word *w, char **ret);
/* The same of a text that is no word. */
bool hook_text_names(const struct hook_places *p, const char *text, size_t len, char **ret);

/* Does a text name a skill's file in the way of Python, with dots: skills.x.main? */
bool hook_module_names(const struct hook_places *p, const char *text, char **ret);

/* What a line starts. All borrowed. */
struct hook_start {
	const char *script;      /* a real path */
	const char *interpreter; /* that it is given to; NULL: it is started itself */
	const struct shell_word *args;
	size_t n_args;
};

/* Is it what the skill itself would start, with the same interpreter? *ret_fixed counts
 * the arguments that its manifest gives; they must lead those of the line. *ret_named
 * (new, or NULL) is the script where a run of the skill has to name it, as of a SKILL.md.
 * `config_dir` is where the owner's own manifests are; may be NULL. */
bool hook_is_entry(const char *skill, const char *config_dir, const struct hook_start *s,
                   size_t *ret_fixed, char **ret_named);

/* Has each run of the skill to name a script? */
bool hook_names_script(const char *skill, const char *config_dir);

#endif
