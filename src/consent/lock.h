/* lock.h - approvals: what the owner approved of one skill, bound to the bytes that it had then.
 *
 * state_dir/approvals/<hash of the skill's directory>.json (lock_json.h), one file for each skill.
 * The file belongs to the owner and lies where no skill and no project can write
 * (policy/own_dirs.h). A file that cannot be understood is an error and approves nothing. */
#ifndef CONSENT_LOCK_H
#define CONSENT_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "os/marks.h"
#include "policy/decide.h"
#include "skill/files.h"
#include "skill/skill.h"

struct lock {
	char *skill; /* the skill's directory, real and absolute */
	char *name;  /* the skill's own name, for people */
	enum skill_format format;
	struct skill_files files;
	/* plan->manifest_digest; for a sidecar, the digest of the owner's file. */
	uint8_t manifest[SHA256_BYTES];
	struct string_list asked;    /* plan->requested, as the owner saw it */
	struct string_list declined; /* items of `asked` that the owner declined */
	/* Items that a plan refuses or withholds without this grant. */
	struct given *grants;
	size_t n_grants;
	/* What the owner added to the skill's own requests (skillsandbox allow), each with its date
	 * and reason. It is granted as long as the approval holds. */
	struct given *allowed;
	size_t n_allowed;
	char *at;        /* RFC 3339 */
	char *by;        /* "root on terminal", "MCP client claude-code" */
	int64_t expires; /* seconds since 1970; 0: never */
	int64_t uses;    /* runs that are left; -1: any number */
	bool snapshot;   /* a copy of the files is kept: snapshot_path() */
};

void lock_done(struct lock *l);
bool lock_same_files(const struct skill_files *a, const struct skill_files *b);
bool lock_is_over(const struct lock *l); /* it has expired, or no runs are left */
/* Returns the name of an option that can be approved ("read"), or NULL if it cannot be approved. */
const char *lock_option_name(enum ssb_option option);

/* Fails with SSB_E_NOT_FOUND if the skill has no approval. */
int lock_load(const struct owner *o, const char *skill, struct lock *ret, struct ssb_error *err);
/* Returns true if there is an approval, readable or damaged. Only looks up the name. */
bool lock_there(const struct owner *o, const char *skill);
/* Looks for an approval whose path is another one, but leads to the directory `skill` now: it
 * became a symlink, or a bind mount shows the directory at both paths. *ret_path is new; NULL:
 * there is none. */
int lock_find_moved(const struct owner *o, const char *skill, char **ret_path,
                    struct ssb_error *err);
/* Replaces the approval of inout->skill. `fill` completes the new approval from the old one, while
 * no other process can change the store. `before` is zero if there is no old approval, or if the
 * old approval cannot be understood. */
typedef int lock_fill_fn(struct lock *inout, const struct lock *before, void *arg,
                         struct ssb_error *err);
int lock_store(const struct owner *o, struct lock *inout, lock_fill_fn *fill, void *arg,
               struct ssb_error *err);
/* Removes remembered grants (lock.allowed) of the skill: those of `what`, or all if n is 0. *ret_n
 * is how many were removed. The rest of the approval stays. Fails with SSB_E_NOT_FOUND if the skill
 * has no approval. */
int lock_forget(const struct owner *o, const char *skill, const struct given *what, size_t n,
                size_t *ret_n, struct ssb_error *err);
/* Copies a remembered grant to the end of the list, unless the list has it already. Returns -1 like
 * given_add(). */
int lock_allow(struct lock *l, const struct given *g);
/* Removes an approval, even if it cannot be understood. `skill` is the skill's directory, or the
 * name of the approval's file, with or without ".json". */
int lock_remove(const struct owner *o, const char *skill, bool *ret_was, struct ssb_error *err);

/* Returns true if `word` is the name of an approval's file, with or without ".json". */
bool lock_is_name(const char *word);

/* An approval that cannot be understood. It approves nothing. */
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
/* Lists all approvals, in the order of the skills' directories. If one is damaged, the others are
 * still listed. */
int lock_list(const struct owner *o, struct lock_list *ret, struct ssb_error *err);
void lock_list_done(struct lock_list *l);

/* Uses up one run atomically: other processes may do the same at the same time. Returns -1 if
 * no run is left. If the approval is now for other files than `tree` ("sha256:HEX"), the error
 * is SSB_E_POLICY. */
int lock_use(const struct owner *o, const char *skill, const char *tree, struct ssb_error *err);
/* Gives back the run that lock_use() used up, because nothing was started. */
int lock_unuse(const struct owner *o, const char *skill, const char *tree, struct ssb_error *err);

/* ---- the skill's files: skill/files.h, FILES_APPROVE ---- */

/* Reads every byte, because the result decides what is approved. `dir` is real and absolute. */
int lock_files_read(const char *dir, struct skill_files *ret, struct ssb_error *err);
/* Reads only files that the cache does not know. The result shows whether something changed, but
 * must not be used to decide which bytes run. */
int lock_files_look(const struct owner *o, const char *dir, struct skill_files *ret,
                    struct ssb_error *err);
/* Reads every byte beneath an open directory (borrowed, may be O_PATH). *marks must be empty, and
 * gets the kernel's times of every file and directory. They show a later change, even if it is
 * undone again. */
int lock_files_mark(int dir, struct skill_files *ret, struct marks *marks, struct ssb_error *err);

/* ---- the copy of the skill's files: snapshot.c ---- */

/* Returns true if the skill is small enough to be copied (SNAPSHOT_BYTES). */
bool snapshot_fits(const struct skill_files *p);
/* The message for a skill that is too large. */
#define SNAPSHOT_TOO_LARGE                                                                         \
	"The skill is too large for a copy, so it runs from its own directory: a change there "    \
	"during a run is noticed, but not prevented."
/* Copies the files `p` from `dir` to the owner's state directory and checks each byte against its
 * digest. *ret_kept is false if the files are too large (snapshot_fits()). */
int snapshot_make(const struct owner *o, const char *dir, const struct skill_files *p,
                  bool *ret_kept, struct ssb_error *err);
char *snapshot_path(const struct owner *o, const struct skill_files *p); /* returns new */
/* Checks that the copy exists and belongs to the owner, with every name, size, mode and
 * symlink as it was made. If so, marks the copy as used, so that the next sweep keeps it. */
bool snapshot_there(const struct owner *o, const struct skill_files *p);
/* Must be called when a run of `seconds` starts from the copy: no sweep removes the copy before the
 * run ends. Reads only p->tree. */
void snapshot_hold(const struct owner *o, const struct skill_files *p, uint64_t seconds);
/* Removes copies that no approval names and that no run has used for a day. */
int snapshot_sweep(const struct owner *o, struct ssb_error *err);
/* Calls snapshot_sweep() at most once a day. Otherwise it only checks the time of a file. */
void snapshot_tidy(const struct owner *o);

#endif
