/* net.c - the loopback interface, local ranges, and sockets that listen. */
#include "os/net.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/own.h"

#define LOOPBACK_INDEX 1    /* of "lo", in every network namespace */
#define BACKLOG        4096 /* large, so that no client repeats its SYN in a burst */

struct answer {
	struct nlmsghdr head;
	struct nlmsgerr error;
	char rest[256];
};

/* Reads the kernel's answer to the first request with NLM_F_ACK. Returns 0, or -1 with errno;
 * EEXIST counts as success. */
static int hear_kernel(int sock)
{
	struct answer a;
	ssize_t n = recv(sock, &a, sizeof(a), 0);

	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
	    a.head.nlmsg_type != NLMSG_ERROR) {
		errno = n < 0 ? errno : EPROTO;
		return -1;
	}
	errno = -a.error.error;
	return errno == 0 || errno == EEXIST ? 0 : -1;
}

struct address_request {
	struct nlmsghdr head;
	struct ifaddrmsg to;
	struct rtattr local;
	uint8_t bytes[16];
};

#define ADDRESS_REQUEST(family_, size, ...)                                                        \
	{                                                                                          \
		.head = { .nlmsg_len = sizeof(struct address_request) - 16 + (size),               \
			  .nlmsg_type = RTM_NEWADDR,                                               \
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE },                           \
		.to = { .ifa_family = (family_),                                                   \
			.ifa_prefixlen = 8 * (size),                                               \
			.ifa_flags = IFA_F_NODAD,                                                  \
			.ifa_index = LOOPBACK_INDEX },                                             \
		.local = { RTA_LENGTH(size), IFA_LOCAL }, .bytes = {                               \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

int net_loopback_up(void)
{
	/* Two addresses outside of the loopback range, so that a resolver treats the machine as
	 * online (AI_ADDRCONFIG). Only the first request is acknowledged: a kernel may lack
	 * IPv6. */
	struct {
		struct {
			struct nlmsghdr head;
			struct ifinfomsg link;
		} up;
		struct address_request v6; /* fills its struct; v4 does not, so it must be last */
		struct address_request v4;
	} r = {
		.up = { { .nlmsg_len = sizeof(r.up),
		          .nlmsg_type = RTM_NEWLINK,
		          .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		        { .ifi_index = LOOPBACK_INDEX,
		          .ifi_flags = IFF_UP,
		          .ifi_change = IFF_UP } },
		.v6 = ADDRESS_REQUEST(AF_INET6, 16, 0xfd, 0x53, 0x73, 0x73, 0x62, 0x73, [15] = 1),
		.v4 = ADDRESS_REQUEST(AF_INET, 4, 198, 18, 0, 1),
	};
	auto_fd sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return sock < 0 || send(sock, &r, sizeof(r) - 12, 0) < 0 ? -1 : hear_kernel(sock);
}

struct route_request {
	struct nlmsghdr head;
	struct rtmsg route;
	char attributes[64];
};

static void add_attribute(struct route_request *r, unsigned short type, const void *data,
                          size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)r + NLMSG_ALIGN(r->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + (uint32_t)RTA_ALIGN(a->rta_len);
}

int net_local_range(int family, const uint8_t *address, unsigned bits)
{
	assert(family == AF_INET ? bits <= 32 : family == AF_INET6 && bits <= 128);

	auto_fd sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct route_request r = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
		          .nlmsg_type = RTM_NEWROUTE,
		          .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.route = { .rtm_family = (unsigned char)family,
		           .rtm_dst_len = (unsigned char)bits,
		           .rtm_table = RT_TABLE_LOCAL,
		           .rtm_protocol = RTPROT_STATIC,
		           .rtm_scope = RT_SCOPE_HOST,
		           .rtm_type = RTN_LOCAL },
	};
	int lo = LOOPBACK_INDEX;
	/* Use the congestion control "reno". The host's congestion control was chosen for real
	 * networks and may slow down the traffic, but loopback has no congestion. */
	struct {
		struct rtattr head;
		char name[8];
	} control = { { RTA_LENGTH(sizeof("reno")), RTAX_CC_ALGO }, "reno" };

	if (sock < 0) {
		return -1;
	}
	add_attribute(&r, RTA_DST, address, family == AF_INET ? 4 : 16);
	add_attribute(&r, RTA_OIF, &lo, sizeof(lo));
	add_attribute(&r, RTA_METRICS, &control, sizeof(control));
	return send(sock, &r, r.head.nlmsg_len, 0) < 0 ? -1 : hear_kernel(sock);
}

/* ---- where an address is ------------------------------------------------- */

/* The kernel's answer about the route to an address. It contains the entry of the routing table,
 * with the length of its prefix. */
struct route_answer {
	struct nlmsghdr head;
	union {
		struct nlmsgerr error;
		struct rtmsg route;
	} says;
	char attributes[4096];
};

static ssize_t ask_route(const struct address *a, struct route_answer *ret)
{
	bool v4 = address_is_v4(a);
	auto_fd sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct route_request r = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
		          .nlmsg_type = RTM_GETROUTE,
		          .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = v4 ? AF_INET : AF_INET6,
		           .rtm_dst_len = v4 ? 32 : 128,
		           .rtm_flags = RTM_F_FIB_MATCH },
	};

	add_attribute(&r, RTA_DST, v4 ? a->b + 12 : a->b, v4 ? 4 : 16);
	if (sock < 0 || send(sock, &r, r.head.nlmsg_len, 0) < 0) {
		return -1;
	}
	return recv(sock, ret, sizeof(*ret), 0);
}

/* True if the device sends all packets to the same other end, whatever their address. */
static bool is_point_to_point(int index)
{
	auto_fd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_ifindex = index };

	return sock >= 0 && ioctl(sock, SIOCGIFNAME, &req) == 0 &&
	       ioctl(sock, SIOCGIFFLAGS, &req) == 0 &&
	       ((unsigned)req.ifr_flags & (IFF_POINTOPOINT | IFF_NOARP)) != 0;
}

/* Reads one hop of a route: whether it has a router, and the device. */
static void read_hop(const struct rtattr *a, size_t left, bool *ret_router, int *ret_device)
{
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_GATEWAY || a->rta_type == RTA_VIA) {
			*ret_router = true;
		}
		if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) == sizeof(*ret_device)) {
			memcpy(ret_device, RTA_DATA(a), sizeof(*ret_device));
		}
	}
}

static bool leads_to_neighbours(bool router, int device)
{
	return !router && !is_point_to_point(device);
}

/* True if at least one hop leads to neighbours: the kernel may use any of the hops. */
static bool any_hop_to_neighbours(const struct rtattr *several)
{
	const struct rtnexthop *hop = RTA_DATA(several);
	int left = (int)RTA_PAYLOAD(several);

	while (left >= (int)sizeof(*hop) && RTNH_OK(hop, left)) {
		bool router = false;
		int device = hop->rtnh_ifindex;
		read_hop((const struct rtattr *)(hop + 1), hop->rtnh_len - sizeof(*hop), &router,
		         &device);
		if (leads_to_neighbours(router, device)) {
			return true;
		}
		left -= (int)NLMSG_ALIGN(hop->rtnh_len);
		hop = RTNH_NEXT(hop);
	}
	return false;
}

static const struct rtattr *find_attribute(const struct rtattr *a, size_t left, int type)
{
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == type) {
			return a;
		}
	}
	return NULL;
}

/* Judges a route. A route to neighbours has no router and a prefix of at least 8 (IPv4) or 32
 * (IPv6) bits. A shorter prefix is no sign of neighbours, because some machines have a default
 * route without a router. */
static enum net_place place_of_route(const struct route_answer *got, ssize_t n)
{
	const struct rtmsg *route = &got->says.route;
	size_t left = (size_t)n - NLMSG_LENGTH(sizeof(*route));
	unsigned shortest = route->rtm_family == AF_INET ? 8 : 32;
	const struct rtattr *several = find_attribute(RTM_RTA(route), left, RTA_MULTIPATH);
	bool router = false;
	int device = 0;

	if (route->rtm_type == RTN_LOCAL) {
		return NET_HERE;
	}
	if (route->rtm_type != RTN_UNICAST) {
		return NET_LINK; /* multicast or anycast */
	}
	if (route->rtm_dst_len < shortest) {
		return NET_BEYOND;
	}
	read_hop(RTM_RTA(route), left, &router, &device);
	bool near = several != NULL ? any_hop_to_neighbours(several)
	                            : leads_to_neighbours(router, device);
	return near ? NET_LINK : NET_BEYOND;
}

enum net_place net_place_of(const struct address *a)
{
	struct route_answer got;
	ssize_t n = ask_route(a, &got);

	if (n >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
	    got.head.nlmsg_type == NLMSG_ERROR) {
		/* These errors mean that there is no route; connect() will report that. */
		int error = -got.says.error.error;
		return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES ||
		                       error == EINVAL
		               ? NET_BEYOND
		               : NET_UNSURE;
	}
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)) ||
	    got.head.nlmsg_type != RTM_NEWROUTE) {
		return NET_UNSURE;
	}
	return place_of_route(&got, n);
}

/* ---- sockets ------------------------------------------------------------- */

int net_listen(const struct address *a, int type, uint16_t port, bool shared)
{
	union address_socket at;
	socklen_t len = address_to_socket(a, port, &at);
	int family = at.any.sa_family;
	int on = 1;
	auto_fd fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* Binding to an IPv4 address needs only a local route. An IPv6 address must be on a device,
	 * unless IPV6_FREEBIND is set. */
	if (fd < 0 || (family == AF_INET6 &&
	               (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0 ||
	                setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on)) != 0))) {
		return -1;
	}
	if (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) {
		return -1;
	}
	if (bind(fd, &at.any, len) != 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) != 0)) {
		return -1;
	}
	return steal_fd(&fd);
}

/* Writes an address and port in the format of /proc/net: 32 bits at a time, in host byte order. */
static void proc_form(const uint8_t *bytes, size_t n, uint16_t port, char out[48])
{
	size_t len = 0;

	for (size_t i = 0; i < n; i += 4) {
		uint32_t part;
		memcpy(&part, bytes + i, sizeof(part));
		len += (size_t)snprintf(out + len, 48 - len, "%08X", part);
	}
	(void)snprintf(out + len, 48 - len, ":%04X", port);
}

/* True if a table of /proc/PID/net has a listening TCP socket or a bound UDP socket for the port.
 * The lines have the form "  0: LOCAL REMOTE STATE ..."; both addresses have the same width. */
static bool table_has(pid_t pid, const char *table, const uint8_t *bytes, size_t n, uint16_t port)
{
	static const uint8_t ANY[16];
	static const char LISTENS[] = "0A";
	char path[64], line[256], mine[48], any[48];
	bool udp = table[0] == 'u';

	(void)snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	auto_file f = fopen(path, "re");
	proc_form(bytes, n, port, mine);
	proc_form(ANY, n, port, any);
	size_t width = strlen(mine);
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		const char *colon = strchr(line, ':');
		if (colon == NULL || strlen(colon) < 2 * width + 6) {
			continue;
		}
		const char *local = colon + 2;
		const char *state = local + 2 * (width + 1);
		if ((strncmp(local, mine, width) == 0 || strncmp(local, any, width) == 0) &&
		    (udp || strncmp(state, LISTENS, 2) == 0)) {
			return true;
		}
	}
	return false;
}

bool net_is_served(pid_t pid, const struct address *a, uint16_t port, bool udp)
{
	return table_has(pid, udp ? "udp6" : "tcp6", a->b, 16, port) ||
	       (address_is_v4(a) && table_has(pid, udp ? "udp" : "tcp", a->b + 12, 4, port));
}
