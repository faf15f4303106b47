/* file.h - files and fds: opened once, without following what is not ours. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "skillsandbox.h"

/* All return 0 (or an fd) on success and -1 with errno; no policy here. */

/* openat2 with O_CLOEXEC; `resolve` as in openat2(2). EAGAIN with O_NONBLOCK: another process
 * has a lease on the file. */
int file_openat2(int dir_fd, const char *path, int flags, uint64_t resolve);

/* By the errno of a failed call: nothing has that name. Any other error tells nothing of what
 * is there. */
static inline bool file_is_missing(int error)
{
	return error == ENOENT || error == ENOTDIR;
}

/* Opens an absolute path with no symlink anywhere in it. */
int file_open_nosymlink(const char *path, int flags);

/* Appends everything readable from fd, until EOF. EFBIG past the cap of the
 * buffer. */
int file_read_all(int fd, struct buf *out);

/* An open file (borrowed) by which its owner decides: regular, of `uid` or root, and
 * nobody else may write it. `what` is "policy file", `file` its name. Fills `err`. */
int file_check_owned(int fd, uid_t uid, const char *what, const char *file, struct ssb_error *err);

/* The path by which the kernel knows what is open, and its length; "" and -1 where it has none
 * or that is too long. */
ssize_t file_path(int fd, char *out, size_t size);

/* Takes the exclusive flock(2) of fd, until it is closed. Whoever has it may stand still:
 * after `wait_ms` it is EWOULDBLOCK. */
int file_lock(int fd, unsigned wait_ms);

/* Lets this process have `most` files open, as far as its hard limit goes. */
void file_limit_raise(uint64_t most);

int file_write_all(int fd, const void *data, size_t len);

/* Puts a file with this content and mode in the place of `path`, in one step; a symlink
 * there is replaced, not followed. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode);

/* Creates `path` (absolute) and its missing parents, mode 0700, following no
 * symlink below the first existing directory; returns an O_PATH|O_DIRECTORY
 * fd. */
int file_mkdirs(const char *path);

/* Is it a symlink to exactly that? An empty name: the fd itself. */
bool file_is_link_to(int dir_fd, const char *name, const char *to);

/* The length of the first part of `path`, which begins at dir_fd, that is a symlink; 0: none. */
size_t file_first_symlink(int dir_fd, const char *path);

/* An absolute path with those symlinks followed that no skill can have made ("/home" is one on some
 * systems): one directly in "/", where no skill is ever granted to write; and, unless root started
 * us, one of root's in a directory of root's that nobody else may write. From the first other one
 * on the path stays as it is. Returns new; NULL without memory. The same rule: _files.py. */
char *file_follow_fixed(const char *path);

/* After EACCES: who owns what is closed to the caller, `path` itself or a directory on the way;
 * the caller, where that cannot be told. Keeps errno. */
uid_t file_closed_by(int dir_fd, const char *path);

/* Closes every fd from `from` on but these, in any order; -1 is none of them. */
int file_close_others(unsigned from, const int *keep, size_t n);

#endif
