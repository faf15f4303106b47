/* hook_reach.h - may a command start files that its text does not name: those that
 * `find` comes upon, that a variable holds, that another PATH leads to? Then it is a
 * question of what lies where it looks. Looks at the file system, changes nothing. */
#ifndef CLI_HOOK_REACH_H
#define CLI_HOOK_REACH_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/hook_skill.h"
#include "cli/shell_words.h"

struct hook_reach {
	const struct hook_places *places;
	const char *self;
	bool lost;            /* a `cd` of the line leads nobody knows where */
	size_t walked;        /* entries of directories; past MAX_HOOK_WALK all is possible */
	signed char seen[16]; /* of each place, whether skills lie there; 0: not looked */
};

/* Could the command start a skill's file in such a way? *ret (where not NULL yet) is
 * the skill's directory where one was found, new. */
bool hook_reaches(struct hook_reach *r, const struct shell_command *c, char **ret);

#endif
