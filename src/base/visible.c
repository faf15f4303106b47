/* visible.c - writes hidden characters as escapes. */
#include "base/visible.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"

/* Code points that are invisible, or change how their neighbours look. Must be sorted. */
static const struct {
	uint32_t from, to;
} RANGES[] = {
	{ 0x00, 0x1f },       /* controls */
	{ 0x7f, 0x9f },       /* further controls */
	{ 0xad, 0xad },       /* soft hyphen */
	{ 0x34f, 0x34f },     /* grapheme joiner */
	{ 0x61c, 0x61c },     /* Arabic letter mark */
	{ 0x115f, 0x1160 },   /* Hangul fillers */
	{ 0x17b4, 0x17b5 },   /* Khmer vowels without a shape */
	{ 0x180b, 0x180f },   /* Mongolian selectors and separator */
	{ 0x200b, 0x200f },   /* zero width, direction marks */
	{ 0x2028, 0x202e },   /* separators, embeddings, overrides */
	{ 0x2060, 0x206f },   /* joiner, invisible operators, isolates */
	{ 0x3164, 0x3164 },   /* Hangul filler */
	{ 0xfe00, 0xfe0f },   /* variation selectors */
	{ 0xfeff, 0xfeff },   /* zero width no-break space */
	{ 0xffa0, 0xffa0 },   /* Hangul filler, half width */
	{ 0xfff0, 0xfffb },   /* unassigned and ignored, annotations */
	{ 0x1bca0, 0x1bca3 }, /* shorthand controls */
	{ 0x1d173, 0x1d17a }, /* musical controls */
	{ 0xe0000, 0xe0fff }, /* tags, more variation selectors, ignored code points */
};

bool visible_deceptive(uint32_t cp)
{
	for (size_t i = 0; i < ARRAY_LEN(RANGES) && RANGES[i].from <= cp; i++) {
		if (cp <= RANGES[i].to) {
			return true;
		}
	}
	return false;
}

void visible_text(struct buf *out, const char *text, bool keep_lines)
{
	visible_bytes(out, text, strlen(text), keep_lines);
}

/* True for a variation selector after a symbol, as in most emoji: it only chooses between two
 * pictures. After letters, or in large numbers, selectors can encode a hidden text. */
static bool picture_selector(uint32_t cp, uint32_t before)
{
	return (cp == 0xfe0e || cp == 0xfe0f) &&
	       ((before >= 0x2190 && before <= 0x2bff) || (before >= 0x1f000 && before <= 0x1faff));
}

void visible_bytes(struct buf *out, const char *text, size_t len, bool keep_lines)
{
	uint32_t before = 0;

	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(text + i, len - i, &cp);
		if (n == 0) {
			buf_addf(out, "\\x%02x", (unsigned)(unsigned char)text[i]);
			n = 1;
		} else if (cp == '\n' && keep_lines) {
			buf_addc(out, '\n');
		} else if (cp == '\n') {
			buf_adds(out, "\\n");
		} else if (cp == '\t') {
			buf_adds(out, keep_lines ? "\t" : "\\t");
		} else if (visible_deceptive(cp) && !picture_selector(cp, before)) {
			buf_addf(out, cp < 0x80 ? "\\x%02" PRIx32 : "\\u{%" PRIx32 "}", cp);
		} else {
			buf_add(out, text + i, n);
		}
		before = cp;
		i += n;
	}
}

void visible_addf(struct buf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	for (const char *at = fmt; *at != '\0';) {
		size_t n = strcspn(at, "%");
		buf_add(out, at, n);
		at += n;
		if (*at == '%') {
			assert(at[1] == 's');
			visible_text(out, va_arg(ap, const char *), false);
			at += 2;
		}
	}
	va_end(ap);
}
