/* asks.c - judges single requests of a manifest by the rules of planning. */
#include "policy/asks.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/own.h"
#include "policy/build.h"

struct asks {
	struct build b;
	/* stays empty: the build only checks that build.manifest is not NULL */
	struct manifest manifest;
	struct ssb_options *options;
	struct plan_request request;
};

void asks_free(struct asks *a)
{
	if (a == NULL) {
		return;
	}
	policy_done(&a->b.policy);
	danger_free(a->b.danger);
	ssb_plan_free(a->b.plan);
	ssb_diags_free(a->b.diags);
	ssb_options_free(a->options);
	free(a);
}

int asks_new(const struct owner *o, const char *skill_dir, struct asks **ret, struct ssb_error *err)
{
	AUTO(asks_freep) struct asks *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	policy_init(&a->b.policy);
	a->options = ssb_options_new();
	a->request = (struct plan_request){ .owner = o, .options = a->options };
	a->b.request = &a->request;
	a->b.owner = o;
	a->b.opt = a->options;
	a->b.manifest = &a->manifest;
	a->b.skill_dir = skill_dir;
	a->b.diags = ssb_diags_new();
	a->b.plan = build_new_plan();
	if (a->options == NULL || a->b.diags == NULL || a->b.plan == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "plan", "out of memory");
	}
	if (policy_load(o, a->options, &a->b.policy, a->b.diags, err) != 0) {
		return -1;
	}
	*ret = steal_ptr(&a);
	return 0;
}

int asks_path(struct asks *a, const char *path, enum access access, char **ret_why)
{
	struct ssb_plan *p = a->b.plan;
	char *why = NULL;

	resolve_request(&a->b, &(struct path_request){ path, access, ORIGIN_MANIFEST, "", NULL,
	                                               NULL, false });
	if (!a->b.failed && p->n_refusals > 0) {
		why = strdup(p->refusals[0].why);
		a->b.failed = why == NULL;
	}
	/* Remove what this question added to the plan: it must not influence the next answer. */
	build_forget_answers(p);
	if (a->b.failed) {
		return -1;
	}
	*ret_why = why;
	return 0;
}
