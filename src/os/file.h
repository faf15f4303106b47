/* file.h - opens, reads and writes files without following symlinks that other users can change. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "skillsandbox.h"

/* Unless said otherwise, functions return 0 or a new fd, or -1 with errno. */

/* openat2() with O_CLOEXEC; `resolve` as in openat2(2). EAGAIN with O_NONBLOCK means that another
 * process has a lease on the file. */
int file_openat2(int dir_fd, const char *path, int flags, uint64_t resolve);

/* True if `error`, the errno of a failed call, means that nothing has that name. After other errors
 * it is unknown whether something exists. */
static inline bool file_is_missing(int error)
{
	return error == ENOENT || error == ENOTDIR;
}

/* Opens an absolute path that contains no symlink. */
int file_open_nosymlink(const char *path, int flags);

/* Opens a path only if realpath() would return the same path. This takes one system call;
 * realpath() takes one for each part of the path. Returns -1 if the path differs or cannot be
 * opened. */
int file_open_real(const char *path, int flags);

/* Appends everything from fd until end of file. Fails with EFBIG if that exceeds the cap of the
 * buffer. */
int file_read_all(int fd, struct buf *out);

/* Checks an open file (borrowed) that contains decisions of the owner: it must be a regular file of
 * `uid` or root that no other user can write. `what` ("policy file") and `file` (its name) are for
 * the error. Returns 0, or -1 with `err`. */
int file_check_owned(int fd, uid_t uid, const char *what, const char *file, struct ssb_error *err);

/* Writes the kernel's path of the open file to `out` and returns its length. If it has no path, or
 * the path is too long, `out` is "" and the result is -1. */
ssize_t file_path(int fd, char *out, size_t size);

/* Returns whether the file system of fd has (nearly) no room for more data, or none for more
 * files. */
bool file_system_full(int fd);

/* Takes an exclusive flock(2) on fd; closing fd releases the lock. Fails with EWOULDBLOCK if
 * another process still has the lock after `wait_ms`: that process may be stopped. */
int file_lock(int fd, unsigned wait_ms);

/* Raises the limit of open files of this process to `most`, or to its hard limit if that is
 * lower. */
void file_limit_raise(uint64_t most);

int file_write_all(int fd, const void *data, size_t len);

/* Replaces `path` with a file of this content and mode, atomically. A symlink there is replaced,
 * not followed. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode);

/* Creates `path` (absolute) and its missing parents with mode 0700. Follows no symlink below the
 * first existing directory. Returns an O_PATH|O_DIRECTORY fd. */
int file_mkdirs(const char *path);

/* True if `name` is a symlink with exactly the text `to`. If `name` is empty, dir_fd itself is
 * checked. */
bool file_is_link_to(int dir_fd, const char *name, const char *to);

/* Returns the length of the shortest prefix of `path` (relative to dir_fd) that is a symlink; 0 if
 * there is none. */
size_t file_first_symlink(int dir_fd, const char *path);

/* Follows symlinks in an absolute path, but only those that no skill can have made ("/home" is one
 * on some systems). These are symlinks directly in "/", where no skill can get write access; and,
 * unless root started this program, symlinks of root in a directory of root that no other user may
 * write. Stops at the first other symlink. Returns the resulting path (new), or NULL if there is no
 * memory. _files.py has the same rule. */
char *file_follow_fixed(const char *path);

/* Call it after EACCES. Returns the owner of the file or directory that denied access: `path`
 * itself or a directory above it. If that cannot be determined, returns the caller's uid. Keeps
 * errno. */
uid_t file_closed_by(int dir_fd, const char *path);

/* Closes every fd from `from` on, except those in `keep`, which may be in any order and contain
 * -1. */
int file_close_others(unsigned from, const int *keep, size_t n);

#endif
