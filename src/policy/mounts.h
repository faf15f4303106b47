/* mounts.h - the table of mounts, to see through bind mounts. */
#ifndef POLICY_MOUNTS_H
#define POLICY_MOUNTS_H

#include <stddef.h>

struct mount {
	const char *dev;   /* "8:1" */
	const char *root;  /* which part of that file system is mounted */
	const char *point; /* where */
	const char *type;  /* "ext4", "fuse.sshfs"; "" if unknown */
};

struct mounts {
	struct mount *v; /* in the order of mounting: of two at one place the later is seen */
	size_t n;
	char *text; /* owns the strings */
};

/* Reads /proc/self/mountinfo. -1 with errno. */
int mounts_load(struct mounts *ret);
/* The same from text, which is taken and cut up. */
int mounts_parse(char *text, struct mounts *ret);
void mounts_done(struct mounts *m);

/* The mount that `path` lies in; NULL if unknown. */
const struct mount *mounts_of(const struct mounts *m, const char *path);

#endif
