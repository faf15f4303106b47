/* file.h - files and fds: opened once, without following symlinks that others can change. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "skillsandbox.h"

/* All functions return 0 (or an fd), or -1 with errno. No policy here. */

/* openat2() with O_CLOEXEC; `resolve` as in openat2(2). EAGAIN with O_NONBLOCK means that another
 * process has a lease on the file. */
int file_openat2(int dir_fd, const char *path, int flags, uint64_t resolve);

/* True if the errno of a failed call says that nothing has that name. Other errors do not tell
 * whether something exists. */
static inline bool file_is_missing(int error)
{
	return error == ENOENT || error == ENOTDIR;
}

/* Opens an absolute path that contains no symlink. */
int file_open_nosymlink(const char *path, int flags);

/* Opens a path that is its own real path: realpath() would return the same text. That takes one
 * system call, and realpath() one for each part. -1 if it is another, or cannot be opened. */
int file_open_real(const char *path, int flags);

/* Appends everything from fd until EOF. EFBIG if it exceeds the cap of the buffer. */
int file_read_all(int fd, struct buf *out);

/* Checks an open file (borrowed) that holds decisions of its owner: it must be a regular file of
 * `uid` or root, and no other user may be able to write it. `what` is for example "policy file",
 * `file` its name. Fills `err`. */
int file_check_owned(int fd, uid_t uid, const char *what, const char *file, struct ssb_error *err);

/* The path by which the kernel knows the open file, and its length. "" and -1 if it has none or it
 * is too long. */
ssize_t file_path(int fd, char *out, size_t size);

/* Takes the exclusive flock(2) of fd, which is held until fd is closed. Its holder may be stopped,
 * so this fails with EWOULDBLOCK after `wait_ms`. */
int file_lock(int fd, unsigned wait_ms);

/* Lets this process have `most` open files, as far as its hard limit allows. */
void file_limit_raise(uint64_t most);

int file_write_all(int fd, const void *data, size_t len);

/* Replaces `path` with a file of this content and mode, atomically. A symlink there is replaced,
 * not followed. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode);

/* Creates `path` (absolute) and its missing parents with mode 0700. Follows no symlink below the
 * first existing directory. Returns an O_PATH|O_DIRECTORY fd. */
int file_mkdirs(const char *path);

/* Is `name` a symlink to exactly `to`? If `name` is empty, dir_fd itself is checked. */
bool file_is_link_to(int dir_fd, const char *name, const char *to);

/* The length of the shortest prefix of `path` (relative to dir_fd) that is a symlink; 0 if there is
 * none. */
size_t file_first_symlink(int dir_fd, const char *path);

/* Follows those symlinks in an absolute path that no skill can have made ("/home" is one on some
 * systems): a symlink directly in "/", where no skill can get write access; and, unless root
 * started us, a symlink of root in a directory of root that no other user may write. Stops at the
 * first other symlink. Returns new; NULL without memory. _files.py has the same rule. */
char *file_follow_fixed(const char *path);

/* After EACCES: the owner of what the caller may not enter or open, `path` itself or a directory
 * above it. Returns the caller if that cannot be determined. Keeps errno. */
uid_t file_closed_by(int dir_fd, const char *path);

/* Closes every fd from `from` on, except those in `keep`, which may be in any order and contain
 * -1. */
int file_close_others(unsigned from, const int *keep, size_t n);

#endif
