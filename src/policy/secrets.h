/* secrets.h - which variables hold secrets, by their names: one answer for plans, words,
 * risk, lint and learning. Pure. */
#ifndef POLICY_SECRETS_H
#define POLICY_SECRETS_H

#include <stdbool.h>

/* In order: the worse, the later. */
enum secret {
	SECRET_NOT,
	SECRET_SOUNDS, /* a key by its name: perhaps the skill's own ("TOWN_API_KEY") */
	/* No manifest gives these two, the owner's word does. */
	SECRET_OWNERS,     /* by its name the owner's: a password, a key to a cloud */
	SECRET_CREDENTIAL, /* known by its whole name */
};

/* *ret_opens (may be NULL) is what a credential opens ("AWS"); untouched for all others. */
enum secret secret_of(const char *name, const char **ret_opens);
/* A word of such a name that says nothing of whose key it is: "API". */
bool secret_is_general(const char *word);

#endif
