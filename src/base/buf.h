/* buf.h - a growing byte buffer with a hard cap.
 *
 * If an append fails (cap or memory), the buffer stays `failed` and later appends do nothing. So
 * callers can append without checks and check `failed` once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* NUL-terminated unless NULL */
	size_t len;
	size_t size;
	size_t cap;
	bool failed;
};

/* The initialiser of an empty buffer: `auto_buf text = BUF(cap);`. buf_init() initialises a buffer
 * that is a member of another struct. */
#define BUF(most) ((struct buf){ .cap = (most) })
void buf_init(struct buf *b, size_t cap);
void buf_done(struct buf *b); /* accepts a zeroed or freed buffer */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_reset(struct buf *b); /* empties the buffer and clears `failed`, but keeps the memory */

/* Hands the string to the caller, who must free() it. Returns NULL if an append failed. */
char *buf_steal(struct buf *b);

#define auto_buf __attribute__((cleanup(buf_done))) struct buf

#endif
