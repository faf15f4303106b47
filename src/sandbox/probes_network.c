/* probes_network.c - attacks through sockets. The listeners are decoys of the supervisor on
 * the host. Nothing is sent to any other machine: connect() on a UDP socket only looks up a
 * route. */
#include "sandbox/prove.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/own.h"

#define BAD_TYPE 15 /* invalid: refused before any module is loaded */

static enum attack_result try_socket(int family, int type, int protocol, struct finding *f)
{
	auto_fd fd = socket(family, type | SOCK_CLOEXEC, protocol);
	return fd >= 0 ? attack_worked(f, "socket made") : attack_errno(f, "socket");
}

ATTACK(netlink)
{
	return try_socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT, f);
}

ATTACK(packet)
{
	return try_socket(AF_PACKET, SOCK_RAW, 0, f);
}

ATTACK(raw)
{
	return try_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP, f);
}

ATTACK(ping)
{
	return try_socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP, f);
}

/* True if a socket() call for that family reaches the kernel. The call has a type that does not
 * exist, so that the kernel loads no protocol module. */
static bool family_reaches_kernel(int family)
{
	auto_fd fd = socket(family, BAD_TYPE, 0);
	return fd >= 0 || errno == EINVAL;
}

static enum attack_result try_family(int number, struct finding *f)
{
	return family_reaches_kernel(number) ? attack_worked(f, "the kernel accepts the call")
	                                     : attack_errno(f, "socket");
}

ATTACK(vsock)
{
	return try_family(AF_VSOCK, f);
}

ATTACK(alg)
{
	return try_family(AF_ALG, f);
}

ATTACK(other_families)
{
	int tried = 0;

	for (int i = 0; i < AF_MAX; i++) {
		bool known = i == AF_UNIX || i == AF_INET || i == AF_INET6 || i == AF_NETLINK;
		tried += !known;
		if (!known && family_reaches_kernel(i)) {
			return attack_worked(f, "the kernel accepts family %d", i);
		}
	}
	return attack_failed(f, "none of %d", tried);
}

/* ---- connections ------------------------------------------------------------------ */

static enum attack_result try_connect(int type, const struct sockaddr *to, socklen_t len,
                                      struct finding *f)
{
	auto_fd fd = socket(to->sa_family, type | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return attack_errno(f, "socket");
	}
	return connect(fd, to, len) == 0 ? attack_worked(f, "connected")
	                                 : attack_errno(f, "connect");
}

ATTACK(loopback)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons(w->tcp_port),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (w->tcp_fd < 0) {
		return attack_void(f, "cannot make a listener for this attack");
	}
	return try_connect(SOCK_STREAM, (struct sockaddr *)&to, sizeof(to), f);
}

ATTACK(route_out)
{
	/* An address that is reserved for documentation and exists nowhere. */
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(53) };

	(void)inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
	return try_connect(SOCK_DGRAM, (struct sockaddr *)&to, sizeof(to), f);
}

ATTACK(abstract_unix)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(w->abstract);

	if (w->abstract_fd < 0) {
		return attack_void(f, "cannot make a listener for this attack");
	}
	memcpy(to.sun_path + 1, w->abstract, len);
	return try_connect(SOCK_STREAM, (struct sockaddr *)&to,
	                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len), f);
}

ATTACK(path_unix)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	if (w->unix_fd < 0) {
		return attack_void(f, "cannot make a listener for this attack");
	}
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", w->unix_path);
	return try_connect(SOCK_STREAM, (struct sockaddr *)&to, sizeof(to), f);
}

/* ---- the table -------------------------------------------------------------------------- */

static const struct attack NETWORK[] = {
	ROW("netlink", "listen to the kernel's device events", netlink),
	{ "packet", "open a packet socket", packet, NULL, NULL, 1, 0, 0 },
	{ "raw-socket", "open a raw IP socket", raw, NULL, NULL, 1, 0, 0 },
	ROW("ping-socket", "open an ICMP socket", ping),
	ROW("vsock", "open a socket to the hypervisor", vsock),
	ROW("alg", "open a socket to the kernel's crypto", alg),
	ROW("families", "open a socket of any other family", other_families),
	ROW("loopback", "connect to a service on the host's 127.0.0.1", loopback),
	ROW("route", "find a network route out of the machine", route_out),
	ROW("abstract-unix", "connect to an abstract unix socket of the owner", abstract_unix),
	ROW("unix", "connect to a unix socket in the owner's files", path_unix),
};

const struct attack_group ATTACKS_NETWORK = { NETWORK, ARRAY_LEN(NETWORK) };
