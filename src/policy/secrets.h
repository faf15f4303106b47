/* secrets.h - decides by a variable's name whether it holds a secret. Plans, approvals, risk, lint
 * and learning all use this one answer. It depends on nothing but the name. */
#ifndef POLICY_SECRETS_H
#define POLICY_SECRETS_H

#include <stdbool.h>

/* In ascending order of severity. */
enum secret {
	SECRET_NOT,
	SECRET_SOUNDS, /* the name says "key"; it may be the skill's own key ("TOWN_API_KEY") */
	/* Only the owner can give a variable of the next two kinds; a manifest cannot. */
	SECRET_OWNERS,     /* the name says that it is the owner's: a password, a key to a cloud */
	SECRET_CREDENTIAL, /* the whole name is known: AWS_SECRET_ACCESS_KEY */
};

/* Judges a variable by its name. For SECRET_CREDENTIAL sets *ret_opens (ret_opens may be NULL) to
 * the service to which the credential gives access ("AWS"). */
enum secret secret_of(const char *name, const char **ret_opens);
/* True for a word in a variable's name that does not say whose key it is: "API". */
bool secret_is_general(const char *word);

#endif
