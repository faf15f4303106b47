/* test_approval_files.c - the files of a skill that an approval covers, and files that cannot be
 * covered. */
#include "consent_world.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

/* If set, it is called once, after the next read of a file. */
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

/* Returns the code of the error, or SSB_OK. The error must contain `named`, unless that is NULL. */
static enum ssb_code try_read(const char *named)
{
	AUTO(skill_files_done) struct skill_files p = { 0 };
	struct ssb_error err = { 0 };

	if (lock_files_read(skill, &p, &err) == 0) {
		return SSB_OK;
	}
	assert_null(p.v);
	if (named != NULL && strstr(err.text, named) == NULL) {
		fail_msg("'%s' is not in: %s", named, err.text);
	}
	return err.code;
}

/* ---- files that an approval covers ---------------------------------------------- */

static void in_order_and_whole(void **state)
{
	AUTO(skill_files_done) struct skill_files p = { 0 };
	struct ssb_error err = { 0 };
	uint8_t hash[SHA256_BYTES];

	put("b", "bytes");
	assert_int_equal(mkdir(in_skill("a"), 0755), 0);
	put("a/x", "");
	assert_int_equal(chmod(in_skill("a/x"), 0751), 0);
	assert_int_equal(symlink("a/x", in_skill("link")), 0);
	assert_int_equal(mkdir(in_skill("empty"), 0755), 0);
	assert_int_equal(lock_files_read(skill, &p, &err), 0);
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
	AUTO(skill_files_done) struct skill_files p = { 0 };
	struct ssb_error err = { 0 };

	assert_int_equal(lock_files_look(&owner, skill, &p, &err), 0);
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

/* Each change of a skill's files changes the digest of its tree. Without a change, the digest is
 * the same. */
static void every_change_shows(void **state)
{
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

/* ---- files that an approval cannot cover ---------------------------------------- */

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

/* By its text, the symlink's target stays inside the skill. But p/q/d in this text is itself a
 * symlink, to the skill's directory, so the ".." after it leads out of the skill. */
static void link_around(void)
{
	assert_int_equal(mkdir(in_skill("p"), 0755), 0);
	assert_int_equal(mkdir(in_skill("p/q"), 0755), 0);
	assert_int_equal(symlink("../..", in_skill("p/q/d")), 0);
	link_to("p/q/d/../x");
}

static void has_no_bytes_of_its_own(void **state)
{
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
	put("plain", "x");
	assert_int_equal(symlink("plain", in_skill("a")), 0);
	assert_int_equal(symlink("./nothing/there", in_skill("b")), 0);
	assert_int_equal(symlink(".", in_skill("c")), 0);
	assert_int_equal(try_read(NULL), SSB_OK);
}

/* A small file with a hole is accepted: a linker leaves holes of one page, and a file system need
 * not store all of a small file on the disk. */
static void small_holes_are_none(void **state)
{
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
	(void)nanosleep(&pause, NULL); /* wait for the next tick of the kernel's clock */
	put("b", "BYTES");
}

static void changed_while_read(void **state)
{
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
	make_deep(MAX_SKILL_DEPTH - 1);
	assert_int_equal(try_read(NULL), SSB_OK);
	make_deep(MAX_SKILL_DEPTH);
	assert_int_equal(try_read(NULL), SSB_E_LIMIT);
}

static void bounds_files(void **state)
{
	char name[32];

	put("0", "x");
	auto_free char *first = strdup(in_skill("0"));
	for (int i = 1; i < MAX_PINNED_FILES; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(link(first, in_skill(name)), 0);
	}
	assert_int_equal(try_read(NULL), SSB_OK);
	put("one more", "");
	assert_int_equal(try_read("more files than the limit of 20000"), SSB_E_LIMIT);
}

/* A file with one byte more than the limit is refused as too large. A file of exactly the limit is
 * not too large, but is refused because it is sparse. */
static void bounds_bytes(void **state)
{
	auto_fd fd = open(in_skill("big"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(ftruncate(fd, (off_t)MAX_PINNED_BYTES + 1), 0);
	assert_int_equal(try_read("more bytes in all its files than the limit of 1024 MiB"),
	                 SSB_E_LIMIT);
	assert_int_equal(ftruncate(fd, (off_t)MAX_PINNED_BYTES), 0);
	assert_int_equal(try_read("sparse"), SSB_E_POLICY);
	put("a", "x"); /* with this file, all files together exceed the limit */
	assert_int_equal(try_read(NULL), SSB_E_LIMIT);
}

static void bounds_directories(void **state)
{
	char name[32];

	for (int i = 1; i < MAX_PINNED_DIRS; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mkdir(in_skill(name), 0755), 0);
	}
	assert_int_equal(try_read(NULL), SSB_OK);
	assert_int_equal(mkdir(in_skill("one more"), 0755), 0);
	assert_int_equal(try_read("more directories than the limit of 20000"), SSB_E_LIMIT);
}

#define LONG 200

static void bounds_names(void **state)
{
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
	assert_int_equal(try_read("more bytes of names than the limit"), SSB_E_LIMIT);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(in_order_and_whole), T(every_change_shows),   T(has_no_bytes_of_its_own),
		T(links_that_stay),    T(small_holes_are_none), T(changed_while_read),
		T(bounds_depth),       T(bounds_files),         T(bounds_bytes),
		T(bounds_directories), T(bounds_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
