/* db_sqlite_file.c - checks and makes the file of a SQLite store. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "session/db_driver.h"

/* A user who can write to the directory could replace the store, and with it every budget. */
static int check_directory(int fd, const char *path, struct ssb_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE, "examine '%s'", path);
	}
	if (st.st_uid != geteuid()) {
		return ssb_fail(err, SSB_E_POLICY, 0, DB_WHERE,
		                "the directory '%s' belongs to uid %u; it must be yours", path,
		                (unsigned)st.st_uid);
	}
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, DB_WHERE,
		                "other users can write to the directory '%s'; run: chmod go-w '%s'",
		                path, path);
	}
	return 0;
}

static int check_file(const struct stat *st, const char *path, struct ssb_error *err)
{
	if (!S_ISREG(st->st_mode)) {
		return ssb_fail(err, SSB_E_POLICY, 0, DB_WHERE,
		                "'%s' is not a regular file; remove it", path);
	}
	if (st->st_uid != geteuid() || st->st_nlink != 1) {
		return ssb_fail(err, SSB_E_POLICY, 0, DB_WHERE,
		                "'%s' belongs to uid %u or has a second hard link; it must be "
		                "yours and have no other hard link",
		                path, (unsigned)st->st_uid);
	}
	if ((st->st_mode & 0777) != 0600) {
		return ssb_fail(err, SSB_E_POLICY, 0, DB_WHERE,
		                "'%s' has mode %04o; run: chmod 600 '%s'", path,
		                (unsigned)st->st_mode & 0777, path);
	}
	return 0;
}

/* Does not open an existing file: closing it would release the locks that another store of this
 * process has on it. */
static int prepare_file(int dir, const char *name, const char *path, struct ssb_error *err)
{
	struct stat st;
	auto_fd fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno != EEXIST) {
		return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE, "make '%s'", path);
	}
	/* The umask may have removed bits of the mode. */
	if (fd >= 0 && fchmod(fd, 0600) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE, "make '%s'", path);
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE, "examine '%s'", path);
	}
	if (check_file(&st, path, err) != 0) {
		return -1;
	}
	if (faccessat(dir, name, R_OK | W_OK, AT_EACCESS) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE,
		                "the store cannot be written: '%s'", path);
	}
	return 0;
}

static int open_queue(int dir, const char *name, struct ssb_error *err)
{
	char lock[NAME_MAX + 1];

	if (snprintf(lock, sizeof(lock), "%s-lock", name) >= (int)sizeof(lock)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE,
		                "the name of the store's file is longer than %d bytes",
		                NAME_MAX - (int)strlen("-lock"));
	}
	int fd = openat(dir, lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE, "open '%s'", lock);
	}
	return fd;
}

int db_sqlite_place(const char *path, char ret[PATH_MAX], int *ret_queue, struct ssb_error *err)
{
	const char *slash = strrchr(path, '/');
	char real[PATH_MAX];
	char whole[PATH_MAX];

	if (path[0] != '/' || slash[1] == '\0' || strlen(path) >= PATH_MAX) {
		return ssb_fail(err, SSB_E_USAGE, 0, DB_WHERE,
		                "'%s' is not an absolute path of a file", path);
	}
	auto_free char *dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (dir == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, DB_WHERE, "out of memory");
	}
	auto_fd fd = realpath(dir, real) != NULL
	                     ? open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
	                     : -1;
	if (fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE, "open the directory '%s'", dir);
	}
	if (snprintf(whole, sizeof(whole), "%s%s", strcmp(real, "/") == 0 ? "" : real, slash) >=
	    (int)sizeof(whole)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE,
		                "the path of the store, without symlinks, is longer than %d bytes",
		                PATH_MAX - 1);
	}
	if (check_directory(fd, real, err) != 0 || prepare_file(fd, slash + 1, whole, err) != 0) {
		return -1;
	}
	int queue = open_queue(fd, slash + 1, err);
	if (queue < 0) {
		return -1;
	}
	*ret_queue = queue;
	memcpy(ret, whole, sizeof(whole));
	return 0;
}
