/* words_worst.c - the worst that a skill can do with all that it asks for, in one sentence. */
#include <stdlib.h>

#include "base/own.h"
#include "consent/words_priv.h"

#define WORST_NAMES 3 /* hosts or variables that are named; more are counted */

/* The first of a kind that is, or is not, secret. */
static const struct ability *pick_ability(const struct abilities *a, enum ability_kind kind,
                                          bool secret)
{
	for (size_t i = 0; i < a->n; i++) {
		if (a->v[i].kind == kind && a->v[i].secret == secret && !a->v[i].never) {
			return &a->v[i];
		}
	}
	return NULL;
}

/* The first of a kind, secret ones before all others. */
static const struct ability *pick_any(const struct abilities *a, enum ability_kind kind)
{
	const struct ability *found = pick_ability(a, kind, true);

	return found != NULL ? found : pick_ability(a, kind, false);
}

/* "a.example, b.example and c.example (and 2 more)". Only variables with a key or a password count.
 */
static void add_things(struct buf *out, const struct abilities *a, enum ability_kind kind)
{
	size_t n = 0, told = 0;

	for (size_t turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < a->n; i++) {
			const struct ability *v = &a->v[i];
			bool counts =
			        v->kind == kind && !v->never && (v->secret || kind != ABILITY_ENV);
			n += counts && turn == 0 ? 1 : 0;
			if (counts && turn == 1 && told < WORST_NAMES) {
				const char *before = told == 0 ? ""
				                     : told + 1 == n || told + 1 == WORST_NAMES
				                             ? " and "
				                             : ", ";
				buf_addf(out, "%s%s", before, v->thing);
				told++;
			}
		}
	}
	if (n > told) {
		buf_addf(out, " (and %zu more)", n - told);
	}
}

static void worst_with_network(struct buf *out, const struct abilities *a)
{
	const struct ability *secret = pick_ability(a, ABILITY_READ, true);
	secret = secret != NULL ? secret : pick_ability(a, ABILITY_WRITE, true);
	const struct ability *key = pick_ability(a, ABILITY_ENV, true);
	const struct ability *read = pick_ability(a, ABILITY_READ, false);
	const struct ability *write = pick_any(a, ABILITY_WRITE);
	read = read != NULL ? read : pick_ability(a, ABILITY_WRITE, false);

	if (secret != NULL) {
		buf_addf(out, "it can read %s and send them", secret->thing);
		if (key != NULL) {
			buf_adds(out, ", with what is in ");
			add_things(out, a, ABILITY_ENV);
			buf_addc(out, ',');
		}
		buf_adds(out, " to ");
	} else if (key != NULL) {
		buf_adds(out, "it can send what is in ");
		add_things(out, a, ABILITY_ENV);
		if (read != NULL) {
			buf_addf(out, ", and what it reads in %s,", read->thing);
		}
		buf_adds(out, " to ");
	} else if (read != NULL) {
		buf_addf(out, "it can read %s and send what it reads to ", read->thing);
	} else {
		buf_adds(out, "it can send what you give it to ");
	}
	add_things(out, a, ABILITY_NETWORK);
	if (write != NULL) {
		buf_addf(out, ", and leave what it gets from there in %s", write->thing);
	}
}

static void worst_alone(struct buf *out, const struct abilities *a)
{
	const struct ability *write = pick_any(a, ABILITY_WRITE);
	const struct ability *read = pick_any(a, ABILITY_READ);
	const struct ability *other = pick_any(a, ABILITY_OTHER);
	other = other != NULL ? other : pick_any(a, ABILITY_ENV);
	other = other != NULL ? other : pick_any(a, ABILITY_PROGRAMS);
	other = other != NULL ? other : pick_any(a, ABILITY_LIMIT);

	if (write != NULL) {
		buf_addf(out, "it can change or delete %s; it cannot send anything anywhere",
		         write->thing);
	} else if (read != NULL) {
		buf_addf(out, "it can read %s; it cannot send anything anywhere", read->thing);
	} else if (other != NULL) {
		buf_addf(out, "it can use %s; it cannot send anything anywhere", other->thing);
	}
}

int words_worst(struct abilities *a)
{
	auto_buf out;

	buf_init(&out, MAX_SENTENCE);
	if (pick_any(a, ABILITY_NETWORK) != NULL) {
		worst_with_network(&out, a);
	} else {
		worst_alone(&out, a);
	}
	free(a->worst);
	a->worst = NULL;
	if (out.len == 0 && !out.failed) {
		return 0;
	}
	a->worst = buf_steal(&out);
	return a->worst != NULL ? 0 : -1;
}
