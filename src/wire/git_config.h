/* git_config.h - what a git configuration says of hooks and of further files.
 *
 * Reads as git does: section and key in any case, comments, quotes, escapes, lines that go
 * on. Git stops at the first line that it does not understand; here the next one is read all
 * the same, so that a reader that takes more than this one is no way around it. */
#ifndef WIRE_GIT_CONFIG_H
#define WIRE_GIT_CONFIG_H

#include <stddef.h>

enum git_config_name {
	GIT_CONFIG_HOOKS,   /* core.hooksPath */
	GIT_CONFIG_INCLUDE, /* include.path, includeIf.CONDITION.path, whatever the condition */
};

/* `path` is the value as git has it: not empty, no longer than a path can be. */
typedef void git_config_fn(void *arg, enum git_config_name name, const char *path);

/* Calls `fn` for each of them, in their order. */
void git_config_read(const char *text, size_t len, git_config_fn *fn, void *arg);

#endif
