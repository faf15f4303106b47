/* lock.c - the store of approvals: one file for each skill, always replaced as a whole.
 *
 * A process that changes an approval holds approvals.lock meanwhile. Readers need no lock,
 * because a new file replaces the old one by a rename. */
#include "consent/lock.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/string_list.h"
#include "consent/lock_json.h"
#include "os/entries.h"
#include "os/file.h"
#include "policy/owner.h"

#define DIR_NAME  "approvals"
#define LOCK_NAME "approvals.lock"
#define ENDING    ".json"
#define NAME_SIZE (2 * SHA256_BYTES + sizeof(ENDING))
#define WHERE     "approvals"

/* A process has the lock while it writes a file, even to a slow disk. The server counts a use
 * in its loop, which must not wait so long. So lock_use() waits only USE_WAIT_MS. */
#define LOCK_WAIT_MS 5000
#define USE_WAIT_MS  200

void lock_done(struct lock *l)
{
	free(l->skill);
	free(l->name);
	skill_files_done(&l->files);
	string_list_done(&l->asked);
	string_list_done(&l->declined);
	given_free(l->grants, l->n_grants);
	given_free(l->allowed, l->n_allowed);
	free(l->at);
	free(l->by);
	*l = (struct lock){ 0 };
}

static void file_name(const char *skill, char ret[NAME_SIZE])
{
	uint8_t hash[SHA256_BYTES];

	assert(skill != NULL);
	sha256(skill, strlen(skill), hash);
	hex_encode(hash, sizeof(hash), ret);
	memcpy(ret + 2 * sizeof(hash), ENDING, sizeof(ENDING));
}

/* ---- reading -------------------------------------------------------------------- */

/* A symlink is an error here, as it is everywhere in the state directory. */
static int open_dir(const struct owner *o, struct ssb_error *err)
{
	auto_fd state = open(o->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = state < 0
	                 ? -1
	                 : openat(state, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOTDIR && state >= 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "'%s/%s' is a symlink or not a directory; put the directory itself "
		                "there",
		                o->state_dir, DIR_NAME);
	}
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, WHERE, "nothing was approved");
	}
	return fd >= 0 ? fd
	               : ssb_fail(err, SSB_E_SYS, errno, WHERE, "%s/%s", o->state_dir, DIR_NAME);
}

static int read_at(const struct owner *o, int dir, const char *name, struct lock *ret,
                   struct ssb_error *err)
{
	auto_fd fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_buf text = BUF(MAX_LOCK_BYTES);

	if (fd < 0 && errno == ENOENT) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, WHERE, "the skill was not approved");
	}
	if (fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "%s/%s/%s", o->state_dir, DIR_NAME,
		                name);
	}
	if (owner_file_check(o, fd, "approval", name, err) != 0) {
		return -1;
	}
	const char *why = file_read_all(fd, &text) != 0
	                          ? "it cannot be read, or is too large"
	                          : lock_parse(text.data != NULL ? text.data : "", text.len, ret);
	if (why != NULL) {
		return ssb_fail(
		        err, SSB_E_POLICY, 0, WHERE,
		        "%s/%s/%.70s is not an approval (%s), so it approves nothing; remove it "
		        "with 'skillsandbox approve --revoke DIR' and approve again",
		        o->state_dir, DIR_NAME, name, why);
	}
	return 0;
}

/* Reads the approval of `skill`. The file must also name this skill inside: it could be the
 * renamed file of another skill. */
static int read_skill(const struct owner *o, int dir, const char *skill, struct lock *ret,
                      struct ssb_error *err)
{
	AUTO(lock_done) struct lock l = { 0 };
	char name[NAME_SIZE];

	file_name(skill, name);
	if (read_at(o, dir, name, &l, err) != 0) {
		return -1;
	}
	if (l.skill == NULL || strcmp(l.skill, skill) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "%s/%s/%s is the approval of another skill, so it approves "
		                "nothing; remove it with 'skillsandbox approve --revoke DIR'",
		                o->state_dir, DIR_NAME, name);
	}
	*ret = l;
	l = (struct lock){ 0 };
	return 0;
}

int lock_load(const struct owner *o, const char *skill, struct lock *ret, struct ssb_error *err)
{
	auto_fd dir = open_dir(o, err);

	return dir < 0 ? -1 : read_skill(o, dir, skill, ret, err);
}

bool lock_there(const struct owner *o, const char *skill)
{
	struct ssb_error err = { 0 };
	char name[NAME_SIZE];
	auto_fd dir = open_dir(o, &err);

	if (dir < 0) {
		return err.code != SSB_E_NOT_FOUND;
	}
	file_name(skill, name);
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* ---- the list ------------------------------------------------------------------- */

static bool is_lock_name(const char *name)
{
	size_t hex = strspn(name, "0123456789abcdef");

	return hex == 2 * SHA256_BYTES && strcmp(name + hex, ENDING) == 0;
}

bool lock_is_name(const char *word)
{
	return is_lock_name(word) || (strlen(word) == 2 * SHA256_BYTES &&
	                              strspn(word, "0123456789abcdef") == 2 * SHA256_BYTES);
}

static int by_skill(const void *a, const void *b)
{
	return strcmp(((const struct lock *)a)->skill, ((const struct lock *)b)->skill);
}

void lock_list_done(struct lock_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		lock_done(&l->v[i]);
	}
	free(l->v);
	free(l->bad);
	*l = (struct lock_list){ 0 };
}

static int fail_too_many(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_LIMIT, 0, WHERE,
	                "there are already %d approvals, which is the limit; remove one with "
	                "'skillsandbox approve --revoke DIR'",
	                MAX_APPROVED);
}

static int list_add_bad(struct lock_list *l, const char *name, const struct ssb_error *why,
                        struct ssb_error *err)
{
	if (!ARRAY_MORE(l->bad, l->n_bad)) {
		return ssb_fail(err, SSB_E_NOMEM, 0, WHERE, "out of memory");
	}
	struct lock_bad *bad = &l->bad[l->n_bad++];
	*bad = (struct lock_bad){ .why = *why };
	memcpy(bad->file, name, sizeof(bad->file));
	return 0;
}

static int list_add(const struct owner *o, int dir, const char *name, struct lock_list *l,
                    struct ssb_error *err)
{
	AUTO(lock_done) struct lock one = { 0 };
	struct ssb_error why = { 0 };
	char of[NAME_SIZE];

	if (l->n + l->n_bad == MAX_APPROVED) {
		return fail_too_many(err);
	}
	if (read_at(o, dir, name, &one, &why) != 0) {
		return why.code == SSB_E_NOT_FOUND ? 0 : list_add_bad(l, name, &why, err);
	}
	file_name(one.skill, of);
	if (strcmp(of, name) != 0) {
		(void)ssb_fail(&why, SSB_E_POLICY, 0, WHERE, "it is the approval of another skill");
		return list_add_bad(l, name, &why, err);
	}
	if (!ARRAY_MORE(l->v, l->n)) {
		return ssb_fail(err, SSB_E_NOMEM, 0, WHERE, "out of memory");
	}
	l->v[l->n++] = one;
	one = (struct lock){ 0 };
	return 0;
}

static int by_file(const void *a, const void *b)
{
	return strcmp(((const struct lock_bad *)a)->file, ((const struct lock_bad *)b)->file);
}

static int list_dir(const struct owner *o, DIR *dir, struct lock_list *l, struct ssb_error *err)
{
	for (const struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
		if (is_lock_name(d->d_name) && list_add(o, dirfd(dir), d->d_name, l, err) != 0) {
			return -1;
		}
	}
	if (l->n > 0) {
		qsort(l->v, l->n, sizeof(*l->v), by_skill);
	}
	if (l->n_bad > 0) {
		qsort(l->bad, l->n_bad, sizeof(*l->bad), by_file);
	}
	return 0;
}

int lock_list(const struct owner *o, struct lock_list *ret, struct ssb_error *err)
{
	AUTO(lock_list_done) struct lock_list l = { 0 };
	struct ssb_error why = { 0 };
	auto_fd fd = open_dir(o, &why);

	if (fd < 0 && why.code == SSB_E_NOT_FOUND) {
		*ret = l;
		return 0;
	}
	if (fd < 0) {
		*err = why;
		return -1;
	}
	auto_dir dir = entries_open(fd, ".");
	if (dir == NULL) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "%s/%s", o->state_dir, DIR_NAME);
	}
	if (list_dir(o, dir, &l, err) != 0) {
		return -1;
	}
	*ret = l;
	l = (struct lock_list){ 0 };
	return 0;
}

int lock_find_moved(const struct owner *o, const char *skill, char **ret_path,
                    struct ssb_error *err)
{
	AUTO(lock_list_done) struct lock_list l = { 0 };
	char *path = NULL;
	struct stat is, st;

	if (lock_list(o, &l, err) != 0) {
		return -1;
	}
	for (size_t i = 0; path == NULL && l.n > 0 && stat(skill, &is) == 0 && i < l.n; i++) {
		if (strcmp(l.v[i].skill, skill) != 0 && stat(l.v[i].skill, &st) == 0 &&
		    st.st_dev == is.st_dev && st.st_ino == is.st_ino) {
			path = steal_ptr(&l.v[i].skill);
		}
	}
	*ret_path = path;
	return 0;
}

/* ---- writing -------------------------------------------------------------------- */

/* Opens the directory and gets the lock. The caller may change the directory until it closes
 * *ret_lock. */
static int begin_change(const struct owner *o, unsigned wait_ms, int *ret_dir, int *ret_lock,
                        struct ssb_error *err)
{
	auto_fd state = file_mkdirs(o->state_dir);
	auto_fd lock = state >= 0 ? openat(state, LOCK_NAME,
	                                   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)
	                          : -1;
	int got = lock < 0 ? -1 : file_lock(lock, wait_ms);

	if (got != 0 && lock >= 0 && errno == EWOULDBLOCK) {
		return ssb_fail(err, SSB_E_SYS, 0, WHERE,
		                "another process has locked %s/%s; try again, or end that process",
		                o->state_dir, LOCK_NAME);
	}
	if (got != 0 || (mkdirat(state, DIR_NAME, 0700) != 0 && errno != EEXIST)) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "%s", o->state_dir);
	}
	auto_fd dir = open_dir(o, err);
	if (dir < 0) {
		return -1;
	}
	*ret_dir = steal_fd(&dir);
	*ret_lock = steal_fd(&lock);
	return 0;
}

/* Writes the approval, and syncs it to the disk: otherwise, if the machine stopped, an approval
 * could be lost, or a run that was used could be available again. */
static int store_at(int dir, const struct lock *l, struct ssb_error *err)
{
	char name[NAME_SIZE];
	char part[NAME_SIZE + 8];
	AUTO(lock_done) struct lock again = { 0 };
	auto_buf text = BUF(MAX_LOCK_BYTES);

	lock_write(&text, l);
	/* An approval that cannot be read again would block every later run. */
	const char *why = text.failed ? "it is too large" : lock_parse(text.data, text.len, &again);
	if (why != NULL) {
		return ssb_fail(err, SSB_E_LIMIT, 0, WHERE, "the approval cannot be stored (%s)",
		                why);
	}
	file_name(l->skill, name);
	snprintf(part, sizeof(part), "%s.part", name);
	auto_fd fd = openat(dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || file_write_all(fd, text.data, text.len) != 0 || fsync(fd) != 0 ||
	    renameat(dir, part, dir, name) != 0 || fsync(dir) != 0) {
		int failed = errno;
		(void)unlinkat(dir, part, 0);
		return ssb_fail(err, SSB_E_SYS, failed, WHERE, "writing the approval");
	}
	return 0;
}

/* A new approval must not exceed the limit. An approval that replaces one of the same skill
 * always has room, even if the old one is damaged. */
static int has_room(int dir, const char *skill, struct ssb_error *err)
{
	char name[NAME_SIZE];
	size_t n = 0;
	auto_dir d = entries_open(dir, ".");

	if (d == NULL) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "list the approvals");
	}
	file_name(skill, name);
	for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
		n += is_lock_name(e->d_name) && strcmp(e->d_name, name) != 0;
	}
	return n < MAX_APPROVED ? 0 : fail_too_many(err);
}

int lock_store(const struct owner *o, struct lock *inout, lock_fill_fn *fill, void *arg,
               struct ssb_error *err)
{
	AUTO(lock_done) struct lock before = { 0 };
	struct ssb_error none = { 0 };
	auto_fd dir = -1;
	auto_fd lock = -1;

	assert(inout->skill != NULL && fill != NULL);
	if (begin_change(o, LOCK_WAIT_MS, &dir, &lock, err) != 0 ||
	    has_room(dir, inout->skill, err) != 0) {
		return -1;
	}
	(void)read_skill(o, dir, inout->skill, &before, &none);
	return fill(inout, &before, arg, err) != 0 ? -1 : store_at(dir, inout, err);
}

int lock_remove(const struct owner *o, const char *skill, bool *ret_was, struct ssb_error *err)
{
	char name[NAME_SIZE];
	auto_fd dir = -1;
	auto_fd lock = -1;

	if (begin_change(o, LOCK_WAIT_MS, &dir, &lock, err) != 0) {
		return -1;
	}
	if (lock_is_name(skill)) {
		snprintf(name, sizeof(name), "%.*s" ENDING, 2 * SHA256_BYTES, skill);
	} else {
		file_name(skill, name);
	}
	bool was = unlinkat(dir, name, 0) == 0;
	/* Synced, so that the removed approval does not come back if the machine stops. */
	if (was ? fsync(dir) != 0 : errno != ENOENT) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "%s/%s/%s", o->state_dir, DIR_NAME,
		                name);
	}
	*ret_was = was;
	return 0;
}

static int change_uses(const struct owner *o, const char *skill, const char *tree, int by,
                       struct ssb_error *err)
{
	char now[DIGEST_TEXT];
	AUTO(lock_done) struct lock l = { 0 };
	auto_fd dir = -1;
	auto_fd lock = -1;

	assert(by == 1 || by == -1);
	if (begin_change(o, USE_WAIT_MS, &dir, &lock, err) != 0 ||
	    read_skill(o, dir, skill, &l, err) != 0) {
		return -1;
	}
	if (strcmp(digest_text(l.files.tree, now), tree) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the skill was approved again meanwhile; try again");
	}
	if (l.uses < 0) {
		return 0;
	}
	if (l.uses + by < 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "all runs that the approval allowed have been used; approve the "
		                "skill again");
	}
	l.uses += by;
	return store_at(dir, &l, err);
}

int lock_use(const struct owner *o, const char *skill, const char *tree, struct ssb_error *err)
{
	return change_uses(o, skill, tree, -1, err);
}

int lock_unuse(const struct owner *o, const char *skill, const char *tree, struct ssb_error *err)
{
	return change_uses(o, skill, tree, 1, err);
}

int lock_forget(const struct owner *o, const char *skill, const struct given *what, size_t n,
                size_t *ret_n, struct ssb_error *err)
{
	AUTO(lock_done) struct lock l = { 0 };
	auto_fd dir = -1;
	auto_fd lock = -1;
	size_t kept = 0;

	if (begin_change(o, LOCK_WAIT_MS, &dir, &lock, err) != 0 ||
	    read_skill(o, dir, skill, &l, err) != 0) {
		return -1;
	}
	/* The grants to remove move to the end of the list. */
	for (size_t i = 0; i < l.n_allowed; i++) {
		const struct given g = l.allowed[i];
		if (n > 0 && !given_has(what, n, g.option, g.value)) {
			l.allowed[i] = l.allowed[kept];
			l.allowed[kept++] = g;
		}
	}
	const size_t all = l.n_allowed;
	l.n_allowed = kept;
	int failed = kept == all ? 0 : store_at(dir, &l, err);
	l.n_allowed = all;
	if (failed == 0) {
		*ret_n = all - kept;
	}
	return failed;
}

int lock_allow(struct lock *l, const struct given *g)
{
	const size_t before = l->n_allowed;

	if (given_add(&l->allowed, &l->n_allowed, g->option, g->value) != 0) {
		return -1;
	}
	if (l->n_allowed == before) {
		return 0;
	}
	struct given *last = &l->allowed[before];
	last->at = strdup(g->at);
	last->reason = strdup(g->reason);
	return last->at != NULL && last->reason != NULL ? 0 : -1;
}
