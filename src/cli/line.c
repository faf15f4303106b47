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

/* Converts "2026-11-15T13:20:00.123456Z" to the local time; writes dashes if `time` is not a time.
 */
static void format_clock(char out[16], const char *time)
{
	struct tm tm = { 0 };
	const char *rest = strptime(time, "%Y-%m-%dT%H:%M:%S", &tm);
	char ms[4] = "000";

	if (rest == NULL) {
		snprintf(out, 16, "--:--:--.---");
		return;
	}
	for (size_t i = 0; rest[0] == '.' && i < 3 && rest[i + 1] >= '0' && rest[i + 1] <= '9';
	     i++) {
		ms[i] = rest[i + 1];
	}
	time_t t = timegm(&tm);
	struct tm local = { 0 };
	(void)localtime_r(&t, &local);
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

void line_render(struct buf *out, const struct line *l, const struct render_style *style)
{
	char clock[16];
	auto_buf message = BUF(SAY_MAX);
	enum render_mark mark = render_mark(l);
	bool denied = mark == MARK_DENIED;

	if (l->kind == EV_SIGNATURE || (render_group(l) == GROUP_OUTPUT && !style->output)) {
		return;
	}
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
