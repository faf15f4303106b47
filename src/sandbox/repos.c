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
#include "sandbox/repos_known.h"

#define QUEUE_BYTES   (4UL << 20)
#define LISTING_BYTES 32768U
#define POINTER_BYTES 4096U /* of a .git file, a commondir */
#define IN_GRANT      (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

struct search {
	const struct ssb_plan *plan;
	struct repos *found;
	size_t most;      /* that can be held */
	size_t grant;     /* of the plan: where it looks */
	struct buf queue; /* directories to be read: paths from the top, each with its NUL */
	size_t entries;
	const struct budget *budget;
	const char *cut; /* why something was left out; NULL: nothing was */
	bool failed;     /* without memory */
	bool full;       /* more is closed to the caller than can be held */
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

/* After a failed open. What is not there, leads elsewhere or is closed to the
 * caller (see keep_closed) is no repository of the caller's; all else may hold one: a
 * mount in the grant, which the skill can write to as well, or want of descriptors. */
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
static bool in_known_git(const struct search *s, const struct place *p)
{
	static const char *const WHOLE[] = { ".git", ".git/modules", ".git/worktrees" };

	for (const char *at = p->path; at != NULL; at = strchr(at, '/')) {
		at += *at == '/';
		for (size_t i = 0; i < ARRAY_LEN(WHOLE); i++) {
			size_t len = strlen(WHOLE[i]);
			if (strncmp(at, WHOLE[i], len) != 0 ||
			    (at[len] != '\0' && (i == 0 || at[len] != '/'))) {
				continue;
			}
			size_t before = (size_t)(at - p->path);
			auto_free char *tree = strndup(p->path, before > 0 ? before - 1 : 0);
			if (tree == NULL) {
				return false;
			}
			if (*tree == '\0' || is_known(s, p->grant, tree, false)) {
				return true;
			}
		}
	}
	return false;
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

	if (real == NULL) {
		s->failed |= errno == ENOMEM;
		s->cut = "the way to a git directory is too long";
		return nowhere;
	}
	const struct grant *g = plan_shown_by(s->plan, real);
	if (g == NULL || !grant_is_work(g)) {
		return nowhere;
	}
	if (!there) { /* which the skill could make */
		s->cut = s->cut != NULL ? s->cut : "a .git of it leads to nothing";
		return nowhere;
	}
	const char *rest = path_beneath(real, g->target);
	auto_fd fd = file_openat2(g->fd, *rest != '\0' ? rest : ".", O_PATH | O_DIRECTORY,
	                          IN_GRANT | RESOLVE_NO_SYMLINKS);
	if (fd < 0) {
		if (errno != EXDEV) { /* a mount in it, which was noted */
			note_unread(s);
		}
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
		if (!in_known_git(s, &gitdir)) {
			add(s, gitdir.grant, gitdir.path, true);
		}
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

static bool is_link(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
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
	} else if (is_link(grant_fd(s, s->grant), file)) {
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
	} else if (!budget_left(s->budget)) {
		s->cut = "it takes too long";
	} else {
		return false;
	}
	return true;
}

/* A directory that is closed to the caller. If it is the caller's own the skill can open it,
 * and an earlier one may have closed it: nobody knows what is in it, so all of it stays as
 * it is. */
static void keep_closed(struct search *s, const char *path)
{
	auto_fd dir = file_openat2(grant_fd(s, s->grant), path, O_PATH | O_DIRECTORY | O_NOFOLLOW,
	                           IN_GRANT | RESOLVE_NO_SYMLINKS);
	struct stat st;

	if (dir < 0 || fstat(dir, &st) != 0 || st.st_uid != geteuid()) {
		return;
	}
	auto_free char *whole = path_join(s->plan->grants[s->grant].path, path);
	if (whole == NULL || links_add(&s->found->links, s->plan, whole, true) != 0) {
		s->full |= whole != NULL && errno == E2BIG;
		s->failed |= !s->full;
	}
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
	bool git = false;
	auto_fd dir = open_directory(s, path);

	if (dir < 0) {
		note_unread(s);
		if (errno == EACCES && *path != '\0') {
			keep_closed(s, path);
		}
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
		add(s, s->grant, path, false);
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
		}
		if (dir < 0) {
			return;
		}
		if (path[at] == '\0' && fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0) {
			add(s, s->grant, path, false);
		}
		part[at] = path[at];
	}
}

static void search_grant(struct search *s, const struct string_list *known)
{
	/* The queue moves as it grows: a copy is read while it is filled. */
	char path[PATH_MAX];

	for (size_t i = 0; i < known->n && !s->failed && budget_left(s->budget); i++) {
		take_known(s, known->v[i]);
	}
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
}

/* When the trees of all grants are known: most git directories lie in one of theirs. */
static void follow_grant(struct search *s, size_t n_trees)
{
	follow_tree(s, NULL);
	for (size_t i = 0; i < n_trees && !s->failed; i++) {
		if (s->found->v[i].grant == s->grant) {
			follow_tree(s, &s->found->v[i]);
		}
	}
}

/* What git is told where the tree `path` is, "" the top. */
static void read_config(struct search *s, const char *path)
{
	auto_free char *tree = path_join(s->plan->grants[s->grant].path, path);
	const char *cut = NULL;

	s->failed |= tree == NULL || repo_config_read(s->plan, s->found, tree, &cut) != 0;
	s->cut = s->cut != NULL ? s->cut : cut;
}

static void read_configs(struct search *s, size_t n_trees)
{
	read_config(s, "");
	for (size_t i = 0; i < n_trees && !s->failed; i++) {
		if (s->found->v[i].grant == s->grant) {
			read_config(s, s->found->v[i].path);
		}
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
	/* A second attempt, or a second run of the plan, says nothing new. */
	return string_list_add_once(&plan->warnings, text, 8UL * MAX_GRANTS);
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
                       struct search *all, struct repos *found)
{
	struct budget budget = budget_new(MAX_REPO_CPU_MS, MAX_REPO_WALL_MS);
	size_t most = most_repos(plan);

	for (size_t i = 0; i < plan->n_grants; i++) {
		all[i] = (struct search){
			.plan = plan, .found = found, .most = most, .grant = i, .budget = &budget
		};
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
}

static bool any_work(const struct ssb_plan *plan)
{
	size_t i = 0;

	while (i < plan->n_grants && !grant_is_work(&plan->grants[i])) {
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

	if (!any_work(plan)) {
		*ret = NULL;
		return 0;
	}
	auto_free struct search *all = calloc(plan->n_grants, sizeof(*all));
	struct repos *found = calloc(1, sizeof(*found));
	bool failed = all == NULL || found == NULL ||
	              (state_dir != NULL && repos_known_load(state_dir, &known) != 0);

	if (!failed) {
		search_all(plan, &known, all, found);
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
		         (all[i].cut != NULL && warn(plan, &plan->grants[i], all[i].cut) != 0);
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
		links_done(&r->links);
	}
	free(r);
}
