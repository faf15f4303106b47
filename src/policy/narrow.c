/* narrow.c - applies the restrictions of a caller (struct narrow) to a plan that is being built. It
 * removes permissions and never adds one. */
#include <stdlib.h>
#include <string.h>

#include "policy/build.h"

/* Drops the refusals of this kind, because the plan no longer makes these requests. */
static void drop_refusals(struct ssb_plan *p, enum refusal_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_refusals; i++) {
		struct refusal *f = &p->refusals[i];
		if (f->kind != kind) {
			p->refusals[n++] = *f;
		} else {
			refusal_done(f);
		}
	}
	p->n_refusals = n;
}

static void drop_network(struct ssb_plan *p)
{
	for (size_t i = 0; i < p->n_egress; i++) {
		free(p->egress[i].domain.s);
		free(p->egress[i].ports);
	}
	p->n_egress = 0;
	drop_refusals(p, REFUSAL_NETWORK);
}

/* Drops grant `i`, whose object would have to be created, and the covers in it. */
static void drop_grant(struct ssb_plan *p, size_t i)
{
	size_t n = 0;

	for (size_t k = 0; k < p->n_covers; k++) {
		if (p->covers[k].where != p->grants[i].where) {
			p->covers[n++] = p->covers[k];
			continue;
		}
		free(p->covers[k].path);
		free(p->covers[k].target);
	}
	p->n_covers = n;
	grants_release(&p->grants[i]);
	memmove(&p->grants[i], &p->grants[i + 1], (p->n_grants - i - 1) * sizeof(p->grants[0]));
	p->n_grants--;
}

static void drop_writes(struct ssb_plan *p)
{
	for (size_t i = p->n_grants; i > 0; i--) {
		struct grant *g = &p->grants[i - 1];
		if (g->create) {
			drop_grant(p, i - 1);
		} else {
			g->access = ACCESS_READ;
		}
	}
	drop_refusals(p, REFUSAL_WRITE);
}

void narrow_build(struct build *b)
{
	const struct narrow *n = &b->request->narrow;
	uint64_t *seconds = &b->plan->res.max_runtime_seconds;

	if (n->offline) {
		drop_network(b->plan);
	}
	if (n->read_only) {
		drop_writes(b->plan);
	}
	if (n->max_seconds > 0 && n->max_seconds < *seconds) {
		*seconds = n->max_seconds;
	}
}
