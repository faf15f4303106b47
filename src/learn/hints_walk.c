/* hints_walk.c - reads the text files of a skill in the order of their names. It follows no symlink
 * and opens only regular files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "learn/needs.h"
#include "os/file.h"
#include "policy/path.h"

struct hint_walk {
	struct needs *out;
	size_t files;
	size_t bytes;
	bool nomem;
};

/* Returns true for directories with code of other authors, or with files that programs made. */
static bool is_left_out(const char *name)
{
	static const char *const NAMES[] = { ".git", "node_modules", "__pycache__", ".venv",
		                             "venv", ".hg",          ".svn" };

	return ARRAY_HAS(e, NAMES, ARRAY_LEN(NAMES), strcmp(name, *e) == 0) ||
	       strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void read_file(struct hint_walk *w, int fd, const char *path)
{
	auto_buf text;

	buf_init(&text, MAX_HINT_BYTES);
	if (++w->files > MAX_HINT_FILES || w->bytes > MAX_HINT_TOTAL) {
		w->out->cut = true;
		return;
	}
	if (file_read_all(fd, &text) != 0) {
		w->out->cut |= errno == EFBIG;
		return;
	}
	w->bytes += text.len;
	w->nomem |= text.len > 0 && hints_text(path, text.data, text.len, w->out) != 0;
}

static void walk_dir(struct hint_walk *w, int dir, const char *path, unsigned depth);

static void look_at(struct hint_walk *w, int dir, const char *path, const char *name,
                    unsigned depth)
{
	struct stat st;
	/* O_NONBLOCK: opening a FIFO must not block. */
	auto_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_free char *whole = path[0] != '\0' ? path_join(path, name) : strdup(name);

	if (whole == NULL) {
		w->nomem = true;
		return;
	}
	if (fd < 0 || fstat(fd, &st) != 0) {
		return;
	}
	if (S_ISDIR(st.st_mode) && depth < MAX_HINT_DEPTH) {
		walk_dir(w, fd, whole, depth + 1);
	} else if (S_ISDIR(st.st_mode)) {
		w->out->cut = true;
	} else if (S_ISREG(st.st_mode)) {
		read_file(w, fd, whole);
	}
}

static int keep_entry(const struct dirent *e)
{
	return !is_left_out(e->d_name);
}

static void walk_dir(struct hint_walk *w, int dir, const char *path, unsigned depth)
{
	struct dirent **names = NULL;
	int n = scandirat(dir, ".", &names, keep_entry, alphasort);

	for (int i = 0; i < n; i++) {
		if (!w->nomem && w->files <= MAX_HINT_FILES) {
			look_at(w, dir, path, names[i]->d_name, depth);
		}
		free(names[i]);
	}
	free(names);
}

int hints_scan(const char *dir, struct needs *inout, struct ssb_error *err)
{
	struct hint_walk w = { .out = inout };
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		return ssb_fail(err, errno == ENOENT ? SSB_E_NOT_FOUND : SSB_E_SYS, errno, "skill",
		                "'%.200s'", dir);
	}
	walk_dir(&w, fd, "", 1);
	return w.nomem ? ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory") : 0;
}
