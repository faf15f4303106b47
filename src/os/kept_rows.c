/* kept_rows.c - reads and extends the file of a list. A crash can leave the last row incomplete,
 * without its NUL. The row that is appended next then becomes a part of the incomplete row, and
 * both are lost. */
#include "os/kept_rows.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"

#define LOCK_WAIT_MS 200

/* Returns a new fd, or -1 with errno; ENOENT if the state directory does not exist yet. */
static int open_file(const struct kept_rows *k, const char *state_dir, int flags)
{
	auto_fd dir = (flags & O_CREAT) != 0 ? file_mkdirs(state_dir)
	                                     : open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return dir < 0 ? -1
	               : openat(dir, k->name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

static int read_rows(int fd, struct string_list *ret)
{
	auto_buf text = BUF(MAX_KNOWN_BYTES);

	if (lseek(fd, 0, SEEK_SET) != 0 || file_read_all(fd, &text) != 0) {
		return -1;
	}
	for (size_t at = 0; at < text.len;) {
		size_t n = strnlen(text.data + at, text.len - at);
		bool whole = at + n < text.len && text.data[at] == '/';
		if (whole && string_list_add(ret, text.data + at, MAX_KNOWN_BYTES) != 0) {
			return -1;
		}
		at += n + 1;
	}
	return 0;
}

int kept_rows_load(const struct kept_rows *k, const char *state_dir, struct string_list *ret,
                   struct ssb_error *err)
{
	assert(k->name != NULL && state_dir != NULL);

	auto_fd fd = open_file(k, state_dir, O_RDONLY);

	if (fd < 0 && file_is_missing(errno)) {
		return 0;
	}
	if (fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, k->where, "cannot open the %s, '%.150s/%s'",
		                k->what, state_dir, k->name);
	}
	if (file_check_owned(fd, geteuid(), k->what, k->name, err) != 0) {
		return ssb_wrap(err, "%.120s", state_dir);
	}
	return read_rows(fd, ret) == 0
	               ? 0
	               : ssb_fail(err, SSB_E_SYS, errno, k->where,
	                          "cannot read the %s, '%.150s/%s'", k->what, state_dir, k->name);
}

static void put_row(struct buf *out, const char *row)
{
	buf_add(out, row, strlen(row) + 1);
}

/* Rewrites the file without the rows that are no longer current. Returns false on failure. */
static bool make_room(const struct kept_rows *k, int fd, const struct string_list *known)
{
	auto_buf kept = BUF(MAX_KNOWN_BYTES);

	for (size_t i = 0; i < known->n; i++) {
		if (k->is_current(known->v[i])) {
			put_row(&kept, known->v[i]);
		}
	}
	return !kept.failed && lseek(fd, 0, SEEK_SET) == 0 && ftruncate(fd, 0) == 0 &&
	       file_write_all(fd, kept.data, kept.len) == 0;
}

void kept_rows_add(const struct kept_rows *k, const char *state_dir, const struct string_list *rows)
{
	assert(k->name != NULL && state_dir != NULL);

	AUTO(string_list_done) struct string_list known = { 0 };
	struct stat st;
	auto_buf more = BUF(MAX_KNOWN_BYTES);
	auto_fd fd = open_file(k, state_dir, O_RDWR | O_CREAT);
	struct ssb_error none = { 0 };

	if (fd < 0 || file_check_owned(fd, geteuid(), k->what, k->name, &none) != 0 ||
	    file_lock(fd, LOCK_WAIT_MS) != 0 || read_rows(fd, &known) != 0) {
		return;
	}
	for (size_t i = 0; i < rows->n; i++) {
		if (!string_list_has(&known, rows->v[i])) {
			put_row(&more, rows->v[i]);
		}
	}
	if (more.len == 0 || more.failed || fstat(fd, &st) != 0) {
		return;
	}
	bool full = (size_t)st.st_size + more.len > MAX_KNOWN_BYTES;
	if (full && (!make_room(k, fd, &known) || fstat(fd, &st) != 0 ||
	             (size_t)st.st_size + more.len > MAX_KNOWN_BYTES)) {
		return;
	}
	(void)!file_write_all(fd, more.data, more.len);
}
