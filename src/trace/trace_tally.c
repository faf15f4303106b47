/* trace_tally.c - counts violations while the skill runs, by kind and by class. */
#include <assert.h>

#include "trace/trace_priv.h"

void trace_count(struct trace *t, struct trace_tally *tally)
{
	t->tally = tally;
}

bool trace_counts(const struct trace *t)
{
	return t->tally != NULL;
}

void trace_again(struct trace *t, const struct event *e)
{
	assert((unsigned)e->kind < EV_COUNT);

	struct trace_tally *n = t->tally;
	uint64_t times = e->times > 0 ? e->times : 1;

	if (n == NULL || t->closed) {
		return;
	}
	if (e->violation) {
		n->total += times;
		n->kinds[e->kind] += times;
	}
	const struct class_verdict class = classes_of(e, t->classes.home);
	if (class.id != CLASS_NONE) {
		(class.ordinary && !t->secret ? t->pending : n->classes)[class.id] += times;
	}
	t->secret = t->secret || class.id == CLASS_CREDENTIAL_HARVESTING;
	for (size_t i = 0; t->secret && i < CLASS_COUNT; i++) {
		n->classes[i] += t->pending[i];
		t->pending[i] = 0;
	}
}

void trace_derived(const struct trace *t, uint64_t ret[CLASS_COUNT])
{
	struct classes all;

	classes_derive(&t->classes, &all);
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		ret[i] = all.hits[i].count > 0 && t->classes.hits[i].count == 0;
	}
}
