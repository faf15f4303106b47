/* line.c - see line.h. */
#include "cli/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "report/render.h"

static const struct {
	const char *utf8;
	const char *ascii;
	enum say_colour colour;
} MARKS[] = {
	[MARK_NONE] = { "·", ".", SAY_PLAIN }, [MARK_GOOD] = { "✓", "+", SAY_GREEN },
	[MARK_DENIED] = { "✗", "x", SAY_RED }, [MARK_WARN] = { "!", "!", SAY_YELLOW },
	[MARK_STEP] = { "▸", ">", SAY_BOLD },
};

bool line_local_time(const char *time, struct tm *ret)
{
	struct tm tm = { 0 };

	if (strptime(time, "%Y-%m-%dT%H:%M:%S", &tm) == NULL) {
		return false;
	}
	time_t t = timegm(&tm);
	return localtime_r(&t, ret) != NULL;
}

void line_put_time(struct buf *out, const char *when)
{
	char text[32] = "-";
	struct tm then, today;
	time_t now = time(NULL);

	if (line_local_time(when, &then) && localtime_r(&now, &today) != NULL) {
		bool same = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
		(void)strftime(text, sizeof(text), same ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &then);
	}
	buf_adds(out, text);
}

/* Writes the local time with milliseconds, or dashes if `time` is not a time. */
static void format_clock(char out[16], const char *time)
{
	struct tm local = { 0 };
	const char *rest = strchr(time, '.');
	char ms[4] = "000";

	if (!line_local_time(time, &local)) {
		snprintf(out, 16, "--:--:--.---");
		return;
	}
	for (size_t i = 0; rest != NULL && i < 3 && rest[i + 1] >= '0' && rest[i + 1] <= '9'; i++) {
		ms[i] = rest[i + 1];
	}
	snprintf(out, 16, "%02d:%02d:%02d.%s", local.tm_hour % 100, local.tm_min % 100,
	         local.tm_sec % 100, ms);
}

static bool wants_utf8(void)
{
	static signed char known;

	if (known == 0) {
		const char *names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
		const char *value = NULL;
		for (size_t i = 0; i < ARRAY_LEN(names) && (value == NULL || *value == '\0'); i++) {
			value = getenv(names[i]);
		}
		known = value != NULL && (strcasestr(value, "utf-8") != NULL ||
		                          strcasestr(value, "utf8") != NULL)
		                ? 1
		                : -1;
	}
	return known == 1;
}

/* Appends the reason of a denial in capital letters. */
static void add_tag(struct buf *out, const struct line *l, int fd)
{
	char tag[48];
	const char *reason = line_text(l, "reason");

	if (reason == NULL || reason[0] == '\0') {
		reason = render_is_violation(l) ? "violation" : "denied";
	}
	snprintf(tag, sizeof(tag), " [%.40s]", reason);
	for (char *p = tag; *p != '\0'; p++) {
		*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p >= ' ' && *p <= '~' ? *p : '?';
	}
	say_colour(out, fd, SAY_RED, tag);
}

static void put_line(struct buf *out, const struct line *l, const struct render_style *style)
{
	char clock[16];
	auto_buf message = BUF(SAY_MAX);
	enum render_mark mark = render_mark(l);
	bool denied = mark == MARK_DENIED;

	format_clock(clock, l->time);
	buf_addf(out, "[%s] ", clock);
	say_colour(out, style->fd, MARKS[mark].colour,
	           wants_utf8() ? MARKS[mark].utf8 : MARKS[mark].ascii);
	buf_addf(out, " %s%s%-7s ", style->who, style->who[0] != '\0' ? " " : "",
	         render_category(l));
	render_message(&message, l);
	say_colour(out, style->fd, denied ? SAY_RED : SAY_PLAIN,
	           message.data != NULL ? message.data : "");
	if (denied) {
		add_tag(out, l, style->fd);
	}
	buf_addc(out, '\n');
}

void line_render(struct buf *out, const struct line *l, const struct render_style *style)
{
	size_t columns = screen_columns(style->fd);
	auto_buf whole = BUF(SAY_MAX);

	if (l->kind == EV_SIGNATURE || (render_group(l) == GROUP_OUTPUT && !style->output) ||
	    (render_is_routine(l) && !style->routine)) {
		return;
	}
	put_line(&whole, l, style);
	screen_fit(out, &whole, columns > 0 ? columns : SIZE_MAX, SCREEN_CUT);
}

void line_render_raw(struct buf *out, const char *line, size_t len, int fd)
{
	if (isatty(fd) != 1) {
		buf_add(out, line, len);
		return;
	}
	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(line + i, len - i, &cp);
		if (n == 0) {
			buf_addf(out, "\\udc%02x", (unsigned)(unsigned char)line[i]);
			n = 1;
		} else if (cp != '\n' && visible_deceptive(cp) && cp < 0x10000) {
			buf_addf(out, "\\u%04" PRIx32, cp);
		} else if (visible_deceptive(cp) && cp != '\n') {
			buf_addf(out, "\\u%04" PRIx32 "\\u%04" PRIx32,
			         0xd800 + ((cp - 0x10000) >> 10),
			         0xdc00 + ((cp - 0x10000) & 0x3ff));
		} else {
			buf_add(out, line + i, n);
		}
		i += n;
	}
}
