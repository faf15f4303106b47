/* screen.h - fits a text into the width of a terminal.
 *
 * This is decided in one place: on a terminal, a text for people is folded between words, and a row
 * of a table is cut. In a pipe or a file every line stays whole, because a program may read it.
 * JSON never passes through these functions.
 *
 * A folded line continues with spaces, so that no text of a skill begins a line of the screen. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>

#include "base/buf.h"

#define SCREEN_COLUMNS 80 /* used if a terminal does not say its width */

enum screen_fit { SCREEN_FOLD, SCREEN_CUT };

size_t screen_columns(int fd); /* width of the terminal; 0: `fd` is not a terminal */

/* Appends `text` in lines of at most `columns`. A continuation line begins below the last table
 * column (text after two spaces) that starts in the first half of the line; without such a column
 * it is indented. */
void screen_fit(struct buf *out, const struct buf *text, size_t columns, enum screen_fit how);

/* Appends one cell of a table: the text, cut or filled up to `columns`. If `columns` is 0, the text
 * is not changed. */
void screen_cell(struct buf *out, const struct buf *text, size_t columns, bool right);

/* Appends the lines of a diff, made visible, and coloured for standard output by their first
 * character. */
void screen_diff(struct buf *out, const struct buf *diff);

/* Write the text to fd 1 or 2, as say_out() does. On a terminal, screen_text() folds its lines and
 * screen_rows() cuts them. */
int screen_text(int fd, const struct buf *text);
int screen_rows(int fd, const struct buf *text);

#endif
