/* plan.h - the frozen answer to "what may this run do".
 *
 * plan = manifest ∩ owner's policy file ∩ owner's options. Every path in it
 * was opened once (O_PATH, held) and judged by device and inode; the sandbox
 * mounts exactly that object or nothing. */
#ifndef POLICY_PLAN_H
#define POLICY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "manifest/manifest.h"
#include "skillsandbox.h"

enum access { ACCESS_READ, ACCESS_WRITE };

enum grant_origin {
	ORIGIN_MANIFEST,
	ORIGIN_FLAG,
	ORIGIN_POLICY,
	ORIGIN_TOOLCHAIN,
	ORIGIN_SKILL, /* the skill's own directory, shown at /skill */
};

/* A host file or directory that appears in the sandbox. */
struct grant {
	char *path;   /* on the host: absolute, no symlink in it */
	char *target; /* in the sandbox: the same, but "/skill" for the skill, and
	               * for a toolchain the path by which its program is reached */
	enum access access;
	enum grant_origin origin;
	char *where; /* "skillsandbox.yaml:12:7", "--read", "policy.yaml:3:5" */
	bool is_dir;
	int fd; /* O_PATH, owned; the object that was judged; -1: `create` */
	dev_t dev;
	ino_t ino;
	uid_t uid; /* owner of the object on the host */
	gid_t gid;
	bool create;   /* does not exist yet: plan_create_missing() makes it */
	int parent_fd; /* create: O_PATH of the nearest existing parent, owned; or -1 */
	char *missing; /* create: the path from there, "a/b"; or NULL */
};

/* A request that is not granted. Any refusal stops a run. */
struct refusal {
	char *what; /* "read ~/.ssh" */
	char *where;
	char *why;
	char *remedy; /* the exact flag or policy line that would allow it */
};

struct string_list {
	char **v; /* NULL-terminated once non-empty */
	size_t n;
};

/* Layers that the owner accepts to lose (bits of enum layer_id). */
enum layer_id {
	LAYER_USERNS,
	LAYER_NET,
	LAYER_MOUNTS,
	LAYER_ENV,
	LAYER_LIMITS,
	LAYER_CAPS,
	LAYER_LANDLOCK,
	LAYER_SECCOMP,
	LAYER_COUNT,
};

const char *layer_name(enum layer_id id);
int layer_from_name(const char *s); /* -1: unknown */

/* For people and records: "read", "manifest". */
const char *access_name(enum access a);
const char *origin_name(enum grant_origin o);

enum tty_mode { TTY_AUTO, TTY_YES, TTY_NO };

struct ssb_plan {
	char *name;                  /* skill.name, or the command's base name */
	char *version;               /* "" for a bare command */
	char *manifest;              /* path of the manifest; NULL for a bare command */
	uint8_t manifest_digest[32]; /* SHA-256 of the bytes that were read from there */
	struct grant *grants;        /* parents before children */
	size_t n_grants;
	struct refusal *refusals;
	size_t n_refusals;
	struct string_list warnings;
	struct string_list requested;   /* what the manifest asks, for people: "read ~/notes" */
	struct string_list env;         /* "NAME=VALUE", HOME, TMPDIR, PATH, LANG included */
	struct string_list env_missing; /* declared names that the caller does not have */
	size_t env_withheld;            /* how many of the caller's variables stay outside */
	struct string_list argv;        /* what is executed: command, then its arguments */
	char *workdir;                  /* where it starts, in the sandbox */
	char *home;                     /* $HOME in the sandbox: private tmpfs at this path */
	struct egress_rule *egress;     /* granted rules */
	size_t n_egress;
	struct net_limits net;
	struct string_list allow_private; /* the owner's: "10.0.0.0/8", by cidr_format() */
	enum profile profile;
	bool unix_sockets; /* AF_UNIX sockets may be made */
	struct resources res;
	unsigned best_effort; /* 1 << enum layer_id */
	bool toolchain_auto;
	enum tty_mode tty;
	char *trace_output;       /* NULL: the state directory */
	ssb_record_fn *on_record; /* NULL: nobody looks on */
	void *on_record_arg;
};

/* As ssb_plan_json(); not pretty: one line without a newline. */
char *plan_json(const struct ssb_plan *p, bool pretty);

/* Makes the directories that write grants with `create` name, one by one,
 * following no symlink, and fills their fd, dev and ino. Planning itself
 * changes nothing: the run calls this before it mounts. */
int plan_create_missing(const struct ssb_plan *p, struct ssb_error *err);

/* Names relative to which a plan is made; tests give their own. */
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
