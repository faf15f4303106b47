/* mounts.h - the table of mounts, which shows where the content of bind mounts comes from. */
#ifndef POLICY_MOUNTS_H
#define POLICY_MOUNTS_H

#include <stddef.h>

struct mount {
	const char *dev;   /* "8:1" */
	const char *root;  /* the mounted part of that file system */
	const char *point; /* where it is mounted */
	const char *type;  /* "ext4", "fuse.sshfs"; "" if unknown */
};

struct mounts {
	struct mount *v; /* in mount order: of two mounts at one place, the later one is visible */
	size_t n;
	char *text; /* owns the strings */
};

/* Reads /proc/self/mountinfo. Returns -1 with errno. */
int mounts_load(struct mounts *ret);
/* Like mounts_load(), but parses `text`. Modifies `text`, and takes it even if parsing fails. */
int mounts_parse(char *text, struct mounts *ret);
void mounts_done(struct mounts *m);

/* Returns the mount that contains `path`; NULL if unknown. */
const struct mount *mounts_of(const struct mounts *m, const char *path);

#endif
