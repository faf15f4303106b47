/* layer.h - unpacks a layer of an image into a directory.
 *
 * Two processes. The reader parses what the image's author wrote (gzip, tar) and has no
 * authority: no files except the layer, no programs, no sockets. It writes what it finds as
 * steps, one struct after the other. The writer trusts none of them: it checks each name,
 * follows symlinks beneath the directory only, counts, and keeps no setuid bit. */
#ifndef IMAGE_LAYER_H
#define IMAGE_LAYER_H

#include <stdint.h>

#include "skillsandbox.h"

enum step_kind {
	STEP_END,
	STEP_WRONG,  /* the reader gives up; the name is the reason */
	STEP_DIR,    /* also if it exists already */
	STEP_FILE,   /* `size` bytes follow */
	STEP_LINK,   /* symbolic, to the text of `link` */
	STEP_HARD,   /* another name of the file `link` */
	STEP_REMOVE, /* removes what an earlier layer put there */
	STEP_EMPTY,  /* removes what an earlier layer put into this directory */
};

/* Followed by name_len bytes of the name, link_len of the link, and the file. */
struct step {
	uint32_t kind;
	uint32_t executable; /* of STEP_FILE */
	uint64_t size;
	uint32_t name_len;
	uint32_t link_len;
};

/* A layer first removes what earlier layers have, wherever that is written in it. */
enum layer_pass { PASS_REMOVE, PASS_ADD };

/* What may still be unpacked. */
struct unpack_left {
	uint64_t files;
	uint64_t bytes;
};

/* Unpacks the layer in `blob` (at its start; borrowed) into the directory root_fd. `name`
 * is for messages. Forks: the caller is single-threaded. */
int layer_unpack(int root_fd, int blob, const char *name, enum layer_pass pass,
                 struct unpack_left *left, struct ssb_error *err);

/* The writer's part for one step (unpack.c); a file's bytes are read from `from`. `name`
 * and `link` are not NULL. */
int unpack_step(int root_fd, const struct step *step, const char *name, const char *link, int from,
                struct unpack_left *left, struct ssb_error *err);

#endif
