/* asks.h - says whether a plan would grant one request of a manifest, without building the whole
 * plan. src/learn uses it to write manifests. */
#ifndef POLICY_ASKS_H
#define POLICY_ASKS_H

#include "base/own.h"
#include "policy/plan.h"

struct asks;

/* Creates the state for asks_path(). It uses the owner's policy file, but no options of the command
 * line. `skill_dir` (borrowed) may be NULL. On success *ret is new. */
int asks_new(const struct owner *o, const char *skill_dir, struct asks **ret,
             struct ssb_error *err);
void asks_free(struct asks *a); /* accepts NULL */
OWN_FREEP(asks_freep, struct asks, asks_free)

/* Sets *ret_why to NULL if the path would be granted or needs no grant; otherwise to the reason for
 * the refusal, as a new text for people. Returns -1 without memory. */
int asks_path(struct asks *a, const char *path, enum access access, char **ret_why);

/* Returns NULL if a manifest may ask for a variable of this name; otherwise the reason why not, as
 * a static text for people. */
const char *asks_env(const char *name);

#endif
