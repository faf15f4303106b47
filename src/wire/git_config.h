/* git_config.h - finds hooks, templates and included files in a git configuration.
 *
 * It reads the format as git does: sections and keys in upper or lower case, comments, quotes,
 * escapes, continued lines. There is one difference: git stops at the first line that it does not
 * understand, while this reader skips the line and continues. So it also finds settings that only a
 * more tolerant reader than git would find. */
#ifndef WIRE_GIT_CONFIG_H
#define WIRE_GIT_CONFIG_H

#include <stddef.h>

enum git_config_name {
	GIT_CONFIG_HOOKS,    /* core.hooksPath */
	GIT_CONFIG_INCLUDE,  /* include.path and includeIf.CONDITION.path, for every condition */
	GIT_CONFIG_TEMPLATE, /* init.templateDir, from which "git init" copies hooks */
};

/* `path` is the value as git reads it. `path` is not empty, and is shorter than PATH_MAX. */
typedef void git_config_fn(void *arg, enum git_config_name name, const char *path);

/* Calls `fn` for each setting of enum git_config_name, in the order of the text. */
void git_config_read(const char *text, size_t len, git_config_fn *fn, void *arg);

#endif
