/* resolve.c - resolves names with the host's resolver, and caches the answers for a moment. */
#include "egress/resolve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fnv.h"
#include "base/limits.h"

static bool add_target(struct race_target *targets, size_t n, const struct addrinfo *ai)
{
	struct race_target t = { 0 };
	union address_socket at = { 0 };
	uint16_t port = 0;

	if (ai->ai_addrlen > sizeof(at)) {
		return false;
	}
	memcpy(&at, ai->ai_addr, ai->ai_addrlen);
	if (!address_from_socket(&at, &t.address, &port)) {
		return false;
	}
	t.scope = at.any.sa_family == AF_INET6 ? at.in6.sin6_scope_id : 0;
	for (size_t i = 0; i < n; i++) {
		if (memcmp(&targets[i], &t, sizeof(t)) == 0) {
			return false;
		}
	}
	targets[n] = t;
	return true;
}

/* Asks the host's resolver, without its search list: "api" must not become api.lan, and an
 * undefined name must not become a name of another domain. A final dot would also disable the list,
 * but names with a final dot are not found in /etc/hosts. Each thread has its own options in
 * _res. */
static size_t ask_resolver(const char *name, int type, struct race_target *targets)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
		                  .ai_socktype = type,
		                  .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	size_t n = 0;

	if (res_init() < 0) {
		return 0;
	}
	_res.options &= ~(unsigned long)(RES_DNSRCH | RES_DEFNAMES);
	_res.options |= RES_NOALIASES;
	if (getaddrinfo(name, NULL, &hints, &list) != 0) {
		return 0;
	}
	for (struct addrinfo *ai = list; ai != NULL && n < MAX_DIAL_ADDRESSES; ai = ai->ai_next) {
		n += add_target(targets, n, ai) ? 1 : 0;
	}
	freeaddrinfo(list);
	return n;
}

/* Recent answers. Only the addresses are cached, never a judgement: each address is judged again
 * for each connection. */
#define CACHE_SLOTS 64
#define CACHE_US    2000000

static struct {
	char name[254];
	int type;
	int64_t until_us;
	size_t n;
	struct race_target targets[MAX_DIAL_ADDRESSES];
} cache[CACHE_SLOTS];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t cache_slot(const char *name, int type)
{
	return fnv_hash((uint64_t)type, name, strlen(name)) % CACHE_SLOTS;
}

size_t resolve_known(const char *name, int type, struct race_target *targets, int64_t *ret_until_us)
{
	size_t slot = cache_slot(name, type);
	size_t n = 0;

	(void)pthread_mutex_lock(&cache_lock);
	if (cache[slot].type == type && cache[slot].until_us > race_now_us() &&
	    strcmp(cache[slot].name, name) == 0) {
		n = cache[slot].n;
		*ret_until_us = cache[slot].until_us;
		memcpy(targets, cache[slot].targets, n * sizeof(*targets));
	}
	(void)pthread_mutex_unlock(&cache_lock);
	return n;
}

static void cache_put(const char *name, int type, const struct race_target *targets, size_t n)
{
	size_t slot = cache_slot(name, type);

	(void)pthread_mutex_lock(&cache_lock);
	(void)snprintf(cache[slot].name, sizeof(cache[slot].name), "%s", name);
	cache[slot].type = type;
	cache[slot].until_us = race_now_us() + CACHE_US;
	cache[slot].n = n;
	memcpy(cache[slot].targets, targets, n * sizeof(*targets));
	(void)pthread_mutex_unlock(&cache_lock);
}

size_t resolve(const char *name, int type, struct race_target *targets)
{
	size_t n = ask_resolver(name, type, targets);

	if (n > 0) {
		cache_put(name, type, targets, n);
	}
	return n;
}
