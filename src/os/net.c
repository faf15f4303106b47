#include "os/net.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/own.h"

#define LOOPBACK_INDEX 1    /* of every network namespace */
#define BACKLOG        4096 /* a burst must not wait for a second SYN */

int net_loopback_up(void)
{
	auto_fd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (sock < 0) {
		return -1;
	}
	return ioctl(sock, SIOCSIFFLAGS, &req);
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
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	int lo = LOOPBACK_INDEX;
	/* Of the machine's own memory nothing is to be learnt about congestion; what
	 * the host has set for real networks may pace what goes over it. */
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
	if (send(sock, &r, r.head.nlmsg_len, 0) < 0) {
		return -1;
	}
	ssize_t n = recv(sock, &answer, sizeof(answer), 0);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
	    answer.head.nlmsg_type != NLMSG_ERROR) {
		errno = n < 0 ? errno : EPROTO;
		return -1;
	}
	errno = -answer.error.error;
	return errno == 0 || errno == EEXIST ? 0 : -1;
}

int net_listen(int family, int type, const uint8_t *address, uint16_t port, bool shared)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} at = { 0 };
	socklen_t len = family == AF_INET ? sizeof(at.in) : sizeof(at.in6);
	int on = 1;
	auto_fd fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	at.any.sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		at.in.sin_port = htons(port);
		memcpy(&at.in.sin_addr, address, 4);
	} else {
		at.in6.sin6_port = htons(port);
		memcpy(&at.in6.sin6_addr, address, 16);
	}
	/* A local route is enough for IPv4; IPv6 wants the address on a device,
	 * unless told otherwise. */
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
