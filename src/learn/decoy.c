/* decoy.c - makes the tree of decoys. */
#include "learn/decoy.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/write.h"
#include "os/file.h"
#include "os/tree.h"
#include "policy/danger.h"
#include "policy/path.h"
#include "policy/view.h"

#define CANARY_HEAD "ssbcanary"
#define SAMPLE      "decoy"

static int fail_home(struct ssb_error *err, const char *what, const char *path)
{
	return ssb_fail(err, SSB_E_SYS, errno, "learn", "%s '%.200s'", what, path);
}

/* ---- the tree ------------------------------------------------------------- */

static int make_canary(char out[CANARY_BYTES], struct ssb_error *err)
{
	uint8_t raw[(CANARY_BYTES - sizeof(CANARY_HEAD)) / 2 + 1] = { 0 };
	char hex[2 * sizeof(raw) + 1];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw)) {
		return ssb_fail(err, SSB_E_SYS, errno, "learn", "getrandom");
	}
	hex_encode(raw, sizeof(raw), hex);
	(void)snprintf(out, CANARY_BYTES, CANARY_HEAD "%.*s",
	               (int)(CANARY_BYTES - sizeof(CANARY_HEAD)), hex);
	return 0;
}

/* Locks the tree and returns an fd of it. Returns -1 if another process has locked it. */
static int lock_home(const char *top)
{
	auto_fd fd = open(top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? steal_fd(&fd) : -1;
}

static void sweep_homes(const char *home)
{
	auto_dir dir = opendir(home);

	for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		auto_free char *top = e->d_name[0] != '.' ? path_join(home, e->d_name) : NULL;
		auto_fd held = top != NULL ? lock_home(top) : -1;
		if (held >= 0) {
			(void)tree_remove(AT_FDCWD, top);
		}
	}
}

int decoys_begin(const struct owner *o, struct decoys *ret, struct ssb_error *err)
{
	auto_free char *home = path_join(o->state_dir, "learn");
	auto_free char *top = home != NULL ? path_join(home, "XXXXXX") : NULL;

	if (top == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "learn", "out of memory");
	}
	auto_fd made = file_mkdirs(home);
	auto_fd all = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Trees are made by one process at a time: a tree that has just been made is not locked
	 * yet, and another process would remove it. */
	if (made < 0 || all < 0 || flock(all, LOCK_EX) != 0) {
		return fail_home(err, "cannot make", home);
	}
	sweep_homes(home);
	auto_fd lock = mkdtemp(top) != NULL ? lock_home(top) : -1;
	if (lock < 0) {
		return fail_home(err, "cannot make a directory in", home);
	}
	*ret = (struct decoys){ .top = steal_ptr(&top), .lock = steal_fd(&lock) };
	return make_canary(ret->canary, err);
}

void decoys_end(struct decoys *d)
{
	if (d->top != NULL) {
		(void)tree_remove(AT_FDCWD, d->top);
		own_close(&d->lock);
	}
	for (size_t i = 0; i < d->n; i++) {
		free(d->v[i].path);
		free(d->v[i].target);
	}
	free(d->v);
	free(d->top);
	*d = (struct decoys){ 0 };
}

/* Makes the directories above `path`, and `path` itself if `whole`. */
static int make_dirs(const char *path, bool whole)
{
	auto_free char *dir = whole ? strdup(path) : path_parent(path);
	auto_fd fd = dir != NULL ? file_mkdirs(dir) : -1;

	return fd >= 0 ? 0 : -1;
}

/* Programs expect these files to have a certain form. Other files are empty. */
static const struct {
	const char *end;
	const char *text;
} PLAIN[] = {
	{ ".json", "{}\n" },      { ".md", "decoy\n" },     { ".txt", "decoy\n" },
	{ ".csv", "a,b\n1,2\n" }, { ".xml", "<decoy/>\n" },
};

static int make_file(const char *path, const struct buf *text)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0) {
		return errno == EEXIST ? 0 : -1;
	}
	return text != NULL && text->len > 0 ? file_write_all(fd, text->data, text->len) : 0;
}

static int make_plain(const char *path)
{
	auto_buf text = BUF(64);

	for (size_t i = 0; i < ARRAY_LEN(PLAIN); i++) {
		const char *end = strrchr(path_base(path), '.');
		if (end != NULL && strcmp(end, PLAIN[i].end) == 0) {
			buf_adds(&text, PLAIN[i].text);
		}
	}
	return make_dirs(path, false) != 0 ? -1 : make_file(path, &text);
}

/* Returns, as a new text, the name of the decoy file for all files with the same ending as `name`;
 * NULL: there is none. */
static char *sample_name(const char *name)
{
	const char *end = strrchr(name, '.');
	char *sample = NULL;

	if (name[0] == '.' || (end != NULL && (strlen(end) > 8 || !manifest_can_say(end)))) {
		return NULL;
	}
	return asprintf(&sample, SAMPLE "%s", end != NULL ? end : "") < 0 ? NULL : sample;
}

/* Makes the directory, with one file for each ending that files of the real directory have. Names
 * of real files are not shown. */
static int make_directory(const char *path, const char *real)
{
	auto_dir dir = opendir(real);
	size_t looked = 0, made = 0;

	if (make_dirs(path, true) != 0) {
		return -1;
	}
	for (const struct dirent *e; dir != NULL && made < MAX_DECOY_SAMPLES &&
	                             looked++ < MAX_DECOY_ENTRIES && (e = readdir(dir)) != NULL;) {
		auto_free char *name = e->d_type == DT_REG ? sample_name(e->d_name) : NULL;
		auto_free char *file = name != NULL ? path_join(path, name) : NULL;
		if (file != NULL && access(file, F_OK) != 0) {
			made++;
			if (make_plain(file) != 0) {
				return -1;
			}
		}
	}
	return 0;
}

/* Makes a decoy of a secret. Its name decides the kind of its content. */
static int make_secret(const struct decoys *d, const char *path)
{
	auto_buf text;

	buf_init(&text, MAX_SCALAR_BYTES);
	decoy_text(&text, path, d->canary);
	return text.failed || make_dirs(path, false) != 0 ? -1 : make_file(path, &text);
}

static int make_secrets(const struct decoys *d, const char *path, const char *const *names)
{
	if (make_dirs(path, true) != 0) {
		return -1;
	}
	for (size_t i = 0; names[i] != NULL; i++) {
		auto_free char *file = path_join(path, names[i]);
		if (file == NULL || make_secret(d, file) != 0) {
			return -1;
		}
	}
	return 0;
}

/* ---- stand-ins --------------------------------------------------------------- */

/* Returns true if the sandbox or the kernel fills this path itself. */
static bool is_taken(const char *path)
{
	return view_claimed(path, VIEW_OURS | VIEW_ITSELF);
}

static bool is_known(const struct decoys *d, const char *target, enum access access)
{
	return ARRAY_HAS(e, d->v, d->n, strcmp(e->target, target) == 0 && e->access >= access);
}

static int stand_in_add(struct decoys *d, const char *path, const char *target, enum access access,
                        struct ssb_error *err)
{
	struct stand_in s = { .path = strdup(path), .target = strdup(target), .access = access };
	struct stand_in *v = realloc(d->v, (d->n + 1) * sizeof(*v));

	if (v != NULL) {
		d->v = v;
	}
	if (v == NULL || s.path == NULL || s.target == NULL) {
		free(s.path);
		free(s.target);
		return ssb_fail(err, SSB_E_NOMEM, 0, "learn", "out of memory");
	}
	v[d->n++] = s;
	return 0;
}

/* Returns the directory (new) that gets a stand-in when the skill writes `path`. This is the parent
 * directory, or `path` itself if it is a directory or if its parent may not have a stand-in. */
static char *work_place(const struct owner *o, const char *path, bool is_dir)
{
	auto_free char *parent = path_parent(path);

	if (is_dir || parent == NULL || is_taken(parent) || strcmp(parent, o->home) == 0) {
		return parent != NULL ? strdup(path) : NULL;
	}
	return steal_ptr(&parent);
}

static int make_one(const struct decoys *d, const struct owner *o, const char *target,
                    const char *path, enum access access, const struct stat *st)
{
	const char *const *names = decoy_names(target);
	bool secret = danger_named(o->home, target) != NULL;

	if (access == ACCESS_WRITE) {
		return make_dirs(path, true);
	}
	if (secret && names != NULL) {
		return make_secrets(d, path, names);
	}
	if (st != NULL && S_ISDIR(st->st_mode)) {
		return secret ? make_dirs(path, true) : make_directory(path, target);
	}
	return secret ? make_secret(d, path) : make_plain(path);
}

int decoys_add(struct decoys *d, const struct owner *o, const char *asked, enum access access,
               bool *ret_new, struct ssb_error *err)
{
	assert(d->top != NULL && asked[0] == '/');
	struct stat st;
	bool there = lstat(asked, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode));
	bool secret = danger_named(o->home, asked) != NULL;
	auto_free char *target = access == ACCESS_WRITE
	                                 ? work_place(o, asked, there && S_ISDIR(st.st_mode))
	                                 : strdup(asked);
	auto_free char *path = target != NULL ? path_join(d->top, target + 1) : NULL;

	if (path == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "learn", "out of memory");
	}
	bool of_use = !is_taken(target) && strcmp(target, o->home) != 0 &&
	              (access == ACCESS_WRITE || secret || there);
	if (!of_use || is_known(d, target, access) || d->n == MAX_DECOYS) {
		*ret_new = false;
		return 0;
	}
	if (make_one(d, o, target, path, access, there ? &st : NULL) != 0) {
		return fail_home(err, "cannot make a stand-in for", target);
	}
	if (stand_in_add(d, path, target, access, err) != 0) {
		return -1;
	}
	*ret_new = true;
	return 0;
}

int decoys_add_place(struct decoys *d, const struct owner *o, const char *target,
                     struct ssb_error *err)
{
	auto_free char *path = path_join(d->top, target + 1);

	if (path == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "learn", "out of memory");
	}
	if (is_taken(target) || strcmp(target, o->home) == 0 || d->n == MAX_DECOYS ||
	    danger_named(o->home, target) != NULL || is_known(d, target, ACCESS_WRITE)) {
		return 0;
	}
	return make_dirs(path, true) != 0 ? fail_home(err, "cannot make a stand-in for", target)
	                                  : stand_in_add(d, path, target, ACCESS_WRITE, err);
}

bool decoys_is_sample(const struct decoys *d, const char *path)
{
	const char *name = path_base(path);
	auto_free char *dir = path_parent(path);
	auto_free char *file = path_join(d->top, path + 1);
	size_t n = strlen(SAMPLE);

	return dir != NULL && file != NULL && strncmp(name, SAMPLE, n) == 0 &&
	       (name[n] == '\0' || name[n] == '.') && is_known(d, dir, ACCESS_READ) &&
	       access(file, F_OK) == 0 && access(path, F_OK) != 0;
}
