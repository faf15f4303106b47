/* zlib.h - what gzip packed, unpacked by the system's zlib (loaded on use). */
#ifndef OS_ZLIB_H
#define OS_ZLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "skillsandbox.h"

struct gunzip; /* one stream; members that follow each other are one */

int zlib_load(struct ssb_error *err); /* the library; before any of the others */
struct gunzip *zlib_gunzip_new(void); /* for the rest of the process; or NULL */

/* From `in` as much as fits into `out`; both lengths become what was used. 1: the
 * stream is at an end for now, 0: there is more to come, -1: it is damaged. */
int zlib_gunzip_more(struct gunzip *z, const uint8_t *in, size_t *in_len, uint8_t *out,
                     size_t *out_len);

#endif
