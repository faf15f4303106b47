/* consent_give.c - stores an approval, and removes it. */
#include "consent/consent.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/stamp.h"

#define WHERE "approval"

/* The plan that is approved, and the terms of its approval. */
struct giving {
	const struct ssb_plan *plan;
	const struct consent_terms *terms;
};

static int copy_list(struct string_list *to, const struct string_list *from)
{
	for (size_t i = 0; from != NULL && i < from->n; i++) {
		if (string_list_add_once(to, from->v[i], MAX_REQUESTS) != 0) {
			return -1;
		}
	}
	return 0;
}

static int grant_all(struct lock *l, const struct refusal *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].value != NULL && lock_option_name(v[i].option) != NULL &&
		    !given_has(l->allowed, l->n_allowed, v[i].option, v[i].value) &&
		    !string_list_has(&l->declined, v[i].what) &&
		    given_add(&l->grants, &l->n_grants, v[i].option, v[i].value) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Keeps the grants of `before`, and adds the new ones. The caller passes an empty `before` if the
 * files were different. */
static int grant_some(struct lock *l, const struct consent_terms *terms, const struct lock *before)
{
	int failed = 0;

	for (size_t i = 0; i < before->n_grants && failed == 0; i++) {
		failed = given_add(&l->grants, &l->n_grants, before->grants[i].option,
		                   before->grants[i].value);
	}
	for (size_t i = 0; i < terms->n_grants && failed == 0; i++) {
		const struct given *g = &terms->grants[i];
		failed = given_has(l->allowed, l->n_allowed, g->option, g->value)
		                 ? 0
		                 : given_add(&l->grants, &l->n_grants, g->option, g->value);
	}
	return failed;
}

static bool is_lacking(const struct ssb_plan *p, const char *item)
{
	return ARRAY_HAS(r, p->refusals, p->n_refusals, strcmp(r->what, item) == 0) ||
	       ARRAY_HAS(w, p->withheld, p->n_withheld, strcmp(w->what, item) == 0);
}

/* Returns whether the owner agreed to a remembered grant of the previous approval, which was for
 * other files. The plan that was shown must ask for it. If the plan lacks it, the owner must also
 * have given it, or everything that the plan lacks. */
static bool is_agreed(const struct giving *g, const struct given *old, const char *item)
{
	const struct consent_terms *t = g->terms;

	return string_list_has(&g->plan->requested, item) &&
	       (!t->some || !is_lacking(g->plan, item) ||
	        given_has(t->grants, t->n_grants, old->option, old->value));
}

static size_t count_item(const struct string_list *list, const char *item)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		n += strcmp(list->v[i], item) == 0;
	}
	return n;
}

/* Fills l->allowed: the grants that the owner adds now, and those of `before` that stay. */
static int keep_allowed(struct lock *l, const struct lock *before, const struct giving *g,
                        bool same)
{
	const struct consent_terms *t = g->terms;
	int failed = 0;

	for (size_t i = 0; i < before->n_allowed + t->n_allowed && failed == 0; i++) {
		bool old = i < before->n_allowed;
		const struct given *a =
		        old ? &before->allowed[i] : &t->allowed[i - before->n_allowed];
		auto_free char *item = given_item(a->option, a->value);
		if (item == NULL) {
			return -1;
		}
		if (count_item(&g->plan->requested, item) == 1) {
			string_list_drop(&l->asked, item); /* only the owner asks for it */
		}
		if (!string_list_has(&l->declined, item) &&
		    (!old || (same && t->some) || is_agreed(g, a, item))) {
			failed = lock_allow(l, a);
		}
	}
	return failed;
}

/* Keeps what was declined in the previous approval, except what the owner adds now. */
static int keep_declined(struct lock *l, const struct lock *before, const struct consent_terms *t)
{
	for (size_t i = 0; i < before->declined.n; i++) {
		const char *item = before->declined.v[i];
		bool added = false;
		for (size_t k = 0; k < t->n_allowed; k++) {
			auto_free char *name =
			        given_item(t->allowed[k].option, t->allowed[k].value);
			added |= name != NULL && strcmp(name, item) == 0;
		}
		if (!added && string_list_add_once(&l->declined, item, MAX_REQUESTS) != 0) {
			return -1;
		}
	}
	return 0;
}

static int fill_words(struct lock *l, const struct ssb_plan *plan,
                      const struct consent_terms *terms)
{
	struct stamp stamp = STAMP_NONE;
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	l->skill = strdup(plan->skill_dir);
	l->name = strdup(plan->name);
	l->format = plan->format;
	l->at = strdup(stamp_text(&stamp, &now));
	l->by = strdup(terms->by);
	memcpy(l->manifest, plan->manifest_digest, sizeof(l->manifest));
	l->uses = terms->uses;
	l->expires = terms->expires > 0          ? terms->expires
	             : plan->consent.expires > 0 ? (int64_t)now.tv_sec + plan->consent.expires
	                                         : 0;
	return l->skill == NULL || l->name == NULL || l->at == NULL || l->by == NULL ||
	                       copy_list(&l->asked, &plan->requested) != 0 ||
	                       copy_list(&l->declined, terms->declined) != 0
	               ? -1
	               : 0;
}

static int fail_too_much(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_LIMIT, 0, WHERE,
	                "the skill asks for more than can be approved at once");
}

/* Completes the new approval from the old one. Items that were declined stay declined even if the
 * files changed. Grants are kept only if the files are the same. */
static int fill_given(struct lock *l, const struct lock *before, void *arg, struct ssb_error *err)
{
	static const struct lock NONE = { 0 };
	const struct giving *g = arg;
	bool same = lock_same_files(&before->files, &l->files) && !lock_is_over(before);
	int failed =
	        keep_declined(l, before, g->terms) != 0 || keep_allowed(l, before, g, same) != 0;

	if (failed == 0 && g->terms->some) {
		failed = grant_some(l, g->terms, same ? before : &NONE);
	} else if (failed == 0) {
		failed = grant_all(l, g->plan->refusals, g->plan->n_refusals) != 0 ||
		         grant_all(l, g->plan->withheld, g->plan->n_withheld) != 0;
	}
	return failed == 0 ? 0 : fail_too_much(err);
}

/* Approves exactly `files`. */
static int give_files(const struct owner *o, const char *dir, const struct giving *g,
                      const struct skill_files *files, struct ssb_error *err)
{
	AUTO(lock_done) struct lock l = { 0 };
	bool kept = false;

	if (!consent_fits_files(g->plan, files)) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the skill changed while you looked at it; look again");
	}
	if (fill_words(&l, g->plan, g->terms) != 0) {
		return fail_too_much(err);
	}
	/* The copy is made first, because other processes must wait while lock_store() writes the
	 * approval. */
	if (snapshot_make(o, dir, files, &kept, err) != 0) {
		return -1;
	}
	l.snapshot = kept;
	l.files = *files; /* borrowed for lock_store() */
	int failed = lock_store(o, &l, fill_given, (void *)(uintptr_t)g, err);
	l.files = (struct skill_files){ 0 };
	return failed;
}

int consent_give(const struct owner *o, const char *dir, const struct ssb_plan *plan,
                 const struct skill_files *shown, const struct consent_terms *terms,
                 struct ssb_error *err)
{
	assert(dir[0] == '/' && terms->by != NULL && (terms->some || terms->n_grants == 0));

	AUTO(skill_files_done) struct skill_files now = { 0 };
	const struct giving g = { plan, terms };
	struct ssb_error unswept = { 0 };
	bool whole = shown != NULL && shown->n > 0;

	if (!whole && lock_files_read(dir, &now, err) != 0) {
		return -1;
	}
	if (!whole && shown != NULL && !lock_same_files(shown, &now)) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the skill changed while you looked at it; look again");
	}
	if (give_files(o, dir, &g, whole ? shown : &now, err) != 0) {
		return -1;
	}
	(void)snapshot_sweep(o, &unswept); /* if this fails, the next sweep removes the copies */
	return 0;
}

int consent_revoke(const struct owner *o, const char *dir, bool *ret_was, struct ssb_error *err)
{
	struct ssb_error unswept = { 0 };

	if (lock_remove(o, dir, ret_was, err) != 0) {
		return -1;
	}
	(void)snapshot_sweep(o, &unswept);
	return 0;
}
