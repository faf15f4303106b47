/* image.h - unpacks images into the owner's state directory, each only once.
 *
 * state/images/DIGEST is a root file system. It gets this name only when it is complete. Until then
 * its name begins with ".new-". If a run is killed before that, the next unpacking removes the
 * incomplete directory. */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "policy/plan.h"

struct image {
	char *rootfs;  /* absolute path, for SSB_OPT_ROOTFS */
	char *path;    /* the PATH of the image's configuration, or NULL */
	char *workdir; /* the initial directory of the image's configuration, or NULL */
};

/* `word` is DIR or DIR:REF: an OCI image layout, and the name of the image in it. Unpacks the image
 * unless that was done before. *ret is new, for image_done(). Forks, so the caller must be
 * single-threaded. */
int image_use(const struct owner *o, const char *word, struct image *ret, struct ssb_error *err);
void image_done(struct image *i);

#endif
