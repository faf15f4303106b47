#include "os/net.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/own.h"

int net_loopback_up(void)
{
	auto_fd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (sock < 0) {
		return -1;
	}
	return ioctl(sock, SIOCSIFFLAGS, &req);
}
