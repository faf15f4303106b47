/* say.h - the only place that prints for people.
 *
 * Messages go to standard error, results to standard output. Text from a skill or manifest may be
 * hostile: what could control a terminal or reverse text is made visible first. */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "skillsandbox.h"

#define SAY_MAX ((size_t)16 * 1024 * 1024) /* bytes of one output; a plan has far fewer */

enum say_colour { SAY_PLAIN, SAY_BOLD, SAY_RED, SAY_GREEN, SAY_YELLOW };

/* With -q: only errors. */
void say_quiet(bool quiet);

/* "skillsandbox: where: text" */
void say_error(const struct ssb_error *err);
void say_errorf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_warningf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_notef(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "where: error: text" and "  help: remedy" for each finding that is at least as severe as `least`.
 */
void say_diags(const struct ssb_diags *d, enum ssb_severity least);

/* Makes the next message reset the terminal of standard error: a skill may have left it in the
 * middle of an escape sequence, with hidden text, or with another character set. `mid_line`: the
 * message also starts a new line. */
void say_calm(bool mid_line);

bool say_coloured(int fd); /* fd is a terminal that wants colours */
/* Appends the text, in a colour if fd is a terminal that wants colours. */
void say_colour(struct buf *out, int fd, enum say_colour colour, const char *text);

/* Appends a word of a command that the reader may type: quoted for a shell, and made visible. */
void say_word(struct buf *out, const char *word);

/* Writes the whole buffer to fd 1 or 2. Returns the exit status: 0, or 125 with a message. */
int say_out(int fd, const struct buf *text);

#endif
