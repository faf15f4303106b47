/* upstream.c - finds the proxy for a plan's hosts: in the policy file, or else in the variables
 * that the owner's other programs use.
 *
 * If the policy file names a proxy, or `none`, the environment is ignored. A proxy that we cannot
 * use is a refusal; the hosts are not dialled without it. No message contains its password. */
#include "policy/upstream.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "policy/build.h"
#include "policy/owner.h"

#define NO_MEMORY "cannot be checked: out of memory"

/* ---- one proxy -------------------------------------------------------------- */

void upstream_done(struct upstream *u)
{
	if (u->credentials != NULL) {
		explicit_bzero(u->credentials, strlen(u->credentials));
	}
	free(u->host);
	free(u->credentials);
	free(u->where);
	*u = (struct upstream){ 0 };
}

static struct upstream steal_upstream(struct upstream *u)
{
	struct upstream r = *u;

	*u = (struct upstream){ 0 };
	return r;
}

/* Copies `from`, which was found at `where`. Returns false without memory. */
static bool upstream_copy(const struct upstream *from, const char *where, struct upstream *ret)
{
	AUTO(upstream_done) struct upstream u = { .port = from->port };

	u.host = strdup(from->host);
	u.where = strdup(where);
	u.credentials = from->credentials != NULL ? strdup(from->credentials) : NULL;
	if (u.host == NULL || u.where == NULL ||
	    (from->credentials != NULL && u.credentials == NULL)) {
		return false;
	}
	*ret = steal_upstream(&u);
	return true;
}

/* Decodes a text in which "%40" means "@". Returns its length, or 0 if it is empty, invalid or too
 * long. */
static size_t decode_percent(const char *text, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)text[i];
		if (c == '%') {
			int high = len - i > 2 ? hex_digit(text[i + 1]) : -1;
			int low = len - i > 2 ? hex_digit(text[i + 2]) : -1;
			if (high < 0 || low < 0) {
				return 0;
			}
			c = high * 16 + low;
			i += 2;
		}
		if (c < ' ' || c == 0x7f || n == size) {
			return 0;
		}
		out[n++] = (char)c;
	}
	return n;
}

/* Encodes USER or USER:PASSWORD for basic authentication into u->credentials. Returns NULL, or what
 * is wrong with it. */
static const char *parse_user(const char *text, size_t len, struct upstream *u)
{
	char plain[MAX_PROXY_USER];
	const char *colon = memchr(text, ':', len);
	size_t name = colon != NULL ? (size_t)(colon - text) : len;
	size_t n = decode_percent(text, name, plain, sizeof(plain) - 1);
	const char *wrong = NULL;

	if (n == 0 || memchr(plain, ':', n) != NULL) {
		wrong = "has a user name that is empty, longer than 511 bytes, or contains \":\", "
		        "a control character or an invalid %XX";
	} else {
		size_t secret = len - name > 1 ? len - name - 1 : 0;
		plain[n++] = ':';
		size_t more =
		        decode_percent(text + len - secret, secret, plain + n, sizeof(plain) - n);
		u->credentials = more > 0 || secret == 0 ? base64_encode(plain, n + more) : NULL;
		wrong = more == 0 && secret > 0  ? "has a password that is too long, or contains a "
		                                   "control character or an invalid %XX"
		        : u->credentials == NULL ? NO_MEMORY
		                                 : NULL;
	}
	explicit_bzero(plain, sizeof(plain));
	return wrong;
}

static const char *parse_port(const char *text, uint16_t *ret)
{
	uint64_t v = 0;

	if (strlen(text) > 5 || !number_parse(text, 1, UINT16_MAX, &v)) {
		return "has no port from 1 to 65535";
	}
	*ret = (uint16_t)v;
	return NULL;
}

/* Parses HOST:PORT, or [ADDRESS]:PORT for IPv6. Returns NULL, or what is wrong with it. */
static const char *parse_host(char *text, struct upstream *u)
{
	char *end = text[0] == '[' ? strchr(text, ']') : NULL;
	char *colon = strrchr(text, ':');
	enum host_kind kind;

	if (text[0] == '[' ? end == NULL || end + 1 != colon : strchr(text, ':') != colon) {
		return "has a host and port that cannot be separated; write HOST:PORT, or "
		       "[ADDRESS]:PORT for IPv6";
	}
	if (colon == NULL) {
		return "has no port";
	}
	*colon = '\0';
	const char *wrong = domain_check(text, &u->host, &kind);
	if (wrong == NULL && kind != HOST_EXACT && kind != HOST_ADDRESS) {
		wrong = "names more than one host";
	}
	return wrong != NULL ? wrong : parse_port(colon + 1, &u->port);
}

/* Moves *text past "http://", if *text begins with it. Returns NULL, or why a proxy with another
 * scheme cannot be used. */
static const char *parse_scheme(const char **text)
{
	const char *end = strstr(*text, "://");
	size_t len = end != NULL ? (size_t)(end - *text) : 0;

	if (end == NULL) {
		return NULL;
	}
	if (strncasecmp(*text, "socks", 5) == 0) {
		return "is a SOCKS proxy; only HTTP proxies are supported";
	}
	if (len == 5 && strncasecmp(*text, "https", 5) == 0) {
		return "is a proxy behind TLS; only plain http:// is supported";
	}
	if (len != 4 || strncasecmp(*text, "http", 4) != 0) {
		return "is not an http:// proxy";
	}
	*text = end + 3;
	return NULL;
}

static void wipe_free(char **s)
{
	if (*s != NULL) {
		explicit_bzero(*s, strlen(*s));
	}
	free(*s);
}

const char *upstream_parse(const char *url, struct upstream *ret)
{
	AUTO(upstream_done) struct upstream u = { 0 };
	const char *wrong = strlen(url) > MAX_PROXY_URL ? "is too long" : parse_scheme(&url);

	if (wrong != NULL) {
		return wrong;
	}
	AUTO(wipe_free) char *text = strdup(url);
	if (text == NULL) {
		return NO_MEMORY;
	}
	char *slash = text + strcspn(text, "/?#");
	if (strcmp(slash, "/") != 0 && *slash != '\0') {
		return "has a path in it";
	}
	*slash = '\0';
	char *at = strrchr(text, '@');
	if (at != NULL) {
		wrong = parse_user(text, (size_t)(at - text), &u);
	}
	if (wrong == NULL) {
		wrong = parse_host(at != NULL ? at + 1 : text, &u);
	}
	if (wrong == NULL) {
		*ret = steal_upstream(&u);
	}
	return wrong;
}

/* ---- hosts that are dialled directly ----------------------------------------- */

const char *upstream_no_proxy_item(const char *text, char **ret)
{
	size_t skip = strncmp(text, "*.", 2) == 0 ? 2 : text[0] == '.' ? 1 : 0;
	auto_free char *copy = NULL;
	enum host_kind kind;

	if (strcmp(text, "*") == 0) {
		*ret = strdup("*");
		return *ret != NULL ? NULL : NO_MEMORY;
	}
	const char *wrong = domain_check(text + skip, &copy, &kind);
	if (wrong == NULL && kind != HOST_EXACT && skip > 0) {
		wrong = "has a dot before an address; write the address alone";
	} else if (wrong == NULL && kind == HOST_WILDCARD) {
		wrong = "has more than one \"*\"; write the domain alone";
	}
	if (wrong == NULL) {
		*ret = steal_ptr(&copy);
	}
	return wrong;
}

static void add_variable_items(struct build *b, const char *name)
{
	const char *s = owner_getenv(b->owner, name);

	for (size_t len; s != NULL && *s != '\0'; s += len + strspn(s + len, ", \t")) {
		len = strcspn(s, ", \t");
		auto_free char *word = strndup(s, len);
		auto_free char *item = NULL;
		const char *wrong = word == NULL ? NO_MEMORY
		                    : len == 0   ? NULL
		                                 : upstream_no_proxy_item(word, &item);
		if (wrong != NULL) {
			build_warn(b, name, "an item of %s is not used: it %s", name, wrong);
		} else if (item != NULL && b->plan->no_proxy.n < MAX_LIST_ITEMS) {
			build_add(b, &b->plan->no_proxy, item, MAX_LIST_ITEMS);
		} else if (item != NULL) {
			build_warn(b, name, "%s has more than %d items; the rest is not used", name,
			           MAX_LIST_ITEMS);
			return;
		}
	}
}

static const char *set_variable(const struct build *b, const char *const *names)
{
	for (; *names != NULL; names++) {
		const char *value = owner_getenv(b->owner, *names);
		if (value != NULL && *value != '\0') {
			return *names;
		}
	}
	return NULL;
}

static void set_no_proxy(struct build *b)
{
	static const char *const NAMES[] = { "no_proxy", "NO_PROXY", NULL };
	const struct mtext_list *l = &b->policy.lists[POLICY_NO_PROXY];
	const char *name = set_variable(b, NAMES);

	for (size_t i = 0; i < l->n; i++) {
		build_add(b, &b->plan->no_proxy, l->v[i].s, MAX_LIST_ITEMS);
	}
	if (name != NULL && !b->policy.no_proxy_given && !b->policy.upstream_given) {
		add_variable_items(b, name);
	}
}

/* ---- the plan's proxy ---------------------------------------------------------- */

/* HTTP_PROXY is not read: under CGI a client can set it with a header. */
static const char *const VARIABLES[UPSTREAM_USES][5] = {
	[UPSTREAM_HTTP] = { "http_proxy", "all_proxy", "ALL_PROXY" },
	[UPSTREAM_OTHER] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY" },
};

static void refuse_variable(struct build *b, const char *name, const char *wrong)
{
	auto_free char *what = build_printf(b, "the proxy in %s", name);
	auto_free char *why = build_printf(b, "it %s", wrong);

	for (size_t i = 0; what != NULL && i < b->plan->n_refusals; i++) {
		if (strcmp(b->plan->refusals[i].what, what) == 0) {
			return; /* refused already: the same variable (all_proxy) was read for the
			           other use */
		}
	}
	if (what != NULL && why != NULL) {
		build_refuse(b, REFUSAL_NETWORK, name, what, why,
		             "write " UPSTREAM_FORM "; or 'network: {upstream_proxy: none}' in the "
		             "policy file, to connect without a proxy");
	}
}

static void from_variable(struct build *b, enum upstream_use use)
{
	AUTO(upstream_done) struct upstream u = { 0 };
	const char *name = set_variable(b, VARIABLES[use]);
	const char *wrong = name != NULL ? upstream_parse(owner_getenv(b->owner, name), &u) : NULL;

	if (wrong != NULL) {
		refuse_variable(b, name, wrong);
	} else if (name != NULL && !upstream_copy(&u, name, &b->plan->upstream[use])) {
		b->failed = true;
	}
}

static void from_policy(struct build *b, enum upstream_use use)
{
	const struct policy *p = &b->policy;
	char where[192];

	policy_where(p, &p->upstream_at, where, sizeof(where));
	if (p->upstream.host != NULL &&
	    !upstream_copy(&p->upstream, where, &b->plan->upstream[use])) {
		b->failed = true;
	}
}

static void warn_of_udp(struct build *b)
{
	const struct ssb_plan *p = b->plan;

	for (size_t i = 0; i < p->n_egress; i++) {
		if (p->egress[i].protocol == PROTO_UDP) {
			build_warn(b, p->upstream[UPSTREAM_OTHER].where,
			           "udp cannot pass the proxy and is blocked, except to hosts "
			           "in no_proxy; 'network: {udp_direct: true}' in the policy "
			           "file sends it without the proxy");
			return;
		}
	}
}

void upstream_build(struct build *b)
{
	if (b->plan->n_egress == 0) {
		return; /* no host is dialled */
	}
	for (int use = 0; use < UPSTREAM_USES; use++) {
		if (b->policy.upstream_given) {
			from_policy(b, (enum upstream_use)use);
		} else {
			from_variable(b, (enum upstream_use)use);
		}
	}
	b->plan->udp_direct = b->policy.udp_direct;
	if (plan_proxied(b->plan)) {
		set_no_proxy(b);
	}
	if (b->plan->upstream[UPSTREAM_OTHER].host != NULL && !b->plan->udp_direct) {
		warn_of_udp(b);
	}
}

bool plan_proxied(const struct ssb_plan *p)
{
	return p->upstream[UPSTREAM_HTTP].host != NULL || p->upstream[UPSTREAM_OTHER].host != NULL;
}

void plan_wipe_credentials(const struct ssb_plan *p)
{
	for (int i = 0; i < UPSTREAM_USES; i++) {
		char *secret = p->upstream[i].credentials;
		if (secret != NULL) {
			explicit_bzero(secret, strlen(secret));
		}
	}
}
