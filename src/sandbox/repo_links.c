/* repo_links.c - notes the symlinks in git directories before a run, and removes new ones
 * after it. */
#include "sandbox/repo_links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/observer.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/own.h"
#include "base/string_list.h"
#include "os/entries.h"
#include "os/file.h"
#include "policy/path.h"
#include "sandbox/sources.h"

#define QUEUE_BYTES (4UL << 20)
#define IN_GITDIR   (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)

struct gitdir {
	int fd; /* O_PATH: stays valid if the skill moves the directory */
	char *path;
	bool cut; /* before the run, not all of its names could be read */
	/* Placeholders of another run exist, which is still active or was killed. They were made at
	 * `since`. */
	bool left;
	struct timespec since;
};

struct repo_links {
	struct string_list noted; /* symlinks, in the format of link_text() */
	size_t n;
	struct gitdir v[];
};

/* A walk through one git directory, breadth first, because git writes mostly near the top. */
struct gitdir_walk {
	/* before the run: the list to which the walk adds symlinks; NULL after the run, when it
	 * removes them */
	struct repo_links *noting;
	/* the git directories, and the symlinks that were noted before the run */
	const struct repo_links *then;
	size_t gitdir;
	struct trace *trace;
	struct buf queue; /* paths relative to the git directory, each with its NUL */
	size_t entries;
	bool cut;
};

void repo_links_free(struct repo_links *l)
{
	for (size_t i = 0; l != NULL && i < l->n; i++) {
		own_close(&l->v[i].fd);
		free(l->v[i].path);
	}
	if (l != NULL) {
		string_list_done(&l->noted);
	}
	free(l);
}

/* Returns true if the walk must enter the directory `name` in `dir`, because git opens files in it
 * for writing. Other directories at the top may be the worktree of a bare repository. Beneath
 * "objects" only "pack" and "info" are entered, because git puts objects in place by rename, which
 * follows no symlink. The skill cannot write to modules, hooks and info. */
static bool is_walked(const char *dir, const char *name)
{
	static const char *const TOP[] = { "objects",  "refs", "logs",    "worktrees",
		                           "rr-cache", "svn",  "reftable" };
	size_t i = 0;

	if (strcmp(dir, "objects") == 0) {
		return strcmp(name, "pack") == 0 || strcmp(name, "info") == 0;
	}
	while (i < ARRAY_LEN(TOP) && strcmp(TOP[i], name) != 0) {
		i++;
	}
	return *dir != '\0' || i < ARRAY_LEN(TOP);
}

/* True for a symlink that git itself made: HEAD, if core.preferSymlinkRefs is set. git does not
 * write through it. */
static bool is_symbolic_ref(const char *name, const char *to)
{
	return strcmp(name, "HEAD") == 0 && strncmp(to, "refs/", 5) == 0 &&
	       strstr(to, "..") == NULL;
}

static char *link_text(size_t gitdir, const char *path, const char *to)
{
	char *text;

	return asprintf(&text, "%zu/%s\n%s", gitdir, path, to) < 0 ? NULL : text;
}

/* Removes the link, even if the skill has removed the write permission of the directory. */
static bool remove_link(int dir, const char *name)
{
	struct stat st;

	if (unlinkat(dir, name, 0) == 0) {
		return true;
	}
	if (errno != EACCES || fstat(dir, &st) != 0 ||
	    fchmod(dir, (st.st_mode & 07777) | S_IRWXU) != 0) {
		return false;
	}
	bool removed = unlinkat(dir, name, 0) == 0;
	(void)!fchmod(dir, st.st_mode & 07777);
	return removed;
}

static void record_link(const struct gitdir_walk *l, const char *path, const char *to, bool removed)
{
	auto_free char *whole = path_join(l->then->v[l->gitdir].path, path);
	auto_free char *text = NULL;

	if (l->trace == NULL || whole == NULL ||
	    asprintf(&text,
	             "the skill made the symlink %s to %s in a git directory, where git would "
	             "write or delete through it: %s",
	             whole, to,
	             removed ? "removed" : "it could not be removed, so remove it yourself") < 0) {
		text = NULL;
		return;
	}
	trace_add(l->trace, &(struct event){ .kind = EV_FILE_BLOCKED,
	                                     .status = STATUS_DENIED,
	                                     .violation = true,
	                                     .message = { text, strlen(text) },
	                                     .op = OP_SYMLINK,
	                                     .mode = MODE_WRITE,
	                                     .path = { whole, strlen(whole) },
	                                     .raw = { to, strlen(to) },
	                                     .reason = REASON_PROTECTED });
}

/* Sets g->left if there are placeholders of another run, which is still active or whose supervisor
 * was killed. Symlinks that are newer than these placeholders were made by that run's skill. */
static void find_left(struct gitdir *g)
{
	struct stat st;

	g->left = placeholders_is_link(g->fd, "rebase-merge") &&
	          fstatat(g->fd, "rebase-merge", &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (g->left) {
		g->since = st.st_ctim;
	}
}

static bool is_left(const struct gitdir *g, int dir, const char *name)
{
	struct stat st;

	return g->left && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (st.st_ctim.tv_sec > g->since.tv_sec ||
	        (st.st_ctim.tv_sec == g->since.tv_sec && st.st_ctim.tv_nsec > g->since.tv_nsec));
}

static void take_link(struct gitdir_walk *l, int dir, const char *path, const char *name,
                      const char *to)
{
	auto_free char *text = link_text(l->gitdir, path, to);

	if (text == NULL) {
		l->cut = true;
	} else if (strcmp(to, OBSERVER_NOTHING) == 0) {
		return; /* a placeholder */
	} else if (l->noting != NULL) {
		l->cut |= !is_left(&l->then->v[l->gitdir], dir, name) &&
		          string_list_add(&l->noting->noted, text, MAX_HELD) != 0;
	} else if (!string_list_has(&l->then->noted, text) && !is_symbolic_ref(name, to)) {
		record_link(l, path, to, remove_link(dir, name));
	}
}

static void take_entry(struct gitdir_walk *l, int dir, const char *within, const struct dirent64 *e)
{
	char to[PATH_MAX];

	l->entries++;
	if (e->d_type != DT_LNK && e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) {
		return;
	}
	auto_free char *path = *within != '\0' ? path_join(within, e->d_name) : strdup(e->d_name);
	ssize_t n = e->d_type != DT_DIR ? readlinkat(dir, e->d_name, to, sizeof(to) - 1) : -1;
	if (path == NULL || (n < 0 && e->d_type == DT_LNK)) {
		l->cut = true;
	} else if (n >= 0) {
		to[n] = '\0';
		take_link(l, dir, path, e->d_name, to);
	} else if (is_walked(within, e->d_name)) {
		buf_add(&l->queue, path, strlen(path) + 1);
	}
}

/* Opens a directory for reading. If this fails after the run because the skill removed the
 * permissions, first gives them back with chmod. The walk must see such a directory, because git
 * can still write to files in it. The path ends in ".", so that the open fails if the entries are
 * not accessible. Returns -1 with errno. */
static int open_walked(const struct gitdir_walk *l, const char *path)
{
	int top = l->then->v[l->gitdir].fd;
	char within[PATH_MAX + 2], link[64];
	struct stat st;

	snprintf(within, sizeof(within), "%s%s.", path, *path != '\0' ? "/" : "");
	int fd = file_openat2(top, within, O_RDONLY | O_DIRECTORY, IN_GITDIR);
	if (fd >= 0 || l->noting != NULL || errno != EACCES) {
		return fd;
	}
	/* The top itself cannot be opened by name: while it is closed, even "." in it cannot be
	 * opened. So its fd is used. */
	auto_fd at = *path != '\0' ? file_openat2(top, path, O_PATH | O_DIRECTORY, IN_GITDIR)
	                           : fcntl(top, F_DUPFD_CLOEXEC, 3);
	if (at < 0 || fstat(at, &st) != 0) {
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	return chmod(link, (st.st_mode & 07777) | S_IRWXU) != 0
	               ? -1
	               : file_openat2(top, within, O_RDONLY | O_DIRECTORY, IN_GITDIR);
}

static void visit_directory(struct gitdir_walk *l, const char *path)
{
	auto_fd dir = open_walked(l, path);
	const struct dirent64 *e;
	struct entries names;

	if (dir < 0) {
		l->cut |= !file_is_missing(errno) && errno != ELOOP;
		return;
	}
	entries_init(&names, dir);
	while (l->entries <= MAX_REPO_ENTRIES && (e = entries_next(&names)) != NULL) {
		take_entry(l, dir, path, e);
	}
	l->cut |= l->entries <= MAX_REPO_ENTRIES && errno != 0;
}

static void walk_gitdir(struct gitdir_walk *l)
{
	/* Copy the path: the queue's memory moves when the queue grows. */
	char path[PATH_MAX];

	buf_init(&l->queue, QUEUE_BYTES);
	buf_addc(&l->queue, '\0'); /* the git directory itself */
	for (size_t at = 0; at < l->queue.len && l->entries <= MAX_REPO_ENTRIES;) {
		size_t len = strlen(l->queue.data + at);
		if (len < sizeof(path)) {
			memcpy(path, l->queue.data + at, len + 1);
			visit_directory(l, path);
		}
		l->cut |= len >= sizeof(path);
		at += len + 1;
	}
	l->cut |= l->queue.failed || l->entries > MAX_REPO_ENTRIES;
	buf_done(&l->queue);
}

/* Adds the git directory of a tree, or with `is_gitdir` the directory itself. A .git that is a file
 * or symlink is skipped: the git directory that it names was found separately. */
static int add_gitdir(struct repo_links *l, const struct grant *g, const char *tree, bool is_gitdir)
{
	auto_free char *git = is_gitdir       ? strdup(*tree != '\0' ? tree : ".")
	                      : *tree != '\0' ? path_join(tree, ".git")
	                                      : strdup(".git");
	auto_fd fd = git != NULL ? file_openat2(g->fd, git, O_PATH | O_DIRECTORY, IN_GITDIR) : -1;
	char *path = fd >= 0 ? path_join(g->path, git) : NULL;

	if (path != NULL) {
		l->v[l->n] = (struct gitdir){ .fd = steal_fd(&fd), .path = path };
		find_left(&l->v[l->n++]);
	}
	return git == NULL || (fd >= 0 && path == NULL) || (fd < 0 && errno == EMFILE) ? -1 : 0;
}

static int add_gitdirs(struct repo_links *l, const struct ssb_plan *plan,
                       const struct prepared *of_run, const struct repos *repos)
{
	const struct grant *grants = prepared_grants(of_run, plan);
	int failed = 0;

	for (size_t i = 0; i < plan->n_grants && failed == 0; i++) {
		failed = grant_is_work(&grants[i]) ? add_gitdir(l, &grants[i], "", false) : 0;
	}
	for (size_t i = 0; i < repos->n && failed == 0; i++) {
		const struct repo *r = &repos->v[i];
		failed = add_gitdir(l, &grants[r->grant], r->path, r->gitdir);
	}
	return failed;
}

static int fail_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "mounts",
	                "not enough memory or file descriptors for the git directories");
}

int repo_links_new(const struct ssb_plan *plan, const struct prepared *of_run,
                   const struct repos *repos, struct repo_links **ret, struct ssb_error *err)
{
	if (repos == NULL) {
		return 0;
	}
	size_t most = plan->n_grants + repos->n;
	struct repo_links *l = calloc(1, sizeof(*l) + most * sizeof(l->v[0]));

	if (l == NULL || add_gitdirs(l, plan, of_run, repos) != 0) {
		repo_links_free(l);
		return fail_memory(err);
	}
	if (l->n == 0) {
		repo_links_free(l);
		l = NULL;
	}
	*ret = l;
	return 0;
}

static int warn_cut(struct prepared *of_run, const struct gitdir *g)
{
	auto_free char *text = NULL;

	if (asprintf(&text,
	             "write %s: this directory has too many names, or a part of it cannot be read; "
	             "a symlink "
	             "that the skill leaves there may stay, and git would write through it",
	             g->path) < 0) {
		text = NULL;
		return -1;
	}
	return string_list_add_once(&of_run->warnings, text, 8UL * MAX_GRANTS);
}

int repo_links_note(struct repo_links *l, struct prepared *of_run, struct ssb_error *err)
{
	for (size_t i = 0; l != NULL && i < l->n; i++) {
		struct gitdir_walk look = { .noting = l, .then = l, .gitdir = i };
		walk_gitdir(&look);
		l->v[i].cut = look.cut;
		if (look.cut && warn_cut(of_run, &l->v[i]) != 0) {
			return fail_memory(err);
		}
	}
	return 0;
}

void repo_links_remove(const struct repo_links *l, struct trace *trace)
{
	for (size_t i = 0; l != NULL && i < l->n; i++) {
		struct gitdir_walk look = { .then = l, .gitdir = i, .trace = trace };
		walk_gitdir(&look);
		if (look.cut && !l->v[i].cut && trace != NULL) {
			trace_violation(
			        trace, EV_POLICY_VIOLATION,
			        "the skill left too many names in %.3500s to search all of "
			        "them for symlinks that git would write through: list these "
			        "symlinks (find DIRECTORY -type l) before you use git there",
			        l->v[i].path);
		}
	}
}
