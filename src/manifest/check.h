/* check.h - checks of single values that only the manifest needs. manifest.h has the checks that
 * other parts share. The contract is the same: each returns NULL, or "what is wrong; remedy" as a
 * static text, and `*ret` is new on success. */
#ifndef MANIFEST_CHECK_H
#define MANIFEST_CHECK_H

#define CHECK_NOMEM "out of memory"

const char *check_name(const char *s, char **ret);    /* skill.name */
const char *check_version(const char *s, char **ret); /* one line, not empty, short */
const char *check_line(const char *s, char **ret);    /* one line, may be empty */
const char *check_text(const char *s, char **ret);    /* any text */
const char *check_command(const char *s, char **ret); /* one line, not empty */
const char *check_workdir(const char *s, char **ret); /* an absolute path */
const char *check_env(const char *s, char **ret);     /* check_env_name() with a copy */

#endif
