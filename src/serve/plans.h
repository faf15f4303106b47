/* plans.h - plans of skills, kept while nothing that they were made from changed: the
 * manifest's bytes, the owner's policy file, the arguments, what was narrowed and what
 * was approved. */
#ifndef SERVE_PLANS_H
#define SERVE_PLANS_H

#include "consent/consent.h"
#include "serve/serve.h"
#include "serve/skills.h"

/* The option of a struct given that is none: the skill may run although its approval does not
 * hold for it; the value is the digest of its files. */
#define AS_IT_IS ((enum ssb_option)1000)

struct plan_wish {
	const struct skill *skill;
	char *const *args; /* NULL-terminated; NULL: none */
	struct narrow narrow;
	const struct given *extra; /* what the owner gave beyond policy, flags and approval */
	size_t n_extra;
	const struct consent_found *consent; /* of an approval that holds; NULL: none */
	bool copied;                         /* its copy is there (look.h), or that of `shown` */
	/* Where none holds: the files that the owner was shown when something was granted for
	 * a run or a session, as "sha256:HEX"; it runs of them alone. */
	const char *shown;
	const struct string_list *without; /* taken out when it was approved once; NULL: nothing */
};

int plans_new(struct serve *s, struct plans **ret, struct ssb_error *err);
void plans_free(struct plans *p); /* accepts NULL */
/* The plan, borrowed until the next call; with its refusals, which the caller looks
 * at. `diags` may be NULL. */
int plans_get(struct plans *p, const struct plan_wish *w, const struct ssb_plan **ret,
              struct ssb_diags *diags, struct ssb_error *err);
/* Nothing of what it does outlives it, and nothing leaves: for the annotations. */
bool plans_harmless(const struct ssb_plan *p);

#endif
