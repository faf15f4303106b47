/* tar.h - headers of tar archives: ustar, with the long names of POSIX (pax) and GNU.
 *
 * The bytes are hostile. Nothing here says whether a name may be used: that is for who
 * writes files. Sparse files are refused, and data behind what has none. */
#ifndef WIRE_TAR_H
#define WIRE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK 512
#define TAR_PATH  4096 /* with the NUL */

enum tar_type {
	TAR_FILE,
	TAR_HARDLINK,
	TAR_SYMLINK,
	TAR_DIR,
	TAR_SPECIAL, /* a device or FIFO */
	/* about the member that follows, or (global) about nothing that we use: */
	TAR_PAX,
	TAR_PAX_GLOBAL,
	TAR_LONG_NAME,
	TAR_LONG_LINK,
};

struct tar_member {
	enum tar_type type;
	char name[TAR_PATH];
	char link[TAR_PATH];
	uint64_t size; /* of its data, which follows in whole blocks */
	unsigned mode; /* permission bits, setuid and the like included */
};

/* What stands before a member and says it better. Zero is empty. */
struct tar_over {
	char name[TAR_PATH]; /* "": not said */
	char link[TAR_PATH];
	bool sized;
	uint64_t size;
};

/* 1: a member; 0: a block of zeroes, the end; -1 with a reason (static text). */
int tar_header(const uint8_t block[TAR_BLOCK], struct tar_member *ret, const char **ret_why);

/* The data of a TAR_PAX, TAR_LONG_NAME or TAR_LONG_LINK. 0, or -1 with a reason. */
int tar_extra(enum tar_type type, const char *data, size_t len, struct tar_over *over,
              const char **ret_why);

/* Puts it into the member that follows, and forgets it. */
int tar_apply(struct tar_over *over, struct tar_member *m, const char **ret_why);

/* Bytes from one header to the next, beside it. */
static inline uint64_t tar_padded(uint64_t size)
{
	return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

#endif
