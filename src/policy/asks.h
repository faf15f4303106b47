/* asks.h - what a plan would say to a single request of a manifest, without the rest
 * of the plan: for manifests that are still to be written. */
#ifndef POLICY_ASKS_H
#define POLICY_ASKS_H

#include "policy/plan.h"

struct asks;

/* By the owner's policy file and options that are none. `skill_dir` (borrowed) may be
 * NULL. */
int asks_new(const struct owner *o, const char *skill_dir, struct asks **ret,
             struct ssb_error *err);
void asks_free(struct asks *a); /* accepts NULL */

/* *ret_why is NULL where the path would be granted, or is no error to ask for; else why
 * it is not, for people (new). -1 without memory. */
int asks_path(struct asks *a, const char *path, enum access access, char **ret_why);

/* The same for a variable's name; static. */
const char *asks_env(const char *name);

#endif
