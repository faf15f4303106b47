/* placeholders.c - empty files and directories that hold a protected name.
 *
 * A mount can only stand on something that exists, so a name that the skill
 * must not create is created by us first, empty, for the length of the run.
 * Ours are told by their mode (sticky and read-only, which nobody gives an
 * empty file): what a killed supervisor left behind is taken over by the next
 * run and removed with it. A shared lock keeps a placeholder as long as any
 * run needs it: removing it would lift the protection in the others. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/protect.h"
#include "sandbox/sources.h"

#define FILE_MODE 01400
#define DIR_MODE  01500

struct placeholder {
	int dir; /* O_PATH, owned: where it is */
	int fd;  /* the thing itself, locked */
	bool is_dir;
	char name[64];
};

struct placeholders {
	size_t n;
	struct placeholder v[];
};

static bool is_ours(int fd, bool is_dir)
{
	struct stat st;
	return fstat(fd, &st) == 0 &&
	       st.st_mode == (is_dir ? S_IFDIR | DIR_MODE : S_IFREG | FILE_MODE) &&
	       (is_dir || st.st_size == 0);
}

/* Makes or takes over one; fd -1 if the name is the owner's own or cannot be
 * made (then the skill cannot make it either). */
static int placeholder_open(int dir, const char *name, bool is_dir)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

	if (is_dir) {
		if (mkdirat(dir, name, DIR_MODE) != 0 && errno != EEXIST) {
			return -1;
		}
		flags |= O_DIRECTORY;
	} else {
		auto_fd made = openat(
		        dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
		if (made < 0 && errno != EEXIST) {
			return -1;
		}
	}
	auto_fd fd = openat(dir, name, flags);
	if (fd < 0 || !is_ours(fd, is_dir) || flock(fd, LOCK_SH | LOCK_NB) != 0) {
		return -1;
	}
	return steal_fd(&fd);
}

/* Holds the first missing part of `name` beneath the grant: without it the
 * rest cannot be made. Nothing is held where all of it exists. */
static void placeholder_hold(struct placeholders *p, int grant_fd, const char *name, bool is_dir)
{
	auto_fd dir = fcntl(grant_fd, F_DUPFD_CLOEXEC, 3);

	while (dir >= 0) {
		struct placeholder h = { 0 };
		size_t n = strcspn(name, "/");
		bool last = name[n] == '\0';
		if (n >= sizeof(h.name)) {
			return;
		}
		memcpy(h.name, name, n);
		h.is_dir = is_dir || !last;
		h.fd = placeholder_open(dir, h.name, h.is_dir);
		if (h.fd >= 0) {
			h.dir = steal_fd(&dir);
			p->v[p->n++] = h;
			return;
		}
		if (last) {
			return;
		}
		int next = openat(dir, h.name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		own_close(&dir);
		dir = next;
		name += n + 1;
	}
}

int placeholders_make(const struct ssb_plan *plan, struct placeholders **ret, struct ssb_error *err)
{
	size_t writes = 0;
	for (size_t i = 0; i < plan->n_grants; i++) {
		writes += plan->grants[i].access == ACCESS_WRITE && plan->grants[i].is_dir;
	}
	struct placeholders *p = calloc(1, sizeof(*p) + writes * PROTECTED_COUNT * sizeof(p->v[0]));
	if (p == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "placeholders", "out of memory");
	}
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		if (g->access != ACCESS_WRITE || !g->is_dir) {
			continue;
		}
		bool home = strcmp(g->path, plan->home) == 0;
		for (size_t k = 0; k < PROTECTED_COUNT; k++) {
			enum protect_hold hold = PROTECTED[k].hold;
			if (hold == HOLD_ANYWHERE || (hold == HOLD_IN_HOME && home)) {
				placeholder_hold(p, g->fd, PROTECTED[k].name, PROTECTED[k].is_dir);
			}
		}
	}
	*ret = p;
	return 0;
}

void placeholders_remove(struct placeholders *p)
{
	for (size_t i = 0; p != NULL && i < p->n; i++) {
		struct placeholder *h = &p->v[i];
		struct stat held, named;

		/* Only the last run that needs it, and only what is still ours. */
		if (flock(h->fd, LOCK_EX | LOCK_NB) == 0 && is_ours(h->fd, h->is_dir) &&
		    fstat(h->fd, &held) == 0 &&
		    fstatat(h->dir, h->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
			(void)unlinkat(h->dir, h->name, h->is_dir ? AT_REMOVEDIR : 0);
		}
		own_close(&h->fd);
		own_close(&h->dir);
	}
	free(p);
}
