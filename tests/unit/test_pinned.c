/* The bytes of a skill: what is pinned, what cannot be, and the copy that is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "consent/lock.h"
#include "os/file.h"

static char top[64];
static char skill[80];
static struct owner owner;

/* What somebody does while a file is read: once, after its first bytes. */
static void (*meanwhile)(void);

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	ssize_t r = __real_read(fd, buf, n);

	if (meanwhile != NULL) {
		void (*act)(void) = meanwhile;
		meanwhile = NULL;
		act();
	}
	return r;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *w)
{
	(void)st;
	(void)w;
	return flag == FTW_DP ? rmdir(path) : unlink(path);
}

static int open_up(const char *path, const struct stat *st, int flag, struct FTW *w)
{
	(void)st;
	(void)w;
	return flag == FTW_D ? chmod(path, 0700) : 0;
}

static int setup(void **state)
{
	(void)state;
	/* Many files: in memory where there is such a place. */
	snprintf(top, sizeof(top), "%s/ssb-pinned-XXXXXX",
	         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(top));
	snprintf(skill, sizeof(skill), "%s/skill", top);
	assert_int_equal(mkdir(skill, 0755), 0);
	owner = (struct owner){ .uid = getuid(), .gid = getgid(), .home = top, .state_dir = top };
	meanwhile = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)nftw(top, open_up, 16, FTW_PHYS);
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *in_skill(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", skill, name);
	return path;
}

static void put(const char *name, const char *text)
{
	auto_fd fd = open(in_skill(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

/* Its error's code, or SSB_OK. */
static enum ssb_code try_read(const char *named)
{
	AUTO(pinned_done) struct pinned p = { 0 };
	struct ssb_error err = { 0 };

	if (pinned_read(skill, &p, &err) == 0) {
		return SSB_OK;
	}
	assert_null(p.v);
	if (named != NULL && strstr(err.text, named) == NULL) {
		fail_msg("'%s' is not in: %s", named, err.text);
	}
	return err.code;
}

/* ---- what is pinned ------------------------------------------------------------- */

static void in_order_and_whole(void **state)
{
	(void)state;
	AUTO(pinned_done) struct pinned p = { 0 };
	struct ssb_error err = { 0 };
	uint8_t hash[SHA256_BYTES];

	put("b", "bytes");
	assert_int_equal(mkdir(in_skill("a"), 0755), 0);
	put("a/x", "");
	assert_int_equal(chmod(in_skill("a/x"), 0751), 0);
	assert_int_equal(symlink("a/x", in_skill("link")), 0);
	assert_int_equal(mkdir(in_skill("empty"), 0755), 0);
	assert_int_equal(pinned_read(skill, &p, &err), 0);
	assert_int_equal(p.n, 4);
	assert_int_equal(p.bytes, 5);
	assert_string_equal(p.v[0].path, "a/x");
	assert_int_equal(p.v[0].mode, 0751);
	assert_string_equal(p.v[1].path, "b");
	sha256("bytes", 5, hash);
	assert_memory_equal(p.v[1].sha256, hash, sizeof(hash));
	assert_true(p.v[2].dir);
	assert_string_equal(p.v[2].path, "empty");
	assert_string_equal(p.v[3].link, "a/x");
}

static void tree_now(uint8_t ret[SHA256_BYTES])
{
	AUTO(pinned_done) struct pinned p = { 0 };
	struct ssb_error err = { 0 };

	assert_int_equal(pinned_look(&owner, skill, &p, &err), 0);
	memcpy(ret, p.tree, SHA256_BYTES);
}

static void change_byte(void)
{
	put("b", "bytez");
}
static void change_mode(void)
{
	assert_int_equal(chmod(in_skill("b"), 0755), 0);
}
static void change_name(void)
{
	auto_free char *from = strdup(in_skill("b"));
	assert_int_equal(rename(from, in_skill("c")), 0);
}
static void add_file(void)
{
	put("new", "");
}
static void add_link(void)
{
	assert_int_equal(symlink("b", in_skill("l")), 0);
}
static void turn_link(void)
{
	assert_int_equal(unlink(in_skill("l")), 0);
	assert_int_equal(symlink("c", in_skill("l")), 0);
}
static void file_for_link(void)
{
	assert_int_equal(unlink(in_skill("l")), 0);
	put("l", "c");
	assert_int_equal(chmod(in_skill("l"), 0777), 0);
}

/* Each of them makes another tree; and the same files the same one. */
static void every_change_shows(void **state)
{
	(void)state;
	static void (*const CHANGES[])(void) = { change_byte, change_mode, change_name,  add_file,
		                                 add_link,    turn_link,   file_for_link };
	uint8_t before[SHA256_BYTES];
	uint8_t now[SHA256_BYTES];

	put("b", "bytes");
	tree_now(before);
	for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
		tree_now(now);
		assert_memory_equal(before, now, sizeof(now));
		CHANGES[i]();
		tree_now(now);
		assert_memory_not_equal(before, now, sizeof(now));
		memcpy(before, now, sizeof(now));
	}
}

/* ---- what cannot be ------------------------------------------------------------- */

static void make_fifo(void)
{
	assert_int_equal(mkfifo(in_skill("odd"), 0644), 0);
}

static void make_socket(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", in_skill("odd"));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static void make_sparse(void)
{
	put("odd", "x");
	assert_int_equal(truncate(in_skill("odd"), 8 << 20), 0);
}

static void link_to(const char *where)
{
	assert_int_equal(symlink(where, in_skill("odd")), 0);
}
static void link_absolute(void)
{
	link_to("/etc/hostname");
}
static void link_up(void)
{
	link_to("../skill/plain");
}
static void link_to_itself(void)
{
	link_to("odd");
}

/* By its letters it stays inside: d is the directory itself. */
static void link_around(void)
{
	assert_int_equal(mkdir(in_skill("p"), 0755), 0);
	assert_int_equal(mkdir(in_skill("p/q"), 0755), 0);
	assert_int_equal(symlink("../..", in_skill("p/q/d")), 0);
	link_to("p/q/d/../x");
}

static void has_no_bytes_of_its_own(void **state)
{
	(void)state;
	static void (*const MAKE[])(void) = { make_fifo, make_socket, make_sparse,   link_absolute,
		                              link_up,   link_around, link_to_itself };

	put("plain", "x");
	for (size_t i = 0; i < ARRAY_LEN(MAKE); i++) {
		MAKE[i]();
		assert_int_equal(try_read("odd"), SSB_E_POLICY);
		assert_int_equal(unlink(in_skill("odd")), 0);
		assert_int_equal(try_read(NULL), SSB_OK); /* the control */
	}
}

static void links_that_stay(void **state)
{
	(void)state;
	put("plain", "x");
	assert_int_equal(symlink("plain", in_skill("a")), 0);
	assert_int_equal(symlink("./nothing/there", in_skill("b")), 0);
	assert_int_equal(symlink(".", in_skill("c")), 0);
	assert_int_equal(try_read(NULL), SSB_OK);
}

/* A linker leaves holes of a page; what is on the disk need not be all of a small file. */
static void small_holes_are_none(void **state)
{
	(void)state;
	put("a", "x");
	assert_int_equal(truncate(in_skill("a"), MAX_PINNED_HOLES), 0);
	assert_int_equal(try_read(NULL), SSB_OK);
}

static void grow(void)
{
	put("b", "more than there was");
}
static void same_size(void)
{
	struct timespec pause = { .tv_nsec = 20000000 };
	(void)nanosleep(&pause, NULL); /* past the tick of the kernel's clock */
	put("b", "BYTES");
}
static void cut(void)
{
	assert_int_equal(truncate(in_skill("b"), 0), 0);
}

static void changed_while_read(void **state)
{
	(void)state;
	static void (*const ACTS[])(void) = { grow, same_size };

	for (size_t i = 0; i < ARRAY_LEN(ACTS); i++) {
		struct timespec pause = { .tv_nsec = 20000000 };
		put("b", "bytes");
		(void)nanosleep(&pause, NULL);
		meanwhile = ACTS[i];
		assert_int_equal(try_read("changed while it was read"), SSB_E_POLICY);
		assert_int_equal(try_read(NULL), SSB_OK);
	}
}

/* ---- bounds --------------------------------------------------------------------- */

static void make_deep(size_t depth)
{
	auto_free char *path = strdup(skill);

	for (size_t i = 0; i < depth; i++) {
		char *longer = NULL;
		assert_true(asprintf(&longer, "%s/d", path) > 0);
		free(path);
		path = longer;
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	}
}

static void bounds_depth(void **state)
{
	(void)state;
	make_deep(MAX_PINNED_DEPTH - 1);
	assert_int_equal(try_read(NULL), SSB_OK);
	make_deep(MAX_PINNED_DEPTH);
	assert_int_equal(try_read(NULL), SSB_E_LIMIT);
}

static void bounds_files(void **state)
{
	(void)state;
	char name[32];

	put("0", "x");
	auto_free char *first = strdup(in_skill("0"));
	for (int i = 1; i < MAX_PINNED_FILES; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(link(first, in_skill(name)), 0);
	}
	assert_int_equal(try_read(NULL), SSB_OK);
	put("one more", "");
	assert_int_equal(try_read("more files than can be approved"), SSB_E_LIMIT);
}

/* A byte more is too large; at the cap the next thing is said of it. */
static void bounds_bytes(void **state)
{
	(void)state;
	auto_fd fd = open(in_skill("big"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(ftruncate(fd, (off_t)MAX_PINNED_BYTES + 1), 0);
	assert_int_equal(try_read("larger together"), SSB_E_LIMIT);
	assert_int_equal(ftruncate(fd, (off_t)MAX_PINNED_BYTES), 0);
	assert_int_equal(try_read("sparse"), SSB_E_POLICY);
	put("a", "x"); /* together they are past it */
	assert_int_equal(try_read(NULL), SSB_E_LIMIT);
}

static void bounds_directories(void **state)
{
	(void)state;
	char name[32];

	for (int i = 1; i < MAX_PINNED_DIRS; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mkdir(in_skill(name), 0755), 0);
	}
	assert_int_equal(try_read(NULL), SSB_OK);
	assert_int_equal(mkdir(in_skill("one more"), 0755), 0);
	assert_int_equal(try_read("more directories"), SSB_E_LIMIT);
}

#define LONG 200

static void bounds_names(void **state)
{
	(void)state;
	char name[LONG + 1];
	size_t left = MAX_PINNED_PATHS;

	for (unsigned i = 0; left > 0; i++) {
		size_t n = left < LONG ? left : LONG;
		memset(name, 'a', n);
		name[n] = '\0';
		int digits = snprintf(name, sizeof(name), "%u", i);
		name[digits] = 'a';
		put(name, "");
		left -= n;
	}
	assert_int_equal(try_read(NULL), SSB_OK);
	put("x", "");
	assert_int_equal(try_read("bytes of names"), SSB_E_LIMIT);
}

/* ---- the copy ------------------------------------------------------------------- */

static void make_copy(struct pinned *p, bool *ret_kept)
{
	struct ssb_error err = { 0 };

	assert_int_equal(pinned_read(skill, p, &err), 0);
	if (snapshot_make(&owner, skill, p, ret_kept, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static void copy_is_the_same(void **state)
{
	(void)state;
	AUTO(pinned_done) struct pinned p = { 0 };
	AUTO(pinned_done) struct pinned copy = { 0 };
	struct ssb_error err = { 0 };
	struct stat st;
	bool kept = false;

	assert_int_equal(mkdir(in_skill("a"), 0755), 0);
	put("a/x", "bytes");
	assert_int_equal(chmod(in_skill("a/x"), 0700), 0);
	assert_int_equal(symlink("a/x", in_skill("l")), 0);
	make_copy(&p, &kept);
	assert_true(kept);
	auto_free char *path = snapshot_path(&owner, &p);
	assert_int_equal(pinned_read(path, &copy, &err), 0);
	assert_int_equal(copy.n, p.n);
	assert_memory_equal(copy.v[0].sha256, p.v[0].sha256, SHA256_BYTES);
	assert_int_equal(copy.v[0].mode, 0500);
	assert_string_equal(copy.v[1].link, "a/x");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	pinned_done(&copy);
	make_copy(&copy, &kept); /* again: it is there */
}

/* What took the place of a file after it was hashed is not kept. */
static void copy_of_other_bytes(void **state)
{
	(void)state;
	static void (*const CHANGES[])(void) = { same_size, grow, cut, change_name };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
		AUTO(pinned_done) struct pinned p = { 0 };
		struct ssb_error err = { 0 };
		bool kept = false;
		put("b", "bytes");
		assert_int_equal(pinned_read(skill, &p, &err), 0);
		CHANGES[i]();
		assert_int_equal(snapshot_make(&owner, skill, &p, &kept, &err), -1);
		assert_int_equal(err.code, SSB_E_POLICY);
		auto_free char *path = snapshot_path(&owner, &p);
		assert_int_equal(stat(path, &st), -1);
	}
	AUTO(pinned_done) struct pinned p = { 0 };
	bool kept = false;
	make_copy(&p, &kept); /* the control */
	assert_true(kept);
}

/* A directory that became a link to elsewhere is not gone through. */
static void copy_through_a_link(void **state)
{
	(void)state;
	AUTO(pinned_done) struct pinned p = { 0 };
	struct ssb_error err = { 0 };
	bool kept = false;
	char other[96];

	assert_int_equal(mkdir(in_skill("a"), 0755), 0);
	put("a/x", "bytes");
	assert_int_equal(pinned_read(skill, &p, &err), 0);
	snprintf(other, sizeof(other), "%s/other", top);
	assert_int_equal(rename(in_skill("a"), other), 0);
	assert_int_equal(symlink("../other", in_skill("a")), 0);
	assert_int_equal(snapshot_make(&owner, skill, &p, &kept, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
}

static void copy_has_a_cap(void **state)
{
	(void)state;
	AUTO(pinned_done) struct pinned p = { .bytes = SNAPSHOT_BYTES + 1 };
	struct ssb_error err = { 0 };
	bool kept = true;

	assert_int_equal(snapshot_make(&owner, skill, &p, &kept, &err), 0);
	assert_false(kept);
	p.bytes = SNAPSHOT_BYTES;
	assert_int_equal(snapshot_make(&owner, skill, &p, &kept, &err), 0);
	assert_true(kept);
}

static void make_old(const char *path)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static void swept_when_idle(void **state)
{
	(void)state;
	AUTO(pinned_done) struct pinned p = { 0 };
	struct ssb_error err = { 0 };
	struct stat st;
	bool kept = false;

	put("b", "bytes");
	make_copy(&p, &kept);
	auto_free char *path = snapshot_path(&owner, &p);
	assert_int_equal(snapshot_sweep(&owner, &err), 0);
	assert_int_equal(stat(path, &st), 0); /* young */
	make_old(path);
	assert_true(snapshot_there(&owner, &p)); /* used */
	assert_int_equal(snapshot_sweep(&owner, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	make_old(path);
	assert_int_equal(snapshot_sweep(&owner, &err), 0);
	assert_int_equal(stat(path, &st), -1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(in_order_and_whole),  T(every_change_shows),   T(has_no_bytes_of_its_own),
		T(links_that_stay),     T(small_holes_are_none), T(changed_while_read),
		T(bounds_depth),        T(bounds_files),         T(bounds_bytes),
		T(bounds_directories),  T(bounds_names),         T(copy_is_the_same),
		T(copy_of_other_bytes), T(copy_through_a_link),  T(copy_has_a_cap),
		T(swept_when_idle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
