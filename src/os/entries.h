/* entries.h - the names in a directory, one after the other. Beside a DIR it needs no memory of the
 * heap, no second fd and no calls but those that read. */
#ifndef OS_ENTRIES_H
#define OS_ENTRIES_H

#include <dirent.h>
#include <stddef.h>

#define ENTRIES_BYTES 8192U

struct entries {
	int dir; /* borrowed */
	size_t at, len;
	/* Aligned as the kernel fills it. */
	_Alignas(struct dirent64) char raw[ENTRIES_BYTES];
};

/* `dir` is borrowed, and open to be read. */
void entries_init(struct entries *e, int dir);

/* The next name, which is neither "." nor ".."; valid until the next call. NULL at the end with
 * errno 0, and with another errno if the rest cannot be read. */
const struct dirent64 *entries_next(struct entries *e);

#endif
