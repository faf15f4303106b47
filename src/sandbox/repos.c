/* repos.c - breadth first, so that what a bound leaves out is what lies
 * deepest. A .git file ("gitdir: PATH", of a submodule or worktree) leads to a
 * git directory, and that by its commondir to another: both count where they
 * lie in a writable grant, this one or another. All of it may be a skill's work
 * of an earlier run. */
#include "sandbox/repos.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/own.h"
#include "base/string_list.h"
#include "os/budget.h"
#include "os/file.h"
#include "policy/paths.h"
#include "policy/protect.h"
#include "sandbox/repo_config.h"
#include "sandbox/repos_around.h"
#include "sandbox/repos_known.h"

#define QUEUE_BYTES   (4UL << 20)
#define LISTING_BYTES 32768U
#define POINTER_BYTES 4096U /* of a .git file, a commondir */
#define TOO_DEEP      "it is too deep"
#define IN_GRANT      (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

struct search {
	const struct ssb_plan *plan;
	struct repos *found;
	size_t most;      /* that can be held */
	size_t grant;     /* of the plan: where it looks */
	struct buf queue; /* directories to be read: paths from the top, each with its NUL */
	struct buf later; /* those of packages, which are read when all others are */
	bool in_packages;
	size_t entries;
	const struct budget *budget;
	const char *cut;         /* why something was left out; NULL: nothing was */
	const char *package_cut; /* the same, of packages alone */
	struct ssb_error *err;
	bool failed; /* by what err says, or without memory */
	bool full;   /* more is closed to the caller than can be held */
};

/* In a grant, which may be another than the one that is searched. */
struct place {
	size_t grant;
	char *path; /* from its top; owned, NULL: nowhere */
};

static void place_done(struct place *p)
{
	free(p->path);
}

static int grant_fd(const struct search *s, size_t grant)
{
	return s->plan->grants[grant].fd;
}

static bool is_known(const struct search *s, size_t grant, const char *path, bool gitdir)
{
	for (size_t i = 0; i < s->found->n; i++) {
		const struct repo *r = &s->found->v[i];
		if (r->grant == grant && r->gitdir == gitdir && strcmp(r->path, path) == 0) {
			return true;
		}
	}
	return false;
}

static const char **cut_of(struct search *s)
{
	return s->in_packages ? &s->package_cut : &s->cut;
}

static void cut(struct search *s, const char *why)
{
	*cut_of(s) = *cut_of(s) != NULL ? *cut_of(s) : why;
}

/* After a failed call for what lies in a grant. What is not there, is a symlink or a socket, or
 * is closed by another user is no repository of the caller's. A mount in the grant may hold one,
 * and so may all that cannot be read for another reason: then the run must not start. */
static void note_unread(struct search *s, size_t grant, const char *path)
{
	if (errno == EXDEV) {
		cut(s, "a part of it is another mount");
	} else if (errno == ENAMETOOLONG) {
		cut(s, TOO_DEEP);
	} else if (errno != ELOOP && errno != ENXIO &&
	           links_is_unread(grant_fd(s, grant), *path != '\0' ? path : ".")) {
		auto_free char *whole = path_join(s->plan->grants[grant].path, path);
		(void)(whole != NULL ? links_unread(whole, s->err) : 0);
		s->failed = true;
	}
}

static void add(struct search *s, size_t grant, const char *path, bool gitdir)
{
	if (is_known(s, grant, path, gitdir)) {
		return;
	}
	if (s->found->n >= s->most) {
		s->cut = "there are too many repositories";
		return;
	}
	char *copy = strdup(path);
	if (copy == NULL) {
		s->failed = true;
		return;
	}
	s->found->v[s->found->n++] =
	        (struct repo){ .grant = grant, .path = copy, .gitdir = gitdir };
}

/* Held already, as the .git of a tree that was found (or of the top), or in
 * the parts of one that are read-only as a whole. */
static bool in_known_git(const struct search *s, size_t grant, const char *path)
{
	static const char *const WHOLE[] = { ".git", ".git/modules" };

	for (const char *at = path; at != NULL; at = strchr(at, '/')) {
		at += *at == '/';
		for (size_t i = 0; i < ARRAY_LEN(WHOLE); i++) {
			size_t len = strlen(WHOLE[i]);
			if (strncmp(at, WHOLE[i], len) != 0 ||
			    (at[len] != '\0' && (i == 0 || at[len] != '/'))) {
				continue;
			}
			size_t before = (size_t)(at - path);
			auto_free char *tree = strndup(path, before > 0 ? before - 1 : 0);
			if (tree == NULL) {
				return false;
			}
			if (*tree == '\0' || is_known(s, grant, tree, false)) {
				return true;
			}
		}
	}
	return false;
}

static void add_gitdir(struct search *s, size_t grant, const char *path)
{
	if (!in_known_git(s, grant, path)) {
		add(s, grant, path, true);
	}
}

/* The first line of a small regular file, without `lead`; false if it is none
 * such. */
static bool read_pointer(struct search *s, size_t grant, const char *path, const char *lead,
                         char *out, size_t size)
{
	auto_fd fd = file_openat2(grant_fd(s, grant), path,
	                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
	                          IN_GRANT | RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (fd < 0) {
		note_unread(s, grant, path);
		return false;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		return false;
	}
	ssize_t n = read(fd, out, size - 1);
	if (n < 0) {
		note_unread(s, grant, path);
		return false;
	}
	size_t skip = strlen(lead);
	if (n <= (ssize_t)skip || memcmp(out, lead, skip) != 0 || memchr(out, '\0', (size_t)n)) {
		return false;
	}
	out[n] = '\0';
	memmove(out, out + skip, (size_t)n - skip + 1);
	out[strcspn(out, "\r\n")] = '\0';
	return *out != '\0';
}

static bool is_directory(struct search *s, size_t grant, const char *path)
{
	auto_fd fd = file_openat2(grant_fd(s, grant), *path != '\0' ? path : ".",
	                          O_PATH | O_DIRECTORY, IN_GRANT | RESOLVE_NO_SYMLINKS);

	if (fd < 0 && errno != EXDEV) { /* a mount in it, which was noted */
		note_unread(s, grant, path);
	}
	return fd >= 0;
}

/* What `to`, as it stands in the directory `from`, leads to, where it lies in a
 * writable grant. The links on the way are held. */
static struct place place_of(struct search *s, const struct place *from, const char *to)
{
	const struct place nowhere = { 0 };
	bool there = false;
	auto_free char *dir = path_join(s->plan->grants[from->grant].path, from->path);
	auto_free char *path = dir != NULL ? path_from(dir, to) : NULL;
	auto_free char *real =
	        path != NULL ? links_follow(&s->found->links, s->plan, path, &there) : NULL;

	if (real == NULL && path != NULL && (errno == ENAMETOOLONG || errno == E2BIG)) {
		cut(s, "the way to a git directory is too long");
		return nowhere;
	}
	if (real == NULL) {
		(void)(path != NULL ? links_unread(path, s->err) : 0);
		s->failed = true;
		return nowhere;
	}
	int why = errno;
	const struct grant *g = plan_shown_by(s->plan, real);
	if (g == NULL || !grant_is_work(g)) {
		return nowhere;
	}
	if (!there) { /* which the skill could make, or open */
		errno = why;
		if (why == EACCES) {
			(void)links_unread(real, s->err);
			s->failed = true;
		}
		cut(s, "a .git of it leads to nothing");
		return nowhere;
	}
	const char *rest = path_beneath(real, g->target);
	if (!is_directory(s, (size_t)(g - s->plan->grants), rest)) {
		return nowhere;
	}
	struct place found = { (size_t)(g - s->plan->grants), strdup(rest) };
	s->failed |= found.path == NULL;
	return found;
}

/* The git directory that a pointer in the directory `from` leads to, and the
 * one that it shares with others. Returns the last of them. */
static struct place follow(struct search *s, const struct place *from, const char *to)
{
	char text[POINTER_BYTES];
	struct place gitdir = place_of(s, from, to);

	for (int step = 0; gitdir.path != NULL; step++) {
		add_gitdir(s, gitdir.grant, gitdir.path);
		auto_free char *file = path_join(gitdir.path, "commondir");
		if (step == 1 || file == NULL ||
		    !read_pointer(s, gitdir.grant, file + (*file == '/'), "", text, sizeof(text))) {
			break;
		}
		struct place common = place_of(s, &gitdir, text);
		place_done(&gitdir);
		gitdir = common;
	}
	return gitdir;
}

/* What a name in the searched grant is, S_IFMT; 0: nothing. */
static mode_t type_of(struct search *s, const char *path)
{
	struct stat st;

	if (fstatat(grant_fd(s, s->grant), path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		return st.st_mode & S_IFMT;
	}
	note_unread(s, s->grant, path);
	return 0;
}

/* Where the .git of one tree leads; of the top as well, whose `tree` is NULL. */
static void follow_tree(struct search *s, struct repo *tree)
{
	char text[POINTER_BYTES];
	const struct place from = { s->grant, tree != NULL ? tree->path : (char[]){ "" } };
	auto_free char *file = tree != NULL ? path_join(from.path, ".git") : strdup(".git");

	if (file == NULL) {
		s->failed = true;
		return;
	}
	AUTO(place_done)
	struct place shared = { s->grant, NULL };
	if (read_pointer(s, s->grant, file, "gitdir: ", text, sizeof(text))) {
		shared = follow(s, &from, text);
	} else if (type_of(s, file) == S_IFLNK) {
		shared = follow(s, &from, ".git");
	} else {
		shared.path = strdup(file);
	}
	if (tree != NULL && shared.grant == s->grant) {
		tree->shared = steal_ptr(&shared.path);
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

static bool names_directory(struct search *s, const char *path, const struct dirent64 *e)
{
	if (e->d_type != DT_UNKNOWN) {
		return e->d_type == DT_DIR;
	}
	auto_free char *whole = *path != '\0' ? path_join(path, e->d_name) : strdup(e->d_name);
	s->failed |= whole == NULL;
	return whole != NULL && type_of(s, whole) == S_IFDIR;
}

/* What package managers fill: many files, as a rule none of them a repository's. */
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

/* Which of the names that make a repository this is: a bit for each. */
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

/* One name of the directory `path`; returns what it says of that. */
static unsigned take_entry(struct search *s, const char *path, const struct dirent64 *e)
{
	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
		return 0;
	}
	s->entries++;
	unsigned mark = mark_of(e->d_name);
	if (mark == MARK_TREE || !names_directory(s, path, e)) {
		return mark;
	}
	if (depth_of(path) == MAX_REPO_DEPTH) {
		cut(s, TOO_DEEP);
		return mark;
	}
	struct buf *to = !s->in_packages && is_packages(e->d_name) ? &s->later : &s->queue;
	buf_adds(to, path);
	buf_adds(to, *path != '\0' ? "/" : "");
	buf_add(to, e->d_name, strlen(e->d_name) + 1);
	return mark;
}

static bool spent(struct search *s)
{
	if (s->entries > MAX_REPO_ENTRIES || s->queue.failed || s->later.failed) {
		*cut_of(s) = "it holds too many files";
	} else if (!budget_left(s->budget)) {
		*cut_of(s) = "it takes too long";
	} else {
		return false;
	}
	return true;
}

/* Read-only, with all that is in it. */
static void hold_whole(struct search *s, const char *path)
{
	if (path == NULL || links_add(&s->found->links, s->plan, path, true) != 0) {
		s->full |= path != NULL && errno == E2BIG;
		s->failed |= !s->full;
	}
}

/* A directory that is closed to the caller. If it is the caller's own the skill can open it,
 * and an earlier one may have closed it: nobody knows what is in it, so all of it stays as
 * it is. */
static void keep_closed(struct search *s, const char *path)
{
	auto_fd dir =
	        file_openat2(grant_fd(s, s->grant), *path != '\0' ? path : ".",
	                     O_PATH | O_DIRECTORY | O_NOFOLLOW, IN_GRANT | RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (dir < 0 || fstat(dir, &st) != 0) {
		note_unread(s, s->grant, path);
		return;
	}
	if (st.st_uid != geteuid()) {
		if (faccessat(dir, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0) {
			cut(s, "a part of it cannot be listed");
		}
		return;
	}
	auto_free char *whole = path_join(s->plan->grants[s->grant].path, path);
	hold_whole(s, whole);
}

/* Opens a directory to be read; -1 with errno. By a name in it: to be listed is not enough,
 * these have to be found as well. */
static int open_directory(const struct search *s, const char *path)
{
	char within[PATH_MAX + 2];

	snprintf(within, sizeof(within), "%s%s.", path, *path != '\0' ? "/" : "");
	return file_openat2(grant_fd(s, s->grant), within, O_RDONLY | O_DIRECTORY,
	                    IN_GRANT | RESOLVE_NO_SYMLINKS);
}

static void visit(struct search *s, const char *path)
{
	/* Aligned as the kernel fills it. */
	_Alignas(struct dirent64) char raw[LISTING_BYTES];
	unsigned marks = 0;
	auto_fd dir = open_directory(s, path);

	if (dir < 0 && errno == EACCES) {
		keep_closed(s, path);
		return;
	}
	if (dir < 0) {
		note_unread(s, s->grant, path);
		return;
	}
	while (!spent(s)) {
		ssize_t n = getdents64(dir, raw, sizeof(raw));
		if (n < 0) {
			note_unread(s, s->grant, path);
		}
		if (n <= 0) {
			break;
		}
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const void *)(raw + at);
			marks |= take_entry(s, path, e);
			at += e->d_reclen;
		}
	}
	if ((marks & MARK_TREE) != 0 && *path != '\0') {
		add(s, s->grant, path, false);
	}
	if ((marks & MARKS_BARE) == MARKS_BARE) {
		add(s, s->grant, path, true);
	}
}

/* A path where a repository was, if it is in the grant. One of the directories that lead there
 * may have been closed since. */
static void take_known(struct search *s, const char *known)
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
			note_unread(s, s->grant, part);
			return;
		}
		if (path[at] == '\0') {
			add(s, s->grant, path, false);
		}
		part[at] = path[at];
	}
}

static void visit_queue(struct search *s)
{
	/* The queue moves as it grows: a copy is read while it is filled. */
	char path[PATH_MAX];

	for (size_t at = 0; at < s->queue.len && !s->failed && !spent(s);) {
		size_t len = strlen(s->queue.data + at);
		if (len < sizeof(path)) {
			memcpy(path, s->queue.data + at, len + 1);
			visit(s, path);
		} else {
			cut(s, TOO_DEEP);
		}
		at += len + 1;
	}
}

static void search_grant(struct search *s, const struct string_list *known)
{
	for (size_t i = 0; i < known->n && !s->failed && budget_left(s->budget); i++) {
		take_known(s, known->v[i]);
	}
	buf_init(&s->queue, QUEUE_BYTES);
	buf_init(&s->later, QUEUE_BYTES);
	buf_addc(&s->queue, '\0'); /* the top itself */
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

/* When the trees of all grants are known: most git directories lie in one of theirs. */
static void follow_grant(struct search *s, size_t n_trees)
{
	follow_tree(s, NULL);
	for (size_t i = 0; i < n_trees && !s->failed; i++) {
		if (s->found->v[i].grant == s->grant && !s->found->v[i].gitdir) {
			follow_tree(s, &s->found->v[i]);
		}
	}
}

/* What git is told where this tree is. */
static void read_config(struct search *s, const char *tree)
{
	const char *why = NULL;

	s->failed |= repo_config_read(s->plan, s->found, tree, &why, s->err) != 0;
	cut(s, why);
}

static void read_configs(struct search *s, size_t n_trees)
{
	const char *top = s->plan->grants[s->grant].path;

	read_config(s, top);
	for (size_t i = 0; i < n_trees && !s->failed; i++) {
		if (s->found->v[i].grant != s->grant || s->found->v[i].gitdir) {
			continue;
		}
		auto_free char *tree = path_join(top, s->found->v[i].path);
		s->failed |= tree == NULL;
		if (tree != NULL) {
			read_config(s, tree);
		}
	}
}

/* The directories of a repository's worktrees, which git keeps beneath its own: each is a git
 * directory, also where its tree is not granted. Further ones can be made. Where there are too
 * many, or they cannot be listed, none can be written at all. */
static void hold_worktrees(struct search *s, size_t grant, const char *gitdir)
{
	AUTO(string_list_done) struct string_list names = { 0 };
	auto_free char *all =
	        *gitdir != '\0' ? path_join(gitdir, "worktrees") : strdup("worktrees");
	auto_free char *whole = all != NULL ? path_join(s->plan->grants[grant].path, all) : NULL;
	auto_fd fd = whole == NULL ? -1
	                           : file_openat2(grant_fd(s, grant), all, O_RDONLY | O_DIRECTORY,
	                                          IN_GRANT | RESOLVE_NO_SYMLINKS);
	auto_dir dir = fd >= 0 ? fdopendir(fd) : NULL;
	size_t room = s->most - s->found->n < MAX_WORKTREES ? s->most - s->found->n : MAX_WORKTREES;
	bool listed = dir != NULL;

	if (whole == NULL || (dir == NULL && (file_is_missing(errno) || errno == ELOOP))) {
		s->failed |= whole == NULL;
		return;
	}
	(void)(listed ? steal_fd(&fd) : -1);
	errno = 0;
	for (const struct dirent *e; listed && (e = readdir(dir)) != NULL; errno = 0) {
		auto_free char *path = path_join(all, e->d_name);
		bool is_name = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
		listed = path != NULL && (!is_name || string_list_add(&names, path, room) == 0);
	}
	if (!listed || errno != 0) {
		hold_whole(s, whole);
		return;
	}
	for (size_t i = 0; i < names.n; i++) {
		if (is_directory(s, grant, names.v[i])) {
			add(s, grant, names.v[i], true);
		}
	}
}

/* Of all that were found, and of the grants' tops. */
static void hold_all_worktrees(struct search *s)
{
	for (size_t i = 0; i < s->plan->n_grants && !s->failed; i++) {
		if (grant_is_work(&s->plan->grants[i])) {
			hold_worktrees(s, i, ".git");
		}
	}
	size_t n = s->found->n;
	for (size_t i = 0; i < n && !s->failed; i++) {
		const struct repo *r = &s->found->v[i];
		auto_free char *git = r->gitdir ? strdup(r->path) : path_join(r->path, ".git");
		s->failed |= git == NULL;
		if (git != NULL) {
			hold_worktrees(s, r->grant, git);
		}
	}
}

/* The repositories around the grants: what their settings name, and the git directories of all
 * that lie in a grant. */
static void look_around(struct search *s)
{
	struct repos *f = s->found;
	struct stat st;

	s->failed |= repos_around(s->plan, &f->around, s->err) != 0;
	for (size_t i = 0; i < f->around.n && !s->failed; i++) {
		auto_free char *git = path_join(f->around.v[i], ".git");
		if (git != NULL && lstat(git, &st) == 0) {
			read_config(s, f->around.v[i]);
		} else if (git == NULL || links_is_unread(AT_FDCWD, git)) {
			(void)(git != NULL ? links_unread(git, s->err) : 0);
			s->failed = true;
		}
	}
	for (size_t i = 0; i < f->gitdirs.n && !s->failed; i++) {
		const struct grant *g = plan_shown_by(s->plan, f->gitdirs.v[i]);
		if (g == NULL || !grant_is_work(g)) {
			continue;
		}
		size_t grant = (size_t)(g - s->plan->grants);
		const char *path = path_beneath(f->gitdirs.v[i], g->target);
		if (is_directory(s, grant, path)) {
			add_gitdir(s, grant, path);
		}
	}
}

static int warn(struct string_list *to, const struct grant *g, const char *what, const char *cut)
{
	auto_free char *text = NULL;

	if (cut == NULL) {
		return 0;
	}
	if (asprintf(&text,
	             "write %s: not all of %s was searched for repositories, because %s; in those "
	             "that were not found the skill can write hooks and settings",
	             g->path, what, cut) < 0) {
		text = NULL;
		return -1;
	}
	/* A second attempt, or a second run of the plan, says nothing new. */
	return string_list_add_once(to, text, 8UL * MAX_GRANTS);
}

/* As many as the limit of open files leaves room for: each has an fd for each name, and for
 * its two directories, and so has each grant. */
static size_t most_repos(const struct ssb_plan *plan)
{
	struct rlimit files = { .rlim_cur = 0 };
	size_t each = protected_held() + 2;
	size_t beside = 2 * MIN_RUN_FILES + plan->n_grants;

	for (size_t i = 0; i < plan->n_grants; i++) {
		beside += grant_is_work(&plan->grants[i]) ? each : 0;
	}
	(void)getrlimit(RLIMIT_NOFILE, &files);
	size_t most = files.rlim_cur > beside ? (files.rlim_cur - beside) / each : 0;
	return most < MAX_REPOS ? most : MAX_REPOS;
}

static void search_all(const struct ssb_plan *plan, const struct string_list *known,
                       struct search *all, struct repos *found, struct ssb_error *err)
{
	struct budget budget = budget_new(MAX_REPO_CPU_MS, MAX_REPO_WALL_MS);
	size_t most = most_repos(plan);

	for (size_t i = 0; i < plan->n_grants; i++) {
		all[i] = (struct search){ .plan = plan,
			                  .found = found,
			                  .most = most,
			                  .grant = i,
			                  .budget = &budget,
			                  .err = err };
		if (grant_is_work(&plan->grants[i])) {
			search_grant(&all[i], known);
		}
	}
	size_t n_trees = found->n;
	for (size_t i = 0; i < plan->n_grants; i++) {
		if (grant_is_work(&plan->grants[i])) {
			follow_grant(&all[i], n_trees);
			read_configs(&all[i], n_trees);
		}
	}
	look_around(&all[0]);
	hold_all_worktrees(&all[0]);
}

static bool any_written(const struct ssb_plan *plan)
{
	size_t i = 0;

	while (i < plan->n_grants && !grant_is_written(&plan->grants[i])) {
		i++;
	}
	return i < plan->n_grants;
}

/* For the next run. */
static void keep_found(const struct ssb_plan *plan, const struct repos *found,
                       const char *state_dir)
{
	AUTO(string_list_done) struct string_list paths = { 0 };

	for (size_t i = 0; i < found->n; i++) {
		const struct repo *r = &found->v[i];
		auto_free char *path =
		        r->gitdir ? NULL : path_join(plan->grants[r->grant].path, r->path);
		if (path != NULL) {
			(void)string_list_add(&paths, path, MAX_REPOS);
		}
	}
	if (paths.n > 0) {
		repos_known_add(state_dir, &paths);
	}
}

int repos_find(struct ssb_plan *plan, const char *state_dir, struct repos **ret,
               struct ssb_error *err)
{
	AUTO(string_list_done) struct string_list known = { 0 };

	if (!any_written(plan)) {
		*ret = NULL;
		return 0;
	}
	auto_free struct search *all = calloc(plan->n_grants, sizeof(*all));
	struct repos *found = calloc(1, sizeof(*found));
	bool failed = all == NULL || found == NULL ||
	              (state_dir != NULL && repos_known_load(state_dir, &known, err) != 0);

	if (!failed) {
		search_all(plan, &known, all, found, err);
	}
	for (size_t i = 0; i < plan->n_grants && !failed; i++) {
		if (all[i].full) {
			const struct grant *g = &plan->grants[i];
			repos_free(found);
			return ssb_fail(err, SSB_E_LAYER, 0, "mounts",
			                "too many directories in '%.150s' (%.40s) are closed to "
			                "you, and may hold what the skill must not write; open "
			                "them (chmod u+rx), or grant another",
			                g->path, g->where);
		}
		failed = all[i].failed ||
		         warn(&plan->warnings, &plan->grants[i], "it", all[i].cut) != 0 ||
		         warn(&plan->quiet, &plan->grants[i], "the packages in it",
		              all[i].package_cut) != 0;
	}
	if (failed) {
		repos_free(found);
		return ssb_fail(err, SSB_E_NOMEM, 0, "mounts", "out of memory");
	}
	if (state_dir != NULL) {
		keep_found(plan, found, state_dir);
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
	for (size_t i = 0; r != NULL && i < r->n_named; i++) {
		free(r->named[i].path);
	}
	if (r != NULL) {
		string_list_done(&r->hooks);
		string_list_done(&r->around);
		string_list_done(&r->gitdirs);
		links_done(&r->links);
	}
	free(r);
}
