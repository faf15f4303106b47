/* plans.h - plans of skills. A plan is kept until one of its inputs changes: the manifest, the
 * owner's policy file, the arguments, the caller's limits, or the approved items. */
#ifndef SERVE_PLANS_H
#define SERVE_PLANS_H

#include "consent/consent.h"
#include "serve/serve.h"
#include "serve/skills.h"

struct plans;

/* All members are borrowed. */
struct plan_wish {
	const struct skill *skill;
	char *const *args; /* NULL-terminated; NULL: none */
	struct narrow narrow;
	bool asks; /* the client can ask the owner about files that the arguments name */
	const struct string_list *look;    /* struct plan_request.look */
	const struct consent_input *input; /* what the owner said about the skill; NULL: nothing */
};

int plans_new(struct serve *s, struct plans **ret, struct ssb_error *err);
void plans_free(struct plans *p); /* accepts NULL */
/* Returns the plan for the wish. *ret is borrowed until the next call. The plan can have
 * refusals, which the caller must check. `diags` may be NULL; if it is not, the plan is always
 * made again. */
int plans_get(struct plans *p, const struct plan_wish *w, const struct ssb_plan **ret,
              struct ssb_diags *diags, struct ssb_error *err);
/* Returns true if the plan changes nothing permanently and reaches nothing outside. The tool's
 * annotations use this. */
bool plans_harmless(const struct ssb_plan *p);

#endif
