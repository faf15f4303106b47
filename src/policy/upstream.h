/* upstream.h - the owner's HTTP proxy: its address, and the hosts that do not use it. */
#ifndef POLICY_UPSTREAM_H
#define POLICY_UPSTREAM_H

#include "policy/plan.h"

/* Parses "http://[USER[:PASSWORD]@]HOST:PORT"; the scheme may be missing. Returns NULL, or what is
 * wrong with the URL, in words that do not quote it. On success *ret is new (upstream_done()),
 * except `where`. */
const char *upstream_parse(const char *url, struct upstream *ret);
#define UPSTREAM_FORM "http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"

void upstream_done(struct upstream *u); /* wipes the credentials */

/* Normalises one item of a no_proxy list: "*", a range, or a name without a leading dot. Returns
 * NULL, or what is wrong with the item; *ret is new on success. */
const char *upstream_no_proxy_item(const char *text, char **ret);

#endif
