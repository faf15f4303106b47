/* image.c - finds an image in the owner's state directory, or unpacks it there. */
#include "image/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "image/layer.h"
#include "image/oci.h"
#include "os/file.h"
#include "os/tree.h"
#include "policy/path.h"

#define NEW ".new-"

static int fail_image(struct ssb_error *err, const char *what)
{
	return ssb_fail(err, SSB_E_SYS, errno, "image", "%s", what);
}

/* Opens the layout DIR or DIR:REF. If `word` is the path of an existing directory, a colon in it
 * does not begin a REF. */
static int open_word(const char *word, struct oci_image *ret, struct ssb_error *err)
{
	struct stat st;
	const char *colon = stat(word, &st) == 0 ? NULL : strrchr(word, ':');
	auto_free char *dir = colon != NULL ? strndup(word, (size_t)(colon - word)) : strdup(word);

	if (dir == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "image", "out of memory");
	}
	return oci_open(dir, colon != NULL ? colon + 1 : NULL, ret, err);
}

static int unpack_layers(const struct oci_image *image, int images, int root, struct ssb_error *err)
{
	struct unpack_left left = { MAX_IMAGE_FILES, MAX_IMAGE_BYTES };

	for (size_t i = 0; i < image->n_layers; i++) {
		const struct oci_blob *b = &image->layers[i];
		/* Copy the layer, check the copy against its digest, and parse only the copy: the
		 * files of the layout may change at any time. */
		auto_fd blob = openat(images, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (blob < 0) {
			return fail_image(err, "cannot make a file in the state directory");
		}
		if (oci_copy(image, b, blob, err) != 0 ||
		    (i > 0 && layer_unpack(root, blob, b->hex, PASS_REMOVE, &left, err) != 0) ||
		    layer_unpack(root, blob, b->hex, PASS_ADD, &left, err) != 0) {
			return -1;
		}
	}
	return 0;
}

/* Removes images whose unpacking was never finished. No other process works on them, because this
 * one has the lock. */
static int remove_unfinished(int images)
{
	int again = openat(images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir d = again >= 0 ? fdopendir(again) : NULL;

	for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		if (strncmp(e->d_name, NEW, strlen(NEW)) == 0 &&
		    tree_remove(images, e->d_name) != 0) {
			return -1;
		}
	}
	return d != NULL ? 0 : -1;
}

/* Unpacks the image. The directory gets its final name only when all its files are on disk. So
 * after a crash no incomplete image has a final name. */
static int unpack_new(const struct oci_image *image, int images, struct ssb_error *err)
{
	char name[sizeof(NEW) + OCI_HEX];

	snprintf(name, sizeof(name), NEW "%s", image->hex);
	if (remove_unfinished(images) != 0 || mkdirat(images, name, 0755) != 0) {
		return fail_image(err,
		                  "cannot make a directory for the image in the state directory");
	}
	auto_fd root = openat(images, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0 || fchmod(root, 0755) != 0) {
		return fail_image(err, "cannot open the directory of the image");
	}
	if (unpack_layers(image, images, root, err) != 0) {
		(void)tree_remove(images, name);
		return -1;
	}
	if (syncfs(root) != 0 || renameat(images, name, images, image->hex) != 0) {
		return fail_image(err, "cannot store the image");
	}
	return 0;
}

static bool is_there(int images, const char *hex)
{
	struct stat st;

	return fstatat(images, hex, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int unpack_image(const struct oci_image *image, const char *place, struct ssb_error *err)
{
	auto_fd made = file_mkdirs(place);
	auto_fd images = made >= 0 ? openat(made, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (images < 0) {
		return fail_image(err, "cannot make the directory of the images");
	}
	if (is_there(images, image->hex)) {
		return 0;
	}
	if (flock(images, LOCK_EX) != 0) {
		return fail_image(err, "cannot lock the directory of the images");
	}
	return is_there(images, image->hex) ? 0 : unpack_new(image, images, err);
}

int image_use(const struct owner *o, const char *word, struct image *ret, struct ssb_error *err)
{
	AUTO(oci_done) struct oci_image image = { .layout = -1 };
	auto_free char *place = path_join(o->state_dir, IMAGES_DIR);

	if (place == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "image", "out of memory");
	}
	if (open_word(word, &image, err) != 0 || unpack_image(&image, place, err) != 0) {
		return -1;
	}
	auto_free char *rootfs = path_join(place, image.hex);
	if (rootfs == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "image", "out of memory");
	}
	ret->rootfs = steal_ptr(&rootfs);
	ret->path = steal_ptr(&image.path);
	ret->workdir = steal_ptr(&image.workdir);
	return 0;
}

void image_done(struct image *i)
{
	free(i->rootfs);
	free(i->path);
	free(i->workdir);
	*i = (struct image){ 0 };
}
