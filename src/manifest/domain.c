/* Hosts: exact names, "*.example.com", addresses and address ranges.
 *
 * A host is read in one way only: what resolvers, URL libraries and people
 * could read differently (127.1, 0x7f.1, 010.0.0.1, full-width digits) is
 * either brought into the one form first or refused. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "manifest/check.h"
#include "manifest/idna.h"
#include "manifest/manifest.h"
#include "manifest/psl.h"

#define MAX_HOST_INPUT 1024 /* UTF-8 bytes before conversion */
#define MAX_HOST       253
#define MAX_LABEL      63

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Decimal of at most three digits without leading zeros, up to `max`;
 * returns its length, 0 if there is none. */
static size_t small_number(const char *s, unsigned max, unsigned *ret)
{
	size_t n = 0;
	unsigned v = 0;

	while (n < 3 && is_digit(s[n])) {
		v = v * 10 + (unsigned)(s[n] - '0');
		n++;
	}
	if (n == 0 || is_digit(s[n]) || (n > 1 && s[0] == '0') || v > max) {
		return 0;
	}
	*ret = v;
	return n;
}

/* Four decimal parts and nothing else. inet_pton agrees, but says nothing of
 * leading zeros in its contract. */
static bool ipv4_parse(const char *s, unsigned char addr[16])
{
	for (int i = 0; i < 4; i++) {
		unsigned v = 0;
		size_t n = small_number(s, 255, &v);
		if (n == 0 || s[n] != (i < 3 ? '.' : '\0')) {
			return false;
		}
		addr[i] = (unsigned char)v;
		s += n + 1;
	}
	return true;
}

/* Parses an address of either family; returns AF_INET, AF_INET6 or 0. */
static int address_parse(const char *s, unsigned char addr[16])
{
	if (ipv4_parse(s, addr)) {
		return AF_INET;
	}
	return inet_pton(AF_INET6, s, addr) == 1 ? AF_INET6 : 0;
}

static const char *address_text(int family, const unsigned char addr[16], int prefix, char **ret)
{
	char text[INET6_ADDRSTRLEN];
	char *out = NULL;

	if (inet_ntop(family, addr, text, sizeof(text)) == NULL) {
		return "is not an address; write it in full";
	}
	int n = prefix < 0 ? asprintf(&out, "%s", text) : asprintf(&out, "%s/%d", text, prefix);
	if (n < 0) {
		return CHECK_NOMEM;
	}
	*ret = out;
	return NULL;
}

static bool host_bits_clear(const unsigned char addr[16], unsigned bits, unsigned prefix)
{
	for (unsigned i = prefix; i < bits; i++) {
		if ((addr[i / 8] & (0x80 >> i % 8)) != 0) {
			return false;
		}
	}
	return true;
}

static const char *check_cidr(const char *s, const char *slash, char **ret)
{
	unsigned char addr[16] = { 0 };
	unsigned prefix = 0;
	auto_free char *head = strndup(s, (size_t)(slash - s));

	if (head == NULL) {
		return CHECK_NOMEM;
	}
	int family = address_parse(head, addr);
	if (family == 0) {
		return "has a path in it; write only the host";
	}
	unsigned bits = family == AF_INET ? 32 : 128;
	size_t n = small_number(slash + 1, bits, &prefix);
	if (n == 0 || slash[1 + n] != '\0') {
		return "is not an address range; write one such as 192.0.2.0/24 or 2001:db8::/32";
	}
	if (prefix == 0) {
		return "covers every address; name the hosts or ranges that are needed";
	}
	if (!host_bits_clear(addr, bits, prefix)) {
		return "has bits set after its prefix; write the first address of the range";
	}
	return address_text(family, addr, (int)prefix, ret);
}

/* "[2001:db8::1]" and bare forms with colons. */
static const char *check_with_colon(const char *s, char **ret)
{
	unsigned char addr[16] = { 0 };
	char inner[INET6_ADDRSTRLEN + 1];
	size_t len = strlen(s);

	if (s[0] == '[') {
		const char *close = strchr(s, ']');
		if (close != NULL && close[1] == ':') {
			return "has a port in it; put the port into ports";
		}
		if (close == NULL || close[1] != '\0') {
			return "is not an IPv6 address; write one such as 2001:db8::1";
		}
		s++;
		len -= 2;
	} else if (strchr(s, ':') == strrchr(s, ':')) {
		return "has a port in it; put the port into ports";
	}
	if (len >= sizeof(inner)) {
		return "is not an IPv6 address; write one such as 2001:db8::1";
	}
	memcpy(inner, s, len);
	inner[len] = '\0';
	if (strchr(inner, '%') != NULL) {
		return "has an interface in it; write the address alone";
	}
	if (inet_pton(AF_INET6, inner, addr) != 1) {
		return "is not an IPv6 address; write one such as 2001:db8::1";
	}
	return address_text(AF_INET6, addr, -1, ret);
}

/* A last label of digits, or of 0x and hex digits, makes libraries take the
 * whole for an IPv4 address in one of its old forms. */
static bool looks_numeric(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *last = dot != NULL ? dot + 1 : name;

	if (last[0] == '0' && last[1] == 'x') {
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	}
	return last[strspn(last, "0123456789")] == '\0';
}

/* Labels of letters, digits, "-" and "_", already in lower case. */
static const char *check_labels(const char *name)
{
	if (strlen(name) > MAX_HOST) {
		return "is longer than 253 bytes; check the name";
	}
	for (const char *s = name;;) {
		size_t n = strcspn(s, ".");
		if (n == 0) {
			return "has an empty label in it; write one dot between labels";
		}
		if (n > MAX_LABEL) {
			return "has a label longer than 63 bytes; check the name";
		}
		if (s[0] == '-' || s[n - 1] == '-') {
			return "has a label that begins or ends with \"-\"; check the name";
		}
		if (strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") < n) {
			return "has a character that no host name has; use letters, digits, "
			       "\"-\", \"_\" and \".\"";
		}
		if (s[n] == '\0') {
			break;
		}
		s += n + 1;
	}
	if (looks_numeric(name)) {
		return "is a number in place of a host; write an address as four decimal parts, "
		       "such as 192.0.2.1";
	}
	return NULL;
}

static const char *check_wildcard(const char *rest)
{
	const char *problem = check_labels(rest);

	if (problem != NULL) {
		return problem;
	}
	if (psl_is_suffix(rest)) {
		return "covers a whole public suffix, beneath which anyone can register a name; "
		       "name the domain, such as *.example.com";
	}
	if (psl_has_suffix_beneath(rest)) {
		return "covers names that anyone can register (a public suffix lies beneath it); "
		       "name the hosts that are needed";
	}
	return NULL;
}

static const char *check_ascii(const char *s, char **ret, enum host_kind *ret_kind)
{
	unsigned char addr[16] = { 0 };
	const char *slash = strchr(s, '/');
	enum host_kind kind = HOST_ADDRESS;
	char *out = NULL;
	const char *problem = NULL;

	if (strstr(s, "://") != NULL) {
		return "has a scheme in it; write only the host, such as api.example.com";
	}
	if (slash != NULL) {
		kind = HOST_CIDR;
		problem = check_cidr(s, slash, &out);
	} else if (strchr(s, '@') != NULL) {
		return "has a user in it; write only the host";
	} else if (strchr(s, ':') != NULL || s[0] == '[') {
		problem = check_with_colon(s, &out);
	} else if (ipv4_parse(s, addr)) {
		problem = address_text(AF_INET, addr, -1, &out);
	} else if (strcmp(s, "*") == 0) {
		return "allows every host; name the hosts that are needed";
	} else {
		bool wild = strncmp(s, "*.", 2) == 0;
		kind = wild ? HOST_WILDCARD : HOST_EXACT;
		if (strchr(wild ? s + 2 : s, '*') != NULL) {
			return "has \"*\" in the wrong place; it may only be the whole first "
			       "label, as in *.example.com";
		}
		problem = wild ? check_wildcard(s + 2) : check_labels(s);
		out = problem == NULL ? strdup(s) : NULL;
	}
	if (problem != NULL) {
		return problem;
	}
	if (out == NULL) {
		return CHECK_NOMEM;
	}
	*ret = out;
	*ret_kind = kind;
	return NULL;
}

/* Replaces *s by its A-label form; a leading "*." is not part of the name. */
static const char *convert(char **s)
{
	size_t star = strncmp(*s, "*.", 2) == 0 ? 2 : 0;
	auto_free char *ascii = NULL;
	char *whole = NULL;
	const char *problem = idna_to_ascii(*s + star, &ascii);

	if (problem != NULL) {
		return problem;
	}
	if (asprintf(&whole, "%s%s", star > 0 ? "*." : "", ascii) < 0) {
		return CHECK_NOMEM;
	}
	free(*s);
	*s = whole;
	return NULL;
}

const char *check_domain(const char *s, char **ret, enum host_kind *ret_kind)
{
	size_t len = strlen(s);
	bool ascii = true;

	if (len == 0) {
		return "is empty; write a host, such as api.example.com";
	}
	if (len > MAX_HOST_INPUT) {
		return "is longer than 253 bytes; check the name";
	}
	for (const char *p = s; *p != '\0'; p++) {
		if ((unsigned char)*p <= ' ' || *p == 0x7f) {
			return "has a space or control character in it; write one host";
		}
		ascii = ascii && (unsigned char)*p < 0x80;
	}
	auto_free char *name = strdup(s);
	if (name == NULL) {
		return CHECK_NOMEM;
	}
	if (!ascii) {
		const char *problem = convert(&name);
		if (problem != NULL) {
			return problem;
		}
	}
	for (char *p = name; *p != '\0'; p++) {
		if (*p >= 'A' && *p <= 'Z') { /* whatever the locale says */
			*p = (char)(*p - 'A' + 'a');
		}
	}
	len = strlen(name);
	if (len > 1 && name[len - 1] == '.' && name[len - 2] != '.') {
		name[len - 1] = '\0';
	}
	return check_ascii(name, ret, ret_kind);
}
