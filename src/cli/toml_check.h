/* toml_check.h - checks that a text is TOML, without side effects.
 *
 * The grammar is TOML 1.0 with the additions of 1.1, because a file that the client's own program
 * accepts must not be refused here. Duplicate keys, and the digits of numbers and dates, are not
 * checked. */
#ifndef CLI_TOML_CHECK_H
#define CLI_TOML_CHECK_H

#include <stddef.h>

/* Returns NULL if the text is TOML; else a static text that says what is wrong, with the line in
 * *ret_line. If something is not closed, that is the line where it begins. */
const char *toml_check(const char *text, size_t len, unsigned *ret_line);

#endif
