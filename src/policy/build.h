/* build.h - a plan in the making: the parts of src/policy share this. */
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
	const struct owner *owner;       /* the request's */
	const struct ssb_options *opt;   /* the request's, or defaults */
	const struct manifest *manifest; /* NULL: a bare command */
	const char *skill_dir;           /* real path; NULL: a bare command */
	int skill_fd;                    /* of that directory, borrowed */
	bool unbound;                    /* it is a sidecar that names no directory */
	const struct skill_dir *source;  /* where its files are: the same, or a copy of it */
	struct policy policy;
	struct danger *danger; /* looked up when the first path is judged */
	struct ssb_plan *plan;
	struct ssb_diags *diags;      /* not NULL */
	char *tool_bin;               /* goes first in PATH; NULL: nothing */
	struct string_list ca_env;    /* "NAME=FILE" of the owner's certificate bundles */
	struct string_list given_env; /* variables that an approval gives */
	bool lifted; /* what was judged last is not refused: the approval gives it as a flag would
	              */
	bool failed; /* without memory: the plan must not be used */
};

#define UNBOUND "the sidecar does not say for which directory it is"
#define UNBOUND_REMEDY                                                                             \
	"write 'directory:' under 'skill:' in it, or approve the skill: skillsandbox approve DIR"

/* An empty one, which holds no fd: 0 is one. NULL: no memory. */
struct ssb_plan *build_new_plan(void);

/* The path as one word for a shell that knows "~/", whoever chose it. New; NULL: no memory,
 * and the build has failed. */
char *build_word(struct build *b, const char *path);

/* A refusal, a warning: into the plan and into the diags. */
void build_refuse(struct build *b, enum refusal_kind kind, const char *where, const char *what,
                  const char *why, const char *remedy);
/* Left out, and the run goes on; what `r` points to is copied. */
void build_withhold(struct build *b, const struct refusal *r);
/* The owner's word that would allow what was refused last. */
void build_offer(struct build *b, enum ssb_option option, const char *value);
/* The approval gives this. */
bool build_gives(const struct build *b, enum ssb_option option, const char *value);
/* The owner took this request out. */
bool build_is_taken_out(const struct build *b, const char *what);
/* The same: it is recorded then, and not to be looked at further. */
bool build_taken_out(struct build *b, enum refusal_kind kind, const char *where, const char *what);
/* A sidecar for any directory of its name asks to write `path`, and the owner did not say
 * so for this one: withheld. */
bool build_unbound(struct build *b, const char *where, const char *what, const char *path);
void build_warn(struct build *b, const char *where, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* A warning that is shown at every run. */
void build_alarm(struct build *b, const char *where, const char *text);
/* Appends a copy, or marks the build failed. */
void build_add(struct build *b, struct string_list *l, const char *s, size_t max);
/* Returns new, or NULL with the build marked failed. */
char *build_printf(struct build *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "skillsandbox.yaml:12:7" into `out`, which is returned. */
const char *build_where(const struct build *b, const struct mtext *t, char *out, size_t size);
/* The dangerous places, looked up for at least this access. NULL: failed. */
struct danger *build_danger(struct build *b, enum access access);

/* resolve.c: paths become grants or refusals. */
struct path_request {
	const char *text; /* as written */
	enum access access;
	enum grant_origin origin;
	const char *where;
	/* Where the symlink in the path leads; NULL: there is none. The owner's word for such a
	 * manifest's path would not lift its refusal. */
	const char *real;
	const char *words; /* with `real`, of the owner: the path as it was written */
	bool unasked;      /* it is a manifest's read, and the policy file does not name it */
};
/* "read ~/.ssh" is refused; NULL texts (no memory) mark the build failed. */
void build_refuse_request(struct build *b, const struct path_request *r, const char *why,
                          const char *remedy);
void resolve_request(struct build *b, const struct path_request *r);
/* A path of the owner's by its words alone, to be compared with real paths. Followed are the
 * symlinks that no skill can have made: HOME as it is spelt, and those of file_follow_fixed().
 * Returns new; NULL: no memory. */
char *resolve_words(const struct build *b, const char *path);
void resolve_skill(struct build *b);
/* Ours, and made for this run: not judged. */
void resolve_stand_in(struct build *b, const struct stand_in *s);
/* A directory that is shown whole, as `what` ("a skill's directory"): it is no dangerous
 * place and holds none. A refusal is recorded. */
bool resolve_shown(struct build *b, const struct subject *s, const char *where, const char *what);

/* rootfs.c: the owner's root file system, judged and held; nothing where none is given. */
void rootfs_build(struct build *b);
/* Grants an object that was judged; takes the fd. */
void resolve_take_object(struct build *b, const struct path_request *r, const char *path, int *fd,
                         const struct stat *st, bool of_whole);

/* whole.c: "/", judged already. */
void whole_resolve(struct build *b, const struct path_request *r);

/* judge.c: may this be granted? A refusal or warning is recorded. */
bool judge_request(struct build *b, const struct path_request *r, const struct subject *s);
bool judge_policy_allows(const struct build *b, const struct path_request *r,
                         const struct subject *s);

/* grants.c */
void grants_release(struct grant *g);
/* Of a new grant: the open file (fd taken), and what it is known by. */
#define OPEN_FILE(file, st)                                                                        \
	.fd = (file), .dev = (st)->st_dev, .ino = (st)->st_ino, .uid = (st)->st_uid,               \
	.gid = (st)->st_gid, .parent_fd = -1
void grants_add(struct build *b, struct grant *g); /* takes what `g` owns */
/* A grant of at least this access is, or lies above, what the chain begins
 * with; `path` decides for what does not exist yet. */
const struct grant *grants_cover(const struct ssb_plan *p, const struct chain *c, const char *path,
                                 enum access access);
void grants_finish(struct build *b); /* sorts, merges, drops what others include */

/* env.c, toolchain.c, network.c, upstream.c, ca.c, settings.c: the steps of build_plan() */
int env_build(struct build *b, struct ssb_error *err);
/* The owner gave the variable a value (--env NAME=VALUE), or denies it. */
bool env_is_decided(const struct build *b, const char *name);
void toolchain_build(struct build *b);
void network_build(struct build *b);
void upstream_build(struct build *b); /* after the network */
void ca_build(struct build *b);       /* after the network */
void settings_build(struct build *b); /* limits, profile, sockets */
void withhold_finish(struct build *b);
void narrow_build(struct build *b); /* last: it only takes away */
/* A limit above the usual is a request; taken out, it is the usual one. */
void build_ask_limit(struct build *b, const struct resource *r, uint64_t *v, uint64_t usual);
/* Brings a limit down to the policy file's, with a warning. */
void build_lower(struct build *b, const char *name, uint64_t *v, uint64_t most);

#endif
