/* say.h - the one place that speaks to people.
 *
 * Messages go to standard error, results to standard output. Text from a
 * skill or manifest may be hostile: whatever could steer a terminal or turn
 * text around is made visible first. */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "skillsandbox.h"

#define SAY_MAX ((size_t)16 * 1024 * 1024) /* of one output; a plan is far below */

enum say_colour { SAY_PLAIN, SAY_BOLD, SAY_RED, SAY_GREEN, SAY_YELLOW };

/* With -q: only errors. */
void say_quiet(bool quiet);

/* "skillsandbox: where: text" */
void say_error(const struct ssb_error *err);
void say_errorf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_warningf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_notef(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "where: error: text" and "  help: remedy" for each finding that is at least
 * as severe. */
void say_diags(const struct ssb_diags *d, enum ssb_severity least);

/* Before what is said next, the terminal of standard error is brought back to letters that can
 * be seen, whatever a skill has left it in: the middle of a sequence, hidden text, another
 * character set. In the middle of a line that begins a new one. */
void say_calm(bool mid_line);

bool say_coloured(int fd); /* fd is a terminal that wants colours */
/* Appends text in a colour where fd is a terminal that wants colours. */
void say_colour(struct buf *out, int fd, enum say_colour colour, const char *text);

/* Appends a word of a command that is to be typed: quoted for a shell, and visible. */
void say_word(struct buf *out, const char *word);

/* Writes the whole buffer to fd 1 or 2; the exit status: 0, or 125 with a
 * message. */
int say_out(int fd, const struct buf *text);

#endif
