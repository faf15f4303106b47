/* build.h - the state of a plan that is being built. Only the files of src/policy include it. */
#ifndef POLICY_BUILD_H
#define POLICY_BUILD_H

#include <stdbool.h>
#include <sys/stat.h>

#include "manifest/resources.h"
#include "policy/danger.h"
#include "policy/decide.h"
#include "policy/policy_file.h"
#include "policy/preset.h"

struct build {
	const struct plan_request *request;
	const struct owner *owner;       /* request->owner */
	const struct ssb_options *opt;   /* request->options, or defaults */
	const struct manifest *manifest; /* NULL: a bare command */
	const char *skill_dir;           /* real path; NULL for a bare command */
	int skill_fd;                    /* fd of `skill_dir`, borrowed */
	bool unbound; /* the owner's own manifest (sidecar) does not name the skill's directory */
	/* the directory from which the skill's files are read: the skill's own, or an approved
	 * copy */
	const struct skill_dir *source;
	struct policy policy;
	struct preset *presets;
	const char *cache_place; /* where the cache is shown, while it is resolved */
	size_t n_presets;
	struct danger *danger; /* looked up when the first path is judged */
	struct ssb_plan *plan;
	struct ssb_diags *diags;      /* not NULL */
	char *tool_bin;               /* directory that goes first in PATH; NULL: none */
	struct string_list ca_env;    /* "NAME=FILE" of the owner's certificate bundles */
	struct string_list given_env; /* variables that the approval gives */
	/* True if the approval grants the path that was judged last. The path is then judged as if
	 * the owner had named it. */
	bool lifted;
	size_t first_arg;         /* the first word of plan->argv that comes from the caller */
	struct named_word *words; /* words that name a shown file, for arguments_rewrite() */
	size_t n_words;
	bool failed; /* memory is exhausted: the plan must not be used */
};

#define UNBOUND "the sidecar (your own manifest for the skill) does not name the skill's directory"
#define UNBOUND_REMEDY                                                                             \
	"add the line 'directory: DIR' under 'skill:' in the sidecar, or approve the skill: "      \
	"skillsandbox approve DIR"

/* Returns a new empty plan, whose fds are -1 (0 would be a valid fd); NULL without memory. */
struct ssb_plan *build_new_plan(void);
/* Removes the plan's grants, refusals and warnings. */
void build_forget_answers(struct ssb_plan *p);

/* Quotes a path, which may be hostile, as one word of a shell that expands "~/". Returns new; NULL
 * without memory, after marking the build failed. */
char *build_word(struct build *b, const char *path);

/* Records a refusal in the plan and in the diags. */
void build_refuse(struct build *b, enum refusal_kind kind, const char *where, const char *what,
                  const char *why, const char *remedy);
/* Records a request as withheld: it is left out of the plan, but does not stop the run. Copies the
 * strings of `r`. */
void build_withhold(struct build *b, const struct refusal *r);
/* the place of a request that the owner remembered, instead of a line of the manifest */
#define WHERE_REMEMBERED "approval"
/* Adds to the last refusal the option with which the owner can allow the request. */
void build_offer(struct build *b, enum ssb_option option, const char *value);
/* True if the approval grants this option with this value. */
bool build_gives(const struct build *b, enum ssb_option option, const char *value);
/* True if the owner declined this request, with --without or in the approval. */
bool build_is_taken_out(const struct build *b, const char *what);
/* Like build_is_taken_out(), but also records a declined request as withheld. If it returns true,
 * the caller must not examine the request further. */
bool build_taken_out(struct build *b, enum refusal_kind kind, const char *where, const char *what);
/* Withholds the request to write `path` if it comes from a sidecar that names no directory, and the
 * owner did not allow the path with --write. Returns true if it was withheld. */
bool build_unbound(struct build *b, const char *where, const char *what, const char *path);
void build_warn(struct build *b, const char *where, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Records a warning that is shown at every run. */
void build_alarm(struct build *b, const char *where, const char *text);
/* Appends a copy of `s` to a list of at most `max` items; marks the build failed if it cannot. */
void build_add(struct build *b, struct string_list *l, const char *s, size_t max);
/* Returns new, or NULL with the build marked failed. */
char *build_printf(struct build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes "skillsandbox.yaml:12:7" into `out` and returns `out`. */
const char *build_where(const struct build *b, const struct mtext *t, char *out, size_t size);
/* Returns a set of dangerous places for which danger_judges(access) is true. The build owns the
 * set; a later call may replace it. NULL: the build has failed. */
struct danger *build_danger(struct build *b, enum access access);

/* resolve_path.c: turns paths into grants or refusals. */
struct path_request {
	const char *text; /* as written */
	enum access access;
	enum grant_origin origin;
	const char *where;
	/* Where the path leads, if it contains a symlink; otherwise NULL. A manifest's path that
	 * contains a symlink stays refused even if the owner grants it by name. */
	const char *real;
	/* if the owner wrote the path and `real` is set: the path as the owner wrote it, normalised
	 * by resolve_words() */
	const char *words;
	bool unasked; /* requested by a manifest, to read, and not named in the policy file */
};
/* Records a refusal of the request. The refusal names the request, for example "read ~/.ssh". If
 * `why` or `remedy` is NULL (no memory), the build is marked failed. */
void build_refuse_request(struct build *b, const struct path_request *r, const char *why,
                          const char *remedy);
void resolve_request(struct build *b, const struct path_request *r);
/* Normalises a path that the owner wrote, so that it can be compared with real paths. It follows
 * only symlinks that no skill can have made: the symlinks in the path $HOME itself, and the
 * symlinks that file_follow_fixed() follows. Returns new; NULL without memory. */
char *resolve_words(const struct build *b, const char *path);
void resolve_skill(struct build *b);
/* Grants a file that the runtime made for this run. The file is not judged. */
void resolve_stand_in(struct build *b, const struct stand_in *s);
/* Judges a directory that is shown as a whole; `what` says for what it is used ("a skill's
 * directory"). Returns true if it neither is a dangerous place nor contains one. Otherwise returns
 * false and records a refusal with `remedy`. */
bool resolve_shown(struct build *b, const struct subject *s, const char *where, const char *what,
                   const char *remedy);

/* rootfs.c: judges the root file system that the owner named, and holds it open; does nothing if
 * the owner named none. */
void rootfs_build(struct build *b);
/* Grants an object that was judged. Takes the fd. `of_whole`: the object is one part of a grant of
 * "/". */
void resolve_take_object(struct build *b, const struct path_request *r, const char *path, int *fd,
                         const struct stat *st, bool of_whole);

/* Grants a missing path, which the run creates: `missing` is what follows the parent. Takes the fd
 * of the parent. */
void resolve_take_missing(struct build *b, const struct path_request *r, const char *path,
                          int *parent, const char *missing);

/* whole.c: grants "/", which must have been judged. */
void whole_resolve(struct build *b, const struct path_request *r);

/* judge.c: returns true if the request may be granted, perhaps with a warning in the plan.
 * Otherwise records a refusal. */
bool judge_request(struct build *b, const struct path_request *r, const struct subject *s);
bool judge_policy_allows(const struct build *b, const struct path_request *r,
                         const struct subject *s);

/* Returns the reason why naming the object or missing path in an argument is not enough to grant
 * it; new. NULL: it may be granted, or the build has failed. Sets *ret_never if nothing can grant
 * it. */
char *judge_named(struct build *b, const struct path_request *r, const struct subject *s,
                  bool *ret_never);

/* arguments.c: grants the files that the caller names in the arguments, after all other paths. */
void arguments_build(struct build *b);
/* Replaces each word that names a file by the file's path in the sandbox, if the word would not
 * lead there from the plan's work directory. */
void arguments_rewrite(struct build *b);
void arguments_done(struct build *b);
/* preset_build.c: loads the presets, and decides the size of the cache. */
int preset_build(struct build *b, struct ssb_error *err);
void preset_add_paths(struct build *b);
void preset_raise_limit(const struct build *b, const struct resource *r, uint64_t *v);

/* cache.c: grants the directory that the skill keeps between runs, if the owner allows one. Must be
 * called after all other grants. */
void cache_build(struct build *b);

/* grants.c */
void grants_release(struct grant *g);
/* Fields of a new grant: the open file (its fd is taken), and the identity of the object. */
#define OPEN_FILE(file, st)                                                                        \
	.fd = (file), .dev = (st)->st_dev, .ino = (st)->st_ino, .uid = (st)->st_uid,               \
	.gid = (st)->st_gid, .parent_fd = -1
void grants_add(struct build *b, struct grant *g); /* takes the strings and fds of `g` */
/* Returns a grant that has at least this access and includes the object at the start of the chain;
 * NULL if there is none. A grant whose object does not exist yet is compared by `path`. */
const struct grant *grants_cover(const struct ssb_plan *p, const struct chain *c, const char *path,
                                 enum access access);
/* sorts the grants, and drops each grant that another one includes */
void grants_finish(struct build *b);

/* env.c, toolchain.c, network.c, upstream.c, ca.c, settings.c, withhold.c, narrow.c: the steps of
 * build_plan() */
int env_build(struct build *b, struct ssb_error *err);
/* True if the owner gave the variable a value (--env NAME=VALUE) or denied it. */
bool env_is_decided(const struct build *b, const char *name);
void toolchain_build(struct build *b);
void network_build(struct build *b);
void upstream_build(struct build *b); /* after the network */
void ca_build(struct build *b);       /* after the network */
void settings_build(struct build *b); /* limits, profile, sockets */
void withhold_finish(struct build *b);
void narrow_build(struct build *b); /* last: it only removes permissions */
/* If *v is above `usual`, records it as a request of the manifest. If the owner declined that
 * request, sets *v to `usual`. */
void build_ask_limit(struct build *b, const struct resource *r, uint64_t *v, uint64_t usual);
/* If *v is above `most`, the limit of the policy file, lowers *v to `most` and warns about it. */
void build_lower(struct build *b, const char *name, uint64_t *v, uint64_t most);

/* Returns "read " or "write ". */
static inline const char *build_access_words(enum access access)
{
	return plan_requested_words(access == ACCESS_WRITE ? REQUESTED_WRITE : REQUESTED_READ);
}

#endif
