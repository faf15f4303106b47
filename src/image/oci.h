/* oci.h - reads an image in the OCI image layout: a directory with index.json, and with blobs that
 * are named by their digest. The image's author controls all of these files. So every blob is
 * checked against its digest, and the files name each other only by digests, never by paths. */
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
	char hex[OCI_HEX];       /* digest of the manifest, which identifies the image */
	struct oci_blob *layers; /* the lowest first */
	size_t n_layers;
	char *path;    /* PATH of its configuration, or NULL */
	char *workdir; /* its WorkingDir, an absolute path without "..", or NULL */
};

/* Opens the image in the layout `dir` that has the tag `ref` (NULL: there must be only one) and
 * fits this machine. Reads index, manifest and configuration, but no layer. *ret is new, for
 * oci_done(). */
int oci_open(const char *dir, const char *ref, struct oci_image *ret, struct ssb_error *err);
void oci_done(struct oci_image *i); /* accepts a zeroed image whose `layout` is -1 */

/* Copies the blob into fd (borrowed) and checks it against its digest. Returns 0, or -1 with
 * `err`. */
int oci_copy(const struct oci_image *i, const struct oci_blob *b, int fd, struct ssb_error *err);

#endif
