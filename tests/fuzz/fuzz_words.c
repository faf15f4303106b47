/* Quotes texts of a skill inside our lines: nothing in them may control a terminal or begin a new
 * line. Two such texts are also compared line by line.
 *
 * The first byte is the width of the terminal. The rest is one text, and its two halves are two
 * files. */
#include <string.h>

#include "fuzz.h"
#include "base/limits.h"
#include "base/line_diff.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "consent/words.h"

/* No character may be invisible. Every line must begin with our text and fit into the terminal. */
static void check_lines(const struct buf *out, size_t columns)
{
	size_t line = 0;

	for (size_t i = 0; i < out->len; line++) {
		const char *s = out->data + i;
		const char *end = memchr(s, '\n', out->len - i);
		must(end != NULL);
		must(strncmp(s, line == 0 ? "  - " : "    | ", line == 0 ? 4 : 6) == 0);
		size_t wide = 0;
		for (const char *p = s; p < end;) {
			uint32_t cp = 0;
			size_t n = utf8_decode(p, (size_t)(end - p), &cp);
			must(n > 0);
			/* a variation selector, which only changes a symbol's picture */
			must(!visible_deceptive(cp) || cp == 0xfe0e || cp == 0xfe0f);
			wide += cp < 0x80 ? 1 : 2;
			p += n;
		}
		must(wide < columns);
		i = (size_t)(end - out->data) + 1;
	}
}

static void quote_and_fold(const char *text, size_t columns)
{
	auto_buf quoted, out;

	buf_init(&quoted, 1UL << 20);
	buf_init(&out, 1UL << 20);
	words_quote(&quoted, text);
	must(!quoted.failed && quoted.len <= 16UL * MAX_WORD_BYTES);
	words_fold(&out, "  - ", quoted.data, columns);
	must(!out.failed);
	check_lines(&out, columns);
}

/* line_diff's edits of `a` must give `b`. */
static void compare(const char *a, size_t n, const char *b, size_t m)
{
	AUTO(line_edits_done) struct line_edits e = { 0 };
	size_t before = 0, now = 0;

	if (line_diff(a, n, b, m, n + m + 1, &e) != 0) {
		return;
	}
	for (size_t i = 0; i < e.n; i++) {
		const struct line_edit *l = &e.v[i];
		if (l->op == ' ' || l->op == '-') {
			must(l->len <= n - before && memcmp(a + before, l->text, l->len) == 0);
			before += l->len + (before + l->len < n ? 1 : 0);
		}
		if (l->op == ' ' || l->op == '+') {
			must(l->len <= m - now && memcmp(b + now, l->text, l->len) == 0);
			now += l->len + (now + l->len < m ? 1 : 0);
		}
	}
	must(e.n == 0 || (before == n && now == m));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > 4096) {
		return 0;
	}
	size_t columns = 24 + data[0];
	auto_free char *text = strndup((const char *)data + 1, size - 1);
	auto_free char *copy = malloc(size);
	must(text != NULL && copy != NULL);
	memcpy(copy, data + 1, size - 1); /* exactly this size, for the sanitizer */
	quote_and_fold(text, columns);
	compare(copy, (size - 1) / 2, copy + (size - 1) / 2, size - 1 - (size - 1) / 2);
	return 0;
}
