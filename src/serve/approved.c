#include "serve/approved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stamp.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"

#define FILE_NAME "approvals.jsonl"
#define PART_NAME "approvals.part"
#define LOCK_NAME "approvals.lock"
#define DIGEST    "sha256:"

#define LOCK_TRIES    10
#define LOCK_PAUSE_MS 20

static const struct {
	enum ssb_option option;
	const char *name;
} OPTIONS[] = {
	{ SSB_OPT_READ, "read" }, { SSB_OPT_WRITE, "write" },     { SSB_OPT_NET, "net" },
	{ SSB_OPT_ENV, "env" },   { SSB_OPT_PROFILE, "profile" },
};

const char *approved_option_name(enum ssb_option option)
{
	for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
		if (OPTIONS[i].option == option) {
			return OPTIONS[i].name;
		}
	}
	return NULL;
}

static int option_from_name(const char *name, enum ssb_option *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
		if (strcmp(OPTIONS[i].name, name) == 0) {
			*ret = OPTIONS[i].option;
			return 0;
		}
	}
	return -1;
}

static void one_done(struct approved *a)
{
	free(a->skill);
	free(a->value);
	free(a->at);
	free(a->by);
	*a = (struct approved){ 0 };
}

void approved_done(struct approved_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		one_done(&l->v[i]);
	}
	free(l->v);
	*l = (struct approved_list){ 0 };
}

/* Copies; false without memory, or with too many. */
static bool list_add(struct approved_list *l, const struct approved *a)
{
	struct approved *v = l->n < MAX_APPROVED ? realloc(l->v, (l->n + 1) * sizeof(*v)) : NULL;

	if (v == NULL) {
		return false;
	}
	l->v = v;
	v[l->n] = (struct approved){ .skill = strdup(a->skill),
		                     .option = a->option,
		                     .value = strdup(a->value),
		                     .at = strdup(a->at),
		                     .by = strdup(a->by) };
	memcpy(v[l->n].manifest, a->manifest, sizeof(a->manifest));
	struct approved *new = &v[l->n++];
	return new->skill != NULL &&new->value != NULL &&new->at != NULL &&new->by != NULL;
}

static bool same(const struct approved *a, const struct approved *b)
{
	return a->option == b->option && strcmp(a->value, b->value) == 0 &&
	       strcmp(a->skill, b->skill) == 0 &&
	       memcmp(a->manifest, b->manifest, sizeof(a->manifest)) == 0;
}

/* ---- reading ------------------------------------------------------------- */

static int read_digest(const char *text, uint8_t ret[32])
{
	size_t n = strlen(DIGEST);

	return text != NULL && strncmp(text, DIGEST, n) == 0
	               ? hex_decode(text + n, strlen(text + n), ret, 32)
	               : -1;
}

/* A string without a NUL in it. */
static char *member(const struct json_doc *doc, const char *key)
{
	const struct json_node *n = json_member(doc, json_top(doc), key);
	const char *s = json_string(n, NULL);

	return s != NULL && strlen(s) == n->len ? (char *)(uintptr_t)s : NULL;
}

static const char *read_line(struct approved_list *l, struct json_doc *doc, const char *line,
                             size_t len)
{
	const char *why = NULL;
	struct approved a;

	if (json_read(doc, line, len, &why) != 0) {
		return why;
	}
	const char *option = member(doc, "option");
	a.skill = member(doc, "skill");
	a.value = member(doc, "value");
	a.at = member(doc, "at");
	a.by = member(doc, "by");
	if (a.skill == NULL || a.value == NULL || a.at == NULL || a.by == NULL || option == NULL ||
	    option_from_name(option, &a.option) != 0 ||
	    read_digest(member(doc, "manifest"), a.manifest) != 0) {
		return "a member is missing or wrong";
	}
	return list_add(l, &a) ? NULL : "there are too many";
}

static int read_all(struct approved_list *l, const struct buf *text, struct ssb_error *err)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	const char *p = text->data;
	unsigned number = 0;

	for (size_t left = text->len; left > 0;) {
		const char *end = memchr(p, '\n', left);
		size_t len = end != NULL ? (size_t)(end - p) : left;
		const char *why = end == NULL ? "its end is missing" : read_line(l, &doc, p, len);
		number++;
		if (why != NULL) {
			return ssb_fail(err, SSB_E_POLICY, 0, "approvals",
			                "line %u of %s in the state directory is no approval "
			                "(%s); remove the file to start anew",
			                number, FILE_NAME, why);
		}
		p += len + 1;
		left -= len + 1;
	}
	return 0;
}

static int load_at(const struct owner *o, int dir, struct approved_list *ret, struct ssb_error *err)
{
	AUTO(approved_done) struct approved_list l = { 0 };
	auto_fd fd = openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_buf text;

	buf_init(&text, MAX_APPROVED_BYTES);
	if (fd < 0 && errno == ENOENT) {
		*ret = (struct approved_list){ 0 };
		return 0;
	}
	if (fd < 0 || file_read_all(fd, &text) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "approvals", "%s/%s", o->state_dir,
		                FILE_NAME);
	}
	if (owner_file_check(o, fd, "file of approvals", FILE_NAME, err) != 0 ||
	    read_all(&l, &text, err) != 0) {
		return -1;
	}
	*ret = l;
	l = (struct approved_list){ 0 };
	return 0;
}

int approved_load(const struct owner *o, struct approved_list *ret, struct ssb_error *err)
{
	auto_fd dir = open(o->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		*ret = (struct approved_list){ 0 };
		return 0;
	}
	if (dir < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "approvals", "%s", o->state_dir);
	}
	return load_at(o, dir, ret, err);
}

/* ---- writing ------------------------------------------------------------- */

static void write_one(struct buf *out, const struct approved *a)
{
	char digest[sizeof(DIGEST) + 64] = DIGEST;
	struct json j;

	hex_encode(a->manifest, sizeof(a->manifest), digest + strlen(DIGEST));
	json_init(&j, out, false);
	json_open(&j, '{');
	json_kstr(&j, "skill", a->skill);
	json_kstr(&j, "manifest", digest);
	json_kstr(&j, "option", approved_option_name(a->option));
	json_kstr(&j, "value", a->value);
	json_kstr(&j, "at", a->at);
	json_kstr(&j, "by", a->by);
	json_close(&j, '}');
	buf_addc(out, '\n');
}

static int store_at(int dir, const struct approved_list *l, struct ssb_error *err)
{
	auto_buf text;

	buf_init(&text, MAX_APPROVED_BYTES);
	for (size_t i = 0; i < l->n; i++) {
		write_one(&text, &l->v[i]);
	}
	if (text.failed) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "approvals",
		                "there are too many; take some back with 'approve --revoke'");
	}
	auto_fd fd =
	        openat(dir, PART_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || file_write_all(fd, text.data, text.len) != 0 || fsync(fd) != 0 ||
	    renameat(dir, PART_NAME, dir, FILE_NAME) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "approvals", "writing %s", FILE_NAME);
	}
	return 0;
}

/* Whoever holds it does so for as long as a file is written. It may be a process that
 * stands still: nobody waits for that. */
static int take_lock(int lock)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
			return 0;
		}
		if (errno != EWOULDBLOCK && errno != EINTR) {
			return -1;
		}
		(void)nanosleep(&pause, NULL);
	}
	errno = EWOULDBLOCK;
	return -1;
}

/* The state directory, and the right to change the file until *ret_lock is closed. */
static int begin(const struct owner *o, int *ret_dir, int *ret_lock, struct approved_list *ret,
                 struct ssb_error *err)
{
	auto_fd path = file_mkdirs(o->state_dir);
	auto_fd dir = path >= 0 ? openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	auto_fd lock =
	        dir >= 0 ? openat(dir, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)
	                 : -1;

	int got = lock < 0 ? -1 : take_lock(lock);
	if (got != 0 && lock >= 0 && errno == EWOULDBLOCK) {
		return ssb_fail(err, SSB_E_SYS, 0, "approvals",
		                "another process holds %s/%s: try again, or end it", o->state_dir,
		                LOCK_NAME);
	}
	if (got != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "approvals", "%s", o->state_dir);
	}
	if (load_at(o, dir, ret, err) != 0) {
		return -1;
	}
	*ret_dir = steal_fd(&dir);
	*ret_lock = steal_fd(&lock);
	return 0;
}

int approved_add(const struct owner *o, const struct approved *v, size_t n, struct ssb_error *err)
{
	AUTO(approved_done) struct approved_list l = { 0 };
	auto_fd dir = -1;
	auto_fd lock = -1;
	struct timespec now;
	struct stamp stamp = STAMP_NONE;

	if (begin(o, &dir, &lock, &l, err) != 0) {
		return -1;
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)stamp_text(&stamp, &now);
	for (size_t i = 0; i < n; i++) {
		struct approved a = v[i];
		bool known = false;
		a.at = stamp.text;
		for (size_t k = 0; k < l.n && !known; k++) {
			known = same(&l.v[k], &a);
		}
		if (!known && !list_add(&l, &a)) {
			return ssb_fail(err, SSB_E_LIMIT, 0, "approvals",
			                "there are too many; take some back with 'approve "
			                "--revoke'");
		}
	}
	return store_at(dir, &l, err);
}

int approved_remove(const struct owner *o, const char *skill, size_t *ret_n, struct ssb_error *err)
{
	AUTO(approved_done) struct approved_list l = { 0 };
	auto_fd dir = -1;
	auto_fd lock = -1;
	size_t kept = 0;

	if (begin(o, &dir, &lock, &l, err) != 0) {
		return -1;
	}
	size_t all = l.n;
	for (size_t i = 0; i < all; i++) {
		if (strcmp(l.v[i].skill, skill) == 0) {
			one_done(&l.v[i]);
		} else {
			l.v[kept++] = l.v[i];
		}
	}
	l.n = kept;
	if (kept != all && store_at(dir, &l, err) != 0) {
		return -1;
	}
	*ret_n = all - kept;
	return 0;
}

bool approved_lifts(const struct approved *a, const char *dir, const struct ssb_plan *plan,
                    const struct refusal *r)
{
	return r->value != NULL && a->option == r->option && strcmp(a->value, r->value) == 0 &&
	       strcmp(a->skill, dir) == 0 &&
	       memcmp(a->manifest, plan->manifest_digest, sizeof(a->manifest)) == 0;
}

int approved_apply(const struct owner *o, const char *dir, const struct ssb_plan *plan,
                   struct ssb_options *options, size_t *ret_n, struct ssb_error *err)
{
	AUTO(approved_done) struct approved_list l = { 0 };
	size_t n = 0;

	if (approved_load(o, &l, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < plan->n_refusals; i++) {
		bool found = false;
		for (size_t k = 0; k < l.n && !found; k++) {
			found = approved_lifts(&l.v[k], dir, plan, &plan->refusals[i]);
		}
		if (found && ssb_options_set(options, plan->refusals[i].option,
		                             plan->refusals[i].value, err) != 0) {
			return -1;
		}
		n += found ? 1 : 0;
	}
	*ret_n = n;
	return 0;
}
