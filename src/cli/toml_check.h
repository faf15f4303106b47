/* toml_check.h - checks that a text is TOML, without side effects.
 *
 * The grammar is TOML 1.0 with the additions of 1.1, because a file that its own program reads must
 * not be refused. Duplicate keys, and the digits of numbers and dates, are not checked. */
#ifndef CLI_TOML_CHECK_H
#define CLI_TOML_CHECK_H

#include <stddef.h>

/* Returns NULL if it is TOML; else what is wrong (static), and sets *ret_line to the line. If
 * something is not closed, that is the line where it begins. */
const char *toml_check(const char *text, size_t len, unsigned *ret_line);

#endif
