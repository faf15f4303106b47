/* image.h - images by their digest in the owner's state directory, unpacked once.
 *
 * state/images/DIGEST is a root file system; it appears whole or not at all. What a run
 * that was killed left behind begins with ".new-" and goes with the next unpacking. */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "policy/plan.h"

struct image {
	char *rootfs;  /* for SSB_OPT_ROOTFS */
	char *path;    /* the PATH that it asks for; or NULL */
	char *workdir; /* where it asks to start; or NULL */
};

/* `word` is DIR or DIR:REF, an OCI image layout and the image's name in it. Unpacks it
 * unless it is there. `*ret` is new: image_done(). Forks. */
int image_use(const struct owner *o, const char *word, struct image *ret, struct ssb_error *err);
void image_done(struct image *i);

#endif
