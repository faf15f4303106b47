/* oci.h - an image in the OCI image layout on disk: index.json, and blobs by their digest.
 * The image's author controls all of it: every blob is checked against the digest by which
 * it was requested, and every name is a digest and never a path. */
#ifndef IMAGE_OCI_H
#define IMAGE_OCI_H

#include <stddef.h>
#include <stdint.h>

#include "skillsandbox.h"

#define OCI_HEX 65 /* a SHA-256 in hexadecimal, with its NUL */

struct oci_blob {
	char hex[OCI_HEX];
	uint64_t size;
};

struct oci_image {
	int layout;              /* the directory, owned */
	char hex[OCI_HEX];       /* of the manifest: identifies the image */
	struct oci_blob *layers; /* the lowest first */
	size_t n_layers;
	char *path;    /* PATH of its configuration; or NULL */
	char *workdir; /* its WorkingDir, absolute and clean; or NULL */
};

/* Opens the image of the layout in `dir` that is tagged `ref` (NULL: the only one), for
 * this machine. Reads index, manifest and configuration, but no layer. */
int oci_open(const char *dir, const char *ref, struct oci_image *ret, struct ssb_error *err);
void oci_done(struct oci_image *i); /* accepts a zeroed one with layout -1 */

/* Copies the blob into fd (borrowed) and checks it against its digest. */
int oci_copy(const struct oci_image *i, const struct oci_blob *b, int fd, struct ssb_error *err);

#endif
