#include "image/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"

static void close_dir(DIR **d)
{
	if (*d != NULL) {
		(void)closedir(*d);
	}
}

static int empty(int dir_fd, unsigned depth);

static int remove_one(int parent, const char *name, unsigned depth)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
		return 0;
	}
	if (errno != EISDIR && errno != EPERM) {
		return -1;
	}
	auto_fd dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || empty(dir, depth + 1) != 0) {
		return -1;
	}
	return unlinkat(parent, name, AT_REMOVEDIR);
}

/* Deeper than anything is unpacked. */
static int empty(int dir_fd, unsigned depth)
{
	int again = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(close_dir) DIR *d = again >= 0 ? fdopendir(again) : NULL;

	if (d == NULL || depth > 3 * MAX_IMAGE_DEPTH) {
		errno = d == NULL ? errno : ELOOP;
		return -1;
	}
	for (const struct dirent *e; (e = readdir(d)) != NULL;) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    remove_one(dir_fd, e->d_name, depth) != 0) {
			return -1;
		}
	}
	return 0;
}

int tree_remove(int parent_fd, const char *name)
{
	return remove_one(parent_fd, name, 0);
}

int tree_empty(int dir_fd)
{
	return empty(dir_fd, 0);
}
