/* repos_search.c - searches one grant for repositories. The search is breadth first, so that a
 * limit leaves out the deepest directories. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/file.h"
#include "policy/path.h"
#include "sandbox/repos_priv.h"

#define QUEUE_BYTES (4UL << 20)

static size_t depth_of(const char *path)
{
	size_t depth = *path != '\0';

	for (; *path != '\0'; path++) {
		depth += *path == '/';
	}
	return depth;
}

static bool names_directory(struct repos_search *s, const char *path, const struct dirent64 *e)
{
	if (e->d_type != DT_UNKNOWN) {
		return e->d_type == DT_DIR;
	}
	auto_free char *whole = *path != '\0' ? path_join(path, e->d_name) : strdup(e->d_name);
	s->failed |= whole == NULL;
	return whole != NULL && repos_type_of(s, whole) == S_IFDIR;
}

/* True for directories that package managers fill: they contain many files and hardly ever a
 * repository. */
static bool is_packages(const char *name)
{
	static const char *const NAMES[] = { "node_modules", "site-packages", "dist-packages",
		                             "__pycache__" };
	size_t i = 0;

	while (i < ARRAY_LEN(NAMES) && strcmp(NAMES[i], name) != 0) {
		i++;
	}
	return i < ARRAY_LEN(NAMES);
}

/* Bits for the names that identify a repository (mark_of()): ".git" for a tree; "HEAD", "objects"
 * and "refs" together for a bare repository. */
enum { MARK_TREE = 1, MARKS_BARE = 2 | 4 | 8 };

static unsigned mark_of(const char *name)
{
	static const char *const NAMES[] = { ".git", "HEAD", "objects", "refs" };
	size_t i = 0;

	while (i < ARRAY_LEN(NAMES) && strcmp(NAMES[i], name) != 0) {
		i++;
	}
	return i < ARRAY_LEN(NAMES) ? 1U << i : 0;
}

/* Handles one entry of the directory `path`: adds it to the queue if it is a directory. Returns the
 * bit of its name (mark_of()). */
static unsigned take_entry(struct repos_search *s, const char *path, const struct dirent64 *e)
{
	s->entries++;
	unsigned mark = mark_of(e->d_name);
	if (mark == MARK_TREE || !names_directory(s, path, e)) {
		return mark;
	}
	if (depth_of(path) == MAX_REPO_DEPTH) {
		repos_cut(s, REPOS_TOO_DEEP);
		return mark;
	}
	struct buf *to = !s->in_packages && is_packages(e->d_name) ? &s->later : &s->queue;
	buf_adds(to, path);
	buf_adds(to, *path != '\0' ? "/" : "");
	buf_add(to, e->d_name, strlen(e->d_name) + 1);
	return mark;
}

static bool is_spent(struct repos_search *s)
{
	if (s->entries > MAX_REPO_ENTRIES || s->queue.failed || s->later.failed) {
		*repos_cut_of(s) = "it contains too many files";
	} else if (!budget_left(s->budget)) {
		*repos_cut_of(s) = "it takes too long";
	} else {
		return false;
	}
	return true;
}

/* Handles a directory that the caller cannot read. If the caller owns it, the skill can open it,
 * and an earlier skill may have closed it. Its content is unknown, so all of it becomes
 * read-only. */
static void keep_closed(struct repos_search *s, const char *path)
{
	auto_fd dir = file_openat2(repos_grant_fd(s, s->grant), *path != '\0' ? path : ".",
	                           O_PATH | O_DIRECTORY | O_NOFOLLOW,
	                           REPOS_IN_GRANT | RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (dir < 0 || fstat(dir, &st) != 0) {
		repos_note_unread(s, s->grant, path);
		return;
	}
	if (st.st_uid != geteuid()) {
		if (faccessat(dir, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0) {
			repos_cut(s, "a part of it cannot be listed");
		}
		return;
	}
	auto_free char *whole = path_join(s->plan->grants[s->grant].path, path);
	repos_hold_whole(s, whole);
}

/* Opens a directory for reading. The path ends in ".", so that the open fails if the directory can
 * be listed, but its entries cannot be opened. Returns -1 with errno. */
static int open_directory(const struct repos_search *s, const char *path)
{
	char within[PATH_MAX + 2];

	snprintf(within, sizeof(within), "%s%s.", path, *path != '\0' ? "/" : "");
	return file_openat2(repos_grant_fd(s, s->grant), within, O_RDONLY | O_DIRECTORY,
	                    REPOS_IN_GRANT | RESOLVE_NO_SYMLINKS);
}

static void visit_directory(struct repos_search *s, const char *path)
{
	struct entries names;
	unsigned marks = 0;
	auto_fd dir = open_directory(s, path);

	if (dir < 0 && errno == EACCES) {
		keep_closed(s, path);
		return;
	}
	if (dir < 0) {
		repos_note_unread(s, s->grant, path);
		return;
	}
	entries_init(&names, dir);
	/* The limits are checked only before a read, and not for each entry, because the check
	 * costs as much as a read. */
	while (entries_buffered(&names) || !is_spent(s)) {
		const struct dirent64 *e = entries_next(&names);
		if (e == NULL && errno != 0) {
			repos_note_unread(s, s->grant, path);
		}
		if (e == NULL) {
			break;
		}
		marks |= take_entry(s, path, e);
	}
	if ((marks & MARK_TREE) != 0 && *path != '\0') {
		repos_add(s, s->grant, path, false);
	}
	if ((marks & MARKS_BARE) == MARKS_BARE) {
		repos_add(s, s->grant, path, true);
	}
}

/* Adds the known repository at the path `known`, if it lies in the grant. If a directory on the way
 * was closed since the last run, handles that directory instead (keep_closed()). */
static void take_known(struct repos_search *s, const char *known)
{
	const char *path = path_beneath(known, s->plan->grants[s->grant].path);
	struct stat st;

	if (path == NULL || *path == '\0') {
		return;
	}
	auto_free char *part = strdup(path);
	s->failed |= part == NULL;
	for (size_t at = 0; part != NULL && path[at] != '\0';) {
		at += 1 + strcspn(path + at + 1, "/");
		part[at] = '\0';
		auto_fd dir = open_directory(s, part);
		if (dir < 0 && errno == EACCES) {
			keep_closed(s, part);
			return;
		}
		bool there = dir >= 0 && (path[at] != '\0' ||
		                          fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0);
		if (!there) {
			repos_note_unread(s, s->grant, part);
			return;
		}
		if (path[at] == '\0') {
			repos_add(s, s->grant, path, false);
		}
		part[at] = path[at];
	}
}

static void visit_queue(struct repos_search *s)
{
	/* Copy the path: the queue's memory moves when the queue grows. */
	char path[PATH_MAX];

	for (size_t at = 0; at < s->queue.len && !s->failed && !is_spent(s);) {
		size_t len = strlen(s->queue.data + at);
		if (len < sizeof(path)) {
			memcpy(path, s->queue.data + at, len + 1);
			visit_directory(s, path);
		} else {
			repos_cut(s, REPOS_TOO_DEEP);
		}
		at += len + 1;
	}
}

void repos_search_grant(struct repos_search *s, const struct string_list *known)
{
	for (size_t i = 0; i < known->n && !s->failed && budget_left(s->budget); i++) {
		take_known(s, known->v[i]);
	}
	buf_init(&s->queue, QUEUE_BYTES);
	buf_init(&s->later, QUEUE_BYTES);
	buf_addc(&s->queue, '\0'); /* the grant's top */
	visit_queue(s);
	if (s->later.len > 0) {
		buf_done(&s->queue);
		s->queue = s->later;
		buf_init(&s->later, 0);
		s->in_packages = true;
		visit_queue(s);
		s->in_packages = false;
	}
	buf_done(&s->queue);
	buf_done(&s->later);
}
