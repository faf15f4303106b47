/* plans.h - plans of skills, kept while nothing that they were made from changed: the manifest, the
 * owner's policy file, the arguments, what the caller does without and what was approved. */
#ifndef SERVE_PLANS_H
#define SERVE_PLANS_H

#include "consent/consent.h"
#include "serve/serve.h"
#include "serve/skills.h"

struct plans;

/* All of it is borrowed. */
struct plan_wish {
	const struct skill *skill;
	char *const *args; /* NULL-terminated; NULL: none */
	struct narrow narrow;
	const struct consent_word *word; /* what the owner said about the skill; NULL: nothing */
};

int plans_new(struct serve *s, struct plans **ret, struct ssb_error *err);
void plans_free(struct plans *p); /* accepts NULL */
/* *ret is borrowed until the next call. It can have refusals, which the caller must look at.
 * `diags` may be NULL; with it the plan is always made again. */
int plans_get(struct plans *p, const struct plan_wish *w, const struct ssb_plan **ret,
              struct ssb_diags *diags, struct ssb_error *err);
/* Does the plan change nothing that stays and reach nothing outside? For the tool's annotations. */
bool plans_harmless(const struct ssb_plan *p);

#endif
