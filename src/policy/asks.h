/* asks.h - what a plan would answer to a single request of a manifest, without the rest of the
 * plan. It serves manifests that are still to be written. */
#ifndef POLICY_ASKS_H
#define POLICY_ASKS_H

#include "policy/plan.h"

struct asks;

/* Prepares questions that the owner's policy file answers, without any option of the command
 * line. `skill_dir` (borrowed) may be NULL. On success *ret is new. */
int asks_new(const struct owner *o, const char *skill_dir, struct asks **ret,
             struct ssb_error *err);
void asks_free(struct asks *a); /* accepts NULL */

/* Sets *ret_why to NULL if the path would be granted, or need not be asked for; otherwise to the
 * reason, for people (new). Returns -1 without memory. */
int asks_path(struct asks *a, const char *path, enum access access, char **ret_why);

/* The same for the name of a variable. The text is static. */
const char *asks_env(const char *name);

#endif
