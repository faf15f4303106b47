/* manifest.h - skillsandbox.yaml as a checked struct.
 *
 * The author of a manifest is not trusted, so a manifest is only a request. The functions here
 * check its syntax and its ranges; src/policy decides what is granted. */
#ifndef MANIFEST_MANIFEST_H
#define MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/own.h"
#include "skillsandbox.h"

#define MANIFEST_FILE "skillsandbox.yaml"

/* The sandbox's /etc/hosts: these names always mean the sandbox itself. */
#define SANDBOX_HOSTS "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n"
/* Format of the warning about an egress rule for one of these names; its arguments are the name and
 * the port. */
#define RULE_OF_SANDBOX                                                                            \
	"in the sandbox, %s is the sandbox itself, so the rule has no effect; to reach a "         \
	"service of this machine: --net 127.0.0.1:%u --allow-private 127.0.0.1"

enum profile { PROFILE_DEFAULT, PROFILE_STRICT, PROFILE_PERMISSIVE };
/* What a skill may do with the files that its caller names in the arguments of a call. */
enum named_files { NAMED_NOTHING, NAMED_READ, NAMED_WRITE };
enum protocol { PROTO_TCP, PROTO_UDP, PROTO_TLS, PROTO_HTTP };

/* A text and its position (1-based; 0: not from a file). */
struct mtext {
	char *s;
	unsigned line;
	unsigned col;
};

struct mtext_list {
	struct mtext *v;
	size_t n;
};

bool mtext_list_has(const struct mtext_list *l, const char *s);
void mtext_list_done(struct mtext_list *l); /* frees the texts and the list */

enum host_kind { HOST_EXACT, HOST_WILDCARD, HOST_ADDRESS, HOST_CIDR };

struct egress_rule {
	struct mtext domain; /* normalised: lower case, A-labels, no final dot */
	enum host_kind kind; /* a wildcard keeps its "*." in `domain` */
	uint16_t *ports;     /* sorted, unique */
	size_t n_ports;
	enum protocol protocol;
	bool ech;         /* the owner allows ClientHellos of this rule to hide the real name */
	const char *from; /* who granted it, in plan->origins; NULL: the manifest */
	bool any; /* in a learning run: this rule is for every name that no other rule declares */
};

static inline bool egress_rule_has_port(const struct egress_rule *r, uint16_t port)
{
	return ARRAY_HAS(e, r->ports, r->n_ports, *e == port);
}

/* Limits for all rules of a run together. */
struct net_limits {
	uint64_t max_connections;            /* at the same time */
	uint64_t max_connections_per_second; /* new ones in one second; further ones wait */
	uint64_t max_bytes_out;
	uint64_t max_bytes_in;
};

struct resources {
	uint64_t memory_mb;
	uint64_t cpu_shares;
	uint64_t max_runtime_seconds;
	uint64_t max_output_bytes;
	uint64_t max_processes;
	uint64_t max_open_files;
	uint64_t max_disk_mb;
};

struct manifest {
	char *file;         /* as the user wrote it, for "file:line:column" */
	uint8_t digest[32]; /* SHA-256 of its bytes */
	char *name;
	char *version;
	char *description;
	char *author;
	struct mtext directory; /* only in a manifest outside the skill: the skill's directory; `s`
	                           NULL: none */
	struct egress_rule *egress;
	size_t n_egress;
	struct net_limits net;
	struct mtext_list read; /* normalised: "/a/b" or "~/a/b" */
	struct mtext_list write;
	enum named_files arguments;
	struct mtext arguments_at; /* its position in the file; `s` is not set */
	struct mtext_list env;
	enum profile profile;
	struct resources resources;
	/* `s` NULL: there is no entrypoint, and the caller's first argument names the script */
	struct mtext command;
	struct mtext_list args;
	char *workdir; /* absolute, normalised */
};

/* Names of the file that marks a skill of the Agent Skills format; the first that exists is used.
 * Some authors write it in lower case. */
#define N_MANIFEST_MARKDOWN 2
extern const char *const MANIFEST_MARKDOWN[N_MANIFEST_MARKDOWN];
/* Returns the name of this file in the directory, or NULL if there is none. A symlink counts as its
 * target. */
const char *manifest_markdown(int dir_fd);

/* A manifest needs an entrypoint, unless the skill has a SKILL.md. */
enum manifest_entry {
	ENTRY_REQUIRED,
	ENTRY_OPTIONAL,
	/* optional if skill.directory names the skill, which may have a SKILL.md */
	ENTRY_BY_DIRECTORY,
};

/* Opens `path` (a skill directory, or a manifest file) without following a symlink that leaves the
 * skill, and checks the manifest. On success `*ret` is new. All findings go to `diags` (borrowed,
 * may be NULL). */
int manifest_load(const char *path, struct manifest **ret, struct ssb_diags *diags,
                  struct ssb_error *err);

/* Like manifest_load(), for the open directory of a skill. Messages call it `dir`. */
int manifest_load_in(int dir_fd, const char *dir, struct manifest **ret, struct ssb_diags *diags,
                     struct ssb_error *err);

/* Like manifest_load(), for bytes in memory. `file` is their name in messages. The bytes may
 * contain skill.directory, which is an error in a skill's own manifest. The entrypoint is
 * required. */
int manifest_parse(const char *file, const char *bytes, size_t len, struct manifest **ret,
                   struct ssb_diags *diags, struct ssb_error *err);

int manifest_parse_as(enum manifest_entry entry, const char *file, const char *bytes, size_t len,
                      struct manifest **ret, struct ssb_diags *diags, struct ssb_error *err);

void manifest_free(struct manifest *m); /* accepts NULL and half-built ones */

OWN_FREEP(manifest_freep, struct manifest, manifest_free)

extern const struct resources RESOURCE_DEFAULTS;
extern const struct net_limits NET_DEFAULTS;

/* These functions convert between the names in files and the enums. The *_from_name functions
 * return -1 for an unknown name. */
const char *profile_name(enum profile p);
int profile_from_name(const char *s);
const char *named_files_name(enum named_files f); /* "read"; NULL for NAMED_NOTHING */
enum named_files named_files_from(const char *s); /* NAMED_NOTHING for an unknown name */
const char *protocol_name(enum protocol p);
int protocol_from_name(const char *s);

/* Checks that are also used for the owner's flags and policy file. Each returns NULL, or a static
 * text of the form "what is wrong; what to write instead"; `*ret` is new on success. */
const char *domain_check(const char *s, char **ret, enum host_kind *ret_kind);
/* True if `name` always means the sandbox itself: the name is in SANDBOX_HOSTS, or ends with
 * ".localhost". */
bool host_kind_is_sandbox(const char *name);
const char *check_path(const char *s, char **ret); /* "/..." or "~/..." normalised, no ".." */
const char *check_env_name(const char *s);         /* NULL if the name is valid */

#endif
