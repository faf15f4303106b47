/* words_fold.c - folds texts from skills into lines. A terminal folds a long line by itself,
 * and the rest then begins a new line of the screen. With enough spaces, the name of a skill
 * could put a sentence there that looks like one of this program. So each line is folded here,
 * before the edge of the terminal, and continues behind a bar. */
#include <string.h>

#include "base/columns.h"
#include "base/limits.h"
#include "base/visible.h"
#include "consent/words.h"

#define PLAIN   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~/+@:*,-"
#define BAR     "    | "
#define NARROW  24 /* the minimum width in columns, even if the terminal reports fewer */
#define KEPT_AT 3  /* of a shortened text, the head is this many quarters */

/* Returns the last position, at or before `at`, where a character begins. */
static size_t char_boundary(const char *s, size_t at)
{
	while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80) {
		at--;
	}
	return at;
}

static void quote_part(struct buf *out, const char *s, size_t len)
{
	for (size_t n = 0; len > 0; s += n, len -= n) {
		n = 0;
		while (n < len && s[n] != '"' && s[n] != '\\') {
			n++;
		}
		visible_bytes(out, s, n, false);
		if (n < len) {
			buf_addc(out, '\\');
			buf_addc(out, s[n++]);
		}
	}
}

void words_quote(struct buf *out, const char *text)
{
	size_t len = strlen(text);

	if (len > 0 && len <= MAX_WORD_BYTES && strspn(text, PLAIN) == len) {
		buf_adds(out, text);
		return;
	}
	buf_addc(out, '"');
	if (len <= MAX_WORD_BYTES) {
		quote_part(out, text, len);
	} else {
		size_t head = char_boundary(text, MAX_WORD_BYTES * KEPT_AT / 4);
		size_t tail = char_boundary(text, len - (MAX_WORD_BYTES - head));
		quote_part(out, text, head);
		buf_addf(out, "\" (%zu bytes are left out) \"", tail - head);
		quote_part(out, text + tail, len - tail);
	}
	buf_addc(out, '"');
}

void words_plain(struct buf *out, const char *text)
{
	size_t len = strlen(text);
	size_t most = 2UL * MAX_WORD_BYTES;

	visible_bytes(out, text, len <= most ? len : char_boundary(text, most), false);
	buf_adds(out, len <= most ? "" : "...");
}

void words_fold(struct buf *out, const char *first, const char *text, size_t columns)
{
	size_t most = columns > NARROW ? columns : NARROW;
	const char *before = first;

	do {
		/* One column stays free, because some terminals begin a new line after a full
		 * one. */
		size_t head = strlen(before) + 1;
		size_t n = head < most ? columns_fit(text, strlen(text), most - head, true) : 0;
		buf_adds(out, before);
		buf_add(out, text, n);
		buf_addc(out, '\n');
		text += n;
		before = BAR;
	} while (*text != '\0');
}
