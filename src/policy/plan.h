/* plan.h - the plan: everything that a run may do, decided before the run and then frozen.
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

#include "base/own.h"
#include "base/string_list.h"
#include "manifest/manifest.h"
#include "os/seccomp.h"
#include "skill/skill.h"
#include "skillsandbox.h"

enum access { ACCESS_READ, ACCESS_WRITE };

enum grant_origin {
	ORIGIN_MANIFEST,
	ORIGIN_FLAG,
	ORIGIN_POLICY,
	ORIGIN_TOOLCHAIN,
	ORIGIN_SKILL,  /* the skill's own directory, shown at /skill */
	ORIGIN_CALLER, /* a file that the caller named in the arguments, for this run only */
	ORIGIN_PRESET,
	ORIGIN_CACHE, /* the directory that the skill keeps between runs */
	ORIGIN_OTHER, /* only in a record: an origin that this version does not know */
};

/* The kind of a granted object. A skill can create and change files only in GRANT_FILES. */
enum grant_kind {
	GRANT_FILES,
	GRANT_DEVICES, /* a device, or a directory of devices, to which nothing can be added */
	GRANT_KERNEL,  /* a kernel file system, which is shown as it is and read-only */
};

/* The kind of an item of plan->requested or of a refusal. The item consists of the words of its
 * kind and a value: "read ~/notes". */
enum requested_kind {
	REQUESTED_NETWORK, /* HOST:PORT,PORT/PROTOCOL */
	REQUESTED_READ,
	REQUESTED_WRITE,
	REQUESTED_ENV,
	REQUESTED_PROFILE,
	REQUESTED_PROGRAMS,  /* DIR: a directory that contains the interpreter of the skill */
	REQUESTED_LIMIT,     /* NAME NUMBER: a limit above the usual value */
	REQUESTED_ARGUMENTS, /* "read" or "write": files that the caller names in the arguments */
	/* any other text, which begins with none of these words; all of it is the value */
	REQUESTED_OTHER,
};
/* Returns the words of a kind, with the space after them: "read ". */
const char *plan_requested_words(enum requested_kind kind);
/* Returns the kind of `item`, and sets *ret_value to its part after the words. */
enum requested_kind plan_requested_kind(const char *item, const char **ret_value);

/* Whether a run is a learning run, which finds out what a skill needs (src/learn). In a learning
 * run every host name has an address, and the first bytes of each connection are read to see what
 * the connection is for. */
enum learning {
	LEARNING_NOT,
	LEARNING_CLOSED,  /* only hosts that the owner names are reached */
	LEARNING_CONNECT, /* other public hosts are reached, too */
};

#define LEARNING_ANY "*" /* the domain of the rule for names that are not declared */

/* bytes of a canary (learn/decoy.h) with its NUL; it is in lower case, because host names ignore
 * case */
#define CANARY_BYTES 25

/* A host file or directory that appears in the sandbox. */
struct grant {
	char *path; /* on the host: absolute, no symlink in it */
	/* In the sandbox: the same path, except "/skill" for the skill, and for a toolchain the
	 * path by which its program was found. */
	char *target;
	enum access access;
	enum grant_origin origin;
	char *where; /* "skillsandbox.yaml:12:7", "--read", "policy.yaml:3:5" */
	enum grant_kind kind;
	bool of_whole; /* part of a grant of "/"; left out if it cannot be shown */
	/* a private file system is shown at `target` instead, and removed after the run */
	bool scratch;
	/* requested by a manifest, to read, and not named by the owner: see sources_idmap() */
	bool unasked;
	bool is_dir;
	int fd; /* O_PATH, owned; the judged object; -1 with `create` */
	dev_t dev;
	ino_t ino;
	uid_t uid; /* owner of the object on the host */
	gid_t gid;
	bool create;   /* does not exist yet: the run creates it (sandbox/prepared.h) */
	bool made;     /* with `create`, in struct prepared: this run made the object itself */
	int parent_fd; /* with `create`: O_PATH of the nearest existing parent, owned; or -1 */
	char *missing; /* with `create`: the path from that parent, "a/b"; or NULL */
	/* with `create`: the skill for which new directories are recorded (unlisted.h); or NULL */
	char *made_for;
	/* with `made_for`: the owner's state directory, which contains that record */
	char *kept_in;
};

/* True for a path of the host that the skill may write, except its cache: no program of the host
 * uses the files of a cache. */
static inline bool grant_is_written(const struct grant *g)
{
	return g->access == ACCESS_WRITE && g->kind == GRANT_FILES && !g->scratch &&
	       g->origin != ORIGIN_CACHE;
}

/* True for a directory of the host in which the skill creates files. */
static inline bool grant_is_work(const struct grant *g)
{
	return grant_is_written(g) && g->is_dir;
}

/* One of the runtime's own directories that is inside a grant. The skill finds it empty. */
struct cover {
	char *path;        /* on the host */
	char *target;      /* in the sandbox */
	const char *where; /* grant.where, borrowed */
	bool is_dir;
	bool create; /* does not exist yet */
};

/* The kind of a refused request. If the caller gives up all requests of a kind (struct narrow), the
 * refusals of that kind are dropped. */
enum refusal_kind { REFUSAL_OTHER, REFUSAL_READ, REFUSAL_WRITE, REFUSAL_NETWORK };

/* A request that is not granted. Any refusal stops a run. */
struct refusal {
	enum refusal_kind kind;
	char *what; /* "read ~/.ssh" */
	char *where;
	char *why;
	char *remedy; /* the exact flag or policy line that would allow it */
	/* The option that would allow the request, and its value. `value` NULL: no single option
	 * would allow it, or the policy file denies it. */
	enum ssb_option option;
	char *value;
	bool named; /* the request is a file that the caller named in the arguments */
};

void refusal_done(struct refusal *r);

/* The layers of the sandbox. plan->best_effort has a bit (1 << ID) for each layer without which the
 * owner agrees to run. */
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

/* Returns the filter of system calls that belongs to the plan's profile. */
enum seccomp_profile plan_filter(const struct ssb_plan *p);
int plan_layer_from_name(const char *s); /* -1: unknown */

/* Return names for people and records: "read", "manifest". */
const char *access_name(enum access a);
const char *grant_origin_name(enum grant_origin o); /* "?" for ORIGIN_OTHER */
enum grant_origin grant_origin_from(const char *name);

/* The owner's HTTP proxy, through which hosts are dialled. */
struct upstream {
	char *host; /* a name or an address; NULL: no proxy */
	uint16_t port;
	char *credentials; /* "user:password" in base64, or NULL; never shown */
	char *where;       /* "policy.yaml:2:19", "https_proxy" */
};

/* Programs use one proxy for plain HTTP, and one for all connections that are tunnelled. */
enum upstream_use { UPSTREAM_HTTP, UPSTREAM_OTHER, UPSTREAM_USES };

enum tty_mode { TTY_AUTO, TTY_YES, TTY_NO };

/* How many of the skill's attempts are observed and recorded. */
enum audit_level { AUDIT_FULL, AUDIT_VIOLATIONS, AUDIT_OFF };
const char *audit_level_name(enum audit_level level);
int audit_level_from_name(const char *s); /* -1: unknown */

/* The owner's approval on which a plan is based, for the record of the run. */
struct plan_approval {
	char *by;
	char *at;
	char *tree;    /* "sha256:HEX" of all files */
	bool snapshot; /* the skill runs from a copy of the approved bytes */
	bool counted;  /* valid only for a certain number of runs */
};
void plan_approval_free(struct plan_approval *a); /* accepts NULL */

/* The rules of the policy file for skills that are not approved, and for approvals. */
struct consent_policy {
	bool refuse;     /* skills that are not approved do not run */
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
	/* top directories of `rootfs` that are not in the table of the view (view.h): "/app" */
	struct string_list rootfs_places;
	struct cover *covers;
	size_t n_covers;
	struct refusal *refusals;
	size_t n_refusals;
	/* Requests that were left out without stopping the run: variables that only the owner can
	 * give, write requests of a sidecar that names no directory, and requests that the owner
	 * declined. */
	struct refusal *withheld;
	size_t n_withheld;
	/* Files that the arguments name, and that the owner may be asked about: the manifest does
	 * not ask for such files, and nothing else grants them. Real paths. */
	struct string_list named;
	struct string_list naming; /* the words of the arguments that name a file */
	enum skill_format format;  /* of the skill */
	char *skill_dir;           /* real, absolute; NULL for a bare command */
	/* The skill has no entrypoint, and the caller's first argument names the script. If the
	 * caller named none, `argv` is empty. */
	bool by_script;
	char *scripts; /* of a skill without an entrypoint, for people: "a.py, b.sh"; or NULL */
	struct plan_approval *approved; /* NULL: none */
	struct consent_policy consent;
	/* The state of the approval, for a plan that is only inspected: "none", "holds", "changed",
	 * "over"; static. NULL: it was not looked up. */
	const char *consent_state;
	struct string_list warnings;
	struct string_list requested; /* the requests of the manifest, for people: "read ~/notes" */
	struct string_list env;       /* "NAME=VALUE", including HOME, TMPDIR, PATH and LANG */
	/* declared variables that are not in the caller's environment */
	struct string_list env_missing;
	size_t env_withheld;     /* how many of the caller's variables are not passed */
	struct string_list argv; /* the command that is executed, then its arguments */
	char *workdir;           /* the directory in the sandbox where the command starts */
	bool elsewhere; /* that is not the caller's directory, which the sandbox does not show */
	char *home;     /* $HOME in the sandbox: a private tmpfs at this path */
	struct egress_rule *egress; /* granted rules */
	size_t n_egress;
	/* for egress_rule.from: "--net @npm", "preset node", "policy.yaml:3:5" */
	struct string_list origins;
	struct string_list presets;    /* for people: the name, variables and limits of each */
	struct string_list env_preset; /* names of the variables that presets and the cache set */
	uint64_t cache_mb;             /* the size of the cache; 0: there is none */
	struct net_limits net;
	struct string_list stores;        /* see danger_stores() */
	bool stores_known;                /* danger_stores() has filled `stores` */
	struct string_list allow_private; /* from the owner: "10.0.0.0/8", by cidr_format() */
	struct upstream upstream[UPSTREAM_USES];
	/* hosts that are dialled without the proxy: "*", ranges, domains */
	struct string_list no_proxy;
	bool udp_direct; /* datagrams do not use the proxy */
	enum learning learning;
	char canary[CANARY_BYTES]; /* the word in every decoy of a learning run; "": none */
	enum profile profile;
	bool unix_sockets; /* AF_UNIX sockets may be made */
	/* if unix_sockets is false: AF_UNIX sockets that connect programs of this run are allowed
	 * (os/unix_maker.h) */
	bool own_sockets;
	struct resources res;
	unsigned best_effort; /* 1 << enum layer_id */
	bool toolchain_auto;
	enum tty_mode tty;
	enum audit_level audit;
	char *trace_output; /* NULL: the state directory */
};

/* True if the caller must name a script and did not: the plan can be shown, but not run. */
static inline bool plan_lacks_script(const struct ssb_plan *p)
{
	return p->by_script && p->argv.n == 0;
}
/* If plan_lacks_script(), returns -1 with an error that lists the scripts. */
int plan_check_script(const struct ssb_plan *p, struct ssb_error *err);

/* What a run creates and finds out at its start. The plan itself does not change. */
struct prepared {
	/* A copy of the plan's grants that also has the objects which the run had to create.
	 * Borrows their strings. NULL: all objects existed. */
	struct grant *grants;
	size_t n_grants;
	bool has_cache; /* cache_fd is open, and holds a shared lock (sandbox/caches.h) */
	int cache_fd;
	struct string_list warnings;
	struct string_list quiet; /* warnings about ordinary facts, which go only to the record */
	/* Files that the run left in its private home, which is gone; the first MAX_LOST of
	 * them. */
	struct string_list lost;
	bool lost_relative; /* the skill named the first one relative to its directory */
};

/* Like ssb_plan_json(), with the warnings of a run (NULL: no run). If `pretty` is false, the text
 * is one line without a newline. Returns new. */
char *plan_json(const struct ssb_plan *p, const struct prepared *of_run, bool pretty);

/* Returns the grants of the run if it had to create an object, otherwise those of the plan. If
 * `of_run` is NULL (before a run), a grant whose object must be created has no object yet. */
static inline const struct grant *prepared_grants(const struct prepared *of_run,
                                                  const struct ssb_plan *p)
{
	return of_run != NULL && of_run->grants != NULL ? of_run->grants : p->grants;
}

/* Returns the innermost grant that shows `path` in the sandbox; NULL: none does. */
const struct grant *plan_shown_by(const struct ssb_plan *p, const char *path);

/* Returns the skill's own directory (borrowed), which the sandbox shows at /skill even if its path
 * names another directory by now. -1: there is none. */
int plan_skill_fd(const struct ssb_plan *p);

bool plan_proxied(const struct ssb_plan *p); /* some host may be dialled through a proxy */

/* Overwrites the credentials of the proxy in this process's copy of the memory. The plan only
 * points to the credentials, so they can be overwritten although the plan itself is frozen. A
 * forked process that does not need the credentials must call this first. */
void plan_wipe_credentials(const struct ssb_plan *p);

OWN_FREEP(plan_freep, struct ssb_plan, ssb_plan_free)

/* The user for whom a plan is made (see owner_load()). Tests fill it themselves. */
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
