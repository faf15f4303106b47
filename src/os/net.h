/* net.h - the sandbox's own network namespace. */
#ifndef OS_NET_H
#define OS_NET_H

int net_loopback_up(void); /* 127.0.0.1 and ::1; -1 with errno */

#endif
