/* address.h - IP addresses and ranges of addresses, and their conversion to and from text and
 * socket addresses. */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* 16 bytes in network order. IPv4 addresses have the form ::ffff:a.b.c.d. */
struct address {
	uint8_t b[16];
};

/* An address and a port as the socket calls take them. */
union address_socket {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct cidr {
	struct address base;
	unsigned bits; /* length of the prefix in the 16-byte form, 0 to 128: 104 for 10.0.0.0/8 */
};

#define ADDRESS_V4_BITS 96 /* bits before the IPv4 address in the 16-byte form */
#define ADDRESS_TEXT    48
#define CIDR_TEXT       (ADDRESS_TEXT + 4)

/* The parsers accept exactly one spelling of an IPv4 address and of a prefix length. For anything
 * else they return false and leave *ret untouched. A range that has bits set after its prefix is
 * refused. IPv4 is printed as a.b.c.d. */
bool address_parse(const char *text, struct address *ret); /* refuses 127.1 and 0x7f.1 */
void address_format(const struct address *a, char out[ADDRESS_TEXT]);
bool address_is_v4(const struct address *a);

struct address address_of_v4(const uint8_t bytes[4]);

/* Fills *ret and returns its length. The family is AF_INET for an IPv4 address, otherwise AF_INET6
 * with scope 0. */
socklen_t address_to_socket(const struct address *a, uint16_t port, union address_socket *ret);
/* Returns false, with the outputs untouched, unless the family is AF_INET or AF_INET6. */
bool address_from_socket(const union address_socket *at, struct address *ret, uint16_t *ret_port);

bool cidr_parse(const char *text, struct cidr *ret); /* "10.0.0.0/8"; "1.2.3.4" is 1.2.3.4/32 */
void cidr_format(const struct cidr *c, char out[CIDR_TEXT]); /* always with the prefix length */
/* Returns true if `a` lies in `c`. An IPv4 address lies only in IPv4 ranges: "::/0" does not
 * contain 127.0.0.1. */
bool cidr_contains(const struct cidr *c, const struct address *a);

#endif
