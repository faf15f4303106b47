/* Parses a ClientHello of arbitrary bytes: no prefix may give another result than the whole (except
 * "incomplete"), and the same bytes in other records must give the same result. */
#include <string.h>

#include "fuzz.h"
#include "wire/tls_hello.h"

#define MAX_PREFIXES 600

static void check_name(const char name[TLS_MAX_NAME])
{
	size_t n = strnlen(name, TLS_MAX_NAME);

	must(n < TLS_MAX_NAME && (n == 0 || (name[0] != '.' && name[n - 1] != '.')));
	must(name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.")] == '\0');
	must(strstr(name, "..") == NULL);
}

/* Parses a copy of exactly this size, so that a sanitizer reports a read past its end. */
static enum tls_verdict parse(const uint8_t *data, size_t len, char name[TLS_MAX_NAME])
{
	uint8_t *exact = malloc(len + (len == 0));

	must(exact != NULL);
	memcpy(exact, data, len);
	memset(name, 'X', TLS_MAX_NAME);
	enum tls_verdict v = tls_hello_parse(exact, len, name);
	free(exact);
	if (v == TLS_NAME || v == TLS_ECH) {
		check_name(name);
		must(v == TLS_ECH || name[0] != '\0');
	} else {
		must(name[0] == 'X');
	}
	return v;
}

/* Writes the first handshake message again, in records of `part` bytes. Returns the new length. */
static size_t cut_again(const uint8_t *data, size_t size, size_t part, uint8_t *out)
{
	size_t n = 0;

	for (size_t pos = 0; pos + 5 < size;) {
		size_t fragment = (size_t)data[pos + 3] << 8 | data[pos + 4];
		pos += 5;
		for (size_t i = 0; i < fragment && pos + i < size; i += part) {
			size_t k = fragment - i < part ? fragment - i : part;
			k = size - pos - i < k ? size - pos - i : k;
			const uint8_t head[5] = { 22, 3, 1, (uint8_t)(k >> 8), (uint8_t)k };
			memcpy(out + n, head, sizeof(head));
			memcpy(out + n + 5, data + pos + i, k);
			n += 5 + k;
		}
		pos += fragment;
	}
	return n;
}

static void check_other_cuts(const uint8_t *data, size_t size, enum tls_verdict want,
                             const char *want_name)
{
	char name[TLS_MAX_NAME];
	uint8_t *out = malloc(6 * size);

	must(out != NULL);
	for (size_t part = 1; part <= 64; part = part * 3 + 1) {
		size_t n = cut_again(data, size, part, out);
		if (n < TLS_HELLO_MAX) {
			must(parse(out, n, name) == want &&
			     memcmp(name, want_name, sizeof(name)) == 0);
		}
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[TLS_MAX_NAME], part_name[TLS_MAX_NAME];
	enum tls_verdict whole = parse(data, size, name);
	size_t step = size / MAX_PREFIXES + 1;

	must(whole != TLS_MORE || size < TLS_HELLO_MAX);
	for (size_t n = 0; n < size; n += step) {
		enum tls_verdict v = parse(data, n, part_name);
		must(v == TLS_MORE || (v == whole && memcmp(name, part_name, sizeof(name)) == 0));
	}
	if (whole != TLS_MORE && whole != TLS_NOT_TLS && whole != TLS_BROKEN) {
		/* Bytes after the message must not change the result. This finds the shortest
		 * prefix with the same result. */
		size_t begin = 0, end = size;
		while (begin < end) {
			size_t middle = begin + (end - begin) / 2;
			if (parse(data, middle, part_name) == whole) {
				end = middle;
			} else {
				begin = middle + 1;
			}
		}
		check_other_cuts(data, end, whole, name);
	}
	return 0;
}
