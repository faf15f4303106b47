/* prepared.c - creates the missing paths of a plan, and opens them. */
#include "sandbox/prepared.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/unlisted.h"
#include "sandbox/caches.h"

/* Makes `name` in `dir` unless it exists, and opens it. Returns a new fd, or -1. Fails unless
 * `name` is the caller's own directory or regular file: another process may have put something else
 * there meanwhile. */
static int make_one(int dir, const char *name, bool is_dir, struct grant *g, struct ssb_error *err)
{
	struct stat st;
	mode_t mode = g->origin == ORIGIN_CACHE ? 0700 : 0755;
	int made = is_dir ? mkdirat(dir, name, mode) : mknodat(dir, name, S_IFREG | 0644, 0);

	if (made < 0 && errno != EEXIST) {
		return ssb_fail(err, SSB_E_SYS, errno, "write", "cannot create '%.200s'", g->path);
	}
	auto_fd fd =
	        openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_dir ? O_DIRECTORY : 0));
	if (fd >= 0 && fstat(fd, &st) == 0 && !is_dir &&
	    (!S_ISREG(st.st_mode) || (g->origin == ORIGIN_CALLER && st.st_nlink != 1))) {
		errno = EEXIST; /* another process has put another kind of file there */
		own_close(&fd);
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "write",
		                "cannot open '%.200s', which was just created", g->path);
	}
	if (st.st_uid != geteuid()) {
		return ssb_fail(err, SSB_E_POLICY, 0, "write",
		                "'%.200s' was created by uid %u meanwhile, so it is not used",
		                g->path, (unsigned)st.st_uid);
	}
	g->made = made == 0;
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
		return ssb_fail(err, SSB_E_SYS, errno, "write", "cannot create '%.200s'", g->path);
	}
	while (*rest != '\0') {
		size_t n = strcspn(rest, "/");
		if (n >= sizeof(name)) {
			return ssb_fail(err, SSB_E_SYS, ENAMETOOLONG, "write",
			                "cannot create '%.200s'", g->path);
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
		return ssb_fail(err, SSB_E_SYS, errno, "write", "cannot examine '%.200s'", g->path);
	}
	g->dev = st.st_dev;
	g->ino = st.st_ino;
	g->uid = st.st_uid;
	g->gid = st.st_gid;
	g->fd = steal_fd(&dir);
	return 0;
}

/* Makes the directories that must be covered: a cover can be mounted only over something that
 * exists. */
static int create_covers(const struct ssb_plan *p, struct ssb_error *err)
{
	for (size_t i = 0; i < p->n_covers; i++) {
		const struct cover *c = &p->covers[i];
		auto_fd fd = c->create ? file_mkdirs(c->path) : -1;
		/* If the caller has no right to make the directory, the skill has no right to make
		 * it either. */
		if (c->create && fd < 0 && errno != EROFS && errno != EACCES && errno != EPERM) {
			return ssb_fail(err, SSB_E_SYS, errno, "covers",
			                "cannot create '%.200s', which must be hidden from the "
			                "skill (%.60s)",
			                c->path, c->where);
		}
	}
	return 0;
}

/* Copies the plan's grants. A grant whose object must still be created has no fd yet. */
static int copy_grants(const struct ssb_plan *plan, struct prepared *p, struct ssb_error *err)
{
	p->grants = calloc(plan->n_grants, sizeof(*p->grants));
	if (p->grants == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "write", "out of memory");
	}
	p->n_grants = plan->n_grants;
	memcpy(p->grants, plan->grants, plan->n_grants * sizeof(*p->grants));
	return 0;
}

int prepared_make(const struct ssb_plan *plan, struct prepared *p, struct ssb_error *err)
{
	assert(p->grants == NULL);
	for (size_t i = 0; i < plan->n_grants; i++) {
		if (plan->grants[i].create &&
		    ((p->grants == NULL && copy_grants(plan, p, err) != 0) ||
		     create_grant(&p->grants[i], err) != 0)) {
			return -1;
		}
	}
	return create_covers(plan, err) != 0 ? -1 : caches_begin(plan, p, err);
}

/* Removes the file that was made for an argument, if the skill wrote nothing to it and it still has
 * its name. */
static void remove_empty(const struct grant *g)
{
	struct stat made, now;

	if (g->origin == ORIGIN_CALLER && g->made && g->fd >= 0 && fstat(g->fd, &made) == 0 &&
	    made.st_size == 0 &&
	    fstatat(g->parent_fd, g->missing, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_dev == made.st_dev && now.st_ino == made.st_ino) {
		(void)unlinkat(g->parent_fd, g->missing, 0);
	}
}

void prepared_done(struct prepared *p)
{
	for (size_t i = 0; i < p->n_grants; i++) {
		if (p->grants[i].create) {
			remove_empty(&p->grants[i]);
			own_close(&p->grants[i].fd);
		}
	}
	if (p->has_cache) {
		own_close(&p->cache_fd);
	}
	free(p->grants);
	string_list_done(&p->warnings);
	string_list_done(&p->quiet);
	string_list_done(&p->lost);
	*p = (struct prepared){ 0 };
}
