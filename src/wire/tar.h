/* tar.h - parses headers of tar archives: ustar, with the long names of POSIX (pax) and GNU.
 *
 * The bytes may be hostile. The names are not checked here: the code that writes files must do
 * that. Sparse files are refused, and so is a member with data whose type cannot have data. */
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
	/* The types below describe the next member. The content of TAR_PAX_GLOBAL is not used: */
	TAR_PAX,
	TAR_PAX_GLOBAL,
	TAR_LONG_NAME,
	TAR_LONG_LINK,
};

struct tar_member {
	enum tar_type type;
	char name[TAR_PATH];
	char link[TAR_PATH];
	uint64_t size; /* bytes of data; the data follows, padded to whole blocks */
	unsigned mode; /* permission bits, with setuid, setgid and sticky */
};

/* Fields of the next member that an extra header replaces. Must be zeroed first. */
struct tar_over {
	char name[TAR_PATH]; /* "": not replaced */
	char link[TAR_PATH];
	bool sized;
	uint64_t size;
};

/* Returns 1 for a member, 0 for a block of zeros (the end), or -1 with a static reason. */
int tar_header(const uint8_t block[TAR_BLOCK], struct tar_member *ret, const char **ret_why);

/* Reads the data of a TAR_PAX, TAR_LONG_NAME or TAR_LONG_LINK into `over`. Returns 0, or -1 with a
 * static reason. */
int tar_extra(enum tar_type type, const char *data, size_t len, struct tar_over *over,
              const char **ret_why);

/* Puts the fields of `over` into the next member, and clears `over`. Returns 0, or -1 with a static
 * reason. */
int tar_apply(struct tar_over *over, struct tar_member *m, const char **ret_why);

/* Returns the size of the data with its padding, up to the next header. */
static inline uint64_t tar_padded(uint64_t size)
{
	return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

#endif
