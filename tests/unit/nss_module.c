/* nss_module.c - a module of libc's resolver (NSS), for test_confine.c. It does the same as the
 * modules of systemd-resolved, avahi and sssd: libc loads it on demand, and it asks a service on
 * the machine over a unix socket, and the kernel for the network interfaces. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <nss.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"

__attribute__((visibility("default"))) enum nss_status
_nss_ssbtest_gethostbyname2_r(const char *name, int af, struct hostent *result, char *buffer,
                              size_t buflen, int *errnop, int *h_errnop);

static int ask(const char *name, char reply[4])
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/run/ssbtest.sock" };
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct ifaddrs *interfaces = NULL;
	char nonce[8];

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){ 65536 }, sizeof(int)) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || getrandom(nonce, sizeof(nonce), 0) < 0 ||
	    getifaddrs(&interfaces) != 0) {
		return -1;
	}
	freeifaddrs(interfaces);
	if (write(fd, name, strlen(name)) < 0 || ppoll(&p, 1, NULL, NULL) != 1) {
		return -1;
	}
	return read(fd, reply, 4) == 4 ? 0 : -1;
}

enum nss_status _nss_ssbtest_gethostbyname2_r(const char *name, int af, struct hostent *result,
                                              char *buffer, size_t buflen, int *errnop,
                                              int *h_errnop)
{
	static char *no_aliases[] = { NULL };
	char **list = (char **)(void *)buffer;

	if (af != AF_INET || buflen < 64 + strlen(name) + 1 || ask(name, buffer + 32) != 0) {
		*errnop = errno;
		*h_errnop = HOST_NOT_FOUND;
		return NSS_STATUS_NOTFOUND;
	}
	list[0] = buffer + 32;
	list[1] = NULL;
	strcpy(buffer + 64, name);
	*result = (struct hostent){ .h_name = buffer + 64,
		                    .h_aliases = no_aliases,
		                    .h_addrtype = AF_INET,
		                    .h_length = 4,
		                    .h_addr_list = list };
	return NSS_STATUS_SUCCESS;
}
