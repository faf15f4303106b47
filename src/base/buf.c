/* buf.c - grows a byte buffer up to its cap. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t cap)
{
	*b = (struct buf){ .cap = cap };
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data != NULL) {
		b->data[0] = '\0';
	}
}

/* Makes room for `more` bytes and a NUL. If it cannot, it marks the buffer as failed and returns
 * false. */
static bool buf_reserve(struct buf *b, size_t more)
{
	if (b->failed || more > b->cap || b->len > b->cap - more) {
		b->failed = true;
		return false;
	}
	size_t need = b->len + more + 1;
	if (need <= b->size) {
		return true;
	}
	size_t size = b->size < 256 ? 256 : b->size * 2;
	if (size < need) {
		size = need;
	}
	char *data = realloc(b->data, size);
	if (data == NULL) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->size = size;
	return true;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	if (!buf_reserve(b, len)) {
		return;
	}
	if (len > 0) {
		memcpy(b->data + b->len, data, len);
	}
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !buf_reserve(b, (size_t)n)) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

char *buf_steal(struct buf *b)
{
	buf_add(b, "", 0);
	if (b->failed) {
		return NULL;
	}
	char *s = b->data;
	size_t cap = b->cap;
	buf_init(b, cap);
	return s;
}
