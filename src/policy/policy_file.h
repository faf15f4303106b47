/* policy_file.h - reads policy.yaml, which says what the owner always allows and never allows.
 * skillsandbox-policy(5) describes the format. */
#ifndef POLICY_POLICY_FILE_H
#define POLICY_POLICY_FILE_H

#include <stdbool.h>

#include "policy/options.h"
#include "policy/plan.h"

enum policy_list {
	POLICY_GRANT_READ, /* a manifest may claim these although they are dangerous */
	POLICY_GRANT_WRITE,
	POLICY_GRANT_ENV,
	POLICY_ALWAYS_READ, /* every run gets these */
	POLICY_ALWAYS_WRITE,
	POLICY_ALWAYS_NET,    /* HOST[:PORT] or @SET */
	POLICY_ALWAYS_PRESET, /* names */
	POLICY_SKILL_PRESET,  /* names, for the skills of policy.skills */
	POLICY_DENY_READ,     /* no manifest gets these */
	POLICY_DENY_WRITE,
	POLICY_DENY_ENV,
	POLICY_ALLOW_PRIVATE, /* private address ranges in which the address of a host may be */
	POLICY_ALLOW_ECH,     /* host names for which an encrypted ClientHello is allowed */
	POLICY_NO_PROXY,      /* hosts that are dialled without the proxy */
	POLICY_LISTS,
};

/* The settings of one skill. */
struct policy_skill {
	char *dir;         /* as written */
	size_t first, n;   /* its presets in lists[POLICY_SKILL_PRESET] */
	uint64_t cache_mb; /* 0: not given */
};

struct policy {
	char *file; /* NULL: there is none */
	struct mtext_list lists[POLICY_LISTS];
	struct resources limits; /* upper bounds; OPTION_UNSET: none */
	struct net_limits net;   /* upper bounds for the network; OPTION_UNSET: none */
	bool literal_addresses;
	struct upstream upstream; /* the proxy, as upstream_parse() returns it */
	bool upstream_given;      /* the file names a proxy, or `none` */
	struct mtext upstream_at; /* the position of upstream_proxy in the file; `s` is not set */
	bool no_proxy_given;
	bool udp_direct;
	unsigned profiles; /* bits 1 << enum profile: the profiles that manifests may name */
	int unix_sockets;  /* -1: not given */
	int toolchain;     /* -1: not given; 0 off; 1 auto */
	/* always.project: the current directory; its access as enum access, or -1: not given */
	int project;
	struct mtext project_at;
	/* deny.arguments: the access, as enum access, that no manifest gets to files that a caller
	 * names in the arguments; ACCESS_READ denies both. -1: not given */
	int deny_arguments;
	struct mtext deny_arguments_at;
	struct policy_skill *skills;
	size_t n_skills;
	uint64_t cache_mb;       /* always.cache; 0: none */
	uint64_t skill_cache_mb; /* used while the settings of a skill are read */
	unsigned best_effort;    /* 1 << enum layer_id */
	struct consent_policy consent;
	/* the store of sessions: a PostgreSQL URL, which may contain a password; NULL: SQLite */
	char *store;
};

void policy_init(struct policy *p); /* sets the values that apply without a file */
void policy_done(struct policy *p);

/* Reads the file that the options name, or config_dir/policy.yaml, which may be absent. The caller
 * initialises `ret`. All findings go to `diags` (not NULL). Any error in the file is returned as
 * SSB_E_POLICY. */
int policy_load(const struct owner *o, const struct ssb_options *opt, struct policy *ret,
                struct ssb_diags *diags, struct ssb_error *err);
int policy_parse(const char *file, const char *bytes, size_t len, struct policy *ret,
                 struct ssb_diags *diags, struct ssb_error *err);

/* Writes "policy.yaml:3:5" into `out` and returns `out`. */
const char *policy_where(const struct policy *p, const struct mtext *t, char *out, size_t size);

#endif
