/* zlib.h - decompresses gzip with the system's zlib (loaded on use). */
#ifndef OS_ZLIB_H
#define OS_ZLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "skillsandbox.h"

struct gunzip; /* one stream; consecutive members count as one */

int zlib_load(struct ssb_error *err); /* loads the library; must be called first */
struct gunzip *zlib_gunzip_new(void); /* kept for the rest of the process; NULL without memory */

/* Decompresses from `in` as much as fits into `out`; both lengths become the bytes used. 1: the
 * stream ends here for now, 0: more follows, -1: it is damaged. */
int zlib_gunzip_more(struct gunzip *z, const uint8_t *in, size_t *in_len, uint8_t *out,
                     size_t *out_len);

#endif
