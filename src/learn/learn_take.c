/* learn_take.c - takes the needs of a round: finds the new ones, and drops those that are not real
 * needs. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "base/tail.h"
#include "learn/learn_priv.h"
#include "policy/path.h"

static char SEEN[] = "seen by learn";

/* Returns true for a need that learning itself caused: a variable that it set, or a host that
 * only a made-up value names. */
static bool is_ours(const struct need *n)
{
	return n->kind == NEED_ENV || (n->kind == NEED_NETWORK && tail_is(n->value, ".invalid"));
}

/* Returns true if the need is only the lookup of a name, without a connection. */
static bool is_mere_question(const struct need *n)
{
	return n->kind == NEED_NETWORK && n->port == 0;
}

/* Returns true if the need is the lookup of a name to which the skill then connected. The need
 * for the connection replaces it. */
static bool is_less(const struct needs *s, const struct need *n)
{
	for (size_t i = 0; is_mere_question(n) && i < s->n; i++) {
		if (s->v[i].kind == n->kind && s->v[i].port != 0 && !s->v[i].hint &&
		    strcmp(s->v[i].value, n->value) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_same(const struct need *a, const struct need *b)
{
	return a->kind == b->kind && a->port == b->port && a->protocol == b->protocol &&
	       strcmp(a->value, b->value) == 0;
}

/* Returns true if the skill tried this in an earlier round. */
static bool was_tried(const struct needs *s, const struct need *n)
{
	return ARRAY_HAS(have, s->v, s->n, !have->hint && is_same(have, n));
}

/* Returns true if `barred` forbids to propose `n`. A host that is barred on one port is barred on
 * this port in every protocol. A host that is barred without a port is never proposed. */
static bool bars_need(const struct need *barred, const struct need *n)
{
	return barred->kind == n->kind && strcmp(barred->value, n->value) == 0 &&
	       (barred->port == 0 || barred->port == n->port);
}

static const char *danger_of(const struct learner *t, const struct need *n)
{
	const struct need *bars = ARRAY_FIND(e, t->barred.v, t->barred.n, bars_need(e, n));

	if (bars != NULL) {
		return bars->danger;
	}
	return is_mere_question(n) ? "the skill only looked up this name, and made no "
	                             "connection to it; a lookup alone can carry data out"
	                           : n->danger;
}

/* If a decoy's content was sent to a host once, the host is never proposed, whatever else was sent
 * to it. A host that was dangerous in one protocol must not be allowed by a rule for another
 * protocol either. */
static int bar_new(struct learner *t, const struct needs *round)
{
	struct needs *all = &t->l->needs;

	for (size_t i = 0; i < round->n; i++) {
		struct need n = round->v[i];
		if (n.kind != NEED_NETWORK || n.danger == NULL || !n.denied ||
		    (is_mere_question(&n) && !n.thief)) {
			continue;
		}
		n.port = n.thief ? 0 : n.port;
		if (needs_add(&t->barred, &n) != 0) {
			return -1;
		}
		for (size_t k = 0; k < all->n; k++) {
			if (bars_need(&n, &all->v[k]) && all->v[k].danger == NULL &&
			    (all->v[k].danger = strdup(n.danger)) == NULL) {
				return -1;
			}
		}
	}
	return 0;
}

static int take_need(struct learner *t, const struct need *n)
{
	struct need copy = *n;

	copy.danger = danger_of(t, n);
	copy.why = SEEN; /* a constant, so that two proposals differ only in their needs */
	return needs_add(&t->l->needs, &copy);
}

/* Adds each need of `seen` to `round`. A file that exists only in a decoy of a directory means the
 * directory. */
static int map_samples(const struct learner *t, const struct needs *seen, struct needs *round,
                       struct ssb_error *err)
{
	for (size_t i = 0; i < seen->n; i++) {
		struct need n = seen->v[i];
		bool is_path = n.kind == NEED_READ || n.kind == NEED_WRITE;
		auto_free char *path = is_path ? path_expand(t->s->owner, n.value) : NULL;
		auto_free char *dir = path != NULL && decoys_is_sample(&t->decoys, path)
		                              ? path_parent(n.value)
		                              : NULL;
		n.value = dir != NULL ? dir : n.value;
		if (needs_add(round, &n) != 0) {
			return learn_no_memory(err);
		}
	}
	round->cut |= seen->cut;
	round->nameless |= seen->nameless;
	return 0;
}

static int take_round(struct learner *t, const struct needs *round, struct ssb_error *err)
{
	struct needs *all = &t->l->needs;
	auto_free bool *taken = calloc(round->n + 1, sizeof(*taken));
	auto_free bool *fresh = calloc(round->n + 1, sizeof(*fresh));

	free(t->fresh);
	t->n_fresh = 0;
	t->fresh = calloc(round->n + 1, sizeof(*t->fresh));
	if (taken == NULL || fresh == NULL || t->fresh == NULL) {
		return learn_no_memory(err);
	}
	if (bar_new(t, round) != 0) {
		return learn_no_memory(err);
	}
	for (size_t i = 0; i < round->n; i++) {
		const struct need *n = &round->v[i];
		taken[i] = !is_ours(n) && !is_less(round, n) && !is_less(all, n);
		fresh[i] = taken[i] && !is_mere_question(n) && !was_tried(all, n);
	}
	for (size_t i = 0; i < round->n; i++) {
		if (taken[i] && take_need(t, &round->v[i]) != 0) {
			return learn_no_memory(err);
		}
	}
	all->cut |= round->cut;
	for (size_t i = 0; i < round->n; i++) {
		for (size_t k = 0; fresh[i] && k < all->n; k++) {
			if (is_same(&all->v[k], &round->v[i])) {
				t->fresh[t->n_fresh++] = k;
			}
		}
	}
	return 0;
}

int learn_take(struct learner *t, const struct needs *seen, struct ssb_error *err)
{
	AUTO(needs_done) struct needs round = { 0 };

	return map_samples(t, seen, &round, err) != 0 ? -1 : take_round(t, &round, err);
}
