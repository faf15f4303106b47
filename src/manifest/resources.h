/* resources.h - every limit of a run: name, unit, bounds, default.
 *
 * These tables are the only definition of the limits. The keys of the manifest and of the policy
 * file, the flags, the plan and its descriptions are all made from them. A row is
 *
 *   X(name, unit, text after a number, least, most, default)
 *
 * where `name` is the name of a member of struct resources or struct net_limits. */
#ifndef MANIFEST_RESOURCES_H
#define MANIFEST_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"

/* The value of a limit that a run does not have. Only the plan of a bare command contains it. */
#define RESOURCE_UNLIMITED UINT64_MAX

enum unit { UNIT_MIB, UNIT_BYTES, UNIT_SECONDS, UNIT_COUNT };

/* clang-format off */
#define RESOURCE_ROWS(X) \
	X(memory_mb, UNIT_MIB, "", MIN_MEMORY_MB, MAX_MEMORY_MB, DEF_MEMORY_MB) \
	X(cpu_shares, UNIT_COUNT, "", MIN_CPU_SHARES, MAX_CPU_SHARES, DEF_CPU_SHARES) \
	X(max_runtime_seconds, UNIT_SECONDS, "", 1, MAX_RUNTIME_SECONDS, DEF_RUNTIME_SECONDS) \
	X(max_output_bytes, UNIT_BYTES, "", 1, MAX_OUTPUT_BYTES_CAP, DEF_OUTPUT_BYTES) \
	X(max_processes, UNIT_COUNT, "", 1, MAX_PROCESSES_CAP, DEF_PROCESSES) \
	X(max_open_files, UNIT_COUNT, "", MIN_OPEN_FILES, MAX_OPEN_FILES_CAP, DEF_OPEN_FILES) \
	X(max_disk_mb, UNIT_MIB, "", 1, MAX_DISK_MB_CAP, DEF_DISK_MB)

#define NET_LIMIT_ROWS(X) \
	X(max_connections, UNIT_COUNT, " connections", 1, MAX_CONNECTIONS_CAP, DEF_CONNECTIONS) \
	X(max_connections_per_second, UNIT_COUNT, " new connections a second", 1, \
	  MAX_CONNECTION_RATE, DEF_CONNECTION_RATE) \
	X(max_bytes_out, UNIT_BYTES, " out", 1, MAX_NET_BYTES_CAP, DEF_NET_BYTES) \
	X(max_bytes_in, UNIT_BYTES, " in", 1, MAX_NET_BYTES_CAP, DEF_NET_BYTES)
/* clang-format on */

/* One row of the tables. */
struct resource {
	const char *name;
	enum unit unit;
	const char *after; /* what people read after an amount, such as " connections" */
	uint64_t least;
	uint64_t most;
	size_t at; /* offset in struct resources or net_limits */
};

extern const struct resource RESOURCES[]; /* the members of struct resources */
extern const size_t RESOURCE_COUNT;
extern const struct resource NET_LIMITS[]; /* the members of struct net_limits */
extern const size_t NET_LIMIT_COUNT;

/* Returns the member of `s` that the row describes; `s` is a struct resources or net_limits. */
static inline uint64_t *resource_in(void *s, const struct resource *r)
{
	return (uint64_t *)(void *)((char *)s + r->at);
}

static inline uint64_t resource_of(const void *s, const struct resource *r)
{
	return *(const uint64_t *)(const void *)((const char *)s + r->at);
}

/* Reads a number with a unit as people write it: "64M", "10KB", "90s". Sets *ret to MiB, bytes,
 * seconds or a count, as `unit` says. Units of size are powers of 1024; "m" and "h" are minutes and
 * hours. Returns false if the text is not such a number. */
bool resource_number(const char *s, enum unit unit, uint64_t *ret);

/* Appends a limit exactly, in the largest unit that loses nothing: "64 MiB", "2000 bytes",
 * "60 s", "24 h", "256". */
void resource_amount(struct buf *out, enum unit unit, uint64_t v);

#endif
