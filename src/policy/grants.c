/* grants.c - the list of grants: sorted, without what another includes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "policy/build.h"
#include "policy/own.h"
#include "policy/unlisted.h"

void grant_done(struct grant *g)
{
	free(g->path);
	free(g->target);
	free(g->where);
	free(g->missing);
	free(g->made_for);
	free(g->kept_in);
	own_close(&g->fd);
	own_close(&g->parent_fd);
	*g = (struct grant){ .fd = -1, .parent_fd = -1 };
}

void grants_add(struct build *b, struct grant *g)
{
	struct ssb_plan *p = b->plan;

	if (g->path == NULL || g->target == NULL || g->where == NULL) {
		b->failed = true;
		grant_done(g);
		return;
	}
	if (p->n_grants == MAX_GRANTS) {
		build_refuse(b, REFUSAL_OTHER, g->where, g->path,
		             "there are too many paths in this plan",
		             "name a common parent directory instead");
		grant_done(g);
		return;
	}
	struct grant *v = realloc(p->grants, (p->n_grants + 1) * sizeof(*v));
	if (v == NULL) {
		b->failed = true;
		grant_done(g);
		return;
	}
	p->grants = v;
	v[p->n_grants++] = *g;
	*g = (struct grant){ .fd = -1, .parent_fd = -1 };
}

const struct grant *grants_cover(const struct ssb_plan *p, const struct chain *c, const char *path,
                                 enum access access)
{
	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		if (g->access < access || g->origin == ORIGIN_SKILL) {
			continue;
		}
		if (g->create ? path_beneath(path, g->path) != NULL
		              : chain_has(c, (struct object){ g->dev, g->ino }, 0)) {
			return g;
		}
	}
	return NULL;
}

/* Sorted parents first, so that the innermost is the last. */
const struct grant *plan_shown_by(const struct ssb_plan *p, const char *path)
{
	const struct grant *in = NULL;

	for (size_t i = 0; i < p->n_grants; i++) {
		const struct grant *g = &p->grants[i];
		in = path_beneath(path, g->target) != NULL ? g : in;
	}
	return in;
}

static int compare_grants(const void *x, const void *y)
{
	const struct grant *a = x;
	const struct grant *b = y;
	int d = path_order(a->target, b->target);

	if (d == 0) {
		d = (int)b->access - (int)a->access; /* the wider first: it stays */
	}
	return d != 0 ? d : (int)a->origin - (int)b->origin;
}

/* Whether `g` adds nothing to the grant that it lies in. */
static bool included(struct build *b, const struct grant *outer, const struct grant *g)
{
	const char *rest = path_beneath(g->target, outer->target);

	if (*rest == '\0') {
		return true; /* the same place, sorted by access */
	}
	if (g->access != outer->access || path_beneath(g->path, outer->path) == NULL) {
		return false;
	}
	/* Each writable directory protects names of its own; the runtime's files
	 * are not shown by what only contains them; what the owner named, the skill
	 * reads with other rights. */
	return g->access != ACCESS_WRITE && !own_named(b, g) && (g->unasked || !outer->unasked);
}

void grants_finish(struct build *b)
{
	struct ssb_plan *p = b->plan;
	size_t n = 0;

	if (p->n_grants == 0) {
		return;
	}
	qsort(p->grants, p->n_grants, sizeof(*p->grants), compare_grants);
	for (size_t i = 0; i < p->n_grants; i++) {
		struct grant *g = &p->grants[i];
		size_t up = n;
		while (up > 0 && path_beneath(g->target, p->grants[up - 1].target) == NULL) {
			up--;
		}
		if (up > 0 && included(b, &p->grants[up - 1], g)) {
			grant_done(g);
			continue;
		}
		if (n != i) {
			p->grants[n] = *g;
			*g = (struct grant){ .fd = -1, .parent_fd = -1 };
		}
		n++;
	}
	p->n_grants = n;
}

/* Makes `name` in `dir` unless it is there, and opens it: a directory or empty file of the
 * caller's own, not a symlink that somebody put there meanwhile. */
static int make_one(int dir, const char *name, bool is_dir, const struct grant *g,
                    struct ssb_error *err)
{
	struct stat st;
	int made = is_dir ? mkdirat(dir, name, 0755) : mknodat(dir, name, S_IFREG | 0644, 0);

	if (made < 0 && errno != EEXIST) {
		return ssb_fail(err, SSB_E_SYS, errno, "write", "create '%.200s'", g->path);
	}
	auto_fd fd =
	        openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_dir ? O_DIRECTORY : 0));
	if (fd >= 0 && fstat(fd, &st) == 0 && !is_dir && !S_ISREG(st.st_mode)) {
		errno = EEXIST; /* something else, meanwhile */
		own_close(&fd);
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "write", "open '%.200s', which is new",
		                g->path);
	}
	if (st.st_uid != geteuid()) {
		return ssb_fail(err, SSB_E_POLICY, 0, "write",
		                "'%.200s' was created by uid %u meanwhile; it is not used", g->path,
		                (unsigned)st.st_uid);
	}
	if (made == 0 && is_dir && g->made_for != NULL) {
		unlisted_mark(fd, g->made_for, g->kept_in);
	}
	return steal_fd(&fd);
}

static int create_grant(struct grant *g, struct ssb_error *err)
{
	auto_fd dir = fcntl(g->parent_fd, F_DUPFD_CLOEXEC, 3);
	const char *rest = g->missing;
	char name[NAME_MAX + 1];
	struct stat st;

	if (dir < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "write", "create '%.200s'", g->path);
	}
	while (*rest != '\0') {
		size_t n = strcspn(rest, "/");
		if (n >= sizeof(name)) {
			return ssb_fail(err, SSB_E_SYS, ENAMETOOLONG, "write", "create '%.200s'",
			                g->path);
		}
		memcpy(name, rest, n);
		name[n] = '\0';
		rest += n + (rest[n] == '/');
		int next = make_one(dir, name, *rest != '\0' || g->is_dir, g, err);
		if (next < 0) {
			return -1;
		}
		own_close(&dir);
		dir = next;
	}
	if (fstat(dir, &st) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "write", "examine '%.200s'", g->path);
	}
	g->dev = st.st_dev;
	g->ino = st.st_ino;
	g->uid = st.st_uid;
	g->gid = st.st_gid;
	g->fd = steal_fd(&dir);
	return 0;
}

int plan_create_missing(const struct ssb_plan *p, struct ssb_error *err)
{
	for (size_t i = 0; i < p->n_grants; i++) {
		struct grant *g = &p->grants[i];
		if (g->create && g->fd < 0 && create_grant(g, err) < 0) {
			return -1;
		}
	}
	return covers_create(p, err);
}
