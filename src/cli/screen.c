/* screen.c - see screen.h. */
#include "cli/screen.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/visible.h"
#include "cli/say.h"

#define NARROW  20 /* the minimum width, even if the terminal reports fewer columns */
#define INDENT  2
#define DOTS    "..."
#define NO_LOOK "\033[0m"

size_t screen_columns(int fd)
{
	struct winsize w = { 0 };

	if (isatty(fd) != 1) {
		return 0;
	}
	return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : SCREEN_COLUMNS;
}

/* Finds where the continuation lines of a line begin: returns the column, and sets *ret_bytes to
 * the number of bytes before it. */
static size_t find_hang(const char *line, size_t len, size_t columns, size_t *ret_bytes)
{
	size_t used = 0, n = 0, lead = 0, hang = 0;

	while (lead < len && line[lead] == ' ') {
		lead++;
	}
	*ret_bytes = lead;
	for (size_t at = 0; at < len && used <= columns / 2; at += n) {
		bool gap = at > lead + 1 && line[at] != ' ' && line[at - 1] == ' ' &&
		           line[at - 2] == ' ';
		if (gap) {
			hang = used;
			*ret_bytes = at;
		}
		used += columns_step(line + at, len - at, false, &n);
	}
	return hang > 0 ? hang : (lead < columns / 2 ? lead : 0) + INDENT;
}

static void fold_line(struct buf *out, const char *line, size_t len, size_t columns)
{
	size_t done = 0;
	size_t hang = find_hang(line, len, columns, &done);
	size_t used = columns_count(line, done);

	buf_add(out, line, done);
	while (done < len) {
		size_t left = columns > used ? columns - used : 0;
		size_t n = columns_fit(line + done, len - done, left, false);
		size_t shown = n;
		while (done + n < len && shown > 0 && line[done + shown - 1] == ' ') {
			shown--;
		}
		buf_add(out, line + done, shown);
		done += n;
		if (done < len) {
			buf_addf(out, "\n%*s", (int)hang, "");
			used = hang;
		}
	}
}

static void cut_line(struct buf *out, const char *line, size_t len, size_t columns)
{
	size_t used = 0, n = 0, at = 0;

	for (; at < len; at += n) {
		used += columns_step(line + at, len - at, false, &n);
		if (used > columns - strlen(DOTS)) {
			break;
		}
	}
	buf_add(out, line, at);
	buf_adds(out, DOTS);
	buf_adds(out, memchr(line, '\033', at) != NULL ? NO_LOOK : "");
}

void screen_cell(struct buf *out, const struct buf *text, size_t columns, bool right)
{
	auto_buf cut = BUF(text->cap + sizeof(DOTS NO_LOOK));
	const struct buf *cell = text;

	if (columns > 0 && columns_count(text->data, text->len) > columns) {
		cut_line(&cut, text->data, text->len, columns);
		cell = &cut;
	}
	size_t used = columns_count(cell->data, cell->len);
	int pad = (int)(used < columns ? columns - used : 0);
	buf_addf(out, "%*s", right ? pad : 0, "");
	buf_add(out, cell->data, cell->len);
	buf_addf(out, "%*s", right ? 0 : pad, "");
}

void screen_fit(struct buf *out, const struct buf *text, size_t columns, enum screen_fit how)
{
	/* One column stays free, because some terminals begin a new line after a full line. */
	size_t most = (columns > NARROW ? columns : NARROW) - 1;

	out->failed |= text->failed;
	for (size_t at = 0; !out->failed && at < text->len; at++) {
		const char *line = text->data + at;
		const char *end = memchr(line, '\n', text->len - at);
		size_t len = end != NULL ? (size_t)(end - line) : text->len - at;
		if (columns_count(line, len) <= most) {
			buf_add(out, line, len);
		} else {
			(how == SCREEN_FOLD ? fold_line : cut_line)(out, line, len, most);
		}
		buf_adds(out, end != NULL ? "\n" : "");
		at += len;
	}
}

void screen_diff(struct buf *out, const struct buf *diff)
{
	for (size_t at = 0; at < diff->len;) {
		const char *line = diff->data + at;
		size_t len = strcspn(line, "\n");
		auto_buf shown = BUF(diff->cap * 8);
		enum say_colour colour = line[0] == '-'   ? SAY_RED
		                         : line[0] == '+' ? SAY_GREEN
		                                          : SAY_PLAIN;
		visible_bytes(&shown, line, len, true);
		say_colour(out, STDOUT_FILENO, colour, shown.data != NULL ? shown.data : "");
		buf_adds(out, line[len] == '\n' ? "\n" : "");
		at += len + (line[len] == '\n');
	}
}

static int write_fitted(int fd, const struct buf *text, enum screen_fit how)
{
	size_t columns = screen_columns(fd);
	auto_buf fitted = BUF(4 * text->cap);

	if (fd == STDERR_FILENO && say_keeps(text)) {
		return 0;
	}
	if (columns == 0) {
		return say_out(fd, text);
	}
	screen_fit(&fitted, text, columns, how);
	return say_out(fd, &fitted);
}

int screen_text(int fd, const struct buf *text)
{
	return write_fitted(fd, text, SCREEN_FOLD);
}

int screen_rows(int fd, const struct buf *text)
{
	return write_fitted(fd, text, SCREEN_CUT);
}
