/* address.c - reads, writes and compares addresses and ranges. */
#include "base/address.h"
#include "base/number.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* The range that contains every IPv4 address, ::ffff:0:0/96. An address always has 16 bytes, so the
 * same comparison serves IPv4 and IPv6. */
static const struct cidr MAPPED = { { { [10] = 0xff, 0xff } }, ADDRESS_V4_BITS };

/* Reads a decimal number up to `max` without leading zeros. Returns how many digits it has; 0 if
 * there is no such number. */
static size_t read_part(const char *s, unsigned max, unsigned *ret)
{
	uint64_t v = 0;
	const char *rest = number_read(s, max, &v);

	if (rest == NULL || (s[0] == '0' && rest > s + 1)) {
		return 0;
	}
	*ret = (unsigned)v;
	return (size_t)(rest - s);
}

static bool parse_v4(const char *s, struct address *ret)
{
	struct address a = MAPPED.base;

	for (size_t i = 0; i < 4; i++) {
		unsigned v = 0;
		size_t n = read_part(s, 255, &v);
		if (n == 0 || s[n] != (i < 3 ? '.' : '\0')) {
			return false;
		}
		a.b[12 + i] = (uint8_t)v;
		s += n + 1;
	}
	*ret = a;
	return true;
}

bool address_parse(const char *text, struct address *ret)
{
	struct address a;

	if (parse_v4(text, ret)) {
		return true;
	}
	if (inet_pton(AF_INET6, text, a.b) != 1) {
		return false;
	}
	*ret = a;
	return true;
}

static bool is_within(const struct cidr *c, const struct address *a)
{
	size_t whole = c->bits / 8;
	unsigned rest = c->bits % 8;

	if (memcmp(c->base.b, a->b, whole) != 0) {
		return false;
	}
	return rest == 0 || (c->base.b[whole] ^ a->b[whole]) >> (8 - rest) == 0;
}

bool address_is_v4(const struct address *a)
{
	return is_within(&MAPPED, a);
}

void address_format(const struct address *a, char out[ADDRESS_TEXT])
{
	bool v4 = address_is_v4(a);

	(void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->b + 12 : a->b, out, ADDRESS_TEXT);
}

struct address address_of_v4(const uint8_t bytes[4])
{
	struct address a = MAPPED.base;

	memcpy(a.b + 12, bytes, 4);
	return a;
}

socklen_t address_to_socket(const struct address *a, uint16_t port, union address_socket *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (address_is_v4(a)) {
		ret->in.sin_family = AF_INET;
		ret->in.sin_port = htons(port);
		memcpy(&ret->in.sin_addr, a->b + 12, 4);
		return sizeof(ret->in);
	}
	ret->in6.sin6_family = AF_INET6;
	ret->in6.sin6_port = htons(port);
	memcpy(&ret->in6.sin6_addr, a->b, sizeof(a->b));
	return sizeof(ret->in6);
}

bool address_from_socket(const union address_socket *at, struct address *ret, uint16_t *ret_port)
{
	switch (at->any.sa_family) {
	case AF_INET:
		*ret = address_of_v4((const uint8_t *)&at->in.sin_addr);
		*ret_port = ntohs(at->in.sin_port);
		return true;
	case AF_INET6:
		memcpy(ret->b, &at->in6.sin6_addr, sizeof(ret->b));
		*ret_port = ntohs(at->in6.sin6_port);
		return true;
	default:
		return false;
	}
}

static bool tail_is_clear(const struct cidr *c)
{
	for (unsigned i = c->bits; i < 128; i++) {
		if ((c->base.b[i / 8] & (0x80 >> i % 8)) != 0) {
			return false;
		}
	}
	return true;
}

bool cidr_parse(const char *text, struct cidr *ret)
{
	char head[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "/");
	unsigned prefix = 128;
	struct cidr c;

	if (len >= sizeof(head)) {
		return false;
	}
	memcpy(head, text, len);
	head[len] = '\0';
	if (!address_parse(head, &c.base)) {
		return false;
	}
	if (text[len] == '/') {
		unsigned before = strchr(head, ':') == NULL ? ADDRESS_V4_BITS : 0;
		size_t n = read_part(text + len + 1, 128 - before, &prefix);
		if (n == 0 || text[len + 1 + n] != '\0') {
			return false;
		}
		prefix += before;
	}
	c.bits = prefix;
	if (!tail_is_clear(&c)) {
		return false;
	}
	*ret = c;
	return true;
}

void cidr_format(const struct cidr *c, char out[CIDR_TEXT])
{
	char text[ADDRESS_TEXT];
	unsigned before =
	        c->bits >= ADDRESS_V4_BITS && address_is_v4(&c->base) ? ADDRESS_V4_BITS : 0;

	address_format(&c->base, text);
	snprintf(out, CIDR_TEXT, "%s/%u", text, c->bits - before);
}

bool cidr_contains(const struct cidr *c, const struct address *a)
{
	if (c->bits > 128 || (c->bits < ADDRESS_V4_BITS && address_is_v4(a))) {
		return false;
	}
	return is_within(c, a);
}
