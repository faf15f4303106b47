/* lint_files.c - every file of a skill: what it is, and then its bytes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "consent/lint_priv.h"
#include "os/file.h"
#include "os/tree.h"
#include "skill/skill.h"

struct walk {
	struct lint *out;
	int top;
	size_t left; /* bytes that are still looked at */
	bool whole;
	bool cut;
};

static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* A link to nothing is no way out either, as long as it stays inside. */
static void look_at_link(struct walk *w, const struct tree_entry *e)
{
	auto_fd fd = file_openat2(w->top, e->path, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);

	if (fd < 0 && errno != ENOENT) {
		lint_add(w->out, LINT_SYMLINK, e->path, 0, "it leads out of the skill");
	}
}

static void read_file(struct walk *w, const struct tree_entry *e)
{
	auto_buf bytes;
	struct stat st;
	size_t cap = w->left < MAX_LINT_FILE ? w->left : MAX_LINT_FILE;
	/* A FIFO that took its place must not hold us up. */
	auto_fd fd = -1;

	buf_init(&bytes, cap);
	fd = openat(e->dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		lint_add(w->out, LINT_INCOMPLETE, e->path, 0, "it cannot be read");
		return;
	}
	int rc = file_read_all(fd, &bytes);
	if (rc != 0) {
		lint_add(w->out, LINT_INCOMPLETE, e->path, 0, "only its beginning was looked at");
	}
	w->left -= bytes.len < w->left ? bytes.len : w->left;
	if (bytes.len > 0) {
		lint_bytes(w->out, e->path, (st.st_mode & 0111) != 0, bytes.data, bytes.len);
	}
}

static bool look_at(void *arg, const struct tree_entry *e)
{
	struct walk *w = arg;
	mode_t mode = e->st.st_mode;

	if (!w->whole && skill_is_foreign(e->path, strlen(e->path))) {
		return false;
	}
	if (S_ISLNK(mode)) {
		look_at_link(w, e);
		return false;
	}
	if (!S_ISREG(mode) && !S_ISDIR(mode)) {
		lint_add(w->out, LINT_SPECIAL, e->path, 0, "it is %s", kind_of(mode));
		return false;
	}
	if (S_ISREG(mode) && (mode & (S_ISUID | S_ISGID)) != 0) {
		lint_add(w->out, LINT_SETUID, e->path, 0, "it runs with the rights of its %s",
		         (mode & S_ISUID) != 0 ? "owner" : "group");
	}
	if ((mode & S_IWOTH) != 0 && (mode & S_ISVTX) == 0) {
		lint_add(w->out, LINT_WORLD, e->path, 0, "anybody can change it");
	}
	if (S_ISREG(mode) && w->left > 0) {
		read_file(w, e);
	} else if (S_ISREG(mode) && e->st.st_size > 0) {
		w->cut = true;
	}
	return true;
}

void lint_files(struct lint *l, int dir_fd, bool whole)
{
	static const struct tree_caps caps = { MAX_LINT_FILES, MAX_SKILL_DEPTH };
	struct walk w = { .out = l, .top = dir_fd, .left = MAX_LINT_BYTES, .whole = whole };

	if (!tree_walk(dir_fd, &caps, look_at, &w) || w.cut) {
		lint_add(l, LINT_INCOMPLETE, ".", 0, "it has too many files, or too large ones");
	}
}
