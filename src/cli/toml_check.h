/* toml_check.h - is a text TOML? Pure.
 *
 * By the grammar of TOML 1.0, with what 1.1 adds: a file that its own program reads is not
 * ours to refuse. Not looked at: keys that are there twice, the digits of numbers and
 * dates. */
#ifndef CLI_TOML_CHECK_H
#define CLI_TOML_CHECK_H

#include <stddef.h>

/* NULL where it is; else what is wrong (static) in line *ret_line, which is that where the
 * thing begins that does not end. */
const char *toml_check(const char *text, size_t len, unsigned *ret_line);

#endif
