/* grants.c - the list of grants. It is sorted, and contains no grant that another one includes. */
#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "policy/build.h"
#include "policy/own_dirs.h"

void grants_release(struct grant *g)
{
	free(g->path);
	free(g->target);
	free(g->where);
	free(g->missing);
	free(g->made_for);
	free(g->kept_in);
	own_close(&g->fd);
	own_close(&g->parent_fd);
	*g = (struct grant){ .fd = -1, .parent_fd = -1 };
}

void grants_add(struct build *b, struct grant *g)
{
	struct ssb_plan *p = b->plan;

	assert(g->create ? g->fd < 0 : g->fd >= 0);
	if (g->path == NULL || g->target == NULL || g->where == NULL) {
		b->failed = true;
		grants_release(g);
		return;
	}
	if (p->n_grants == MAX_GRANTS) {
		build_refuse(b, REFUSAL_OTHER, g->where, g->path,
		             "there are too many paths in this plan",
		             "name a common parent directory instead");
		grants_release(g);
		return;
	}
	if (!ARRAY_MORE(p->grants, p->n_grants)) {
		b->failed = true;
		grants_release(g);
		return;
	}
	p->grants[p->n_grants++] = *g;
	*g = (struct grant){ .fd = -1, .parent_fd = -1 };
}

const struct grant *grants_cover(const struct ssb_plan *p, const struct chain *c, const char *path,
                                 enum access access)
{
	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		if (g->access < access || g->origin == ORIGIN_SKILL) {
			continue;
		}
		if (g->create ? path_beneath(path, g->path) != NULL
		              : chain_has(c, (struct object){ g->dev, g->ino }, 0)) {
			return g;
		}
	}
	return NULL;
}

/* Parents come first in the list, so the last match is the innermost. */
const struct grant *plan_shown_by(const struct ssb_plan *p, const char *path)
{
	const struct grant *in = NULL;

	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		in = path_beneath(path, g->target) != NULL ? g : in;
	}
	return in;
}

int plan_skill_fd(const struct ssb_plan *p)
{
	const struct grant *own =
	        ARRAY_FIND(g, p->grants, p->n_grants, g->origin == ORIGIN_SKILL && g->is_dir);

	return own != NULL ? own->fd : -1;
}

static int compare_grants(const void *x, const void *y)
{
	const struct grant *a = x;
	const struct grant *b = y;
	int d = path_order(a->target, b->target);

	if (d == 0) {
		/* the wider access comes first, because the first grant is kept */
		d = (int)b->access - (int)a->access;
	}
	return d != 0 ? d : (int)a->origin - (int)b->origin;
}

/* True if `g` adds nothing to `outer`, the grant that contains it. */
static bool is_included(struct build *b, const struct grant *outer, const struct grant *g)
{
	const char *rest = path_beneath(g->target, outer->target);

	if (*rest == '\0') {
		return true; /* the same target; the wider access comes first in the list */
	}
	if (g->access != outer->access || path_beneath(g->path, outer->path) == NULL) {
		return false;
	}
	/* A grant inside another one is kept in three cases:
	 * - It is writable: names at the top of each writable grant are protected (repos.h).
	 * - It is, or lies in, one of the runtime's own directories, which the outer grant hides.
	 * - The owner named it, but only the manifest asked for the outer grant. The outer grant is
	 *   then read with other permissions than this one (sources_idmap()). */
	return g->access != ACCESS_WRITE && !own_named(b, g) && (g->unasked || !outer->unasked);
}

void grants_finish(struct build *b)
{
	struct ssb_plan *p = b->plan;
	size_t n = 0;

	if (p->n_grants == 0) {
		return;
	}
	qsort(p->grants, p->n_grants, sizeof(*p->grants), compare_grants);
	for (size_t i = 0; i < p->n_grants; i++) {
		struct grant *g = &p->grants[i];
		size_t up = n;
		while (up > 0 && path_beneath(g->target, p->grants[up - 1].target) == NULL) {
			up--;
		}
		if (up > 0 && is_included(b, &p->grants[up - 1], g)) {
			grants_release(g);
			continue;
		}
		if (n != i) {
			p->grants[n] = *g;
			*g = (struct grant){ .fd = -1, .parent_fd = -1 };
		}
		n++;
	}
	p->n_grants = n;
}
