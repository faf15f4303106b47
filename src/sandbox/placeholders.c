/* placeholders.c - makes and removes the files and directories that hold protected names.
 *
 * A name can be protected by a mount only if it exists. So if the skill must not create a name, the
 * supervisor first creates a placeholder there, for the length of the run. A placeholder is
 * recognized by its mode (sticky and read-only, which no other program gives such a file) and its
 * size. So the next run can take over a placeholder that a killed supervisor left behind, and
 * remove it at its end. Each run that needs a placeholder has a shared lock on it: removing it
 * earlier would end the protection in the other runs. A name that must not seem to exist is held by
 * a symlink to nothing; the lock is then on its directory.
 *
 * git treats a directory with the names HEAD, objects and refs as a bare repository, and follows
 * the settings in it. A skill must be allowed to make files of these names. So the placeholder
 * "commondir" at the top of a tree says that the rest of such a repository lies in /dev/null, which
 * is not a directory, and git rejects the repository. If the skill has made all three names, this
 * placeholder stays after the run. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/observer.h"
#include "base/error.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/path.h"
#include "policy/protect.h"
#include "sandbox/sources.h"

#define FILE_MODE 01444
#define DIR_MODE  01555
/* for HOLD_PRIVATE: a directory to which the owner's programs write if it exists */
#define OPEN_MODE 01755
/* The bits that are ignored when a placeholder is recognized: a umask can remove 0055, and the
 * setgid bit of the parent directory can add S_ISGID. */
#define ANY_MODE ((mode_t)(S_ISGID | 0055))
/* the content of the placeholder "commondir", see the top of this file */
#define ELSEWHERE "/dev/null"
#define MAX_TEXT  ((off_t)sizeof(ELSEWHERE) - 1)

/* How often a placeholder's lock is tried while another run removes the placeholder: 1 s in total.
 * The number is limited because a skill that may write to the directory can hold the lock, too.
 * Other programs do not lock placeholders. */
#define LOCK_TRIES    200
#define LOCK_PAUSE_US 5000

struct placeholder {
	/* the directory that contains it (O_PATH); for a symlink, opened for reading and locked */
	int dir;
	int fd;        /* the placeholder itself, locked; -1: a symlink */
	bool owns_dir; /* false: `dir` belongs to an earlier placeholder or to the grant */
	char name[NAME_MAX + 1];
};

struct placeholders {
	size_t n;
	size_t most;
	struct placeholder v[];
};

/* True if git would take the directory for a git directory, provided HEAD has the right
 * content. A dangling symlink counts: its target can be made later. */
static bool is_git_layout(int dir)
{
	static const char *const NAMES[] = { "HEAD", "objects", "refs" };
	struct stat st;
	size_t i = 0;

	while (i < ARRAY_LEN(NAMES) && fstatat(dir, NAMES[i], &st, AT_SYMLINK_NOFOLLOW) == 0) {
		i++;
	}
	return i == ARRAY_LEN(NAMES);
}

/* The content of a placeholder file. git needs a commondir that is not empty and settings that it
 * can parse. An agent that starts during the run needs valid JSON. */
static const char *placeholder_text(int dir, const char *name)
{
	if (strcmp(name, "commondir") == 0) {
		return is_git_layout(dir) ? "." : ELSEWHERE;
	}
	return strstr(name, ".json") != NULL ? "{}" : "#";
}

static bool has_mode(const struct stat *st, mode_t mode)
{
	return (st->st_mode & ~ANY_MODE) == (mode & ~ANY_MODE);
}

bool placeholders_is_open(const struct stat *st)
{
	return has_mode(st, S_IFDIR | OPEN_MODE);
}

bool placeholders_is_ours(const struct stat *st)
{
	return has_mode(st, S_IFDIR | DIR_MODE) || placeholders_is_open(st) ||
	       (has_mode(st, S_IFREG | FILE_MODE) && st->st_size > 0 && st->st_size <= MAX_TEXT);
}

/* True for a placeholder that is still empty: another run is making it right now, or was killed
 * while it did. */
static bool is_unfinished(const struct stat *st)
{
	return has_mode(st, S_IFREG | FILE_MODE) && st->st_size == 0;
}

/* Makes a placeholder. Returns 0, or -1 with errno; EEXIST if the name exists. */
static int placeholder_create(int dir, const char *name, mode_t mode)
{
	if (mode != FILE_MODE) {
		return mkdirat(dir, name, mode);
	}
	auto_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0) {
		return -1;
	}
	const char *text = placeholder_text(dir, name);
	if (file_write_all(fd, text, strlen(text)) != 0) {
		int saved = errno;
		(void)unlinkat(dir, name, 0);
		errno = saved;
		return -1;
	}
	return 0;
}

/* True if the name still refers to the placeholder `held`. */
static bool is_named(int dir, const char *name, const struct stat *held)
{
	struct stat named;

	return fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       held->st_dev == named.st_dev && held->st_ino == named.st_ino;
}

/* True if the skill could later create a name that the caller cannot create now. The skill runs as
 * the caller, and a user who owns a directory can give itself write permission. */
static bool may_later(int dir)
{
	struct stat st;
	return fstat(dir, &st) != 0 || st.st_uid == geteuid();
}

/* Call it after a failed open, with errno unchanged. True if errno says that the name exists and is
 * not a placeholder: it cannot be read, or is of another kind. Other errors do not say whether the
 * name exists, except ENOENT. */
static bool is_owners(void)
{
	return errno == EACCES || errno == ELOOP || errno == ENOTDIR || errno == ENXIO;
}

enum placeholder_state { OURS, UNFINISHED, GONE, OWNERS, UNKNOWN };

/* Returns what the name refers to; for UNKNOWN, errno is set. If it can be opened, *ret_fd is its
 * fd and *ret describes it. */
static enum placeholder_state placeholder_find(int dir, const char *name, bool is_dir, int *ret_fd,
                                               struct stat *ret)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (is_dir ? O_DIRECTORY : 0);
	auto_fd fd = openat(dir, name, flags);

	if (fd < 0 || fstat(fd, ret) != 0) {
		return errno == ENOENT ? GONE : is_owners() ? OWNERS : UNKNOWN;
	}
	*ret_fd = steal_fd(&fd);
	return placeholders_is_ours(ret) ? OURS : is_unfinished(ret) ? UNFINISHED : OWNERS;
}

/* Removes an unfinished placeholder. If the run that is making it still exists, that run has not
 * locked it yet, and will find and lock the new placeholder that this run makes. */
static void placeholder_clear(int dir, const char *name, int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && is_unfinished(&st) &&
	    is_named(dir, name, &st)) {
		(void)unlinkat(dir, name, 0);
	}
}

/* Makes or takes over a placeholder and locks it. *ret_fd is its fd, or -1 if no placeholder is
 * needed: the name exists and is not a placeholder, or neither the caller nor the skill can create
 * it. Returns 0, or -1 with errno if a placeholder is needed and cannot be made. */
static int placeholder_open(int dir, const char *name, mode_t mode, int *ret_fd)
{
	bool is_dir = mode != FILE_MODE;

	*ret_fd = -1;
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		bool made = placeholder_create(dir, name, mode) == 0;
		if (!made && errno != EEXIST) {
			return errno == EROFS || (errno == EACCES && !may_later(dir)) ? 0 : -1;
		}
		auto_fd fd = -1;
		struct stat st;
		enum placeholder_state found = placeholder_find(dir, name, is_dir, &fd, &st);
		if (found == UNKNOWN || (found == OWNERS && made)) {
			/* If a placeholder that was just made is not recognized, this file system
			 * does not support its mode. */
			int error = found == UNKNOWN ? errno : EOPNOTSUPP;
			if (made) {
				(void)unlinkat(dir, name, is_dir ? AT_REMOVEDIR : 0);
			}
			errno = error;
			return -1;
		}
		if (found == OWNERS) {
			return 0;
		}
		if (made && found != GONE && (st.st_mode & 07777) != mode) {
			/* Set the mode again: it must not depend on the caller's umask, because
			 * runs of other users lock the same file. */
			(void)fchmod(fd, mode);
		}
		/* If the lock fails, or the name refers to another file now, another run is ending
		 * and removes the placeholder: try again. */
		if (found == OURS && flock(fd, LOCK_SH | LOCK_NB) == 0 &&
		    is_named(dir, name, &st)) {
			*ret_fd = steal_fd(&fd);
			return 0;
		}
		if (found == UNFINISHED && tries > 0) {
			placeholder_clear(dir, name, fd);
		}
		if (found != GONE) {
			(void)usleep(LOCK_PAUSE_US);
		}
	}
	errno = EBUSY;
	return -1;
}

bool placeholders_is_link(int dir, const char *name)
{
	return file_is_link_to(dir, name, OBSERVER_NOTHING);
}

/* Makes a symlink as the placeholder. `dir` must be open for reading. *ret_held is true if the
 * symlink exists and `dir` is locked. */
static int placeholder_link(int dir, const char *name, bool *ret_held)
{
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		if (symlinkat(OBSERVER_NOTHING, dir, name) != 0 && errno != EEXIST) {
			return errno == EROFS || (errno == EACCES && !may_later(dir)) ? 0 : -1;
		}
		/* Another run that is ending removes the symlink while it has the lock. So check
		 * that the symlink exists after this run has the lock. */
		if (flock(dir, LOCK_SH | LOCK_NB) == 0 && placeholders_is_link(dir, name)) {
			*ret_held = true;
			return 0;
		}
		struct stat st;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !placeholders_is_link(dir, name)) {
			return 0;
		}
		(void)usleep(LOCK_PAUSE_US);
	}
	errno = EBUSY;
	return -1;
}

/* The directory in which the next placeholders are made. It is kept open, because most of them lie
 * in the same directory. */
struct spot {
	struct placeholders *placeholders;
	int top;         /* O_PATH */
	const char *way; /* a name whose first `len` bytes are the path from `top` to `dir` */
	size_t len;      /* the length of that path, 0 for `top` */
	int dir;         /* O_PATH; -1: nothing can be made here */
	int lock;        /* open for reading; -1: not opened yet */
	/* The fds `top`, `dir` and `lock` if the spot owns them; -1: they are borrowed, or a
	 * placeholder owns them. */
	int own_top, own_dir, own_lock;
};

/* Returns a spot at the directory `top`. `own_top` is `top` if the spot takes that fd, or -1 if it
 * is borrowed for as long as the placeholders exist. */
static struct spot spot_at(struct placeholders *p, int top, int own_top)
{
	return (struct spot){ p, top, "", 0, top, -1, own_top, -1, -1 };
}

static void spot_leave(struct spot *s)
{
	own_close(&s->own_dir);
	own_close(&s->own_lock);
	s->dir = s->lock = -1;
}

static void spot_done(struct spot *s)
{
	spot_leave(s);
	own_close(&s->own_top);
}

/* Adds `h` as the placeholder of `name`. `own` points to the spot's own_dir, own_top or own_lock.
 * If *own is not -1, it is the fd h.dir, and the placeholder takes it. */
static void spot_keep(struct spot *s, struct placeholder h, const char *name, int *own)
{
	assert(s->placeholders->n < s->placeholders->most);
	h.owns_dir = *own >= 0;
	*own = -1;
	memcpy(h.name, name, strlen(name) + 1);
	s->placeholders->v[s->placeholders->n++] = h;
}

static int hold_by_link(struct spot *s, const char *name)
{
	bool held = false;

	if (s->lock < 0) {
		s->own_lock = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		s->lock = s->own_lock;
	}
	if (s->lock < 0) {
		return errno == EACCES && !may_later(s->dir) ? 0 : -1;
	}
	if (placeholder_link(s->lock, name, &held) != 0) {
		return -1;
	}
	if (held) {
		spot_keep(s, (struct placeholder){ .dir = s->lock, .fd = -1 }, name, &s->own_lock);
	}
	return 0;
}

/* Makes a file or directory as the placeholder of `name`. Sets *ret_held to whether the name now
 * has a placeholder. */
static int hold_by_thing(struct spot *s, const char *name, mode_t mode, bool *ret_held)
{
	struct placeholder h = { .dir = s->dir, .fd = -1 };

	if (placeholder_open(s->dir, name, mode, &h.fd) != 0) {
		return -1;
	}
	*ret_held = h.fd >= 0;
	if (*ret_held) {
		spot_keep(s, h, name, s->dir == s->top ? &s->own_top : &s->own_dir);
	}
	return 0;
}

/* Enters a subdirectory. If it is missing, makes a placeholder of its name; then no more is needed,
 * because the skill cannot create the directory and so nothing in it. */
static int spot_enter(struct spot *s, const char *name)
{
	int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_fd next = openat(s->dir, name, flags);
	struct stat st;
	bool held = false;

	if (next < 0 ? errno == ENOENT : fstat(next, &st) == 0 && placeholders_is_ours(&st)) {
		own_close(&next);
		if (hold_by_thing(s, name, DIR_MODE, &held) != 0) {
			return -1;
		}
		next = held ? -1 : openat(s->dir, name, flags);
	}
	/* A part that is a symlink or not a directory needs no placeholder: grants_hold.c protects
	 * it. */
	if (next < 0 && !held && errno != ENOTDIR && errno != ELOOP) {
		return -1;
	}
	spot_leave(s);
	s->dir = s->own_dir = steal_fd(&next);
	return 0;
}

static int spot_go(struct spot *s, const char *name)
{
	size_t len = strlen(name) - strlen(path_base(name));
	char part[NAME_MAX + 1];

	if (len == s->len && memcmp(name, s->way, len) == 0) {
		return 0;
	}
	spot_leave(s);
	s->dir = s->top;
	for (size_t at = 0; at < len && s->dir >= 0;) {
		size_t n = strcspn(name + at, "/");
		if (n >= sizeof(part)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, name + at, n);
		part[n] = '\0';
		if (spot_enter(s, part) != 0) {
			return -1;
		}
		at += n + 1;
	}
	s->way = name;
	s->len = len;
	return 0;
}

/* Makes a placeholder for the first missing part of `name` (relative to s->top). Does nothing if
 * the whole path exists. */
static int placeholder_hold(struct spot *s, const char *name, bool is_dir, enum protect_hold hold)
{
	mode_t mode = hold == HOLD_PRIVATE ? OPEN_MODE : is_dir ? DIR_MODE : FILE_MODE;
	const char *base = path_base(name);
	bool held;

	if (strlen(base) > NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (spot_go(s, name) != 0) {
		return -1;
	}
	return s->dir < 0             ? 0
	       : hold == HOLD_BY_LINK ? hold_by_link(s, base)
	                              : hold_by_thing(s, base, mode, &held);
}

/* Makes a placeholder for a path beneath a grant. */
static int hold_path(struct placeholders *p, int grant_fd, const char *path, bool is_dir)
{
	AUTO(spot_done) struct spot s = spot_at(p, grant_fd, -1);

	return placeholder_hold(&s, path, is_dir, HOLD_ANYWHERE);
}

/* A directory in which placeholders are made. */
struct holding {
	const struct grant *grant;
	const char *path; /* relative to the grant's top; "" is the top */
	bool gitdir;      /* see repos.h */
};

static int cannot_hold(const struct grant *g, const char *within, const char *name,
                       struct ssb_error *err)
{
	return ssb_fail(
	        err, SSB_E_LAYER, errno, "mounts",
	        "cannot reserve the name '%.90s', which the skill must not create in "
	        "'%.90s%s%.60s' (%.40s); %s",
	        name, g->path, *within != '\0' ? "/" : "", within, g->where,
	        errno == EBUSY    ? "another skill that may write there has locked it: end "
	                            "that run ('skillsandbox ps'), or wait for it"
	        : errno == EMFILE ? "raise the limit of open files (ulimit -n)"
	        : errno == EAGAIN
	                ? "end the program that has a lease on it, or wait"
	                : "make the directory writable for you, or grant another directory");
}

static int hold_names(struct placeholders *p, const struct holding *h, bool home,
                      struct ssb_error *err)
{
	int own = *h->path == '\0' ? -1
	                           : file_openat2(h->grant->fd, h->path, O_PATH | O_DIRECTORY,
	                                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	AUTO(spot_done) struct spot s = spot_at(p, own >= 0 ? own : h->grant->fd, own);

	if (own < 0 && *h->path != '\0') {
		return ssb_fail(err, SSB_E_LAYER, errno, "mounts", "cannot open '%.100s/%.100s'",
		                h->grant->path, h->path);
	}
	for (size_t k = 0; k < PROTECTED_COUNT; k++) {
		const struct protected_place *place = &PROTECTED[k];
		const char *name = h->gitdir ? protect_in_gitdir(place) : place->name;
		if (name == NULL || place->hold == HOLD_NOT ||
		    (place->hold == HOLD_IN_HOME && !home)) {
			continue;
		}
		if (placeholder_hold(&s, name, place->is_dir, place->hold) != 0) {
			return cannot_hold(h->grant, h->path, name, err);
		}
	}
	return 0;
}

static int hold_all(struct placeholders *p, const struct ssb_plan *plan,
                    const struct prepared *of_run, const struct repos *repos, struct ssb_error *err)
{
	const struct grant *grants = prepared_grants(of_run, plan);

	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &grants[i];
		struct holding h = { g, "", false };
		if (grant_is_work(g) &&
		    hold_names(p, &h, strcmp(g->path, plan->home) == 0, err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; repos != NULL && i < repos->n; i++) {
		const struct repo *r = &repos->v[i];
		struct holding h = { &grants[r->grant], r->path, r->gitdir };
		if (hold_names(p, &h, false, err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; repos != NULL && i < repos->n_named; i++) {
		const struct named *n = &repos->named[i];
		const struct grant *g = &grants[n->grant];
		if (grant_is_work(g) && *n->path != '\0' &&
		    hold_path(p, g->fd, n->path, n->is_dir) != 0) {
			return cannot_hold(g, "", n->path, err);
		}
	}
	return 0;
}

int placeholders_make(const struct ssb_plan *plan, const struct prepared *of_run,
                      const struct repos *repos, struct placeholders **ret, struct ssb_error *err)
{
	size_t places = repos != NULL ? repos->n : 0;

	for (size_t i = 0; i < plan->n_grants; i++) {
		places += grant_is_work(&plan->grants[i]);
	}
	if (places == 0 && repos == NULL) {
		return 0; /* no grant allows writing */
	}
	size_t most = places * PROTECTED_COUNT + (repos != NULL ? repos->n_named : 0) + MAX_HELD;
	struct placeholders *p = calloc(1, sizeof(*p) + most * sizeof(p->v[0]));
	if (p == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "placeholders", "out of memory");
	}
	p->most = most;
	if (hold_all(p, plan, of_run, repos, err) != 0) {
		placeholders_remove(p);
		return -1;
	}
	*ret = p;
	return 0;
}

int placeholders_add(struct placeholders *p, int grant_fd, const char *path, bool is_dir)
{
	assert(path[0] != '/');
	if (p->n == p->most) {
		errno = E2BIG;
		return -1;
	}
	return hold_path(p, grant_fd, path, is_dir);
}

/* True if the skill has made a bare repository, which git would use if this placeholder were
 * removed. */
static bool keeps_git_out(const struct placeholder *h)
{
	char text[sizeof(ELSEWHERE)];

	return strcmp(h->name, "commondir") == 0 && h->fd >= 0 &&
	       pread(h->fd, text, sizeof(text), 0) == (ssize_t)sizeof(ELSEWHERE) - 1 &&
	       memcmp(text, ELSEWHERE, sizeof(ELSEWHERE) - 1) == 0 && is_git_layout(h->dir);
}

bool placeholders_keep_git_out(const struct placeholders *p, char *ret_dir, size_t size)
{
	size_t i = 0;

	while (p != NULL && i < p->n && !keeps_git_out(&p->v[i])) {
		i++;
	}
	return p != NULL && i < p->n && file_path(p->v[i].dir, ret_dir, size) >= 0;
}

/* Removes a placeholder, even if the skill has removed the write permission of the directory. */
static void placeholder_unlink(const struct placeholder *h, const struct stat *st)
{
	int flags = S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0;
	struct stat dir;

	if (placeholders_is_open(st)) {
		(void)unlinkat(h->fd, "abort-safety",
		               0); /* git makes this file when the owner commits during the run */
	}
	if (unlinkat(h->dir, h->name, flags) == 0 || errno != EACCES || fstat(h->dir, &dir) != 0) {
		return;
	}
	if (fchmodat(h->dir, ".", (dir.st_mode & 07777) | S_IRWXU, 0) == 0) {
		(void)unlinkat(h->dir, h->name, flags);
		(void)!fchmodat(h->dir, ".", dir.st_mode & 07777, 0);
	}
}

void placeholders_remove(struct placeholders *p)
{
	for (size_t i = 0; p != NULL && i < p->n; i++) {
		struct placeholder *h = &p->v[i];
		struct stat st;

		/* Remove the placeholder only if no other run has locked it, and if it still is
		 * one. */
		if (h->fd < 0) {
			if (flock(h->dir, LOCK_EX | LOCK_NB) == 0 &&
			    placeholders_is_link(h->dir, h->name)) {
				placeholder_unlink(h, &(struct stat){ .st_mode = S_IFLNK });
			}
			continue;
		}
		if (flock(h->fd, LOCK_EX | LOCK_NB) == 0 && fstat(h->fd, &st) == 0 &&
		    placeholders_is_ours(&st) && is_named(h->dir, h->name, &st) &&
		    !keeps_git_out(h)) {
			placeholder_unlink(h, &st);
		}
		own_close(&h->fd);
	}
	for (size_t i = 0; p != NULL && i < p->n; i++) {
		if (p->v[i].owns_dir) {
			own_close(&p->v[i].dir);
		}
	}
	free(p);
}
