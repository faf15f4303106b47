/* report.c - adds findings with their position and delivers them to the caller. */
#include "manifest/report.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/utf8.h"

void report_where(char *ret, size_t size, const char *file, unsigned line, unsigned col)
{
	char pos[32] = "";
	size_t len = strlen(file);

	if (line > 0) {
		snprintf(pos, sizeof(pos), ":%u:%u", line, col);
	}
	size_t room = size - 1 - strlen(pos);
	if (len <= room) {
		snprintf(ret, size, "%s%s", file, pos);
		return;
	}
	const char *tail = file + len - (room - 3);
	while ((*tail & 0xc0) == 0x80) {
		tail++; /* do not split a character */
	}
	snprintf(ret, size, "...%s%s", tail, pos);
}

void report_add(const struct report *r, enum ssb_severity severity, unsigned line, unsigned col,
                const char *remedy, const char *fmt, ...)
{
	char where[WHERE_SIZE];
	char text[512];
	va_list ap;

	report_where(where, sizeof(where), r->file, line, col);
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	diag_add(r->diags, severity, where, remedy, "%s", text);
}

const char *report_quote(char ret[QUOTE_SIZE], const char *s)
{
	const size_t room = QUOTE_SIZE - sizeof("...\"");
	size_t len = strlen(s);
	size_t out = 0;

	ret[out++] = '"';
	while (len > 0) {
		char piece[8];
		uint32_t cp = 0;
		size_t n = utf8_decode(s, len, &cp);
		if (n == 0 || cp < 0x20 || cp == 0x7f || (cp >= 0x80 && cp < 0xa0)) {
			n = n == 0 ? 1 : n;
			snprintf(piece, sizeof(piece), "\\x%02x", (unsigned char)*s);
		} else {
			snprintf(piece, sizeof(piece), "%.*s", (int)n, s);
		}
		if (out + strlen(piece) > room) {
			break;
		}
		out += (size_t)snprintf(ret + out, QUOTE_SIZE - out, "%s", piece);
		s += n;
		len -= n;
	}
	snprintf(ret + out, QUOTE_SIZE - out, "%s\"", len > 0 ? "..." : "");
	return ret;
}

const char *report_nearest(const char *s, const char *const *words, size_t n, size_t stride)
{
	char folded[64]; /* every key is shorter, so a longer word is not a misspelled key */
	size_t len = strlen(s);

	if (len >= sizeof(folded)) {
		return NULL;
	}
	for (size_t i = 0; i <= len; i++) {
		bool upper = s[i] >= 'A' && s[i] <= 'Z';
		folded[i] = (char)(upper ? s[i] - 'A' + 'a' : s[i] == '-' ? '_' : s[i]);
	}
	return suggest(folded, len, words, n, stride);
}

bool report_deliver(const struct ssb_diags *found, enum ssb_code code, const char *file,
                    struct ssb_diags *diags, struct ssb_error *err)
{
	for (size_t i = 0; i < ssb_diags_count(found); i++) {
		const struct ssb_diag *d = ssb_diags_get(found, i);
		diag_add(diags, d->severity, d->where, d->remedy, "%s", d->text);
		if (d->severity == SSB_ERROR) {
			(void)ssb_fail(err, code, 0, d->where, "%s%s%s", d->text,
			               d->remedy[0] != '\0' ? "; " : "", d->remedy);
		}
	}
	/* An error counts even if there was no memory to keep its text. */
	if (diag_has_errors(found)) {
		(void)ssb_fail(err, code, 0, file, "not valid");
		return false;
	}
	return true;
}
