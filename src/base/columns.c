/* columns.c - see columns.h. */
#include "base/columns.h"

#include <string.h>

#include "base/utf8.h"

#define FIRST_WIDE 0x1100 /* no character before this one takes two columns in every terminal */

size_t columns_step(const char *s, size_t len, bool strict, size_t *ret_bytes)
{
	const char *end = len > 2 && s[0] == '\033' && s[1] == '[' ? memchr(s, 'm', len) : NULL;
	uint32_t cp = 0;

	if (end != NULL) {
		*ret_bytes = (size_t)(end - s) + 1;
		return 0;
	}
	size_t n = utf8_decode(s, len, &cp);
	*ret_bytes = n > 0 ? n : 1;
	return cp < (strict ? 0x80U : FIRST_WIDE) ? 1 : 2;
}

size_t columns_count(const char *s, size_t len)
{
	size_t n = 0, used = 0;

	for (size_t at = 0; at < len; at += n) {
		used += columns_step(s + at, len - at, false, &n);
	}
	return used;
}

size_t columns_fit(const char *s, size_t len, size_t columns, bool strict)
{
	size_t used = 0, space = 0, n = 0;

	for (size_t at = 0; at < len; at += n) {
		used += columns_step(s + at, len - at, strict, &n);
		if (used > columns) {
			return space > 0 ? space : at;
		}
		space = s[at] == ' ' ? at + n : space;
	}
	return len;
}
