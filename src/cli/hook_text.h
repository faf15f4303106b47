/* hook_text.h - the hook's last line of defence: does a text speak of skills at all, in whatever
 * way a shell or a program would make a path of it? Substitutions, variables, loops and options
 * need not be understood for that. */
#ifndef CLI_HOOK_TEXT_H
#define CLI_HOOK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/string_list.h"
#include "cli/hook_skill.h"

/* Names of directories, without quotes and backslashes. */
struct hook_text {
	struct string_list skills; /* of known skills: "pdf" */
	struct string_list roots;  /* of directories that contain these, other than .claude */
	bool incomplete;           /* out of memory, or past a cap of limits.h */
};

/* Learns the names of the skills of each place, the directories above it, the project and the home:
 * those in their `skills` and `.claude/skills`. */
void hook_text_learn(struct hook_text *t, const struct hook_skill_places *p);
void hook_text_done(struct hook_text *t);

/* Returns true if the text, without its quotes and backslashes, contains ".claude" as the name of a
 * directory, or a known name in a path ("$X/pdf", "pdf/x.py"), attached to an option that takes a
 * directory ("-Cpdf"), or as the argument of `cd` or of such an option. A name of `roots` counts
 * as any word, too. Always true if `t` is incomplete. */
bool hook_text_is_about(const struct hook_text *t, const char *text, size_t len);

/* Is the text exactly one of the names? */
bool hook_text_is_name(const struct hook_text *t, const char *text);

#endif
