/* needs.h - what a skill needs: seen in the records of its runs, or expected from its files.
 *
 * Both are hostile: the skill chooses the names in them. A need is not a grant. What a plan would
 * refuse is marked as dangerous. */
#ifndef LEARN_NEEDS_H
#define LEARN_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/plan.h"

enum need_kind { NEED_NETWORK, NEED_READ, NEED_WRITE, NEED_ENV, NEED_PROGRAM, NEED_SYSCALL };

/* For people and programs: "network", "read", "system call". */
const char *need_kind_name(enum need_kind kind);

struct need {
	enum need_kind kind;
	char *value;   /* a host, "/a/b" or "~/a/b", a variable, a program, a system call */
	uint16_t port; /* NEED_NETWORK; 0: not seen */
	enum protocol protocol; /* NEED_NETWORK */
	int profile;            /* NEED_SYSCALL: the smallest enum profile that has it; -1: none */
	bool absent;            /* NEED_ENV: asked for, and not set in any run */
	bool denied;            /* tried and refused at least once */
	bool hint;              /* not tried: the files only mention it */
	bool aimed;             /* NEED_NETWORK: only a datagram socket was connected */
	bool thief;             /* NEED_NETWORK: it was sent a decoy's content at least once */
	bool vain;              /* a path; no grant would allow what was tried there */
	bool missing;           /* a path; the owner has nothing there (needs_weigh()) */
	bool in_small_dir;      /* a path; its directory may be proposed instead (needs_weigh()) */
	uint64_t count;         /* how often; 0 counts as 1 */
	char *why;              /* the first reason: "run 01HX…", "scripts/fetch.py:12" */
	const char *danger;     /* why it is proposed only as a comment; NULL: not dangerous */
};

struct needs {
	struct need *v; /* sorted by kind, value, port and protocol; owns their texts */
	size_t n;
	bool cut;      /* incomplete: more than MAX_NEEDS, or more than the record has */
	bool nameless; /* a host was asked for, but its name is not in the record */
	char *home;    /* what "~" means; NULL: not known yet */
};

/* Adds a copy, or merges it with the same need. Then an attempt replaces a hint, and what was not
 * dangerous once is not dangerous, except for a thief. -1: out of memory. */
int needs_add(struct needs *s, const struct need *n);
void needs_done(struct needs *s);
/* Drops needs that were only aimed at if the same port of the host was tried by TCP: resolvers
 * connect datagram sockets to sort the addresses of a host. */
void needs_drop_aimed(struct needs *s);

/* Marks as dangerous what a plan of this owner would refuse, and secrets that are not the skill's
 * own. `skill_dir` may be NULL. */
int needs_judge(const struct owner *o, const char *skill_dir, struct needs *s,
                struct ssb_error *err);

/* From PROPOSE_SIBLINGS files in one directory on, the directory is proposed instead, unless it
 * contains more than PROPOSE_EXCESS times as many files as were asked for. */
#define PROPOSE_SIBLINGS 8
#define PROPOSE_EXCESS   8

/* Finds out which paths exist, and which directories may be proposed instead of their files: none
 * that a plan would refuse, and none that contains much else. The caller must know all needs by
 * then. */
int needs_weigh(const struct owner *o, const char *skill_dir, struct needs *s,
                struct ssb_error *err);
/* How many needs of the same kind are in the same directory, including `n`. Only needs that are not
 * dangerous and exist count. */
size_t needs_siblings(const struct needs *s, const struct need *n);

/* Adds what one recorded run asked for, and judges it; `word` is as in run_file_open(). Paths that
 * every sandbox shows, the skill's own directory, /tmp and its private home are not needs. But a
 * file that the skill did not find in its home, and that exists in the owner's home, is one. A
 * damaged record is an error. */
int needs_from_run(const struct owner *o, const char *word, struct needs *inout,
                   struct ssb_error *err);
/* The same for an open record (borrowed); `why` says where the needs were seen. */
int needs_from_record(const struct owner *o, int fd, const char *why, struct needs *inout,
                      struct ssb_error *err);
/* The ids of the recorded runs of the skill in `dir`, newest first; *ret is new. With `whole`, only
 * runs whose record contains all that they did: *ret_part (may be NULL) counts the others. */
int needs_runs_of(const struct owner *o, const char *dir, bool whole, struct string_list *ret,
                  size_t *ret_part, struct ssb_error *err);

/* Adds hints from the skill's text files, without running them: hosts of URLs, names of variables,
 * programs. */
int hints_scan(const char *dir, struct needs *inout, struct ssb_error *err);
/* The same for one file's text; its name decides how it is read. -1: out of memory. */
int hints_text(const char *file, const char *text, size_t len, struct needs *inout);

/* Writes "read ~/notes" or "connect to api.example.com:443 (tls)", made visible. */
struct buf;
void need_text(struct buf *out, const struct need *n);

#endif
