/* resources.c - the tables of limits, and a parser for numbers with units. */
#include "manifest/resources.h"

#include <ctype.h>
#include <string.h>

#include "base/number.h"
#include "base/own.h"
#include "manifest/manifest.h"

#define MIB (1UL << 20)

#define ROW(type, name, unit, after, least, most)                                                  \
	{ #name, unit, after, least, (uint64_t)(most), offsetof(struct type, name) },
#define RESOURCE_ROW(name, unit, after, least, most, usual)                                        \
	ROW(resources, name, unit, after, least, most)
#define NET_LIMIT_ROW(name, unit, after, least, most, usual)                                       \
	ROW(net_limits, name, unit, after, least, most)
#define DEFAULT(name, unit, after, least, most, usual) .name = (usual),

const struct resource RESOURCES[] = { RESOURCE_ROWS(RESOURCE_ROW) };
const size_t RESOURCE_COUNT = ARRAY_LEN(RESOURCES);
const struct resource NET_LIMITS[] = { NET_LIMIT_ROWS(NET_LIMIT_ROW) };
const size_t NET_LIMIT_COUNT = ARRAY_LEN(NET_LIMITS);

const struct resources RESOURCE_DEFAULTS = { RESOURCE_ROWS(DEFAULT) };
const struct net_limits NET_DEFAULTS = { NET_LIMIT_ROWS(DEFAULT) };

/* Every member must have a row. */
_Static_assert(sizeof(RESOURCES) / sizeof(RESOURCES[0]) ==
                       sizeof(struct resources) / sizeof(uint64_t),
               "every resource has its row");
_Static_assert(sizeof(NET_LIMITS) / sizeof(NET_LIMITS[0]) ==
                       sizeof(struct net_limits) / sizeof(uint64_t),
               "every limit of the network has its row");

/* Accepts "", K, Ki, KB, KiB and so on; all are powers of 1024. */
static bool size_factor(const char *s, uint64_t bare, uint64_t *ret)
{
	static const char LETTERS[] = "KMGT";

	if (*s == '\0') {
		*ret = bare;
		return true;
	}
	const char *at = strchr(LETTERS, toupper((unsigned char)*s));
	if (at == NULL) {
		return false;
	}
	*ret = 1ULL << (10 * (at - LETTERS + 1));
	s++;
	return strcmp(s, "") == 0 || strcmp(s, "i") == 0 || strcmp(s, "iB") == 0 ||
	       strcmp(s, "B") == 0;
}

static bool time_factor(const char *s, uint64_t *ret)
{
	static const char LETTERS[] = "smh";
	static const uint64_t SECONDS[] = { 1, 60, 3600 };

	*ret = 1;
	if (*s == '\0') {
		return true;
	}
	const char *at = strchr(LETTERS, *s);
	if (at == NULL || s[1] != '\0') {
		return false;
	}
	*ret = SECONDS[at - LETTERS];
	return true;
}

bool resource_number(const char *s, enum unit unit, uint64_t *ret)
{
	uint64_t v;
	uint64_t factor = 1;
	const char *rest = number_read(s, UINT64_MAX, &v);

	if (rest == NULL) {
		return false;
	}
	bool known = false;
	switch (unit) {
	case UNIT_MIB:
		known = size_factor(rest, MIB, &factor);
		break;
	case UNIT_BYTES:
		known = size_factor(rest, 1, &factor);
		break;
	case UNIT_SECONDS:
		known = time_factor(rest, &factor);
		break;
	case UNIT_COUNT:
		known = *rest == '\0';
		break;
	}
	if (!known || __builtin_mul_overflow(v, factor, &v)) {
		return false;
	}
	if (unit == UNIT_MIB) {
		v = v / MIB + (v % MIB != 0);
	}
	*ret = v;
	return true;
}

/* Divides by `by` as long as there is no remainder. Returns the index of the unit of the result. */
static size_t divide_exactly(uint64_t *v, uint64_t by, size_t unit, size_t most)
{
	while (unit < most && *v >= by * (by < 1024 ? 2 : 1) && *v % by == 0) {
		*v /= by;
		unit++;
	}
	return unit;
}

void resource_amount(struct buf *out, enum unit unit, uint64_t v)
{
	static const char *const SIZES[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	static const char *const TIMES[] = { "s", "min", "h" };

	if (unit == UNIT_COUNT) {
		buf_addf(out, "%ju", (uintmax_t)v);
	} else if (unit == UNIT_SECONDS) {
		const char *name = TIMES[divide_exactly(&v, 60, 0, 2)];
		buf_addf(out, "%ju %s", (uintmax_t)v, name);
	} else {
		const char *name = SIZES[divide_exactly(&v, 1024, unit == UNIT_MIB ? 2 : 0, 4)];
		buf_addf(out, "%ju %s", (uintmax_t)v, name);
	}
}
