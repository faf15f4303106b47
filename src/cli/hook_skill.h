/* hook_skill.h - which skill's file a word of a command line names, and whether the skill itself
 * would start it. Looks at the file system, changes nothing. */
#ifndef CLI_HOOK_SKILL_H
#define CLI_HOOK_SKILL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/string_list.h"

/* Where one line may run, and which skills are known there. */
struct hook_skills {
	/* Directories that relative names may start from, all real paths: the one where the line
	 * begins, and each one to which it changes. */
	struct string_list places;
	struct string_list names; /* of known skills: "pdf" */
	struct string_list roots; /* of directories that contain these: "skills", ".claude" */
	bool unsure;              /* memory is out or a cap is passed: any line may name a skill */
	/* Where the agent works; may be NULL. A SKILL.md there describes the project: it does not
	 * make all of the project's files a skill's. */
	char *project;
	struct string_list own;      /* the owner's own directories, and their real paths */
	bool only_own;               /* hook_skill_names() looks for these, and not for skills */
	size_t matched;              /* names that patterns read and matched */
	size_t looked;               /* names of files that hook_skill_names() examined */
	struct string_list patterns; /* that name no skill */
	size_t walked;               /* directory entries that hook_skill_below() examined */
	struct string_list without;  /* directories in which it found no skill */
	char *found; /* the directory of the first skill that a function found; NULL: none */
};

void hook_skill_done(struct hook_skills *s);

/* Adds a directory of the owner's own files; NULL: none. */
void hook_skill_keep(struct hook_skills *s, const char *dir);

/* Adds the directory, which is relative to each of the places; of a pattern, all that match. */
void hook_skill_enter(struct hook_skills *s, const char *dir);

/* Learns the names of the skills of each place, the directories above it, the project and the home
 * (may be NULL): those in their `skills` and `.claude/skills`. */
void hook_skill_learn(struct hook_skills *s, const char *home);

/* Does the path, the pattern or a part of the word lead, from any of the places, into a skill? */
bool hook_skill_names(struct hook_skills *s, const char *word);

/* Does the flat text (hook_line.h) contain the name of a known skill as that of a directory? The
 * directory above it may be unknown. */
bool hook_skill_mentions(const struct hook_skills *s, const char *flat);

/* Is a skill in the directory that the word names, at any depth, or is that too large to know? Of a
 * pattern or variable, the directory before it counts. */
bool hook_skill_below(struct hook_skills *s, const char *word);

/* Do the words, literal, start in the first place what the skill itself would start, with the same
 * interpreter? If so, appends the arguments of `skillsandbox run`. `config_dir` is where the
 * owner's own manifests are; may be NULL. */
bool hook_skill_run(struct hook_skills *s, const char *config_dir, char *const words[],
                    struct buf *out);

#endif
