/* utf8.c - decodes UTF-8, strictly. */
#include "base/utf8.h"

#include <string.h>

size_t utf8_decode(const char *s, size_t len, uint32_t *ret_cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *u = (const unsigned char *)s;
	uint32_t cp = u[0];
	size_t n = cp < 0x80         ? 1
	           : (cp >> 5) == 6  ? 2
	           : (cp >> 4) == 14 ? 3
	           : (cp >> 3) == 30 ? 4
	                             : 0;

	if (n == 0 || n > len) {
		return 0;
	}
	if (n > 1) {
		cp &= 0x7fU >> n;
	}
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80) {
			return 0;
		}
		cp = cp << 6 | (u[i] & 0x3fU);
	}
	if (cp < least[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
		return 0;
	}
	*ret_cp = cp;
	return n;
}

size_t utf8_cut(const char *s, size_t max)
{
	size_t len = strnlen(s, max + 1);

	if (len <= max) {
		return len;
	}
	/* A sequence has at most three bytes after its first one. If there are more, the text is
	 * not UTF-8. */
	for (size_t back = 0; back <= 3 && back <= max; back++) {
		if (((unsigned char)s[max - back] & 0xc0) != 0x80) {
			return max - back;
		}
	}
	return max;
}

/* Returns whether each character is valid, at least `least`, and not `never`. */
static bool has_only(const char *s, size_t len, uint32_t least, uint32_t never)
{
	for (size_t i = 0, n; i < len; i += n) {
		uint32_t cp = 0;
		n = utf8_decode(s + i, len - i, &cp);
		if (n == 0 || cp < least || cp == never) {
			return false;
		}
	}
	return true;
}

bool utf8_is_text(const char *s, size_t len)
{
	return has_only(s, len, 1, 0);
}

bool utf8_is_line(const char *s)
{
	return has_only(s, strlen(s), ' ', 0x7f);
}
