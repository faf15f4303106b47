#include "serve/keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "base/string_list.h"
#include "serve/errand.h"

struct keep {
	struct serve *serve;
	struct mcp_call *call;
	keep_then *then;
	char *skill; /* its name */
	uint8_t manifest[SHA256_BYTES];
	struct lock lock;         /* the grants, and what was taken out */
	struct skill_files shown; /* its digest alone: the files that were asked about */
};

static void keep_free(struct keep *k)
{
	if (k != NULL) {
		lock_done(&k->lock);
		free(k->skill);
	}
	free(k);
}

static void keep_freep(struct keep **k)
{
	keep_free(*k);
}

/* ---- there ------------------------------------------------------------------------- */

static int give(const struct keep *k, struct ssb_error *err)
{
	struct consent_terms terms = { .uses = -1,
		                       .some = true,
		                       .grants = k->lock.grants,
		                       .n_grants = k->lock.n_grants,
		                       .declined = &k->lock.declined };
	struct plan_wish w = { .without = &k->lock.declined };
	const struct ssb_plan *plan = NULL;
	char by[96];

	if (skills_find(k->serve->skills, k->skill, &w.skill, err) != 0 ||
	    plans_get(k->serve->plans, &w, &plan, NULL, err) != 0) {
		return -1;
	}
	if (memcmp(plan->manifest_digest, k->manifest, sizeof(k->manifest)) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, "approval",
		                "the skill changed while you were asked");
	}
	snprintf(by, sizeof(by), "MCP client %.80s", mcp_client_name(k->call));
	terms.by = by;
	return consent_give(&k->serve->owner, w.skill->dir, plan, &k->shown, &terms, err);
}

/* Brings back why not; nothing where it is kept. */
static void run(void *arg, struct buf *out)
{
	const struct keep *k = arg;
	struct ssb_error err = { 0 };

	if (give(k, &err) != 0) {
		buf_adds(out, err.text[0] != '\0' ? err.text : "it could not be kept");
	}
}

/* ---- here -------------------------------------------------------------------------- */

static void ended(void *arg, const struct errand_end *end)
{
	AUTO(keep_freep) struct keep *k = arg;
	auto_free char *why = end->fate != ERRAND_DONE ? strdup(end->why)
	                      : end->len > 0           ? strndup(end->data, end->len)
	                                               : NULL;
	bool kept = end->fate == ERRAND_DONE && end->len == 0;

	mcp_on_cancel(k->call, NULL, NULL);
	k->then(k->serve, k->call, kept ? NULL : why != NULL ? why : "out of memory");
}

static int fill(struct keep *k, const struct approved_for *given, const struct looked *looked)
{
	const struct string_list *out = &looked->found.lock.declined;
	int failed = 0;

	memcpy(k->shown.tree, looked->found.now.tree, sizeof(k->shown.tree));
	for (size_t i = 0; i < out->n && failed == 0; i++) {
		failed = string_list_add(&k->lock.declined, out->v[i], out->n);
	}
	for (size_t i = 0; i < given->n_keep; i++) {
		const struct given *g = &given->keep[i];
		if (g->option != AS_IT_IS && failed == 0) {
			failed = given_add(&k->lock.grants, &k->lock.n_grants, g->option, g->value);
		}
	}
	return k->skill != NULL ? failed : -1;
}

int keep_start(struct serve *s, struct mcp_call *c, const struct skill *skill,
               const struct ssb_plan *plan, const struct approved_for *given,
               const struct looked *looked, keep_then *then, struct ssb_error *err)
{
	AUTO(keep_freep) struct keep *k = calloc(1, sizeof(*k));

	if (k == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "approval", "out of memory");
	}
	k->serve = s;
	k->call = c;
	k->then = then;
	k->skill = strdup(skill->name);
	memcpy(k->manifest, plan->manifest_digest, sizeof(k->manifest));
	if (fill(k, given, looked) != 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "approval", "out of memory");
	}
	const struct errand_wish wish = { .run = run, .ended = ended, .arg = k };
	if (errand_of_call(s, c, &wish, err) != 0) {
		return -1;
	}
	(void)steal_ptr(&k);
	return 0;
}
