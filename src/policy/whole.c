/* whole.c - grants "/" for reading. Everything in it is shown at its own path, except the places
 * that the sandbox provides itself.
 *
 * The grant becomes one grant for each directory and file directly in "/". A directory that
 * contains a place that the sandbox provides itself is split in the same way, so that this place is
 * left out. Symlinks are left out, too: every sandbox has those of the system. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/file.h"
#include "policy/build.h"
#include "policy/kernel_fs.h"
#include "policy/view.h"

/* True for a place that the sandbox keeps as its own. That includes all of /etc and /dev, in which
 * the host's files must be granted by name. */
static bool is_kept(const struct build *b, const char *path)
{
	return path_beneath(path, b->owner->home) != NULL || view_claimed(path, VIEW_STAYS);
}

/* True if the directory contains a place that the sandbox keeps. */
static bool leads_to_kept(const struct build *b, const char *path)
{
	return path_beneath(b->owner->home, path) != NULL ||
	       ARRAY_HAS(row, VIEW, VIEW_ROWS,
	                 (row->claim & VIEW_STAYS) != 0 && path_beneath(row->path, path) != NULL);
}

static void grant_entry(struct build *b, const struct path_request *r, const char *path)
{
	auto_fd fd = file_open_nosymlink(path, O_PATH);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) ||
	    view_is_system(path) || kernel_fs_of(fd) == KERNEL_FS_LINKS) {
		/* not granted: the entry is a symlink or special file, or is already shown, or
		 * leads to processes of the host */
		return;
	}
	resolve_take_object(b, r, path, &fd, &st, true);
}

static void whole_directory(struct build *b, const struct path_request *r, const char *dir);

static void whole_entry(struct build *b, const struct path_request *r, const char *path)
{
	if (is_kept(b, path)) {
		return;
	}
	if (leads_to_kept(b, path)) {
		whole_directory(b, r, path);
	} else {
		grant_entry(b, r, path);
	}
}

/* Grants the entries of a directory. Enters only directories that contain a place that the sandbox
 * keeps. */
static void whole_directory(struct build *b, const struct path_request *r, const char *dir)
{
	auto_dir d = opendir(dir);
	const struct dirent *e;

	while (d != NULL && !b->failed && (e = entries_of(d)) != NULL) {
		auto_free char *path = path_join(dir, e->d_name);
		if (path == NULL) {
			b->failed = true;
			break;
		}
		whole_entry(b, r, path);
	}
}

void whole_resolve(struct build *b, const struct path_request *r)
{
	whole_directory(b, r, "/");
}
