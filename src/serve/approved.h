/* approved.h - what the owner granted to one skill for good: a file in the owner's
 * state directory, which no skill can reach (policy/own.h).
 *
 * A grant holds for the skill's directory and for the bytes of its manifest: after
 * any change of those it is as if it had never been given. One JSON object a line; a
 * file that is not understood is an error, and grants nothing. */
#ifndef SERVE_APPROVED_H
#define SERVE_APPROVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/owner.h"

struct approved {
	char *skill; /* its directory, real and absolute */
	uint8_t manifest[32];
	enum ssb_option option;
	char *value;
	char *at; /* when, RFC 3339 */
	char *by; /* through what */
};

struct approved_list {
	struct approved *v;
	size_t n;
};

/* All of them, oldest first; none where there is no file. */
int approved_load(const struct owner *o, struct approved_list *ret, struct ssb_error *err);
void approved_done(struct approved_list *l);

/* Those that were given already are not given twice. `at` is ignored. */
int approved_add(const struct owner *o, const struct approved *v, size_t n, struct ssb_error *err);
/* Takes back all of a skill; *ret_n is how many there were. */
int approved_remove(const struct owner *o, const char *skill, size_t *ret_n, struct ssb_error *err);

/* Sets in `o` what was approved of what `plan`, of the skill in `dir`, is refused: the
 * plan can be made anew then. *ret_n is how many. */
int approved_apply(const struct owner *o, const char *dir, const struct ssb_plan *plan,
                   struct ssb_options *options, size_t *ret_n, struct ssb_error *err);
/* The grant, for this refusal of that plan. */
bool approved_lifts(const struct approved *a, const char *dir, const struct ssb_plan *plan,
                    const struct refusal *r);

/* The options that can be approved, and their names: "read". */
const char *approved_option_name(enum ssb_option option); /* NULL: none of them */

#endif
