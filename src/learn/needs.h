/* needs.h - what a skill was seen to need, or can be expected to: from the records of
 * its runs, and from hints in its files. */
#ifndef LEARN_NEEDS_H
#define LEARN_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/plan.h"

enum need_kind { NEED_NETWORK, NEED_READ, NEED_WRITE, NEED_ENV, NEED_PROGRAM, NEED_SYSCALL };

struct need {
	enum need_kind kind;
	char *value;   /* a host, "/a/b" or "~/a/b", a variable, a program, a system call */
	uint16_t port; /* NEED_NETWORK; 0: not seen */
	enum protocol protocol; /* NEED_NETWORK */
	bool denied;            /* it was tried, and refused, at least once */
	bool hint;              /* nobody tried: the files only speak of it */
	uint64_t count;
	char *why;          /* the first reason: "run 01HX…", "scripts/fetch.py:12" */
	const char *danger; /* static: why it is proposed as a comment alone; NULL: it is not */
};

struct needs {
	struct need *v; /* in order of kind and value */
	size_t n;
	bool cut; /* there were more than MAX_NEEDS */
};

/* Adds, or counts where it is there already. -1 without memory. */
int needs_add(struct needs *s, const struct need *n);
void needs_done(struct needs *s);

/* What one recorded run asked for; `word` as run_file_open() has it. Paths that every
 * sandbox shows, its own directory, /tmp and its private home are no needs. */
int needs_from_run(const struct owner *o, const char *word, struct needs *inout,
                   struct ssb_error *err);
/* The ids of the recorded runs of the skill in `dir`, newest first. Returns new. */
int needs_runs_of(const struct owner *o, const char *dir, struct string_list *ret,
                  struct ssb_error *err);

/* Static: hosts of URLs, names of variables, programs, in the skill's text files. */
int hints_scan(const char *dir, struct needs *inout, struct ssb_error *err);

#endif
