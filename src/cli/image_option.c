/* image_option.c - see image_option.h. */
#include "cli/image_option.h"

#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "image/image.h"
#include "policy/options.h"

static bool has_path(const struct ssb_options *o)
{
	for (size_t i = 0; i < o->env.n; i++) {
		if (strcmp(o->env.v[i], "PATH") == 0 || strncmp(o->env.v[i], "PATH=", 5) == 0) {
			return true;
		}
	}
	return false;
}

/* Uses the image as root file system, with the image's own working directory. The image's PATH is
 * used only if the owner gave none. */
static int set_options(struct request *r, struct image *i, struct ssb_error *err)
{
	auto_free char *path = NULL;

	if (ssb_options_set(r->options, SSB_OPT_ROOTFS, i->rootfs, err) != 0) {
		return -1;
	}
	r->options->workdir = steal_ptr(&i->workdir);
	if (i->path == NULL || has_path(r->options)) {
		return 0;
	}
	if (asprintf(&path, "PATH=%s", i->path) < 0) {
		path = NULL;
		return ssb_fail(err, SSB_E_NOMEM, 0, "--image", "out of memory");
	}
	return ssb_options_set(r->options, SSB_OPT_ENV, path, err);
}

int image_option(struct request *r, struct ssb_error *err)
{
	AUTO(image_done) struct image image = { 0 };

	if (!request_has(r, FLAG_IMAGE) || r->options == NULL) {
		return 0;
	}
	if (r->options->rootfs != NULL) {
		return ssb_fail(
		        err, SSB_E_USAGE, 0, "--image",
		        "an image is a root file system, too: give --image or --rootfs, not both");
	}
	const struct owner *owner = request_owner(r, err);
	return owner == NULL || image_use(owner, request_value(r, FLAG_IMAGE), &image, err) != 0
	               ? -1
	               : set_options(r, &image, err);
}
