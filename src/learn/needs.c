/* needs.c - collects needs from records, and merges them. */
#include "learn/needs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/tail.h"
#include "base/visible.h"
#include "manifest/write.h"
#include "policy/asks.h"
#include "policy/path.h"

const char *need_kind_name(enum need_kind kind)
{
	static const char *const NAMES[] = {
		[NEED_NETWORK] = "network",     [NEED_READ] = "read",
		[NEED_WRITE] = "write",         [NEED_ENV] = "environment",
		[NEED_PROGRAM] = "program",     [NEED_SYSCALL] = "system call",
		[NEED_ARGUMENTS] = "arguments",
	};

	return NAMES[kind];
}

void need_text(struct buf *out, const struct need *n)
{
	static const char *const VERBS[] = {
		[NEED_NETWORK] = "connect to", [NEED_READ] = "read",   [NEED_WRITE] = "write",
		[NEED_ENV] = "environment",    [NEED_PROGRAM] = "run", [NEED_SYSCALL] = "call",
	};

	if (n->kind == NEED_ARGUMENTS) {
		buf_addf(out, "%s the files that the arguments name", n->value);
		return;
	}
	buf_addf(out, "%s ", VERBS[n->kind]);
	visible_text(out, n->value, false);
	if (n->optional) {
		buf_adds(out, " (optional)");
	}
	if (n->kind == NEED_NETWORK && n->port != 0) {
		buf_addf(out, ":%u (%s)", (unsigned)n->port, protocol_name(n->protocol));
	}
}

/* ---- the set --------------------------------------------------------------- */

static int compare_needs(const struct need *a, const struct need *b)
{
	if (a->kind != b->kind) {
		return a->kind < b->kind ? -1 : 1;
	}
	int by_value = a->kind == NEED_READ || a->kind == NEED_WRITE
	                       ? path_order(a->value, b->value)
	                       : strcmp(a->value, b->value);
	if (by_value != 0) {
		return by_value;
	}
	if (a->port != b->port) {
		return a->port < b->port ? -1 : 1;
	}
	return a->protocol == b->protocol ? 0 : a->protocol < b->protocol ? -1 : 1;
}

/* Finds the place of the need in the sorted array. Returns true if an equal need is there
 * already. */
static bool find_need(const struct needs *s, const struct need *n, size_t *ret_at)
{
	size_t low = 0;
	size_t high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int way = compare_needs(&s->v[mid], n);
		if (way == 0) {
			*ret_at = mid;
			return true;
		}
		if (way < 0) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	*ret_at = low;
	return false;
}

static void need_done(struct need *n)
{
	free(n->value);
	free(n->why);
	free((void *)(uintptr_t)n->danger);
	*n = (struct need){ 0 };
}

static bool replace_text(char **text, const char *with)
{
	char *copy = with != NULL ? strdup(with) : NULL;

	if (with != NULL && copy == NULL) {
		return false;
	}
	free(*text);
	*text = copy;
	return true;
}

static uint64_t times_seen(const struct need *n)
{
	return n->count > 0 ? n->count : 1;
}

static int merge_need(struct need *into, const struct need *n)
{
	if (into->hint && !n->hint && !replace_text(&into->why, n->why)) {
		return -1;
	}
	/* A host that got a decoy's content stays a thief, whatever else was sent to it. */
	if (n->thief || (n->danger == NULL && !into->thief)) {
		char *danger = (char *)(uintptr_t)into->danger;
		if (!replace_text(&danger, n->danger)) {
			return -1;
		}
		into->danger = danger;
	}
	into->thief |= n->thief;
	into->makes_dirs |= n->makes_dirs;
	into->aimed &= n->aimed;
	if (n->profile < 0 || (into->profile >= 0 && n->profile > into->profile)) {
		into->profile = n->profile;
	}
	into->optional &= n->optional;
	into->absent &= n->absent;
	into->vain &= n->vain;
	into->missing &= n->missing;
	into->in_small_dir |= n->in_small_dir;
	into->denied |= n->denied;
	into->hint &= n->hint;
	into->count += times_seen(n);
	return 0;
}

static int insert_need(struct needs *s, size_t at, const struct need *n)
{
	struct need copy = *n;

	copy.value = strdup(n->value);
	copy.why = n->why != NULL ? strdup(n->why) : NULL;
	copy.danger = n->danger != NULL ? strdup(n->danger) : NULL;
	copy.count = times_seen(n);
	/* The room of the array is 16, 32, 64, ... so it is full at these numbers. */
	bool full = s->n == 0 || (s->n >= 16 && (s->n & (s->n - 1)) == 0);
	size_t room = s->n == 0 ? 16 : 2 * s->n;
	struct need *v = full ? realloc(s->v, room * sizeof(*v)) : s->v;
	if (v == NULL || copy.value == NULL || (n->why != NULL && copy.why == NULL) ||
	    (n->danger != NULL && copy.danger == NULL)) {
		s->v = v != NULL ? v : s->v;
		need_done(&copy);
		return -1;
	}
	s->v = v;
	memmove(v + at + 1, v + at, (s->n - at) * sizeof(*v));
	v[at] = copy;
	s->n++;
	return 0;
}

int needs_add(struct needs *s, const struct need *n)
{
	size_t at = 0;

	assert(n->value != NULL && n->kind <= NEED_SYSCALL);
	if (find_need(s, n, &at)) {
		return merge_need(&s->v[at], n);
	}
	if (s->n >= MAX_NEEDS) {
		s->cut = true;
		return 0;
	}
	return insert_need(s, at, n);
}

void needs_done(struct needs *s)
{
	for (size_t i = 0; i < s->n; i++) {
		need_done(&s->v[i]);
	}
	free(s->v);
	free(s->home);
	*s = (struct needs){ 0 };
}

static bool is_same_port(const struct need *a, const struct need *b)
{
	return a->kind == b->kind && a->port == b->port && strcmp(a->value, b->value) == 0;
}

void needs_drop_aimed(struct needs *s)
{
	for (size_t i = 0; i < s->n;) {
		struct need *n = &s->v[i];
		/* The needs of one port are next to each other, one for each protocol. */
		if (n->aimed && ((i > 0 && is_same_port(n, n - 1)) ||
		                 (i + 1 < s->n && is_same_port(n, n + 1)))) {
			need_done(n);
			s->n--;
			memmove(n, n + 1, (s->n - i) * sizeof(*n));
		} else {
			i++;
		}
	}
}

/* ---- danger ------------------------------------------------------------------ */

/* Names that mean a different host in each network, or no host: special-use names (RFC 6761, 6762
 * with its appendix G, 7686, 8375), and names that clouds and home routers give. */
static const char *const LOCAL_NAMES[] = { "localhost", "local",       "internal", "intranet",
	                                   "private",   "lan",         "home",     "corp",
	                                   "arpa",      "localdomain", "onion",    "alt",
	                                   "invalid" };

/* `name` must be in the form that domain_check() returns. */
static bool is_local_name(const char *name)
{
	return ARRAY_HAS(local, LOCAL_NAMES, ARRAY_LEN(LOCAL_NAMES),
	                 tail_behind(name, '.', *local)) ||
	       strchr(name, '.') == NULL;
}

static const char *judge_host(const char *host)
{
	enum host_kind kind = HOST_EXACT;
	auto_free char *domain = NULL;

	if (domain_check(host, &domain, &kind) != NULL) {
		return "a manifest cannot declare this name";
	}
	if (kind == HOST_ADDRESS || kind == HOST_CIDR) {
		return "an address instead of a name needs your approval";
	}
	return is_local_name(domain) ? "not a public name: it is a different host in each network"
	                             : NULL;
}

static int judge_path(struct asks *a, const struct need *n, char **ret)
{
	auto_free char *path = NULL;

	if (!manifest_can_say(n->value) || check_path(n->value, &path) != NULL) {
		*ret = strdup("a manifest cannot contain this name");
		return *ret != NULL ? 0 : -1;
	}
	return asks_path(a, n->value, n->kind == NEED_WRITE ? ACCESS_WRITE : ACCESS_READ, ret);
}

static int judge_need(struct asks *a, struct need *n)
{
	const char *why = NULL;
	char *found = NULL;

	if (n->kind == NEED_READ || n->kind == NEED_WRITE) {
		if (judge_path(a, n, &found) != 0) {
			return -1;
		}
		n->danger = found;
		return 0;
	}
	if (n->kind == NEED_ENV) {
		why = check_env_name(n->value) != NULL ? "it is not the name of a variable"
		                                       : asks_env(n->value);
	} else if (n->kind == NEED_NETWORK) {
		why = judge_host(n->value);
	}
	n->danger = why != NULL ? strdup(why) : NULL;
	return why != NULL && n->danger == NULL ? -1 : 0;
}

int needs_judge(const struct owner *o, const char *skill_dir, struct needs *s,
                struct ssb_error *err)
{
	AUTO(asks_freep) struct asks *a = NULL;

	if (s->home == NULL && (s->home = strdup(o->home)) == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	if (s->n > 0 && asks_new(o, skill_dir, &a, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].danger == NULL && judge_need(a, &s->v[i]) != 0) {
			return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
		}
	}
	return 0;
}
