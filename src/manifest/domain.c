/* domain.c - checks hosts: exact names, "*.example.com", addresses and address ranges.
 *
 * Each host that is accepted has only one meaning. A text that resolvers, URL libraries and people
 * could understand differently (127.1, 0x7f.1, 010.0.0.1, full-width digits) is either brought into
 * one form first, or refused. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/own.h"
#include "manifest/check.h"
#include "manifest/manifest.h"
#include "manifest/psl.h"

#define MAX_HOST_INPUT 1024 /* UTF-8 bytes before conversion */
#define MAX_HOST       253
#define MAX_LABEL      63

/* ---- internationalised names -------------------------------------------- */

/* A flag of libidn2's stable ABI, so its header is not needed to build. IDN2_USE_STD3_ASCII_RULES
 * (32) is not set, because it silently drops forbidden characters: "bü/cher" would become "bücher".
 * The caller checks the labels. */
#define NONTRANSITIONAL 8

typedef int to_ascii_fn(const char *input, char **output, int flags);
typedef void free_fn(void *ptr);

static void close_library(void **lib)
{
	if (*lib != NULL) {
		(void)dlclose(*lib);
	}
}

/* Converts UTF-8 to A-labels ("xn--...") with libidn2. The library is loaded only for a name that
 * needs it, so that no other run takes that time and the program does not depend on it. The result
 * can still contain characters that no host name has (a full-width slash becomes "/"). Returns
 * NULL, or "what is wrong; remedy" as a static text; `*ret` is new on success. */
static const char *idna_to_ascii(const char *name, char **ret)
{
	__attribute__((cleanup(close_library))) void *lib =
	        dlopen("libidn2.so.0", RTLD_NOW | RTLD_LOCAL);
	to_ascii_fn *to_ascii = NULL;
	free_fn *release = NULL;

	if (lib != NULL) {
		*(void **)&to_ascii = dlsym(lib, "idn2_to_ascii_8z");
		*(void **)&release = dlsym(lib, "idn2_free");
	}
	if (to_ascii == NULL || release == NULL) {
		return "has characters outside ASCII, and libidn2 is not installed; "
		       "write the xn-- form";
	}
	char *found = NULL;
	if (to_ascii(name, &found, NONTRANSITIONAL) != 0) {
		return "is not a valid internationalised name; write the xn-- form";
	}
	const char *why = check_text(found, ret);
	release(found);
	return why;
}

/* ---- addresses ----------------------------------------------------------- */

static const char *address_text(const struct address *a, char **ret)
{
	char text[ADDRESS_TEXT];

	address_format(a, text);
	return check_text(text, ret);
}

static bool covers_all(const struct cidr *c)
{
	return c->bits == (address_is_v4(&c->base) ? ADDRESS_V4_BITS : 0);
}

static const char *check_cidr(const char *s, const char *slash, char **ret)
{
	char text[CIDR_TEXT];
	char zero[24]; /* an all-zero address with this prefix length, to check the length alone */
	struct address a;
	struct cidr c;
	auto_free char *head = strndup(s, (size_t)(slash - s));

	if (head == NULL) {
		return CHECK_NOMEM;
	}
	if (!address_parse(head, &a)) {
		return "has a path in it; write only the host";
	}
	snprintf(zero, sizeof(zero), "%s%s", strchr(head, ':') != NULL ? "::" : "0.0.0.0", slash);
	if (!cidr_parse(zero, &c)) {
		return "is not an address range; write one such as 192.0.2.0/24 or 2001:db8::/32";
	}
	if (!covers_all(&c) && !cidr_parse(s, &c)) {
		return "has bits set after its prefix; write the first address of the range";
	}
	if (covers_all(&c)) {
		return "covers every address; name the hosts or ranges that are needed";
	}
	cidr_format(&c, text);
	return check_text(text, ret);
}

/* Checks an IPv6 address, in brackets ("[2001:db8::1]") or bare. */
static const char *check_with_colon(const char *s, char **ret)
{
	struct address a;
	char inner[ADDRESS_TEXT];
	size_t len = strlen(s);

	if (s[0] == '[') {
		const char *close = strchr(s, ']');
		if (close != NULL && close[1] == ':') {
			return "has a port in it; write the port under the key \"ports\"";
		}
		if (close == NULL || close[1] != '\0') {
			return "is not an IPv6 address; write one such as 2001:db8::1";
		}
		s++;
		len -= 2;
	} else if (strchr(s, ':') == strrchr(s, ':')) {
		return "has a port in it; write the port under the key \"ports\"";
	}
	if (len >= sizeof(inner)) {
		return "is not an IPv6 address; write one such as 2001:db8::1";
	}
	memcpy(inner, s, len);
	inner[len] = '\0';
	if (strchr(inner, '%') != NULL) {
		return "names a network interface after \"%\"; write the address alone";
	}
	if (strchr(inner, ':') == NULL || !address_parse(inner, &a)) {
		return "is not an IPv6 address; write one such as 2001:db8::1";
	}
	return address_text(&a, ret);
}

/* True if the last label consists of digits, or of 0x and hex digits. Libraries take such a name
 * for an IPv4 address in an old form (127.1). */
static bool looks_numeric(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *last = dot != NULL ? dot + 1 : name;

	if (last[0] == '0' && last[1] == 'x') {
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	}
	return last[strspn(last, "0123456789")] == '\0';
}

/* Checks labels of letters, digits, "-" and "_", which are already in lower case. */
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
	struct address a;
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
		return "has a user name in it; write only the host";
	} else if (strchr(s, ':') != NULL || s[0] == '[') {
		problem = check_with_colon(s, &out);
	} else if (address_parse(s, &a)) {
		problem = address_text(&a, &out);
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

/* Replaces the name *s by its A-label form. A leading "*." is kept unchanged. Returns NULL, or what
 * is wrong with the name. */
static const char *convert_name(char **s)
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

const char *domain_check(const char *s, char **ret, enum host_kind *ret_kind)
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
		const char *problem = convert_name(&name);
		if (problem != NULL) {
			return problem;
		}
	}
	for (char *p = name; *p != '\0'; p++) {
		if (*p >= 'A' && *p <= 'Z') { /* independent of the locale */
			*p = (char)(*p - 'A' + 'a');
		}
	}
	len = strlen(name);
	if (len > 1 && name[len - 1] == '.' && name[len - 2] != '.') {
		name[len - 1] = '\0';
	}
	return check_ascii(name, ret, ret_kind);
}

bool host_kind_is_sandbox(const char *name)
{
	static const char LOCAL[] = ".localhost";
	static const char HOSTS[] = SANDBOX_HOSTS;
	size_t len = strlen(name);

	/* Programs themselves resolve names beneath localhost to loopback, without /etc/hosts. */
	if (len >= sizeof(LOCAL) && strcmp(name + len - sizeof(LOCAL) + 1, LOCAL) == 0) {
		return true;
	}
	for (const char *s = HOSTS; *s != '\0'; s += strspn(s, " \n")) {
		size_t word = strcspn(s, " \n");
		/* the first word of a line is the address */
		bool first = s == HOSTS || s[-1] == '\n';
		if (!first && word == len && memcmp(s, name, len) == 0) {
			return true;
		}
		s += word;
	}
	return false;
}
