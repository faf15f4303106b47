/* lock.h - what the owner approved of one skill, pinned to the bytes that it had then.
 *
 * state_dir/approvals/<hash of the skill's directory>.json (lock_json.h): one file for
 * each skill, of the owner's own, where no skill and no project reaches (policy/own.h).
 * A file that is not understood is an error, and approves nothing. */
#ifndef CONSENT_LOCK_H
#define CONSENT_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "os/marks.h"
#include "base/sha256.h"
#include "policy/decide.h"

/* A file of the skill, or a directory with nothing in it; others are there by what they
 * hold. Nothing but these and symlinks that stay inside can be approved. */
struct skill_file {
	char *path; /* from the skill's directory on */
	char *link; /* of a symlink: where to; else NULL */
	bool dir;   /* an empty directory */
	uint64_t size;
	unsigned mode; /* permission bits: what is executable matters */
	uint8_t sha256[SHA256_BYTES];
};

/* Of every empty directory, whatever its own is. */
#define PINNED_DIR_MODE 0755

struct skill_files {
	struct skill_file *v; /* in order of their paths */
	size_t n;
	uint64_t bytes;
	uint8_t tree[SHA256_BYTES]; /* of all the above */
};

struct lock {
	char *skill;  /* its directory, real and absolute */
	char *name;   /* the skill's own, for people */
	char *format; /* skill_format_name() */
	struct skill_files files;
	uint8_t manifest[SHA256_BYTES]; /* plan->manifest_digest; of a sidecar the owner's file */
	struct string_list asked;       /* plan->requested, as it was shown */
	struct string_list declined;    /* those of them that the owner took out */
	struct given
	        *grants; /* the owner's word for what a plan was refused, or that was withheld */
	size_t n_grants;
	char *at;        /* RFC 3339 */
	char *by;        /* "root on terminal", "MCP client claude-code" */
	int64_t expires; /* seconds since the epoch; 0: never */
	int64_t uses;    /* runs that are left; -1: any number */
	bool snapshot;   /* the bytes are kept: snapshot_path() */
};

void lock_done(struct lock *l);
/* The options that can be approved, and their names: "read". NULL: none of them. */
const char *lock_option_name(enum ssb_option option);

/* "sha256:HEX" */
#define DIGEST_TEXT (sizeof("sha256:") + 2 * (size_t)SHA256_BYTES)
const char *digest_text(const uint8_t hash[SHA256_BYTES], char out[DIGEST_TEXT]);
bool digest_parse(const char *text, uint8_t ret[SHA256_BYTES]);

/* SSB_E_NOT_FOUND where nothing was approved. */
int lock_load(const struct owner *o, const char *skill, struct lock *ret, struct ssb_error *err);
/* False where nothing was approved; what is there may still be damaged. Costs nothing. */
bool lock_there(const struct owner *o, const char *skill);
/* Puts it in the place of what is there, by which `fill` completes it: nobody changes that
 * meanwhile. `before` is zero where there is none, or none that is understood. */
typedef int lock_fill_fn(struct lock *inout, const struct lock *before, void *arg,
                         struct ssb_error *err);
int lock_store(const struct owner *o, struct lock *inout, lock_fill_fn *fill, void *arg,
               struct ssb_error *err);
/* Also one that is not understood; that has no directory to be called by, and `skill` may
 * be the name of its file as well, with or without the ending. */
int lock_remove(const struct owner *o, const char *skill, bool *ret_was, struct ssb_error *err);

/* Is it the name of a lock's file? */
bool lock_is_name(const char *word);

/* One that approves nothing, since it is not understood. */
struct lock_bad {
	char file[2 * SHA256_BYTES + sizeof(".json")];
	struct ssb_error why;
};

struct lock_list {
	struct lock *v;
	size_t n;
	struct lock_bad *bad;
	size_t n_bad;
};
/* All, in order of their directories; one that is damaged hides no other. */
int lock_list(const struct owner *o, struct lock_list *ret, struct ssb_error *err);
void lock_list_done(struct lock_list *l);

/* Takes one use away, in one step with all others who do. -1: none was left, or it is
 * of another tree ("sha256:HEX") by now (SSB_E_POLICY). */
int lock_use(const struct owner *o, const char *skill, const char *tree, struct ssb_error *err);
/* Gives back what lock_use() took: nothing was run. */
int lock_unuse(const struct owner *o, const char *skill, const char *tree, struct ssb_error *err);

/* ---- the bytes ---- */

/* Every file beneath the directory, hashed. A FIFO, a device, a socket, a sparse file, a
 * symlink that leads out, too many files or bytes: SSB_E_POLICY, with its name.
 *
 * What version control keeps at the top (.git, .hg, .svn) is left out where a copy of the
 * rest can be kept, for then it is the copy that runs, and that is without it. */
int lock_files_read(const char *dir, struct skill_files *ret, struct ssb_error *err);
/* The same by what is known of files that have not changed (trace/digest_cache.h): good
 * to see that something changed, not to decide what it is that runs. */
int lock_files_look(const struct owner *o, const char *dir, struct skill_files *ret,
                    struct ssb_error *err);
/* As lock_files_read(), of an open directory (borrowed, may be O_PATH); *marks, empty, is how
 * the kernel knows all that was read, directories included: whatever is changed later, if
 * only for a while, is known otherwise then. */
int lock_files_mark(int dir, struct skill_files *ret, struct marks *marks, struct ssb_error *err);
void skill_files_digest(const struct skill_files *p, uint8_t ret[SHA256_BYTES]); /* of its files */
void skill_files_done(struct skill_files *p);

/* Not above SNAPSHOT_BYTES; what an owner is told of those that are. */
bool snapshot_fits(const struct skill_files *p);
#define SNAPSHOT_TOO_LARGE                                                                         \
	"It is too large to keep a copy: it runs from its directory, and a change during a run "   \
	"is "                                                                                      \
	"only noticed."
/* Copies what `p` names from `dir` to the owner's state directory, checking each byte
 * against its hash as it goes. What does not fit is not kept: *ret_kept. */
int snapshot_make(const struct owner *o, const char *dir, const struct skill_files *p,
                  bool *ret_kept, struct ssb_error *err);
char *snapshot_path(const struct owner *o, const struct skill_files *p); /* returns new */
/* Is it there, as it was made: every name, size, mode and link, and nobody else's? Then it
 * is in use as well: the next sweep leaves it alone. */
bool snapshot_there(const struct owner *o, const struct skill_files *p);
/* A run of so many seconds begins from it (`p->tree` counts): no sweep takes it meanwhile. */
void snapshot_hold(const struct owner *o, const struct skill_files *p, uint64_t seconds);
/* Removes those that no lock names any more, and no run has used for a day. */
int snapshot_sweep(const struct owner *o, struct ssb_error *err);
/* The same, if it was not done for a day; else it costs one look at a file. */
void snapshot_tidy(const struct owner *o);

#endif
