/* plan.h - the frozen answer to "what may this run do".
 *
 * plan = manifest ∩ owner's policy file ∩ owner's options. Every path in it was opened once
 * (O_PATH, held open) and judged by device and inode; the sandbox mounts exactly that object or
 * nothing. */
#ifndef POLICY_PLAN_H
#define POLICY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/string_list.h"
#include "manifest/manifest.h"
#include "skill/skill.h"
#include "skillsandbox.h"

enum access { ACCESS_READ, ACCESS_WRITE };

enum grant_origin {
	ORIGIN_MANIFEST,
	ORIGIN_FLAG,
	ORIGIN_POLICY,
	ORIGIN_TOOLCHAIN,
	ORIGIN_SKILL, /* the skill's own directory, shown at /skill */
};

/* The kind of a granted object; only files can be written in the usual sense. */
enum grant_kind {
	GRANT_FILES,
	GRANT_DEVICES, /* a device, or a directory of devices: nothing is added to it */
	GRANT_KERNEL,  /* a kernel file system: shown as it is, and read-only */
};

/* Beginnings of those items of plan->requested that are in no list of a manifest. */
#define TOOLCHAIN_ASKS "use the programs in " /* DIR: where the interpreter of a skill lives */
#define LIMIT_ASKS     "limit "               /* NAME NUMBER, if it is above the usual value */

/* A run that is to show what a skill needs (src/learn): every name has an address, and a
 * connection to it is read until its first bytes show what it is. */
enum learning {
	LEARNING_NOT,
	LEARNING_CLOSED,  /* nothing leaves the machine except to hosts that the owner names */
	LEARNING_CONNECT, /* public hosts are really reached */
};

#define LEARNING_ANY "*" /* the domain of the rule for names that are not declared */

#define CANARY_BYTES 25 /* lower case, with the NUL: it must survive as a host name */

/* A host file or directory that appears in the sandbox. */
struct grant {
	char *path;   /* on the host: absolute, no symlink in it */
	char *target; /* in the sandbox: the same, but "/skill" for the skill, and for a toolchain
	                 the path by which its program is reached */
	enum access access;
	enum grant_origin origin;
	char *where; /* "skillsandbox.yaml:12:7", "--read", "policy.yaml:3:5" */
	enum grant_kind kind;
	bool of_whole; /* one part of "/": left out if it cannot be shown */
	bool scratch;  /* shown as a file system of the run's own, which is removed with it */
	bool unasked;  /* a manifest's read that the owner did not name: see sources_idmap() */
	bool is_dir;
	int fd; /* O_PATH, owned; the judged object; -1 with `create` */
	dev_t dev;
	ino_t ino;
	uid_t uid; /* owner of the object on the host */
	gid_t gid;
	bool create;    /* does not exist yet: the run creates it (sandbox/prepared.h) */
	int parent_fd;  /* with `create`: O_PATH of the nearest existing parent, owned; or -1 */
	char *missing;  /* with `create`: the path from there, "a/b"; or NULL */
	char *made_for; /* with `create`: directories are recorded as this skill's (unlisted.h); or
	                   NULL */
	char *kept_in;  /* with `made_for`: the owner's state directory */
};

/* True for a path of the host that the skill may write. */
static inline bool grant_is_written(const struct grant *g)
{
	return g->access == ACCESS_WRITE && g->kind == GRANT_FILES && !g->scratch;
}

/* True for a directory of the host in which the skill creates files. */
static inline bool grant_is_work(const struct grant *g)
{
	return grant_is_written(g) && g->is_dir;
}

/* A directory of the runtime's own inside a grant: the skill finds it empty. */
struct cover {
	char *path;        /* on the host */
	char *target;      /* in the sandbox */
	const char *where; /* that of the grant, borrowed */
	bool is_dir;
	bool create; /* does not exist yet */
};

/* The kind of a refused request. A caller that does without the kind is not asked about it. */
enum refusal_kind { REFUSAL_OTHER, REFUSAL_READ, REFUSAL_WRITE, REFUSAL_NETWORK };

/* A request that is not granted. Any refusal stops a run. */
struct refusal {
	enum refusal_kind kind;
	char *what; /* "read ~/.ssh" */
	char *where;
	char *why;
	char *remedy; /* the exact flag or policy line that would allow it */
	/* The single option of the owner that would allow it, with its value. NULL: there is
	 * none, or the policy file denies it. */
	enum ssb_option option;
	char *value;
};

void refusal_done(struct refusal *r);

/* Layers that the owner agrees to lose (bits of enum layer_id). */
enum layer_id {
	LAYER_USERNS,
	LAYER_NET,
	LAYER_MOUNTS,
	LAYER_ENV,
	LAYER_LIMITS,
	LAYER_CAPS,
	LAYER_LANDLOCK,
	LAYER_SECCOMP,
	LAYER_AUDIT,
	LAYER_COUNT,
};

const char *plan_layer_name(enum layer_id id);
int plan_layer_from_name(const char *s); /* -1: unknown */

/* For people and records: "read", "manifest". */
const char *access_name(enum access a);
const char *grant_origin_name(enum grant_origin o);

/* The owner's HTTP proxy, through which hosts are dialled. */
struct upstream {
	char *host; /* a name or an address; NULL: no proxy */
	uint16_t port;
	char *credentials; /* "user:password" in base64, or NULL; never shown */
	char *where;       /* "policy.yaml:2:19", "https_proxy" */
};

/* Programs know one proxy for plain HTTP, and one for everything that is tunnelled. */
enum upstream_use { UPSTREAM_HTTP, UPSTREAM_OTHER, UPSTREAM_USES };

enum tty_mode { TTY_AUTO, TTY_YES, TTY_NO };

/* How much of what the skill tries is observed and recorded. */
enum audit_level { AUDIT_FULL, AUDIT_VIOLATIONS, AUDIT_OFF };
const char *audit_level_name(enum audit_level level);

/* The owner's approval that a plan was made with, for its record. */
struct plan_approval {
	char *by;
	char *at;
	char *tree;    /* "sha256:HEX" of all files */
	bool snapshot; /* it runs from a copy of the approved bytes */
	bool counted;  /* valid for a number of runs */
};
void plan_approval_free(struct plan_approval *a); /* accepts NULL */

/* What the policy file says about skills that are not approved. */
struct consent_policy {
	bool refuse;     /* such skills do not run */
	int64_t expires; /* seconds that an approval is valid; 0: until it is revoked */
};

struct ssb_plan {
	char *name;                  /* skill.name, or the command's base name */
	char *version;               /* "" for a bare command */
	char *manifest;              /* the file that was read; NULL for a bare command */
	uint8_t manifest_digest[32]; /* SHA-256 of the bytes of that file */
	struct grant *grants;        /* parents before children */
	size_t n_grants;
	/* A root file system that is shown instead of the host's system directories. It is held
	 * and mounted like a grant. path NULL: there is none. */
	struct grant rootfs;
	struct string_list rootfs_places; /* its directories that no host has: "/app" */
	struct cover *covers;
	size_t n_covers;
	struct refusal *refusals;
	size_t n_refusals;
	/* Requests that were left out without stopping the run: what a derived manifest asks of
	 * the environment, and what the owner took out. */
	struct refusal *withheld;
	size_t n_withheld;
	enum skill_format format; /* of the skill */
	char *skill_dir;          /* real, absolute; NULL for a bare command */
	/* Lists the scripts of the skill if the caller must name one and named none; `argv` is
	 * empty then. NULL: there is something to run. */
	char *no_entry;
	struct plan_approval *approved; /* NULL: none */
	struct consent_policy consent;
	/* For a plan that is only looked at, the state of the approval: "none", "holds",
	 * "changed", "over"; static. NULL: it was not looked up. */
	const char *consent_state;
	struct string_list warnings;
	struct string_list requested;   /* what the manifest asks for, for people: "read ~/notes" */
	struct string_list env;         /* "NAME=VALUE", including HOME, TMPDIR, PATH and LANG */
	struct string_list env_missing; /* declared variables that the caller does not have */
	size_t env_withheld;            /* how many of the caller's variables are not passed */
	struct string_list argv;        /* what is executed: the command, then its arguments */
	char *workdir;                  /* the directory in the sandbox where it starts */
	char *home;                     /* $HOME in the sandbox: a private tmpfs at this path */
	struct egress_rule *egress;     /* granted rules */
	size_t n_egress;
	struct net_limits net;
	struct string_list stores;        /* see danger_take_stores() */
	bool stores_known;                /* they were looked up */
	struct string_list allow_private; /* from the owner: "10.0.0.0/8", by cidr_format() */
	struct upstream upstream[UPSTREAM_USES];
	struct string_list no_proxy; /* dialled directly even with a proxy: "*", ranges, domains */
	bool udp_direct;             /* datagrams do not use the proxy */
	enum learning learning;
	char canary[CANARY_BYTES]; /* learning: part of every decoy; "" none */
	enum profile profile;
	bool unix_sockets; /* AF_UNIX sockets may be made */
	bool own_sockets;  /* without unix_sockets: only sockets that lead to the run itself
	                      (os/unix_maker.h) */
	struct resources res;
	unsigned best_effort; /* 1 << enum layer_id */
	bool toolchain_auto;
	enum tty_mode tty;
	enum audit_level audit;
	char *trace_output; /* NULL: the state directory */
};

/* What a run creates and finds out when it starts; the plan itself does not change. */
struct prepared {
	/* The plan's grants, with the objects that were created because they did not exist.
	 * Borrows their strings. NULL: all existed. */
	struct grant *grants;
	size_t n_grants;
	struct string_list warnings;
	struct string_list quiet; /* warnings of ordinary facts: they go only to the record */
};

/* Like ssb_plan_json(), with the warnings of a run (NULL: no run). If not pretty, it is one line
 * without a newline. */
char *plan_json(const struct ssb_plan *p, const struct prepared *of_run, bool pretty);

/* Returns the plan's grants with the objects that they show. Before the run (NULL) some have
 * none yet. */
static inline const struct grant *prepared_grants(const struct prepared *of_run,
                                                  const struct ssb_plan *p)
{
	return of_run != NULL && of_run->grants != NULL ? of_run->grants : p->grants;
}

/* Returns the innermost grant that shows `path` in the sandbox; NULL: none does. */
const struct grant *plan_shown_by(const struct ssb_plan *p, const char *path);

bool plan_proxied(const struct ssb_plan *p); /* some host may be dialled through a proxy */

/* Overwrites the credentials of the proxy in this process's copy of the memory. They are stored
 * in buffers of their own, which are not part of what is frozen. A forked process that does not
 * use them must call this first. */
void plan_wipe_credentials(const struct ssb_plan *p);

/* The person for whom a plan is made, as the program found it; tests give their own. */
struct owner {
	uid_t uid;
	gid_t gid;
	const char *home;       /* absolute */
	const char *user;       /* login name */
	const char *config_dir; /* $XDG_CONFIG_HOME/skillsandbox */
	const char *state_dir;  /* $XDG_STATE_HOME/skillsandbox */
	char *const *environ;
};

#endif
