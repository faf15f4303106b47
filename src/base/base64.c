#include "base/base64.h"

#include <stdlib.h>

char *base64_encode(const void *data, size_t len)
{
	static const char DIGITS[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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
