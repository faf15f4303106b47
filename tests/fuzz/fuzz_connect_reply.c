/* Reads a proxy's answer of arbitrary bytes: the verdict and the length of the head must not depend
 * on how the bytes are divided, nor on the bytes after the head. */
#include <string.h>

#include "fuzz.h"
#include "wire/connect_reply.h"

/* Feeds the bytes in pieces of `cut` bytes. Each piece is in a block of exactly its size, so that a
 * sanitizer reports a read past its end. */
static enum connect_verdict feed(const uint8_t *data, size_t size, size_t cut,
                                 struct connect_reply *r, size_t *ret_used)
{
	enum connect_verdict v = CONNECT_MORE;
	size_t at = 0;

	connect_reply_init(r);
	while (v == CONNECT_MORE && at < size) {
		size_t n = cut < size - at ? cut : size - at;
		size_t used = SIZE_MAX;
		char *exact = malloc(n);
		must(exact != NULL);
		memcpy(exact, data + at, n);
		v = connect_reply_feed(r, exact, n, &used);
		free(exact);
		must(used <= n && (v != CONNECT_MORE || used == n));
		at += used;
	}
	*ret_used = at;
	return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t CUTS[] = { 1, 2, 3, 7, 64, 1000 };
	struct connect_reply whole;
	struct connect_reply part;
	size_t len = 0;
	size_t used = 0;
	enum connect_verdict v = feed(data, size, size + 1, &whole, &len);

	must(v != CONNECT_DONE ||
	     (len <= CONNECT_REPLY_MAX && len >= 14 && data[len - 1] == '\n' && whole.len == len));
	must(v != CONNECT_DONE || whole.status == 101 ||
	     (whole.status >= 200 && whole.status <= 599));
	must(v != CONNECT_MORE || size <= CONNECT_REPLY_MAX);
	for (size_t i = 0; i < sizeof(CUTS) / sizeof(CUTS[0]); i++) {
		must(feed(data, size, CUTS[i], &part, &used) == v && used == len);
		must(v == CONNECT_BROKEN || part.status == whole.status);
	}
	/* Bytes after the head must not change the result, and without its last byte the head must
	 * be incomplete. */
	if (v == CONNECT_DONE) {
		must(feed(data, len, 1, &part, &used) == CONNECT_DONE && used == len);
		must(feed(data, len - 1, 1, &part, &used) == CONNECT_MORE);
	}
	return 0;
}
