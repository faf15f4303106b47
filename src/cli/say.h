/* say.h - the only functions that print for people.
 *
 * Messages go to standard error, results to standard output. Text from a skill or manifest may be
 * hostile: characters that could control a terminal or reverse text are made visible first. */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "skillsandbox.h"

#define SAY_MAX ((size_t)16 * 1024 * 1024) /* limit for one output; plans are much shorter */

enum say_colour { SAY_PLAIN, SAY_BOLD, SAY_RED, SAY_GREEN, SAY_YELLOW };

/* Prints only errors from now on (-q). */
void say_quiet(bool quiet);
/* From now on, messages for people are kept and not printed. The result is one line of JSON, and
 * say_kept() writes the messages into it as the list "messages". */
void say_keep(void);
bool say_keeps(const struct buf *text); /* false: the text was not kept, and is to be printed */
struct json;
void say_kept(struct json *j);

/* Prints "skillsandbox: where: text". */
void say_error(const struct ssb_error *err);
void say_errorf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints like say_errorf(). Returns `status`, the exit status. */
int say_fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say_warningf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_notef(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints "where: error: text" and " help: remedy" for each finding that is at least as severe as
 * `least`. */
void say_diags(const struct ssb_diags *d, enum ssb_severity least);

/* Makes the next message reset the terminal of standard error first: a skill may have left the
 * terminal in the middle of an escape sequence, with invisible text, or with another character
 * set. If `mid_line` is true, the message also begins on a new line. */
void say_calm(bool mid_line);

bool say_coloured(int fd); /* whether the fd is a terminal and colours are wanted */
/* Appends the text, with the colour if say_coloured(fd). */
void say_colour(struct buf *out, int fd, enum say_colour colour, const char *text);

/* Appends a word of a command for the reader to type: quoted for a shell, and made visible. */
void say_word(struct buf *out, const char *word);

/* Writes the whole buffer to fd 1 or 2. Returns the exit status: 0, or 125 with a message. */
int say_out(int fd, const struct buf *text);

#endif
