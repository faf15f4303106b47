/* amount.h - sizes and times in the units that people use. */
#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H

#include <stdint.h>

#include "base/buf.h"

/* Appends a size in powers of 1024: "512 B", "1 MiB", "4.1 KiB". */
void amount_bytes(struct buf *out, uint64_t bytes);
/* Appends the same size with the units of a session's policy, in which 10MB is 10 * 1024 * 1024:
 * "10 MB". */
void amount_bytes_of_policy(struct buf *out, uint64_t bytes);

/* Appends a duration: "6 ms", "1.5 s", "60 s", "5m03s", "2h05m". */
void amount_time(struct buf *out, int64_t micros);

#endif
