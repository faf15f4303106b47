/* hook_skill.h - which skill's file a word of a command line names, and whether the skill itself
 * would start it. Looks at the file system, changes nothing. */
#ifndef CLI_HOOK_SKILL_H
#define CLI_HOOK_SKILL_H

#include "cli/hook_line.h"

/* Directories that relative names of one line may start from, all real paths: the one where the
 * line begins, and each one to which it changes. */
struct hook_skill_places {
	char *v[16]; /* MAX_HOOK_PLACES */
	size_t n;
	bool too_many;
	const char *home; /* what "~/" means within quoted text; borrowed, may be NULL */
	/* Where the agent works; may be NULL. A SKILL.md there describes the project: it does not
	 * make all of the project's files a skill's. */
	char *project;
	size_t walked; /* directory entries that hook_skill_below() examined */
	char *without; /* the directory where it found no skill last */
};

/* Is the directory itself a skill: has it anything with the name of a manifest? */
bool hook_skill_is_one(const struct hook_skill_places *p, const char *dir);

/* Adds `to`, which is relative to each of the places; of a pattern, each directory that matches. */
void hook_skill_add_place(struct hook_skill_places *p, const struct hook_word *to);
void hook_skill_places_done(struct hook_skill_places *p);

/* Does the word name, from any of the places, a skill's file or directory: itself, a part of it, or
 * a name that it may stand for? *ret is the skill's directory, new; it stays if it is set. */
bool hook_skill_names(const struct hook_skill_places *p, const struct hook_word *w, char **ret);

/* Is a skill in the directory that the word names, at any depth, or is that too large to know? Of a
 * pattern, the directory before its first wildcard counts. */
bool hook_skill_below(struct hook_skill_places *p, const struct hook_word *w, char **ret);

struct hook_skill_start {
	char *skill;      /* its directory; new */
	char *script;     /* new; set if the run has to name it, as of a SKILL.md; else NULL */
	size_t arguments; /* the first word that is an argument of the caller */
};

/* Do the words start in the directory `dir` what the skill itself would start, with the same
 * interpreter? `config_dir` is where the owner's own manifests are; may be NULL. */
bool hook_skill_is_start(const struct hook_skill_places *p, const char *dir, const char *config_dir,
                         const struct hook_command *words, bool interpreted,
                         struct hook_skill_start *ret);

/* Must each run of the skill name a script? */
bool hook_skill_needs_script(const char *skill, const char *config_dir);

#endif
