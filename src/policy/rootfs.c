/* rootfs.c - judges the root file system that the owner named, once, and holds it open.
 *
 * All of it is shown, so it must neither be a dangerous place nor contain one. A root file system
 * that was unpacked from an image lies among the runtime's own files. It is accepted, because no
 * skill can write there. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/build.h"
#include "policy/view.h"

static void refuse_rootfs(struct build *b, const char *path, const char *why)
{
	build_refuse(
	        b, REFUSAL_OTHER, options_flag(SSB_OPT_ROOTFS), path, why,
	        "name a directory that contains an unpacked root file system (usr, bin, lib, etc)");
}

static bool is_unpacked_image(const struct build *b, const char *path)
{
	auto_free char *state =
	        b->owner->state_dir != NULL ? realpath(b->owner->state_dir, NULL) : NULL;
	auto_free char *images = state != NULL ? path_join(state, IMAGES_DIR) : NULL;
	const char *rest = images != NULL ? path_beneath(path, images) : NULL;

	return rest != NULL && *rest != '\0';
}

/* True for a name at the top of the root file system that does not belong in rootfs_places: a name
 * of the view, a home, a mount point of disks, or a name that begins with a dot. */
static bool is_known(const char *name)
{
	static const char *const PEOPLES[] = { "root", "mnt", "media" };

	return name[0] == '.' ||
	       ARRAY_HAS(dir, PEOPLES, ARRAY_LEN(PEOPLES), strcmp(name, *dir) == 0) ||
	       ARRAY_HAS(row, VIEW, VIEW_ROWS,
	                 (row->shown != VIEW_NOTHING || row->claim != 0) &&
	                         strcmp(name, view_name(row)) == 0);
}

static void find_places(struct build *b, const char *path)
{
	auto_dir d = opendir(path);
	const struct dirent *e;

	while (d != NULL && !b->failed && (e = readdir(d)) != NULL) {
		auto_free char *place = is_known(e->d_name) ? NULL : path_join("/", e->d_name);
		if (place != NULL && b->plan->rootfs_places.n < MAX_LIST_ITEMS) {
			build_add(b, &b->plan->rootfs_places, place, MAX_LIST_ITEMS);
		}
	}
}

/* Makes the root file system part of the plan. Takes the fd. */
static void hold_rootfs(struct build *b, const char *path, int *fd, const struct stat *st)
{
	b->plan->rootfs = (struct grant){
		.path = strdup(path),
		.target = strdup("/"),
		.access = ACCESS_READ,
		.origin = ORIGIN_FLAG,
		.where = strdup(options_flag(SSB_OPT_ROOTFS)),
		.is_dir = true,
		OPEN_FILE(steal_fd(fd), st),
	};
	b->failed |= b->plan->rootfs.path == NULL || b->plan->rootfs.target == NULL ||
	             b->plan->rootfs.where == NULL;
	find_places(b, path);
}

void rootfs_build(struct build *b)
{
	if (b->opt->rootfs == NULL) {
		return;
	}
	auto_free char *text = path_expand(b->owner, b->opt->rootfs);
	auto_free char *path = text != NULL ? realpath(text, NULL) : NULL;
	auto_fd fd = path != NULL ? file_open_nosymlink(path, O_PATH | O_DIRECTORY) : -1;
	struct subject s;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || subject_init(&s, fd, path, NULL) < 0) {
		refuse_rootfs(b, b->opt->rootfs, "it is not a directory that you can open");
	} else if (is_unpacked_image(b, path) ||
	           resolve_shown(b, &s, options_flag(SSB_OPT_ROOTFS), "a root file system",
	                         "put the root file system into a directory of its own")) {
		hold_rootfs(b, path, &fd, &st);
	}
}
