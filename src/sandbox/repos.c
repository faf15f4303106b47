/* repos.c - breadth first, so that what a bound leaves out is what lies
 * deepest. A .git file ("gitdir: PATH", of a submodule or worktree) leads to a
 * git directory, and that by its commondir to another: both count where they
 * lie in the grant. All of it may be a skill's work of an earlier run. */
#include "sandbox/repos.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/own.h"
#include "base/string_list.h"
#include "os/clock.h"
#include "os/file.h"
#include "policy/paths.h"

#define QUEUE_BYTES   (4UL << 20)
#define LISTING_BYTES 32768U
#define POINTER_BYTES 4096U /* of a .git file, a commondir */
#define IN_GRANT      (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

struct search {
	struct repos *found;
	size_t grant;
	const char *top;  /* path of the grant */
	int fd;           /* of the grant, borrowed */
	struct buf queue; /* directories to be read: paths from the top, each with its NUL */
	size_t entries;
	uint64_t deadline;
	const char *cut; /* why something was left out; NULL: nothing was */
	bool failed;     /* without memory */
};

static bool is_known(const struct search *s, const char *path, bool gitdir)
{
	for (size_t i = 0; i < s->found->n; i++) {
		const struct repo *r = &s->found->v[i];
		if (r->grant == s->grant && r->gitdir == gitdir && strcmp(r->path, path) == 0) {
			return true;
		}
	}
	return false;
}

/* After a failed open. What is not there, leads elsewhere or is closed to the
 * caller is no repository of the caller's; all else may hold one: a mount in
 * the grant, which the skill can write to as well, or want of descriptors. */
static void note_unread(struct search *s)
{
	static const int EXPECTED[] = { EACCES, ENOENT, ENOTDIR, ELOOP, ENXIO };

	for (size_t i = 0; i < ARRAY_LEN(EXPECTED); i++) {
		if (errno == EXPECTED[i]) {
			return;
		}
	}
	s->cut = s->cut != NULL ? s->cut : "a part of it is another mount or cannot be read";
}

static void add(struct search *s, const char *path, bool gitdir)
{
	if (is_known(s, path, gitdir)) {
		return;
	}
	if (s->found->n == MAX_REPOS) {
		s->cut = "there are too many repositories";
		return;
	}
	char *copy = strdup(path);
	if (copy == NULL) {
		s->failed = true;
		return;
	}
	s->found->v[s->found->n++] =
	        (struct repo){ .grant = s->grant, .path = copy, .gitdir = gitdir };
}

/* Held already, as the .git of a tree that was found (or of the top), or in
 * the parts of one that are read-only as a whole. */
static bool in_known_git(const struct search *s, const char *path)
{
	static const char *const WHOLE[] = { ".git", ".git/modules", ".git/worktrees" };

	for (const char *at = path; at != NULL; at = strchr(at, '/')) {
		at += *at == '/';
		for (size_t i = 0; i < ARRAY_LEN(WHOLE); i++) {
			size_t len = strlen(WHOLE[i]);
			if (strncmp(at, WHOLE[i], len) != 0 ||
			    (at[len] != '\0' && (i == 0 || at[len] != '/'))) {
				continue;
			}
			auto_free char *tree =
			        at == path ? strdup("") : strndup(path, (size_t)(at - path) - 1);
			if (tree == NULL) {
				return false;
			}
			if (*tree == '\0' || is_known(s, tree, false)) {
				return true;
			}
		}
	}
	return false;
}

/* The first line of a small regular file, without `lead`; false if it is none
 * such. */
static bool read_pointer(struct search *s, const char *path, const char *lead, char *out,
                         size_t size)
{
	auto_fd fd = file_openat2(s->fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
	                          IN_GRANT | RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (fd < 0) {
		note_unread(s);
		return false;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		return false;
	}
	ssize_t n = read(fd, out, size - 1);
	size_t skip = strlen(lead);
	if (n <= (ssize_t)skip || memcmp(out, lead, skip) != 0 || memchr(out, '\0', (size_t)n)) {
		return false;
	}
	out[n] = '\0';
	memmove(out, out + skip, (size_t)n - skip + 1);
	out[strcspn(out, "\r\n")] = '\0';
	return *out != '\0';
}

/* Where `to`, as it stands in the directory `from`, lies in the grant: its
 * path from the top, new; NULL if it does not. */
static char *place_in_grant(struct search *s, const char *from, const char *to)
{
	char link[64], real[PATH_MAX];
	auto_free char *joined = *to == '/' ? NULL : path_join(*from != '\0' ? from : ".", to);
	const char *path = *to == '/' ? path_beneath(to, s->top) : joined;

	if (path == NULL) {
		return NULL;
	}
	auto_fd fd =
	        file_openat2(s->fd, *path != '\0' ? path : ".", O_PATH | O_DIRECTORY, IN_GRANT);
	if (fd < 0) {
		/* EXDEV: out of the grant; or onto a mount in it, which was noted. */
		if (errno != EXDEV) {
			note_unread(s);
		}
		return NULL;
	}
	/* Without its "..", its symlinks and second spellings. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, real, sizeof(real) - 1);
	if (n <= 0) {
		return NULL;
	}
	real[n] = '\0';
	const char *rest = path_beneath(real, s->top);
	return rest != NULL ? strdup(rest) : NULL;
}

/* The git directory that a pointer in the directory `from` leads to, and the
 * one that it shares with others. Returns the last of them, new, or NULL. */
static char *follow(struct search *s, const char *from, const char *to)
{
	char text[POINTER_BYTES];
	auto_free char *gitdir = place_in_grant(s, from, to);

	for (int step = 0; gitdir != NULL; step++) {
		if (!in_known_git(s, gitdir)) {
			add(s, gitdir, true);
		}
		auto_free char *file = path_join(gitdir, "commondir");
		if (step == 1 || file == NULL ||
		    !read_pointer(s, file + (*file == '/'), "", text, sizeof(text))) {
			break;
		}
		char *common = place_in_grant(s, gitdir, text);
		free(gitdir);
		gitdir = common;
	}
	return steal_ptr(&gitdir);
}

/* Where the .git of one tree leads; of the top as well, whose `tree` is NULL. */
static void follow_tree(struct search *s, struct repo *tree)
{
	char text[POINTER_BYTES];
	const char *path = tree != NULL ? tree->path : "";
	auto_free char *file = tree != NULL ? path_join(path, ".git") : strdup(".git");

	if (file == NULL) {
		s->failed = true;
		return;
	}
	auto_free char *shared = read_pointer(s, file, "gitdir: ", text, sizeof(text))
	                                 ? follow(s, path, text)
	                                 : strdup(file);
	if (tree != NULL) {
		tree->shared = steal_ptr(&shared);
	}
}

static size_t depth_of(const char *path)
{
	size_t depth = *path != '\0';

	for (; *path != '\0'; path++) {
		depth += *path == '/';
	}
	return depth;
}

static bool is_directory(int dir, const struct dirent64 *e)
{
	struct stat st;

	return e->d_type == DT_DIR ||
	       (e->d_type == DT_UNKNOWN && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	        S_ISDIR(st.st_mode));
}

/* One name of the directory `path`; true if it is a repository's. */
static bool take_entry(struct search *s, int dir, const char *path, const struct dirent64 *e)
{
	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
		return false;
	}
	s->entries++;
	if (strcmp(e->d_name, ".git") == 0) {
		return true;
	}
	if (!is_directory(dir, e)) {
		return false;
	}
	if (depth_of(path) == MAX_REPO_DEPTH) {
		s->cut = s->cut != NULL ? s->cut : "it is too deep";
		return false;
	}
	buf_adds(&s->queue, path);
	buf_adds(&s->queue, *path != '\0' ? "/" : "");
	buf_add(&s->queue, e->d_name, strlen(e->d_name) + 1);
	return false;
}

static bool spent(struct search *s)
{
	if (s->entries > MAX_REPO_ENTRIES || s->queue.failed) {
		s->cut = "it holds too many files";
	} else if (clock_ms() > s->deadline) {
		s->cut = "it takes too long";
	} else {
		return false;
	}
	return true;
}

static void visit(struct search *s, const char *path)
{
	/* Aligned as the kernel fills it. */
	_Alignas(struct dirent64) char raw[LISTING_BYTES];
	bool git = false;
	auto_fd dir =
	        file_openat2(s->fd, *path != '\0' ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
	                     IN_GRANT | RESOLVE_NO_SYMLINKS);

	if (dir < 0) {
		note_unread(s);
		return;
	}
	while (!spent(s)) {
		ssize_t n = getdents64(dir, raw, sizeof(raw));
		if (n < 0) {
			note_unread(s);
		}
		if (n <= 0) {
			break;
		}
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const void *)(raw + at);
			git |= take_entry(s, dir, path, e);
			at += e->d_reclen;
		}
	}
	if (git && *path != '\0') {
		add(s, path, false);
	}
}

static void search_grant(struct search *s)
{
	/* The queue moves as it grows: a copy is read while it is filled. */
	char path[PATH_MAX];
	size_t first = s->found->n;

	buf_init(&s->queue, QUEUE_BYTES);
	buf_addc(&s->queue, '\0'); /* the top itself */
	for (size_t at = 0; at < s->queue.len && !s->failed && !spent(s);) {
		size_t len = strlen(s->queue.data + at);
		if (len < sizeof(path)) {
			memcpy(path, s->queue.data + at, len + 1);
			visit(s, path);
		}
		at += len + 1;
	}
	buf_done(&s->queue);
	/* When all trees are known: most git directories lie in one of theirs. */
	size_t n = s->found->n;
	follow_tree(s, NULL);
	for (size_t i = first; i < n && !s->failed; i++) {
		follow_tree(s, &s->found->v[i]);
	}
}

static int warn(struct ssb_plan *plan, const struct grant *g, const char *cut)
{
	auto_free char *text = NULL;

	if (asprintf(&text,
	             "write %s: not all of it was searched for repositories, because %s; in those "
	             "that were not found the skill can write hooks and settings",
	             g->path, cut) < 0) {
		text = NULL;
		return -1;
	}
	return string_list_add(&plan->warnings, text, 8UL * MAX_GRANTS);
}

int repos_find(struct ssb_plan *plan, struct repos **ret, struct ssb_error *err)
{
	struct repos *found = NULL;
	uint64_t deadline = 0;

	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		if (!grant_is_work(g)) {
			continue;
		}
		if (found == NULL) {
			found = calloc(1, sizeof(*found));
			deadline = clock_ms() + MAX_REPO_MS;
		}
		struct search s = { .found = found, .grant = i, .top = g->path, .fd = g->fd };
		s.deadline = deadline;
		s.failed = found == NULL;
		if (!s.failed) {
			search_grant(&s);
		}
		if (s.failed || (s.cut != NULL && warn(plan, g, s.cut) != 0)) {
			repos_free(found);
			return ssb_fail(err, SSB_E_NOMEM, 0, "mounts", "out of memory");
		}
	}
	*ret = found;
	return 0;
}

void repos_free(struct repos *r)
{
	for (size_t i = 0; r != NULL && i < r->n; i++) {
		free(r->v[i].path);
		free(r->v[i].shared);
	}
	if (r != NULL) {
		links_done(&r->links);
	}
	free(r);
}
