/* policy_file.h - what the owner always or never allows: policy.yaml.
 * The format is described in skillsandbox-policy(5). */
#ifndef POLICY_POLICY_FILE_H
#define POLICY_POLICY_FILE_H

#include <stdbool.h>

#include "policy/options.h"
#include "policy/plan.h"

enum policy_list {
	POLICY_GRANT_READ, /* a manifest may claim these although dangerous */
	POLICY_GRANT_WRITE,
	POLICY_GRANT_ENV,
	POLICY_ALWAYS_READ, /* every run has these */
	POLICY_ALWAYS_WRITE,
	POLICY_DENY_READ, /* no manifest gets these */
	POLICY_DENY_WRITE,
	POLICY_DENY_ENV,
	POLICY_ALLOW_PRIVATE, /* address ranges that names may lead into */
	POLICY_ALLOW_ECH,     /* names whose rules may use an encrypted ClientHello */
	POLICY_NO_PROXY,      /* hosts that are dialled past the proxy */
	POLICY_LISTS,
};

struct policy {
	char *file; /* NULL: there is none */
	struct mtext_list lists[POLICY_LISTS];
	struct resources limits; /* ceilings; OPTION_UNSET: none */
	struct net_limits net;   /* the same */
	bool literal_addresses;
	struct upstream upstream; /* by upstream_parse() */
	bool upstream_given;      /* a proxy, or `none` */
	struct mtext upstream_at; /* its place; no text */
	bool no_proxy_given;
	bool udp_direct;
	unsigned profiles;    /* 1 << enum profile that manifests may name */
	int unix_sockets;     /* -1: not said */
	int toolchain;        /* -1: not said; 0 off; 1 auto */
	unsigned best_effort; /* 1 << enum layer_id */
	struct consent_policy consent;
	char *store; /* of sessions: a PostgreSQL URL, a password may be in it; NULL: SQLite */
};

void policy_init(struct policy *p); /* as without a file */
void policy_done(struct policy *p);

/* Reads the file that the options name, or config_dir/policy.yaml, which may
 * be absent. `ret` is initialised by the caller and filled. All findings go
 * to `diags` (not NULL); any error in the file is SSB_E_POLICY. */
int policy_load(const struct owner *o, const struct ssb_options *opt, struct policy *ret,
                struct ssb_diags *diags, struct ssb_error *err);
int policy_parse(const char *file, const char *bytes, size_t len, struct policy *ret,
                 struct ssb_diags *diags, struct ssb_error *err);

/* "policy.yaml:3:5" into `out`, which is returned. */
const char *policy_where(const struct policy *p, const struct mtext *t, char *out, size_t size);

#endif
