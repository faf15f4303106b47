/* image.h - images by their digest in the owner's state directory, unpacked once.
 *
 * state/images/DIGEST is a root file system; it appears complete or not at all. What a
 * killed run left behind begins with ".new-" and is removed by the next unpacking. */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "policy/plan.h"

struct image {
	char *rootfs;  /* for SSB_OPT_ROOTFS */
	char *path;    /* the PATH that the image asks for; or NULL */
	char *workdir; /* the directory it asks to start in; or NULL */
};

/* `word` is DIR or DIR:REF, an OCI image layout and the image's name in it. Unpacks the
 * image unless it is there already. `*ret` is new: image_done(). Forks. */
int image_use(const struct owner *o, const char *word, struct image *ret, struct ssb_error *err);
void image_done(struct image *i);

#endif
