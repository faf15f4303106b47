/* oci.h - an image as the OCI image layout has it on disk: index.json, and blobs by their
 * digest. All of it is the image author's word: every blob is checked against the digest
 * by which it was asked for, every name is a digest and never a path. */
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
	char hex[OCI_HEX];       /* of the manifest: what the image is */
	struct oci_blob *layers; /* the lowest first */
	size_t n_layers;
	char *path;    /* PATH of its configuration; or NULL */
	char *workdir; /* its WorkingDir, absolute and clean; or NULL */
};

/* The image of the layout in `dir` that is tagged `ref` (NULL: the only one), for this
 * machine. Reads index, manifest and configuration, no layer. */
int oci_open(const char *dir, const char *ref, struct oci_image *ret, struct ssb_error *err);
void oci_done(struct oci_image *i); /* accepts a zeroed one with layout -1 */

/* Copies the blob into fd (borrowed), where it is what its digest says. */
int oci_copy(const struct oci_image *i, const struct oci_blob *b, int fd, struct ssb_error *err);

#endif
