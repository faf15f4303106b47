/* danger.c - is this object, does it hold, or does it lie in a dangerous
 * place? The places' own ancestors are kept as `folders`, each looked up
 * once: "contains" is then one comparison, also for places that do not exist
 * yet but could be created in a writable folder. */
#include "policy/danger.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger_table.h"
#include "policy/mounts.h"

struct folder {
	char *path;
	struct object id;
	bool exists;
};

struct danger {
	struct place *places;
	size_t n_places;
	struct folder *folders;
	size_t n_folders;
	struct object home;
	struct mounts mounts; /* read when first needed */
};

/* Room for one more element, growing in powers of two from 32. */
static void *grown(void *v, size_t n, size_t item)
{
	if (n != 0 && (n < 32 || (n & (n - 1)) != 0)) {
		return v;
	}
	return realloc(v, (n == 0 ? 32 : n * 2) * item);
}

/* The directories above `path`. Where the nearest is known all are. */
static int add_folders(struct danger *d, const char *path)
{
	size_t len = strlen(path);

	while (len > 1) {
		while (path[len - 1] != '/') {
			len--;
		}
		len = len > 1 ? len - 1 : 1; /* without its slash, but "/" itself */
		for (size_t i = 0; i < d->n_folders; i++) {
			if (strncmp(d->folders[i].path, path, len) == 0 &&
			    d->folders[i].path[len] == '\0') {
				return 0;
			}
		}
		struct folder *v = grown(d->folders, d->n_folders, sizeof(*v));
		if (v == NULL) {
			return -1;
		}
		d->folders = v;
		struct folder *f = &v[d->n_folders];
		struct stat st;
		*f = (struct folder){ .path = strndup(path, len) };
		if (f->path == NULL) {
			return -1;
		}
		d->n_folders++;
		if (stat(f->path, &st) == 0) {
			f->exists = true;
			f->id = (struct object){ st.st_dev, st.st_ino };
		}
	}
	return 0;
}

int danger_add(struct danger *d, const char *path, const char *why, unsigned flags)
{
	struct place *v = grown(d->places, d->n_places, sizeof(*v));

	if (v == NULL) {
		return -1;
	}
	d->places = v;
	struct place *p = &v[d->n_places];
	*p = (struct place){ .path = strdup(path), .why = why, .flags = flags };
	if (p->path == NULL) {
		return -1;
	}
	d->n_places++;
	auto_fd fd = file_open_nosymlink(path, O_PATH);
	bool linked = fd < 0 && errno == ELOOP;
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0) {
		p->exists = true;
		p->id = (struct object){ st.st_dev, st.st_ino };
	}
	if (add_folders(d, path) < 0) {
		return -1;
	}
	if (!linked) {
		return 0;
	}
	/* Reached through a symlink: the real place is dangerous as well. */
	auto_free char *real = realpath(path, NULL);
	return real == NULL ? 0 : danger_add(d, real, why, flags);
}

/* Homes of people outside /home. The file is read, no name service asked. */
static int add_other_homes(struct danger *d, const struct owner *o)
{
	auto_file f = fopen("/etc/passwd", "re");
	auto_free char *line = NULL;
	size_t size = 0;

	while (f != NULL && getline(&line, &size, f) > 0) {
		char *save = NULL;
		char *field[6];
		size_t n = 0;
		/* The fields in question are never empty; those before may be. */
		for (char *s = line; n < 6 && (field[n] = strsep(&s, ":")) != NULL; n++) {
			save = field[n];
		}
		if (n < 6 || save[0] != '/' || save[1] == '\0') {
			continue;
		}
		unsigned long uid = strtoul(field[2], NULL, 10);
		if (uid < 1000 || uid >= 65534 || uid == o->uid || strcmp(save, o->home) == 0 ||
		    path_is_system(save) || path_beneath(save, "/home") != NULL) {
			continue;
		}
		if (danger_add(d, save, "is another user's home",
		               DANGER_READ | DANGER_WRITE | DANGER_BENEATH | DANGER_HOMES) < 0) {
			return -1;
		}
	}
	return 0;
}

/* The runtime's own files, wherever they are. */
static int add_own(struct danger *d, const struct owner *o)
{
	const unsigned rw = DANGER_READ | DANGER_WRITE | DANGER_BENEATH;
	char exe[MAX_PATH_BYTES];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n > 0 && exe[0] == '/') {
		exe[n] = '\0';
		if (!path_is_system(exe) &&
		    danger_add(d, exe, "is the sandbox program itself", DANGER_WRITE) < 0) {
			return -1;
		}
	}
	if (o->config_dir != NULL &&
	    danger_add(d, o->config_dir, "holds the owner's policy", rw) < 0) {
		return -1;
	}
	if (o->state_dir != NULL &&
	    (danger_add(d, o->state_dir, "holds the runtime's records",
	                DANGER_WRITE | DANGER_BENEATH | DANGER_NEVER) < 0 ||
	     danger_add(d, o->state_dir, "holds the runtime's records", rw) < 0)) {
		return -1;
	}
	return 0;
}

static int add_rows(struct danger *d, const struct owner *o)
{
	for (size_t i = 0; i < DANGER_ROWS_COUNT; i++) {
		const struct danger_row *row = &DANGER_ROWS[i];
		auto_free char *path = path_expand(o, row->path);
		if (path == NULL || danger_add(d, path, row->why, row->flags) < 0) {
			return -1;
		}
	}
	return 0;
}

struct danger *danger_new(const struct owner *o)
{
	struct danger *d = calloc(1, sizeof(*d));
	struct stat st;

	if (d == NULL) {
		return NULL;
	}
	if (stat(o->home, &st) == 0) {
		d->home = (struct object){ st.st_dev, st.st_ino };
	}
	if (add_rows(d, o) < 0 || add_own(d, o) < 0 || add_other_homes(d, o) < 0) {
		danger_free(d);
		return NULL;
	}
	return d;
}

void danger_free(struct danger *d)
{
	if (d == NULL) {
		return;
	}
	for (size_t i = 0; i < d->n_places; i++) {
		free(d->places[i].path);
	}
	for (size_t i = 0; i < d->n_folders; i++) {
		free(d->folders[i].path);
	}
	free(d->places);
	free(d->folders);
	mounts_done(&d->mounts);
	free(d);
}

static void add_hit(struct danger_hits *hits, const struct place *p, enum danger_how how)
{
	for (size_t i = 0; i < hits->n; i++) {
		if (hits->v[i].place == p) {
			return;
		}
	}
	if (hits->n < MAX_DANGER_HITS) {
		hits->n++;
	} else if ((p->flags & DANGER_NEVER) == 0) {
		return; /* enough reasons; one of these must still find its way in */
	}
	size_t at = hits->n - 1;
	if ((p->flags & DANGER_NEVER) != 0) {
		memmove(&hits->v[1], &hits->v[0], at * sizeof(hits->v[0]));
		at = 0;
	}
	hits->v[at] = (struct danger_hit){ p, how };
}

/* The same relative path, or one of them leads to the other. */
static bool relative_relation(const char *place, const char *path, enum danger_how *ret)
{
	size_t a = strlen(place);
	size_t b = strlen(path);

	if (strncmp(place, path, a < b ? a : b) != 0) {
		return false;
	}
	if (a == b) {
		*ret = DANGER_IS;
	} else if (a < b && path[a] == '/') {
		*ret = DANGER_LIES_IN;
	} else if (a > b && place[b] == '/') {
		*ret = DANGER_CONTAINS;
	} else {
		return false;
	}
	return true;
}

/* Through a folder that is the subject, or its existing parent. */
static bool folder_relation(const struct danger *d, const struct place *p, const struct subject *s,
                            struct object at, enum danger_how *ret)
{
	for (size_t i = 0; i < d->n_folders; i++) {
		const struct folder *f = &d->folders[i];
		if (!f->exists || !object_same(f->id, at)) {
			continue;
		}
		const char *rest = path_beneath(p->path, f->path);
		if (rest == NULL || *rest == '\0') {
			continue;
		}
		if (s->missing != NULL) {
			if (relative_relation(rest, s->missing, ret)) {
				/* In /etc nothing may be written, but a missing read
				 * is only in the way where all of it is dangerous. */
				return *ret != DANGER_LIES_IN || (p->flags & DANGER_BENEATH) != 0;
			}
			continue;
		}
		*ret = DANGER_CONTAINS;
		return true;
	}
	return false;
}

/* Which of the directories above is the place; the owner's own home, met on
 * the way up, ends what holds homes. */
static bool lies_in(const struct danger *d, const struct place *p, const struct chain *c,
                    size_t from)
{
	if (!p->exists || (p->flags & DANGER_BENEATH) == 0) {
		return false;
	}
	for (size_t i = 0; i < c->n; i++) {
		if ((p->flags & DANGER_HOMES) != 0 && object_same(c->v[i], d->home)) {
			return false;
		}
		if (i >= from && object_same(c->v[i], p->id)) {
			return true;
		}
	}
	return false;
}

static bool relation(const struct danger *d, const struct place *p, const struct subject *s,
                     enum danger_how *ret)
{
	const struct chain *c = &s->chain;
	bool missing = s->missing != NULL;

	if (!missing && p->exists && object_same(p->id, c->v[0])) {
		*ret = DANGER_IS;
		return true;
	}
	if (lies_in(d, p, c, missing ? 0 : 1)) {
		*ret = DANGER_LIES_IN;
		return true;
	}
	return folder_relation(d, p, s, c->v[0], ret);
}

static void judge_chain(const struct danger *d, const struct subject *s, enum access access,
                        struct danger_hits *hits)
{
	unsigned flag = access == ACCESS_WRITE ? DANGER_WRITE : DANGER_READ;
	enum danger_how how;

	for (size_t i = 0; i < d->n_places; i++) {
		const struct place *p = &d->places[i];
		if ((p->flags & flag) != 0 && relation(d, p, s, &how)) {
			add_hit(hits, p, how);
		}
	}
}

/* A second proc or sysfs, in a container's directory say, has another inode. */
static int judge_kernel_fs(int fd, struct danger_hits *hits)
{
	static const struct place KERNEL = { .path = (char *)(uintptr_t) "a kernel file system",
		                             .why = "is the kernel's own interface",
		                             .flags = DANGER_READ | DANGER_WRITE | DANGER_NEVER };
	static const unsigned long KINDS[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,      TRACEFS_MAGIC,
		SECURITYFS_MAGIC, SELINUX_MAGIC,      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		BPF_FS_MAGIC,     DEVPTS_SUPER_MAGIC, EFIVARFS_MAGIC,     NSFS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0) {
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
		if ((unsigned long)fs.f_type == KINDS[i]) {
			add_hit(hits, &KERNEL, DANGER_LIES_IN);
		}
	}
	return 0;
}

int subject_init(struct subject *ret, int fd, const char *path, const char *missing)
{
	ret->fd = fd;
	ret->path = path;
	ret->missing = missing;
	return chain_from(fd, path, &ret->chain);
}

int danger_judge(const struct danger *d, const struct subject *s, enum access access,
                 struct danger_hits *ret)
{
	struct danger_hits hits = { .n = 0 };

	if (judge_kernel_fs(s->fd, &hits) < 0) {
		return -1;
	}
	judge_chain(d, s, access, &hits);
	*ret = hits;
	return 0;
}

/* Judges what `path` names now; with `same`, only if it is that object. */
static int judge_other_name(const struct danger *d, const char *path, const struct object *same,
                            enum access access, struct danger_hits *hits)
{
	auto_fd fd = file_open_nosymlink(path, O_PATH);
	struct subject s;

	if (fd < 0) {
		return 0; /* hidden by a later mount, or out of the caller's reach */
	}
	if (subject_init(&s, fd, path, NULL) < 0 || judge_kernel_fs(fd, hits) < 0) {
		return -1;
	}
	if (same == NULL || object_same(s.chain.v[0], *same)) {
		judge_chain(d, &s, access, hits);
	}
	return 0;
}

/* The other paths at which mounts of the same file system show the object. */
static int judge_aliases(const struct danger *d, const struct subject *s, enum access access,
                         struct danger_hits *hits)
{
	const struct mount *in = mounts_of(&d->mounts, s->path);

	if (in == NULL) {
		errno = ENOENT;
		return -1;
	}
	auto_free char *inner = path_join(in->root, path_beneath(s->path, in->point));
	if (inner == NULL) {
		return -1;
	}
	for (size_t i = 0; i < d->mounts.n; i++) {
		const struct mount *m = &d->mounts.v[i];
		const char *rest =
		        strcmp(m->dev, in->dev) == 0 ? path_beneath(inner, m->root) : NULL;
		if (rest == NULL || m == in) {
			continue;
		}
		auto_free char *alias = path_join(m->point, rest);
		if (alias == NULL || judge_other_name(d, alias, &s->chain.v[0], access, hits) < 0) {
			return -1;
		}
	}
	return 0;
}

int danger_judge_mounts(struct danger *d, const struct subject *s, enum access access,
                        struct danger_hits *hits)
{
	if (d->mounts.v == NULL && mounts_load(&d->mounts) < 0) {
		return -1;
	}
	for (size_t i = 0; i < d->mounts.n; i++) {
		const char *rest = path_beneath(d->mounts.v[i].point, s->path);
		if (rest != NULL && *rest != '\0' &&
		    judge_other_name(d, d->mounts.v[i].point, NULL, access, hits) < 0) {
			return -1;
		}
	}
	return judge_aliases(d, s, access, hits);
}
