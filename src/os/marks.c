/* marks.c - makes and compares the marks of files and directories. */
#include "os/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

/* The clock from which the kernel takes file times has a tick of at most 10 ms. If the nanoseconds
 * of a time are 0, the file system stores perhaps only whole seconds, or only even seconds. */
#define TICK_NS   (20LL * 1000000)
#define COARSE_NS (2LL * 1000000000)

int marks_add(struct marks *m, const char *path, const struct stat *st)
{
	if (m->n == m->room) {
		size_t room = m->room < 64 ? 64 : m->room * 2;
		struct mark *v = reallocarray(m->v, room, sizeof(*v));
		if (v == NULL) {
			return -1;
		}
		m->v = v;
		m->room = room;
	}
	struct mark *k = &m->v[m->n];
	*k = (struct mark){ .path = strdup(path),
		            .is_dir = S_ISDIR(st->st_mode),
		            .dev = st->st_dev,
		            .ino = st->st_ino,
		            .mtime_ns = clock_ns(&st->st_mtim),
		            .ctime_ns = clock_ns(&st->st_ctim) };
	m->n += k->path != NULL ? 1 : 0;
	return k->path != NULL ? 0 : -1;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct mark *)a)->path, ((const struct mark *)b)->path);
}

void marks_sort(struct marks *m)
{
	if (m->n > 0) {
		qsort(m->v, m->n, sizeof(*m->v), by_path);
	}
}

static bool is_same(const struct mark *a, const struct mark *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

const char *marks_differ(const struct marks *a, const struct marks *b)
{
	const struct mark *changed = NULL;
	size_t i = 0;
	size_t k = 0;

	while (i < a->n && k < b->n) {
		int order = by_path(&a->v[i], &b->v[k]);
		if (order != 0) {
			return order < 0 ? a->v[i].path : b->v[k].path;
		}
		if ((changed == NULL || changed->is_dir) && !is_same(&a->v[i], &b->v[k])) {
			changed = &a->v[i];
		}
		i++;
		k++;
	}
	if (i < a->n || k < b->n) {
		return i < a->n ? a->v[i].path : b->v[k].path;
	}
	return changed != NULL ? changed->path : NULL;
}

void marks_done(struct marks *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].path);
	}
	free(m->v);
	*m = (struct marks){ 0 };
}

int64_t mark_young(const struct stat *st)
{
	int64_t need = st->st_ctim.tv_nsec == 0 ? COARSE_NS : TICK_NS;
	int64_t age = clock_wall_us() * 1000 - clock_ns(&st->st_ctim);

	/* If the ctime is far in the future, no change in the near future can get the same time. */
	return age < -need || age >= need ? 0 : need - age;
}

bool mark_has_writer(int fd)
{
	/* When a lease is broken, the kernel sends the process a signal: by default SIGIO, which
	 * would end it. SIGURG is ignored. */
	if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_RDLCK) != 0) {
		return errno == EAGAIN;
	}
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}
