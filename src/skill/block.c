/* block.c - finds the frontmatter of a SKILL.md. */
#include "skill/block.h"

#include <assert.h>
#include <string.h>

#include "base/limits.h"

/* If the line at `text` is a fence (three hyphens), returns its length with its line end; otherwise
 * 0. */
static size_t fence_length(const char *text, size_t len)
{
	size_t n = 3;

	if (len < 3 || memcmp(text, "---", 3) != 0) {
		return 0;
	}
	while (n < len && (text[n] == ' ' || text[n] == '\t' || text[n] == '\r')) {
		n++;
	}
	return n == len ? n : text[n] == '\n' ? n + 1 : 0;
}

int block_read(struct buf *out, const char *text, size_t len)
{
	size_t at = fence_length(text, len);

	while (at > 0 && at < len && fence_length(text + at, len - at) == 0) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end != NULL ? (size_t)(end - text) - at : len - at;
		size_t cut = n > 0 && text[at + n - 1] == '\r' ? 1 : 0;
		buf_add(out, text + at, n - cut);
		buf_addc(out, '\n');
		at += n + (end != NULL ? 1 : 0);
	}
	return at > 0 && at < len && !out->failed ? 0 : -1;
}

int block_find(struct buf *out, const char *text, size_t len, unsigned *ret_line)
{
	size_t at = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	unsigned blank = 0;

	assert(ret_line != NULL);
	while (at < len && (text[at] == '\n' || text[at] == '\r') && blank < MAX_BLANK_LINES) {
		blank += text[at++] == '\n';
	}
	*ret_line = blank + 1;
	if (block_read(out, text + at, len - at) == 0) {
		return 1;
	}
	return len - at >= 3 && memcmp(text + at, "---", 3) == 0 ? -1 : 0;
}
