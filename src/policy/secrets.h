/* secrets.h - which variables hold secrets, by their names. Plans, words, risk, lint and
 * learning all use this one answer. Pure. */
#ifndef POLICY_SECRETS_H
#define POLICY_SECRETS_H

#include <stdbool.h>

/* In ascending order of severity. */
enum secret {
	SECRET_NOT,
	SECRET_SOUNDS, /* a key by its name, perhaps the skill's own ("TOWN_API_KEY") */
	/* The owner can give these two, a manifest cannot. */
	SECRET_OWNERS,     /* by its name the owner's: a password, a key to a cloud */
	SECRET_CREDENTIAL, /* known by its whole name */
};

/* *ret_opens (may be NULL) names what a credential opens ("AWS"); untouched for all others. */
enum secret secret_of(const char *name, const char **ret_opens);
/* True for a word of such a name that does not show whose key it is: "API". */
bool secret_is_general(const char *word);

#endif
