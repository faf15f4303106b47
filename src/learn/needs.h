/* needs.h - what a skill was seen to need, or can be expected to: from the records of
 * its runs, and from hints in its files.
 *
 * Both are hostile: a skill chooses the names that stand in them. A need is no grant;
 * what is dangerous is marked, by what a plan would say to it. */
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
	int profile;            /* NEED_SYSCALL: the least enum profile that has it; -1: none */
	bool absent;            /* NEED_ENV: it was asked for, and in no run set */
	bool denied;            /* it was tried, and refused, at least once */
	bool hint;              /* nobody tried: the files only speak of it */
	bool aimed;             /* NEED_NETWORK: a datagram socket was connected, no more */
	bool thief;             /* NEED_NETWORK: it was sent what was planted, at least once */
	bool vain;              /* a path; no grant would allow what was tried there */
	bool missing;           /* a path; the owner has nothing there (needs_weigh()) */
	bool in_small_dir;      /* a path; its directory may stand for it (the same) */
	uint64_t count;         /* 0 counts as one */
	char *why;              /* the first reason: "run 01HX…", "scripts/fetch.py:12" */
	const char *danger;     /* why it is proposed as a comment alone; NULL: it is not */
};

struct needs {
	struct need *v; /* in order of kind, value, port and protocol; it owns their texts */
	size_t n;
	bool cut;      /* there were more: than MAX_NEEDS, or than the record has */
	bool nameless; /* a host was asked for where none was declared: nobody heard which */
	char *home;    /* what "~" is; NULL: not known yet */
};

/* Adds a copy, or counts where it is there already: then a try stands over a hint, and
 * what was once no danger is none, but for a thief. -1 without memory. */
int needs_add(struct needs *s, const struct need *n);
void needs_done(struct needs *s);
/* Drops those that were only aimed at where the same port of the host was tried by TCP:
 * that is how resolvers sort the addresses of it. */
void needs_drop_aimed(struct needs *s);

/* Marks those that a plan of this owner would refuse, and secrets that are not the
 * skill's own. `skill_dir` may be NULL. */
int needs_judge(const struct owner *o, const char *skill_dir, struct needs *s,
                struct ssb_error *err);

/* So many files of one directory, and the directory is proposed instead; unless it holds
 * more than so many times what was asked for in it. */
#define PROPOSE_SIBLINGS 8
#define PROPOSE_EXCESS   8

/* Looks which paths are there, and which directories may stand for what was asked for in
 * them: none that a plan would refuse, and none that holds much else. To be called when
 * all needs are known. */
int needs_weigh(const struct owner *o, const char *skill_dir, struct needs *s,
                struct ssb_error *err);
/* How many different ones of its kind are in the same directory, itself among them:
 * without danger, and there. */
size_t needs_siblings(const struct needs *s, const struct need *n);

/* What one recorded run asked for; `word` as run_file_open() has it. Paths that every
 * sandbox shows, its own directory, /tmp and its private home are no needs; but what it
 * looked for in vain in its home, and the owner's home has, is one. Judged. A record
 * that is damaged is an error. */
int needs_from_run(const struct owner *o, const char *word, struct needs *inout,
                   struct ssb_error *err);
/* The same of an open record (borrowed); `why` is what is said of where it was seen. */
int needs_from_record(const struct owner *o, int fd, const char *why, struct needs *inout,
                      struct ssb_error *err);
/* The ids of the recorded runs of the skill in `dir`, newest first. Returns new. With
 * `whole`, only those in whose records everything stands that was done: *ret_part (may
 * be NULL) counts the others. */
int needs_runs_of(const struct owner *o, const char *dir, bool whole, struct string_list *ret,
                  size_t *ret_part, struct ssb_error *err);

/* Static: hosts of URLs, names of variables, programs, in the skill's text files. */
int hints_scan(const char *dir, struct needs *inout, struct ssb_error *err);
/* The same of one file's text; its name decides how it is read. -1 without memory. */
int hints_text(const char *file, const char *text, size_t len, struct needs *inout);

/* "read ~/notes", "connect to api.example.com:443 (tls)": escaped. */
struct buf;
void need_text(struct buf *out, const struct need *n);

#endif
