/* upstream.h - the owner's HTTP proxy: its address, and what is not sent to it. */
#ifndef POLICY_UPSTREAM_H
#define POLICY_UPSTREAM_H

#include "policy/plan.h"

/* "http://[USER[:PASSWORD]@]HOST:PORT", the scheme may be left out: NULL, or
 * what is wrong with it, in words that hold nothing of it. *ret, but for
 * `where`, is new on success (upstream_done). */
const char *upstream_parse(const char *url, struct upstream *ret);
#define UPSTREAM_FORM "http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"

void upstream_done(struct upstream *u); /* wipes the credentials */

/* One item of a no_proxy list in its one form: "*", a range, or a name without
 * a dot before it. NULL, or what is wrong with it; *ret is new on success. */
const char *upstream_no_proxy_item(const char *text, char **ret);

#endif
