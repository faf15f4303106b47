/* lock_files.c - reads the files that an approval is for, and compares them. */
#include "consent/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/own.h"
#include "os/file.h"

bool lock_same_files(const struct skill_files *a, const struct skill_files *b)
{
	return memcmp(a->tree, b->tree, sizeof(a->tree)) == 0;
}

bool lock_is_over(const struct lock *l)
{
	return l->uses == 0 || (l->expires > 0 && l->expires <= (int64_t)time(NULL));
}

static int read_open(int dir, int state_fd, struct marks *marks, struct skill_files *ret,
                     struct ssb_error *err)
{
	const struct files_wish wish = { .use = FILES_APPROVE,
		                         .state_fd = state_fd,
		                         .marks = marks };
	AUTO(skill_files_done) struct skill_files files = { 0 };

	if (skill_files_read(dir, &wish, &files, err) != 0) {
		return -1;
	}
	*ret = files;
	files = (struct skill_files){ 0 };
	return 0;
}

static int read_path(const char *path, int state_fd, struct skill_files *ret, struct ssb_error *err)
{
	auto_fd dir = file_open_nosymlink(path, O_PATH | O_DIRECTORY);

	if (dir < 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, "skill",
		                "'%.200s'", path);
	}
	return read_open(dir, state_fd, NULL, ret, err);
}

int lock_files_read(const char *dir, struct skill_files *ret, struct ssb_error *err)
{
	return read_path(dir, -1, ret, err);
}

int lock_files_look(const struct owner *o, const char *dir, struct skill_files *ret,
                    struct ssb_error *err)
{
	auto_fd state = open(o->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return read_path(dir, state, ret, err);
}

int lock_files_mark(int dir, struct skill_files *ret, struct marks *marks, struct ssb_error *err)
{
	return read_open(dir, -1, marks, ret, err);
}
