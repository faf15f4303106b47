/* say.c - see say.h. */
#include "cli/say.h"
#include "cli/screen.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/shell_quote.h"
#include "base/visible.h"
#include "cli/cli.h"

#define KEPT_MAX ((size_t)64 * 1024)

static bool quiet_mode;
static bool keep_mode;
static struct buf kept; /* at most KEPT_MAX bytes: later messages are left out */
static bool calm_first;
static bool line_first;

void say_keep(void)
{
	keep_mode = true;
}

bool say_keeps(const struct buf *text)
{
	if (keep_mode && !text->failed && text->len <= KEPT_MAX - kept.len) {
		kept.cap = KEPT_MAX + 1;
		buf_add(&kept, text->data, text->len);
	}
	return keep_mode;
}

void say_kept(struct json *j)
{
	json_kopen(j, "messages", '[');
	for (size_t at = 0; at < kept.len;) {
		size_t len = strcspn(kept.data + at, "\n");
		json_strn(j, kept.data + at, len);
		at += len + (kept.data[at + len] == '\n');
	}
	json_close(j, ']');
}

void say_quiet(bool quiet)
{
	quiet_mode = quiet;
}

void say_calm(bool mid_line)
{
	const char *term = getenv("TERM");
	bool terminal = isatty(STDERR_FILENO) == 1;

	calm_first = terminal && term != NULL && strcmp(term, "dumb") != 0;
	line_first = mid_line;
}

bool say_coloured(int fd)
{
	static signed char known[3]; /* for each fd: 0: not known yet; 1: colours; -1: no colours */
	if (fd < 0 || fd > 2 || keep_mode) {
		return false;
	}
	if (known[fd] == 0) {
		const char *no = getenv("NO_COLOR");
		const char *term = getenv("TERM");
		bool yes = (no == NULL || no[0] == '\0') && term != NULL &&
		           strcmp(term, "dumb") != 0 && isatty(fd) == 1;
		known[fd] = yes ? 1 : -1;
	}
	return known[fd] == 1;
}

void say_colour(struct buf *out, int fd, enum say_colour colour, const char *text)
{
	static const char *const codes[] = { "", "\033[1m", "\033[31m", "\033[32m", "\033[33m" };
	bool on = colour != SAY_PLAIN && say_coloured(fd);

	if (on) {
		buf_adds(out, codes[colour]);
	}
	buf_adds(out, text);
	if (on) {
		buf_adds(out, "\033[0m");
	}
}

void say_word(struct buf *out, const char *word)
{
	auto_buf quoted = BUF(SAY_MAX);

	shell_quote(&quoted, word);
	out->failed |= quoted.failed;
	if (!out->failed) {
		visible_text(out, quoted.data, false);
	}
}

/* Called before the first message after a run: undoes what the skill did to the terminal. */
static void reset_terminal(void)
{
	static const char CALM[] = "\030\033\\\033[0m\033(B\017"; /* CAN, ST, SGR, ASCII, SI */

	if (calm_first) {
		calm_first = false;
		(void)!write(STDERR_FILENO, CALM, sizeof(CALM) - 1);
	}
	if (line_first) {
		line_first = false;
		(void)!write(STDERR_FILENO, "\n", 1);
	}
}

int say_out(int fd, const struct buf *text)
{
	const char *p = text->data;
	size_t left = text->len;

	if (text->failed) {
		say_errorf("out of memory");
		return EXIT_SANDBOX;
	}
	if (fd == STDERR_FILENO && left > 0) {
		reset_terminal();
	}
	while (left > 0) {
		ssize_t n = write(fd, p, left);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			/* If the reader has gone (EPIPE), no message is needed. */
			if (fd != STDERR_FILENO && errno != EPIPE) {
				say_errorf("cannot write the output: %s", strerrordesc_np(errno));
			}
			return EXIT_SANDBOX;
		}
		p += n;
		left -= (size_t)n;
	}
	return EXIT_FINE;
}

/* Writes each message with one call, so that lines of concurrent runs do not mix. */
static void write_message(enum say_colour colour, const char *label, const char *where,
                          const char *text)
{
	auto_buf out = BUF(SAY_MAX);

	buf_adds(&out, "skillsandbox: ");
	if (label[0] != '\0') {
		say_colour(&out, STDERR_FILENO, colour, label);
		buf_adds(&out, ": ");
	}
	visible_addf(&out, "%s%s%s\n", where, where[0] != '\0' ? ": " : "", text);
	(void)screen_text(STDERR_FILENO, &out);
}

void say_error(const struct ssb_error *err)
{
	write_message(SAY_PLAIN, "", err->where, err->text);
}

#define FORMAT_TEXT(text, fmt)                                                                     \
	char text[1024];                                                                           \
	va_list ap;                                                                                \
	va_start(ap, fmt);                                                                         \
	(void)vsnprintf(text, sizeof(text), fmt, ap);                                              \
	va_end(ap)

void say_errorf(const char *fmt, ...)
{
	FORMAT_TEXT(text, fmt);
	write_message(SAY_PLAIN, "", "", text);
}

int say_fail(int status, const char *fmt, ...)
{
	FORMAT_TEXT(text, fmt);
	write_message(SAY_PLAIN, "", "", text);
	return status;
}

void say_warningf(const char *fmt, ...)
{
	FORMAT_TEXT(text, fmt);
	if (!quiet_mode) {
		write_message(SAY_YELLOW, "warning", "", text);
	}
}

void say_notef(const char *fmt, ...)
{
	FORMAT_TEXT(text, fmt);
	if (!quiet_mode) {
		write_message(SAY_PLAIN, "", "", text);
	}
}

static const struct {
	const char *name;
	enum say_colour colour;
} SEVERITIES[] = {
	[SSB_NOTE] = { "note", SAY_BOLD },
	[SSB_WARNING] = { "warning", SAY_YELLOW },
	[SSB_ALARM] = { "WARNING", SAY_RED },
	[SSB_ERROR] = { "error", SAY_RED },
};

void say_diags(const struct ssb_diags *d, enum ssb_severity least)
{
	auto_buf out = BUF(SAY_MAX);

	for (size_t i = 0; i < ssb_diags_count(d); i++) {
		const struct ssb_diag *e = ssb_diags_get(d, i);
		if (e->severity < least || (quiet_mode && e->severity < SSB_ERROR)) {
			continue;
		}
		if (e->where[0] != '\0') {
			visible_addf(&out, "%s: ", e->where);
		}
		say_colour(&out, STDERR_FILENO, SEVERITIES[e->severity].colour,
		           SEVERITIES[e->severity].name);
		visible_addf(&out, ": %s\n", e->text);
		if (e->remedy[0] != '\0') {
			visible_addf(&out, "  help: %s\n", e->remedy);
		}
	}
	(void)screen_text(STDERR_FILENO, &out);
}
