/* zlib.c - loads zlib, and decompresses gzip with it. */
#include "os/zlib.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "base/own.h"
#include "os/library.h"

/* z_stream as in zlib.h since 1995; it is part of the library's ABI. */
struct stream {
	const uint8_t *next_in;
	unsigned avail_in;
	unsigned long total_in;
	uint8_t *next_out;
	unsigned avail_out;
	unsigned long total_out;
	const char *msg;
	void *state;
	void *zalloc;
	void *zfree;
	void *opaque;
	int data_type;
	unsigned long adler;
	unsigned long reserved;
};

enum { Z_OK = 0, Z_STREAM_END = 1, Z_BUF_ERROR = -5, WINDOW_GZIP = 15 + 16 };

static struct {
	int (*init)(struct stream *s, int window, const char *version, int size);
	int (*inflate)(struct stream *s, int flush);
	int (*reset)(struct stream *s);
} zlib;
static bool loaded;

#define CALL(name, member)                                                                         \
	{                                                                                          \
		name, offsetof(__typeof__(zlib), member)                                           \
	}

int zlib_load(struct ssb_error *err)
{
	static const struct library_call calls[] = {
		CALL("inflateInit2_", init),
		CALL("inflate", inflate),
		CALL("inflateReset", reset),
	};
	static const struct library library = { "libz.so.1", "zlib, which unpacks gzip", "zlib1g",
		                                calls, ARRAY_LEN(calls) };

	return library_load(&library, &zlib, &loaded, "image", err);
}

struct gunzip {
	struct stream stream;
	bool ended; /* a member has ended; another may follow */
};

struct gunzip *zlib_gunzip_new(void)
{
	struct gunzip *z = calloc(1, sizeof(*z));

	assert(zlib.init != NULL);
	if (z != NULL &&
	    zlib.init(&z->stream, WINDOW_GZIP, "1", (int)sizeof(struct stream)) != Z_OK) {
		free(z);
		z = NULL;
	}
	return z;
}

int zlib_gunzip_more(struct gunzip *z, const uint8_t *in, size_t *in_len, uint8_t *out,
                     size_t *out_len)
{
	struct stream *s = &z->stream;

	if (z->ended && *in_len > 0) {
		if (zlib.reset(s) != Z_OK) {
			return -1;
		}
		z->ended = false;
	}
	s->next_in = in;
	s->avail_in = (unsigned)(*in_len < INT_MAX ? *in_len : INT_MAX);
	s->next_out = out;
	s->avail_out = (unsigned)(*out_len < INT_MAX ? *out_len : INT_MAX);
	int rc = z->ended ? Z_STREAM_END : zlib.inflate(s, 0);
	*in_len = (size_t)(s->next_in - in);
	*out_len = (size_t)(s->next_out - out);
	z->ended = rc == Z_STREAM_END;
	return rc == Z_STREAM_END ? 1 : rc == Z_OK || rc == Z_BUF_ERROR ? 0 : -1;
}
