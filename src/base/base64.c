/* base64.c - encodes and decodes base64 with padding. */
#include "base/base64.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t len)
{
	const unsigned char *in = data;
	char *out = calloc(1, (len + 2) / 3 * 4 + 1);

	for (size_t i = 0, at = 0; out != NULL && i < len; i += 3) {
		unsigned v = 0;
		for (size_t k = 0; k < 3; k++) {
			v = v << 8 | (i + k < len ? in[i + k] : 0U);
		}
		for (size_t k = 0; k < 4; k++) {
			out[at++] = i + k <= len ? DIGITS[v >> (18 - 6 * k) & 63] : '=';
		}
	}
	return out;
}

static int digit_value(char c)
{
	const char *at = c == '\0' ? NULL : strchr(DIGITS, c);

	return at == NULL ? -1 : (int)(at - DIGITS);
}

/* Decodes four characters; the last `pad` of them are padding. */
static int decode_group(const char *text, size_t pad, struct buf *out)
{
	unsigned bits = 0;

	for (size_t k = 0; k < 4; k++) {
		int v = k >= 4 - pad ? 0 : digit_value(text[k]);
		if (v < 0) {
			return -1;
		}
		bits = bits << 6 | (unsigned)v;
	}
	if ((bits & (pad == 2 ? 0xffffU : pad == 1 ? 0xffU : 0)) != 0) {
		return -1;
	}
	for (size_t k = 0; k < 3 - pad; k++) {
		buf_addc(out, (char)(bits >> (16 - 8 * k) & 0xff));
	}
	return 0;
}

int base64_decode(const char *text, size_t len, struct buf *out)
{
	if (len % 4 != 0) {
		return -1;
	}
	for (size_t i = 0; i < len; i += 4) {
		bool last = i + 4 == len;
		size_t pad = last && text[i + 3] == '=' ? (text[i + 2] == '=' ? 2 : 1) : 0;
		if (decode_group(text + i, pad, out) < 0) {
			return -1;
		}
	}
	return out->failed ? -1 : 0;
}
