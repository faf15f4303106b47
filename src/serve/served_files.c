/* served_files.c - lists and reads the files of a skill that clients may read. */
#include "serve/served_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/own.h"
#include "os/file.h"
#include "skill/skill.h"

/* O_NONBLOCK: opening a FIFO must not block the server. */
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define BENEATH    (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

bool served_path_valid(const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");
		if (len == 0 || skill_is_foreign(path, len) || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.')) {
			return false;
		}
		if (path[len] == '\0') {
			return true;
		}
		path += len + 1;
	}
}

int served_files_read(struct skill_files *out, const struct skill *skill, const char *state_dir,
                      struct ssb_error *err)
{
	auto_fd dir = file_open_nosymlink(skill->dir, O_RDONLY | O_DIRECTORY);
	auto_fd state = state_dir != NULL ? open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	const struct files_wish wish = { .use = FILES_SERVE,
		                         .state_fd = state,
		                         .names_only = state_dir == NULL };

	*out = (struct skill_files){ 0 };
	return dir >= 0 ? skill_files_read(dir, &wish, out, err)
	                : ssb_fail(err, SSB_E_SYS, errno, "skill", "open its directory");
}

int served_file_content(const struct skill *skill, const char *path, struct buf *out)
{
	struct stat st;
	auto_fd dir = file_open_nosymlink(skill->dir, O_PATH | O_DIRECTORY);
	auto_fd fd = dir >= 0 && served_path_valid(path)
	                     ? file_openat2(dir, path, FILE_FLAGS, BENEATH)
	                     : -1;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || file_read_all(fd, out) != 0) {
		return -1;
	}
	buf_add(out, "", 0);
	return 0;
}
