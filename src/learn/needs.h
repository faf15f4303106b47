/* needs.h - collects the needs of a skill, from the records of its runs or from its files.
 *
 * Records and files are hostile: the skill chooses the names in them. A need is not a grant. A need
 * that a plan would refuse is marked as dangerous. */
#ifndef LEARN_NEEDS_H
#define LEARN_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/plan.h"

enum need_kind {
	NEED_NETWORK,
	NEED_READ,
	NEED_WRITE,
	NEED_ARGUMENTS, /* files that the caller names in the arguments; value: "read" or "write" */
	NEED_ENV,
	NEED_PROGRAM,
	NEED_SYSCALL,
};

/* Returns the name for people and programs: "network", "read", "system call". */
const char *need_kind_name(enum need_kind kind);

struct need {
	enum need_kind kind;
	char *value;   /* a host, "/a/b" or "~/a/b", a variable, a program, a system call */
	uint16_t port; /* NEED_NETWORK; 0: not seen */
	enum protocol protocol; /* NEED_NETWORK */
	int profile;        /* NEED_SYSCALL: the smallest enum profile that contains it; -1: none */
	bool absent;        /* NEED_ENV: asked for, and not set in any run */
	bool optional;      /* NEED_ENV: the skill also works if it is not set */
	bool denied;        /* the need was tried and refused at least once */
	bool hint;          /* the need was not tried: only the files mention it */
	bool makes_dirs;    /* of a hint: the file that mentions the path makes directories */
	bool aimed;         /* NEED_NETWORK: only a datagram socket was connected */
	bool thief;         /* NEED_NETWORK: the host got a decoy's content at least once */
	bool vain;          /* of a path: no grant would allow the attempt */
	bool missing;       /* of a path: it does not exist for the owner (needs_weigh()) */
	bool in_small_dir;  /* of a path: its directory may be proposed instead (needs_weigh()) */
	uint64_t count;     /* how often it was tried; 0 counts as 1 */
	char *why;          /* where it was first seen: "run 01HX…", "scripts/fetch.py:12" */
	const char *danger; /* why the need is proposed only as a comment; NULL: not dangerous */
};

struct needs {
	struct need *v; /* sorted by kind, value, port and protocol; owns their texts */
	size_t n;
	bool cut;      /* incomplete: there are more than MAX_NEEDS, or the record is incomplete */
	bool nameless; /* a host was asked for, but its name is not in the record */
	char *home;    /* the path that "~" means; NULL: not known yet */
};

/* Adds a copy, or merges it with an equal need. When needs are merged, an attempt replaces a
 * hint. The result is dangerous only if both are. But a host that got a decoy's content
 * (`thief`) always stays dangerous. Returns -1 if out of memory. */
int needs_add(struct needs *s, const struct need *n);
void needs_done(struct needs *s);
/* Drops needs with `aimed` if the same port of the host was also tried by TCP: resolvers connect
 * datagram sockets only to sort the addresses of a host. */
void needs_drop_aimed(struct needs *s);

/* Marks needs as dangerous: those that a plan of this owner would refuse, and secrets that do not
 * belong to the skill. `skill_dir` may be NULL. */
int needs_judge(const struct owner *o, const char *skill_dir, struct needs *s,
                struct ssb_error *err);

/* If at least PROPOSE_SIBLINGS files of one directory are needed, the directory is proposed
 * instead. The directory is not proposed if it contains more than PROPOSE_EXCESS times as many
 * files as are needed. */
#define PROPOSE_SIBLINGS 8
#define PROPOSE_EXCESS   8

/* Finds out which paths exist, and which directories may be proposed instead of their files. A
 * directory may not be proposed if a plan would refuse it, or if it contains too many other
 * files. Must be called after all needs were added. */
int needs_weigh(const struct owner *o, const char *skill_dir, struct needs *s,
                struct ssb_error *err);
/* Returns how many files of n's directory are needed in the same way (read or write), including
 * `n`. Counts only needs that are not dangerous and whose path exists. */
size_t needs_siblings(const struct needs *s, const struct need *n);

/* Adds the needs of one recorded run, and judges them; `word` is as in run_file_open(). These
 * are not needs: paths that every sandbox shows, the skill's own directory, /tmp, and the
 * skill's private home. There is one exception: a file that the skill did not find in its
 * home, but that exists in the owner's home, is a need. A damaged record is an error. */
int needs_from_run(const struct owner *o, const char *word, struct needs *inout,
                   struct ssb_error *err);
/* Like needs_from_run(), for an open record (borrowed). `why` says where the needs were seen. */
int needs_from_record(const struct owner *o, int fd, const char *why, struct needs *inout,
                      struct ssb_error *err);
/* Lists the ids of the recorded runs of the skill in `dir`, newest first; *ret is new. If `whole`
 * is true, it lists only runs whose record is complete, and *ret_part (may be NULL) is the number
 * of runs that it leaves out. */
int needs_runs_of(const struct owner *o, const char *dir, bool whole, struct string_list *ret,
                  size_t *ret_part, struct ssb_error *err);

/* Adds hints from the skill's text files, without running them: hosts of URLs, names of variables,
 * programs. */
int hints_scan(const char *dir, struct needs *inout, struct ssb_error *err);
/* Like hints_scan(), for the text of one file. The name of the file decides how the text is
 * read. Returns -1 if out of memory. */
int hints_text(const char *file, const char *text, size_t len, struct needs *inout);

/* Writes "read ~/notes" or "connect to api.example.com:443 (tls)", made visible. */
struct buf;
void need_text(struct buf *out, const struct need *n);

#endif
