/* zlib.h - decompresses gzip with the system's zlib (loaded on use). */
#ifndef OS_ZLIB_H
#define OS_ZLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "skillsandbox.h"

struct gunzip; /* a gzip stream; its members are decompressed one after another */

int zlib_load(struct ssb_error *err); /* loads the library; must be called first */
struct gunzip *zlib_gunzip_new(void); /* never freed; NULL if there is no memory */

/* Decompresses from `in` as much as fits into `out`, and sets both lengths to the bytes used.
 * Returns 1 if a member of the stream has ended (another may follow), 0 if the member has not
 * ended, -1 if the stream is damaged. */
int zlib_gunzip_more(struct gunzip *z, const uint8_t *in, size_t *in_len, uint8_t *out,
                     size_t *out_len);

#endif
