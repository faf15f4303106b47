/* shell_quote.c - quotes a word for a shell. */
#include "base/shell_quote.h"

#include <string.h>

void shell_quote(struct buf *out, const char *text)
{
	/* "=" is not safe: before a command, NAME=value is an assignment. */
	static const char SAFE[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	                           "0123456789_-./:,@%+";

	if (*text != '\0' && text[strspn(text, SAFE)] == '\0') {
		buf_adds(out, text);
		return;
	}
	buf_addc(out, '\'');
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			buf_adds(out, "'\\''");
		} else {
			buf_addc(out, *text);
		}
	}
	buf_addc(out, '\'');
}
