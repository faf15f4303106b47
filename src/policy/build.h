/* build.h - a plan while it is built; shared by the files of src/policy. */
#ifndef POLICY_BUILD_H
#define POLICY_BUILD_H

#include <stdbool.h>
#include <sys/stat.h>

#include "manifest/resources.h"
#include "policy/danger.h"
#include "policy/decide.h"
#include "policy/policy_file.h"

struct build {
	const struct plan_request *request;
	const struct owner *owner;       /* that of the request */
	const struct ssb_options *opt;   /* those of the request, or defaults */
	const struct manifest *manifest; /* NULL: a bare command */
	const char *skill_dir;           /* real path; NULL for a bare command */
	int skill_fd;                    /* of `skill_dir`, borrowed */
	bool unbound;                    /* the manifest is a sidecar that names no directory */
	const struct skill_dir
	        *source; /* where the skill's files are: its directory, or a copy of it */
	struct policy policy;
	struct danger *danger; /* looked up when the first path is judged */
	struct ssb_plan *plan;
	struct ssb_diags *diags;      /* not NULL */
	char *tool_bin;               /* goes first in PATH; NULL: none */
	struct string_list ca_env;    /* "NAME=FILE" of the owner's certificate bundles */
	struct string_list given_env; /* variables that the approval gives */
	bool lifted; /* the path judged last is not refused: the approval gives it as a flag would
	              */
	bool failed; /* out of memory: the plan must not be used */
};

#define UNBOUND "the sidecar does not say for which directory it is"
#define UNBOUND_REMEDY                                                                             \
	"write 'directory:' under 'skill:' in it, or approve the skill: skillsandbox approve DIR"

/* Returns a new empty plan, which holds no fd (0 would be a valid one); NULL without memory. */
struct ssb_plan *build_new_plan(void);
/* Removes the plan's grants, refusals and warnings. */
void build_forget_answers(struct ssb_plan *p);

/* Returns the path as one word for a shell that knows "~/"; the path may be hostile. The result
 * is new; NULL without memory, and then the build has failed. */
char *build_word(struct build *b, const char *path);

/* Record a refusal or a warning in the plan and in the diags. */
void build_refuse(struct build *b, enum refusal_kind kind, const char *where, const char *what,
                  const char *why, const char *remedy);
/* Leaves a request out without stopping the run. Copies the strings of `r`. */
void build_withhold(struct build *b, const struct refusal *r);
/* Names the owner's option that would allow what was refused last. */
void build_offer(struct build *b, enum ssb_option option, const char *value);
/* True if the approval gives this. */
bool build_gives(const struct build *b, enum ssb_option option, const char *value);
/* True if the owner took this request out. */
bool build_is_taken_out(const struct build *b, const char *what);
/* The same; if true, it is also recorded, and the caller must not examine the request further. */
bool build_taken_out(struct build *b, enum refusal_kind kind, const char *where, const char *what);
/* Withholds the write of `path` if a sidecar that fits any directory of its name asks for it and
 * the owner did not allow it for this directory. Returns true if it was withheld. */
bool build_unbound(struct build *b, const char *where, const char *what, const char *path);
void build_warn(struct build *b, const char *where, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* A warning that is shown at every run. */
void build_alarm(struct build *b, const char *where, const char *text);
/* Appends a copy; marks the build failed if it cannot. */
void build_add(struct build *b, struct string_list *l, const char *s, size_t max);
/* Returns new, or NULL with the build marked failed. */
char *build_printf(struct build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes "skillsandbox.yaml:12:7" into `out` and returns `out`. */
const char *build_where(const struct build *b, const struct mtext *t, char *out, size_t size);
/* Returns the dangerous places, looked up for at least this access. NULL: the build failed. */
struct danger *build_danger(struct build *b, enum access access);

/* resolve.c: paths become grants or refusals. */
struct path_request {
	const char *text; /* as written */
	enum access access;
	enum grant_origin origin;
	const char *where;
	/* Where the symlink in the path leads; NULL if there is no symlink. A path of a manifest
	 * that has one stays refused even if the owner grants it by name. */
	const char *real;
	const char *words; /* with `real`, for a path of the owner: the path as it was written */
	bool unasked;      /* a manifest's read that the policy file does not name */
};
/* Refuses the request, as "read ~/.ssh". A NULL text (no memory) marks the build failed. */
void build_refuse_request(struct build *b, const struct path_request *r, const char *why,
                          const char *remedy);
void resolve_request(struct build *b, const struct path_request *r);
/* Normalises a path of the owner by its words, so that it can be compared with real paths. It
 * follows only symlinks that no skill can have made: HOME as it is spelt, and those of
 * file_follow_fixed(). Returns new; NULL without memory. */
char *resolve_words(const struct build *b, const char *path);
void resolve_skill(struct build *b);
/* Grants a file of ours that was made for this run. It is not judged. */
void resolve_stand_in(struct build *b, const struct stand_in *s);
/* True if a directory that is shown whole, as `what` ("a skill's directory"), neither is a
 * dangerous place nor contains one. Otherwise the refusal is recorded, with `remedy`. */
bool resolve_shown(struct build *b, const struct subject *s, const char *where, const char *what,
                   const char *remedy);

/* rootfs.c: judges the owner's root file system and holds it open; does nothing without one. */
void rootfs_build(struct build *b);
/* Grants an object that was judged. Takes the fd. */
void resolve_take_object(struct build *b, const struct path_request *r, const char *path, int *fd,
                         const struct stat *st, bool of_whole);

/* whole.c: grants "/", which must have been judged. */
void whole_resolve(struct build *b, const struct path_request *r);

/* judge.c: true if this may be granted. A refusal or warning is recorded. */
bool judge_request(struct build *b, const struct path_request *r, const struct subject *s);
bool judge_policy_allows(const struct build *b, const struct path_request *r,
                         const struct subject *s);

/* grants.c */
void grants_release(struct grant *g);
/* Fields of a new grant: the open file (its fd is taken), and the identity of the object. */
#define OPEN_FILE(file, st)                                                                        \
	.fd = (file), .dev = (st)->st_dev, .ino = (st)->st_ino, .uid = (st)->st_uid,               \
	.gid = (st)->st_gid, .parent_fd = -1
void grants_add(struct build *b, struct grant *g); /* takes the strings and fds of `g` */
/* Returns the grant with at least this access whose object is, or lies above, the first object
 * of the chain; `path` decides for an object that does not exist yet. NULL: none. */
const struct grant *grants_cover(const struct ssb_plan *p, const struct chain *c, const char *path,
                                 enum access access);
void grants_finish(struct build *b); /* sorts, merges, drops grants that others include */

/* env.c, toolchain.c, network.c, upstream.c, ca.c, settings.c: the steps of build_plan() */
int env_build(struct build *b, struct ssb_error *err);
/* True if the owner gave the variable a value (--env NAME=VALUE) or denied it. */
bool env_is_decided(const struct build *b, const char *name);
void toolchain_build(struct build *b);
void network_build(struct build *b);
void upstream_build(struct build *b); /* after the network */
void ca_build(struct build *b);       /* after the network */
void settings_build(struct build *b); /* limits, profile, sockets */
void withhold_finish(struct build *b);
void narrow_build(struct build *b); /* last: it only takes away */
/* Treats a limit above the usual value as a request; the usual value applies if the owner took
 * it out. */
void build_ask_limit(struct build *b, const struct resource *r, uint64_t *v, uint64_t usual);
/* Lowers a limit to that of the policy file, with a warning. */
void build_lower(struct build *b, const char *name, uint64_t *v, uint64_t most);

#endif
