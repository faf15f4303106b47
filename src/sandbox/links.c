/* links.c - follows paths of the host link by link, and lists the links and directories that must
 * be held. */
#include "sandbox/links.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/path.h"

#define MAX_LINKS_OF_PATH 40 /* the kernel's own limit */

/* The state of following one path. */
struct link_walk {
	char done[PATH_MAX]; /* the part that was followed, without a symlink; "" is "/" */
	char rest[PATH_MAX];
};

bool links_is_unread(int dir, const char *path)
{
	return errno == EACCES ? file_closed_by(dir, path) == geteuid() : !file_is_missing(errno);
}

int links_unread(const char *path, struct ssb_error *err)
{
	return ssb_fail(
	        err, SSB_E_LAYER, errno, "mounts",
	        "cannot read '%.140s', which may lead tools on the host to files of the skill; %s",
	        path,
	        errno == EAGAIN   ? "end the program that has a lease on it, or wait"
	        : errno == EACCES ? "make it readable for you, or grant another directory"
	        : errno == EMFILE ? "raise the limit of open files (ulimit -n)"
	                          : "grant another directory");
}

static int too_long(void)
{
	errno = ENAMETOOLONG;
	return -1;
}

static void go_up(struct link_walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash != NULL) {
		*slash = '\0';
	}
}

static bool is_up(const char *rest)
{
	return strcspn(rest, "/") == 2 && memcmp(rest, "..", 2) == 0;
}

/* Moves the next name from `rest` to `done`. */
static int go_on(struct link_walk *w)
{
	const char *name = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(name, "/");
	size_t len = strlen(w->done);

	if (is_up(name)) {
		go_up(w);
	} else if (n > 1 || (n == 1 && *name != '.')) {
		if (n + 2 > sizeof(w->done) - len) {
			return too_long();
		}
		snprintf(w->done + len, sizeof(w->done) - len, "/%.*s", (int)n, name);
	}
	memmove(w->rest, name + n, strlen(name + n) + 1);
	return 0;
}

/* Replaces the link at the end of `done` by its target. */
static int go_by(struct link_walk *w, const char *to)
{
	char rest[PATH_MAX];
	int n = snprintf(rest, sizeof(rest), "%s/%s", to, w->rest);

	if (n < 0 || (size_t)n >= sizeof(rest)) {
		return too_long();
	}
	memcpy(w->rest, rest, (size_t)n + 1);
	if (*to == '/') {
		w->done[0] = '\0';
	} else {
		go_up(w);
	}
	return 0;
}

int links_add(struct links *l, const struct ssb_plan *plan, const char *path, bool read_only)
{
	const struct grant *g = plan_shown_by(plan, path);

	if (g == NULL || !grant_is_written(g)) {
		return 0;
	}
	size_t grant = (size_t)(g - plan->grants);
	const char *rest = path_beneath(path, g->target);
	if (*rest == '\0' && !read_only) {
		return 0; /* the top of a grant is a mount point, which cannot be moved */
	}
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].grant == grant && strcmp(l->v[i].path, rest) == 0) {
			l->v[i].read_only |= read_only;
			return 0;
		}
	}
	if (l->n == MAX_HELD) {
		errno = E2BIG;
		return -1;
	}
	char *copy = strdup(rest);
	if (copy == NULL) {
		return -1;
	}
	l->v[l->n++] = (struct held_path){ .grant = grant, .path = copy, .read_only = read_only };
	return 0;
}

/* True for the type of a file system that another machine or program serves, or in which a lookup
 * can mount something. */
static bool is_remote(const char *type)
{
	static const char *const FIRST[] = { "9p",   "afs",  "autofs",   "ceph",    "cifs",
		                             "coda", "fuse", "gfs",      "lustre",  "nfs",
		                             "smb",  "ocfs", "orangefs", "virtiofs" };
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(FIRST); i++) {
		found = found || strncmp(type, FIRST[i], strlen(FIRST[i])) == 0;
	}
	return found;
}

/* Returns 1 if the path lies in a file system that may never answer and that contains neither a
 * grant nor the home; otherwise 0, or -1 with errno. */
static int is_far(struct links *l, const struct ssb_plan *plan, const char *path)
{
	if (l->mounts.n == 0 && mounts_load(&l->mounts) != 0) {
		return -1;
	}
	const struct mount *m = mounts_of(&l->mounts, path);
	if (m == NULL || !is_remote(m->type)) {
		return 0;
	}
	bool known = mounts_of(&l->mounts, plan->home) == m;
	for (size_t i = 0; i < plan->n_grants; i++) {
		known = known || mounts_of(&l->mounts, plan->grants[i].path) == m;
	}
	return !known;
}

static bool is_skills(const struct ssb_plan *plan, const char *path)
{
	const struct grant *g = plan_shown_by(plan, path);

	return g != NULL && grant_is_written(g);
}

char *links_follow(struct links *l, const struct ssb_plan *plan, const char *path, bool by_skill,
                   bool *ret_there)
{
	struct link_walk w = { .done = "" };
	char to[PATH_MAX];
	bool there = true;
	int why = 0;

	if (strlen(path) >= sizeof(w.rest)) {
		(void)too_long();
		return NULL;
	}
	memcpy(w.rest, path, strlen(path) + 1);
	for (int links = 0; there && w.rest[strspn(w.rest, "/")] != '\0';) {
		bool up = is_up(w.rest + strspn(w.rest, "/"));
		if ((up && links_add(l, plan, w.done, false) != 0) || go_on(&w) != 0) {
			return NULL;
		}
		int far = by_skill ? is_far(l, plan, w.done[0] != '\0' ? w.done : "/") : 0;
		if (far < 0) {
			return NULL;
		}
		if (far > 0) {
			there = false;
			why = EXDEV;
			continue;
		}
		ssize_t n = readlink(w.done[0] != '\0' ? w.done : "/", to, sizeof(to) - 1);
		if (n < 0 && errno != EINVAL && errno != EACCES && !file_is_missing(errno)) {
			return NULL;
		}
		if (n < 0) {
			there = errno == EINVAL; /* not a symlink */
			why = errno;
			continue;
		}
		to[n] = '\0';
		there = links++ < MAX_LINKS_OF_PATH;
		why = ELOOP;
		by_skill = by_skill || is_skills(plan, w.done);
		if (links_add(l, plan, w.done, true) != 0 || (there && go_by(&w, to) != 0)) {
			return NULL;
		}
	}
	char *real = strdup(w.done[0] != '\0' ? w.done : "/");
	*ret_there = there;
	errno = real != NULL ? why : ENOMEM;
	return real;
}

void links_done(struct links *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
	}
	l->n = 0;
	string_list_done(&l->paths);
	mounts_done(&l->mounts);
}
