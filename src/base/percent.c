/* percent.c - writes the percent-encoding of URIs. */
#include "base/percent.h"

#include <string.h>

bool percent_literal(unsigned char c, bool path)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-._~", c) != NULL) || (path && c == '/');
}

void percent_encode(struct buf *out, const char *text, bool path)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		if (percent_literal(c, path)) {
			buf_addc(out, *text);
		} else {
			buf_addf(out, "%%%02X", (unsigned)c);
		}
	}
}
