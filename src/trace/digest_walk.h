/* digest_walk.h - the digests of a directory's files, as members of JSON. */
#ifndef TRACE_DIGEST_WALK_H
#define TRACE_DIGEST_WALK_H

#include <signal.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/sha256.h"

/* "sha256:HEX" */
void digest_put(struct json *j, const char *key, const uint8_t hash[SHA256_BYTES]);

/* Reads what the cache in state_fd (both borrowed; state_fd may be -1) does not
 * know, and brings it up to date. Ends early, with what is done, once *stop is
 * not 0. */
void digest_walk(int dir_fd, int state_fd, const volatile sig_atomic_t *stop, struct buf *out);

#endif
