/* git_config.h - finds hooks, templates and included files in a git configuration.
 *
 * Reads like git: section and key in any case, comments, quotes, escapes, continued lines. Git
 * stops at the first line that it does not understand. This reader skips that line and reads on, so
 * that a reader that accepts more than git finds nothing that this one misses. */
#ifndef WIRE_GIT_CONFIG_H
#define WIRE_GIT_CONFIG_H

#include <stddef.h>

enum git_config_name {
	GIT_CONFIG_HOOKS,    /* core.hooksPath */
	GIT_CONFIG_INCLUDE,  /* include.path and includeIf.CONDITION.path, for every condition */
	GIT_CONFIG_TEMPLATE, /* init.templateDir, from which "git init" copies hooks */
};

/* `path` is the value as git reads it; it is not empty and not longer than a path can be. */
typedef void git_config_fn(void *arg, enum git_config_name name, const char *path);

/* Calls `fn` for each of these settings, in their order. */
void git_config_read(const char *text, size_t len, git_config_fn *fn, void *arg);

#endif
