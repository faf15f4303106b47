#include "manifest/resources.h"

#include "base/own.h"
#include "manifest/manifest.h"

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

/* No member without a row. */
_Static_assert(sizeof(RESOURCES) / sizeof(RESOURCES[0]) ==
                       sizeof(struct resources) / sizeof(uint64_t),
               "every resource has its row");
_Static_assert(sizeof(NET_LIMITS) / sizeof(NET_LIMITS[0]) ==
                       sizeof(struct net_limits) / sizeof(uint64_t),
               "every limit of the network has its row");
