/* layer.h - unpacks a layer of an image into a directory.
 *
 * Two processes do it. The reader parses the hostile bytes of the image's author (gzip, tar). It
 * has no rights: no files except the layer, no programs, no sockets. It sends steps, one struct
 * after the other, to the writer. The writer does not trust them: it checks each name, follows
 * symlinks only beneath the directory, counts files and bytes, and sets no setuid bit. */
#ifndef IMAGE_LAYER_H
#define IMAGE_LAYER_H

#include <stdint.h>

#include "skillsandbox.h"

enum step_kind {
	STEP_END,
	STEP_WRONG,  /* the reader has failed; the name is the reason */
	STEP_DIR,    /* make the directory, unless it exists */
	STEP_FILE,   /* make a file; its `size` bytes follow */
	STEP_LINK,   /* make a symlink with the text `link` */
	STEP_HARD,   /* make a hard link to the file `link` */
	STEP_REMOVE, /* remove this entry of an earlier layer */
	STEP_EMPTY,  /* remove all entries that earlier layers made in this directory */
};

/* After the struct follow name_len bytes of the name, link_len bytes of the link, and the bytes of
 * the file. */
struct step {
	uint32_t kind;
	uint32_t executable; /* only for STEP_FILE */
	uint64_t size;
	uint32_t name_len;
	uint32_t link_len;
};

/* A layer is read twice. The first pass removes the entries of earlier layers that this layer
 * removes; it must come first, because a removal may stand anywhere in the layer. The second pass
 * adds the new entries. */
enum layer_pass { PASS_REMOVE, PASS_ADD };

/* How much may still be unpacked. */
struct unpack_left {
	uint64_t files;
	uint64_t bytes;
};

/* Unpacks the layer in `blob` (borrowed; read from its start) into the directory root_fd, for one
 * pass, and reduces *left. `name` is for messages. Forks, so the caller must be single-threaded.
 * Returns 0, or -1 with `err`. */
int layer_unpack(int root_fd, int blob, const char *name, enum layer_pass pass,
                 struct unpack_left *left, struct ssb_error *err);

/* The writer's part: does one step (unpack.c). The bytes of a file are read from `from`. `name` and
 * `link` must not be NULL. Returns 0, or -1 with `err`. */
int unpack_step(int root_fd, const struct step *step, const char *name, const char *link, int from,
                struct unpack_left *left, struct ssb_error *err);

#endif
