/* guard.c - judges addresses by two lists: the registries of special-purpose IPv4 and IPv6
 * addresses, and the well-known addresses where clouds serve credentials.
 *
 * Both families have the same form (IPv4 as ::ffff:a.b.c.d), so that there is one table and one
 * comparison. Rows are tried in order, so narrow ranges must come first. */
#include "egress/guard.h"

#include <assert.h>

#include "os/net.h"

#define V4_BITS ADDRESS_V4_BITS
#define V4(a, b, c, d)                                                                             \
	{                                                                                          \
		{                                                                                  \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d                       \
		}                                                                                  \
	}
#define ROWS(t) (sizeof(t) / sizeof((t)[0]))

static const struct cidr GLOBAL = { { { 0x20 } }, 3 };

enum special_kind {
	SPECIAL_NONE, /* a public address */
	SPECIAL_UNSPECIFIED,
	SPECIAL_LOOPBACK,
	SPECIAL_PRIVATE,
	SPECIAL_UNIQUE_LOCAL,
	SPECIAL_LINK_LOCAL,
	SPECIAL_METADATA,
	SPECIAL_CGNAT,
	SPECIAL_MULTICAST,
	SPECIAL_BROADCAST,
	SPECIAL_BENCHMARK,
	SPECIAL_DOCUMENTATION,
	SPECIAL_RESERVED,
};

static const char *const KIND_NAMES[] = {
	[SPECIAL_NONE] = NULL,
	[SPECIAL_UNSPECIFIED] = "unspecified",
	[SPECIAL_LOOPBACK] = "loopback",
	[SPECIAL_PRIVATE] = "private",
	[SPECIAL_UNIQUE_LOCAL] = "unique_local",
	[SPECIAL_LINK_LOCAL] = "link_local",
	[SPECIAL_METADATA] = "metadata",
	[SPECIAL_CGNAT] = "cgnat",
	[SPECIAL_MULTICAST] = "multicast",
	[SPECIAL_BROADCAST] = "broadcast",
	[SPECIAL_BENCHMARK] = "benchmark",
	[SPECIAL_DOCUMENTATION] = "documentation",
	[SPECIAL_RESERVED] = "reserved",
};

static const struct special {
	struct cidr range;
	enum special_kind kind;
} SPECIAL[] = {
	{ { V4(100, 100, 100, 200), V4_BITS + 32 }, SPECIAL_METADATA },
	{ { V4(168, 63, 129, 16), V4_BITS + 32 }, SPECIAL_METADATA },
	{ { V4(169, 254, 0, 23), V4_BITS + 32 }, SPECIAL_METADATA },
	{ { V4(169, 254, 42, 42), V4_BITS + 32 }, SPECIAL_METADATA },
	{ { V4(169, 254, 169, 254), V4_BITS + 32 }, SPECIAL_METADATA },
	{ { V4(169, 254, 170, 2), V4_BITS + 32 }, SPECIAL_METADATA },
	{ { V4(169, 254, 170, 23), V4_BITS + 32 }, SPECIAL_METADATA },
	{ { V4(192, 0, 0, 192), V4_BITS + 32 }, SPECIAL_METADATA },
	{ { V4(0, 0, 0, 0), V4_BITS + 8 }, SPECIAL_UNSPECIFIED },
	{ { V4(10, 0, 0, 0), V4_BITS + 8 }, SPECIAL_PRIVATE },
	{ { V4(100, 64, 0, 0), V4_BITS + 10 }, SPECIAL_CGNAT },
	{ { V4(127, 0, 0, 0), V4_BITS + 8 }, SPECIAL_LOOPBACK },
	{ { V4(169, 254, 0, 0), V4_BITS + 16 }, SPECIAL_LINK_LOCAL },
	{ { V4(172, 16, 0, 0), V4_BITS + 12 }, SPECIAL_PRIVATE },
	{ { V4(192, 0, 0, 0), V4_BITS + 24 }, SPECIAL_RESERVED },
	{ { V4(192, 0, 2, 0), V4_BITS + 24 }, SPECIAL_DOCUMENTATION },
	{ { V4(192, 88, 99, 0), V4_BITS + 24 }, SPECIAL_RESERVED }, /* 6to4 relays */
	{ { V4(192, 168, 0, 0), V4_BITS + 16 }, SPECIAL_PRIVATE },
	{ { V4(198, 18, 0, 0), V4_BITS + 15 }, SPECIAL_BENCHMARK },
	{ { V4(198, 51, 100, 0), V4_BITS + 24 }, SPECIAL_DOCUMENTATION },
	{ { V4(203, 0, 113, 0), V4_BITS + 24 }, SPECIAL_DOCUMENTATION },
	{ { V4(224, 0, 0, 0), V4_BITS + 4 }, SPECIAL_MULTICAST },
	{ { V4(255, 255, 255, 255), V4_BITS + 32 }, SPECIAL_BROADCAST },
	{ { V4(240, 0, 0, 0), V4_BITS + 4 }, SPECIAL_RESERVED },

	{ { { { [15] = 1 } }, 128 }, SPECIAL_LOOPBACK },
	{ { { { 0x20, 0x01, 0, 0x02, 0, 0 } }, 48 }, SPECIAL_BENCHMARK },  /* 2001:2:: */
	{ { { { 0x20, 0x01, 0x0d, 0xb8 } }, 32 }, SPECIAL_DOCUMENTATION }, /* 2001:db8:: */
	{ { { { 0x3f, 0xff, 0 } }, 20 }, SPECIAL_DOCUMENTATION },          /* 3fff:: */
	{ { { { 0xfd, 0, 0x0e, 0xc2 } }, 32 }, SPECIAL_METADATA },         /* fd00:ec2:: */
	{ { { { 0xfd, 0x20, 0, 0xce } }, 32 }, SPECIAL_METADATA },         /* fd20:ce:: */
	{ { { { 0xfc } }, 7 }, SPECIAL_UNIQUE_LOCAL },
	{ { { { 0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe } }, 128 }, SPECIAL_METADATA },
	{ { { { 0xfe, 0x80 } }, 10 }, SPECIAL_LINK_LOCAL },
	{ { { { 0xfe, 0xc0 } }, 10 }, SPECIAL_PRIVATE }, /* site-local */
	{ { { { 0xff } }, 8 }, SPECIAL_MULTICAST },
};

/* 2001::/23 is assigned to protocols, so no address in it is a host. The exception is Teredo, which
 * is judged by the IPv4 addresses in it. */
static const struct cidr TEREDO = { { { 0x20, 0x01, 0, 0 } }, 32 };
static const struct cidr PROTOCOLS = { { { 0x20, 0x01, 0 } }, 23 };
static const struct cidr NAT64 = { { { 0, 0x64, 0xff, 0x9b } }, 96 };

/* The most IPv4 addresses that one IPv6 address can contain: one for each row, and one for
 * ISATAP. */
#define MAX_EMBEDDED (ROWS(EMBEDDINGS) + 1)

/* The positions of IPv4 addresses within IPv6 addresses. `inverted`: the complement of the address
 * is stored. */
static const struct embedding {
	struct cidr range;
	unsigned at;
	bool inverted;
} EMBEDDINGS[] = {
	{ { { { 0 } }, 96 }, 12, false },                         /* ::a.b.c.d */
	{ { { { [8] = 0xff, 0xff } }, 96 }, 12, false },          /* ::ffff:0:a.b.c.d */
	{ { { { 0, 0x64, 0xff, 0x9b } }, 96 }, 12, false },       /* NAT64 */
	{ { { { 0, 0x64, 0xff, 0x9b, 0, 1 } }, 48 }, 12, false }, /* NAT64, local */
	{ { { { 0x20, 0x02 } }, 16 }, 2, false },                 /* 6to4 */
	{ { { { 0x20, 0x01, 0, 0 } }, 32 }, 4, false },           /* Teredo's server */
	{ { { { 0x20, 0x01, 0, 0 } }, 32 }, 12, true },           /* Teredo's client */
};

static enum special_kind find_kind(const struct address *a)
{
	for (size_t i = 0; i < ROWS(SPECIAL); i++) {
		if (cidr_contains(&SPECIAL[i].range, a)) {
			return SPECIAL[i].kind;
		}
	}
	return SPECIAL_NONE;
}

/* Returns whether the interface identifier is 0:5efe or 200:5efe, with any prefix. */
static bool is_isatap(const struct address *a)
{
	return (a->b[8] & 0xfd) == 0 && a->b[9] == 0 && a->b[10] == 0x5e && a->b[11] == 0xfe;
}

static struct address take_v4(const struct address *a, unsigned at, bool inverted)
{
	struct address v4 = V4(0, 0, 0, 0);

	for (unsigned i = 0; i < 4; i++) {
		v4.b[12 + i] = (uint8_t)(inverted ? ~a->b[at + i] : a->b[at + i]);
	}
	return v4;
}

/* Writes the IPv4 addresses that an IPv6 address contains. Returns how many there are. */
static size_t list_embedded(const struct address *a, struct address ret[MAX_EMBEDDED])
{
	size_t n = 0;

	if (address_is_v4(a)) {
		return 0;
	}
	for (size_t i = 0; i < ROWS(EMBEDDINGS); i++) {
		const struct embedding *e = &EMBEDDINGS[i];
		if (cidr_contains(&e->range, a)) {
			ret[n++] = take_v4(a, e->at, e->inverted);
		}
	}
	if (is_isatap(a)) {
		ret[n++] = take_v4(a, 12, false);
	}
	return n;
}

static enum special_kind judge_special(const struct address *a)
{
	struct address within[MAX_EMBEDDED];
	size_t n = list_embedded(a, within);
	enum special_kind kind = find_kind(a);

	for (size_t i = 0; kind == SPECIAL_NONE && i < n; i++) {
		kind = find_kind(&within[i]);
	}
	if (kind != SPECIAL_NONE || address_is_v4(a) || cidr_contains(&TEREDO, a) ||
	    cidr_contains(&NAT64, a)) {
		return kind;
	}
	return !cidr_contains(&GLOBAL, a) || cidr_contains(&PROTOCOLS, a) ? SPECIAL_RESERVED
	                                                                  : SPECIAL_NONE;
}

const char *guard_address_special(const struct address *a)
{
	return KIND_NAMES[judge_special(a)];
}

/* Returns the kind of an address of this machine or of a host on its own networks. Judges in the
 * same way an IPv4 address inside an IPv6 address. Returns NULL for any other address. */
static const char *find_near_kind(const struct address *a)
{
	static const char *const NEAR[] = { [NET_BEYOND] = NULL,
		                            [NET_HERE] = "this_machine",
		                            [NET_LINK] = "on_link",
		                            [NET_UNSURE] = "unsure" };
	struct address within[MAX_EMBEDDED];
	size_t n = list_embedded(a, within);
	const char *kind = NEAR[net_place_of(a)];

	for (size_t i = 0; kind == NULL && i < n; i++) {
		kind = NEAR[net_place_of(&within[i])];
	}
	return kind;
}

bool guard_is_loopback(const struct address *a)
{
	return judge_special(a) == SPECIAL_LOOPBACK;
}

bool guard_allows(const struct address *a, const struct cidr *granted, size_t n_granted,
                  const char **ret_kind)
{
	assert(n_granted == 0 || granted != NULL);
	for (size_t i = 0; i < n_granted; i++) {
		if (cidr_contains(&granted[i], a)) {
			return true;
		}
	}
	const char *kind = guard_address_special(a);
	if (kind == NULL) {
		kind = find_near_kind(a);
	}
	if (kind != NULL) {
		*ret_kind = kind;
	}
	return kind == NULL;
}
