/* test_served_files.c - the files of a skill that the server offers to clients: digests, files that
 * are left out, and limits. */
#include "serve_world.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/limits.h"
#include "serve/served_files.h"

/* If set, this file grows to MAX_SKILL_FILE before the next read(). */
static const char *grows;

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	if (grows != NULL) {
		assert_int_equal(truncate(grows, MAX_SKILL_FILE), 0);
		grows = NULL;
	}
	return __real_read(fd, buf, n);
}

static void put(const char *path, size_t size)
{
	auto_free char *full = world_path(path);
	auto_fd fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
}

static const struct skill_file *find(const struct skill_files *f, const char *path)
{
	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->v[i].path, path) == 0) {
			return &f->v[i];
		}
	}
	return NULL;
}

static void read_served(struct skill_files *f, const struct skill *s, const char *cache)
{
	struct ssb_error err = { 0 };

	if (served_files_read(f, s, cache, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static size_t count_files(const struct skill_files *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		n += served_as_file(&f->v[i]);
	}
	return n;
}

static void digests_and_what_is_left_out(void **state)
{
	AUTO(skill_files_done) struct skill_files f = { 0 };
	uint8_t empty[SHA256_BYTES];

	world_mkdir("s");
	world_mkdir("s/sub");
	world_mkdir("s/.git");
	put("s/.git/config", 1);
	put("s/sub/empty", 0);
	put("s/big", 1000);
	auto_free char *link = world_path("s/link");
	auto_free char *fifo = world_path("s/fifo");
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	AUTO(skill_done) struct skill s = skill_at("s");
	auto_free char *cache = world_path("");

	read_served(&f, &s, cache);
	assert_int_equal(count_files(&f), 2);
	assert_int_equal(f.bytes, 1000);
	assert_true(find(&f, "sub")->dir);
	sha256("", 0, empty);
	assert_memory_equal(find(&f, "sub/empty")->sha256, empty, sizeof(empty));
	assert_int_equal(find(&f, "big")->size, 1000);
	assert_string_equal(find(&f, "link")->no_digest, "symlink");
	assert_string_equal(find(&f, "fifo")->no_digest, "FIFO");
	assert_string_equal(find(&f, ".git")->no_digest, "version control");
	assert_null(find(&f, ".git/config"));
	assert_int_equal(f.n_left_out, 3);

	/* Files that are left out, and invalid names, cannot be read by their name, either. */
	static const char *const not_served[] = { "link",        "fifo",   ".git/config", "..",
		                                  "../s/big",    "./big",  "/etc/passwd", "",
		                                  "sub/../big",  "sub//x", "sub",         "nope",
		                                  "link/passwd", "big/",   "sub/.git/x" };
	for (size_t i = 0; i < ARRAY_LEN(not_served); i++) {
		auto_buf out = BUF(4096);
		if (served_file_content(&s, not_served[i], &out) == 0) {
			fail_msg("%s can be read", not_served[i]);
		}
	}
	auto_buf out = BUF(4096);
	assert_int_equal(served_file_content(&s, "big", &out), 0);
	assert_int_equal(out.len, 1000);
}

/* A changed file gets a new digest, even if the cache has the old one. */
static void sees_a_change(void **state)
{
	uint8_t before[SHA256_BYTES];
	auto_free char *cache = world_path("");

	world_mkdir("s");
	put("s/a", 10);
	AUTO(skill_done) struct skill s = skill_at("s");
	for (int i = 0; i < 2; i++) {
		AUTO(skill_files_done) struct skill_files f = { 0 };
		read_served(&f, &s, cache);
		memcpy(before, f.v[0].sha256, sizeof(before));
	}
	put("s/a", 11);
	AUTO(skill_files_done) struct skill_files f = { 0 };
	read_served(&f, &s, cache);
	assert_memory_not_equal(f.v[0].sha256, before, sizeof(before));
}

/* Returns the reason why the skill cannot be served; NULL if it can. If `cache` is not NULL, the
 * contents of the files are read, too. */
static const char *refused_with(const char *cache)
{
	static struct ssb_error err;
	AUTO(skill_files_done) struct skill_files f = { 0 };
	AUTO(skill_done) struct skill s = skill_at("s");

	err = (struct ssb_error){ 0 };
	return served_files_read(&f, &s, cache, &err) == 0 ? NULL : err.text;
}

static const char *refused(void)
{
	return refused_with(NULL);
}

static void too_many(void **state)
{
	char name[64];

	world_mkdir("s");
	for (int i = 0; i < MAX_SKILL_FILES; i++) {
		snprintf(name, sizeof(name), "s/%d", i);
		put(name, 0);
	}
	assert_null(refused());
	put("s/more", 0);
	assert_string_equal(refused(), "it has more files than the limit of 512");
}

/* The number of directories has its own limit, because directories do not count as files. */
static void too_many_directories(void **state)
{
	char name[64];

	world_mkdir("s");
	for (int i = 0; i < MAX_SKILL_FILES; i++) {
		snprintf(name, sizeof(name), "s/%d", i);
		world_mkdir(name);
	}
	put("s/0/file", 0);
	assert_null(refused());
	world_mkdir("s/more");
	assert_string_equal(refused(), "it has more directories than the limit of 513");
}

/* Files are sorted. At most MAX_SKILL_LEFT of the files that are left out are listed, but all are
 * counted. */
static void is_in_order(void **state)
{
	AUTO(skill_files_done) struct skill_files f = { 0 };
	char name[64];

	world_mkdir("s");
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "s/%d", i * 37 % 50);
		put(name, 0);
	}
	for (int i = 0; i < MAX_SKILL_LEFT + 1; i++) {
		snprintf(name, sizeof(name), "s/link%d", i);
		auto_free char *path = world_path(name);
		assert_int_equal(symlink("x", path), 0);
	}
	AUTO(skill_done) struct skill s = skill_at("s");
	read_served(&f, &s, NULL);
	assert_int_equal(count_files(&f), 50);
	assert_int_equal(f.n, 50 + MAX_SKILL_LEFT);
	for (size_t i = 1; i < f.n; i++) {
		assert_true(strcmp(f.v[i - 1].path, f.v[i].path) < 0);
	}
	assert_int_equal(f.n_left_out, MAX_SKILL_LEFT + 1);
	for (size_t i = 0; i < f.n; i++) {
		assert_true(served_as_file(&f.v[i]) || strcmp(f.v[i].no_digest, "symlink") == 0);
	}
}

static void too_large(void **state)
{
	char name[64];

	world_mkdir("s");
	put("s/a", MAX_SKILL_FILE);
	assert_null(refused());
	put("s/a", MAX_SKILL_FILE + 1);
	assert_string_equal(refused(), "it has more bytes in one file than the limit of 4 MiB");
	for (size_t i = 0; i < MAX_SKILL_BYTES / MAX_SKILL_FILE; i++) {
		snprintf(name, sizeof(name), "s/%c", (char)('a' + i));
		put(name, MAX_SKILL_FILE);
	}
	assert_null(refused());
	put("s/z", 1);
	assert_string_equal(refused(),
	                    "it has more bytes in all its files than the limit of 16 MiB");
}

/* A file grows after it was listed: the limit applies to the bytes that are read. */
static void too_large_by_growing(void **state)
{
	char name[64];

	world_mkdir("s");
	put("s/a", 1);
	for (size_t i = 1; i <= MAX_SKILL_BYTES / MAX_SKILL_FILE; i++) {
		snprintf(name, sizeof(name), "s/%c", (char)('a' + i));
		put(name, MAX_SKILL_FILE - (i == 1));
	}
	assert_null(refused());
	auto_free char *path = world_path("s/a");
	auto_free char *cache = world_path("cache");
	world_mkdir("cache");
	grows = path;
	assert_string_equal(refused_with(cache),
	                    "it has more bytes in all its files than the limit of 16 MiB");
	assert_null(grows);
}

static void too_deep(void **state)
{
	char path[4 * MAX_SKILL_DEPTH] = "s";
	size_t len = 1;

	world_mkdir(path);
	for (int i = 1; i < MAX_SKILL_DEPTH; i++) {
		memcpy(path + len, "/d", sizeof("/d"));
		len += strlen("/d");
		world_mkdir(path);
	}
	assert_null(refused());
	memcpy(path + len, "/d", sizeof("/d"));
	world_mkdir(path);
	assert_string_equal(refused(), "its directories are deeper than the limit of 64");
}

static void base64(void **state)
{
	static const char *const cases[][2] = { { "", "" },
		                                { "f", "Zg==" },
		                                { "fo", "Zm8=" },
		                                { "foo", "Zm9v" },
		                                { "foob", "Zm9vYg==" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *out = base64_encode(cases[i][0], strlen(cases[i][0]));
		assert_string_equal(out, cases[i][1]);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(digests_and_what_is_left_out), T(sees_a_change), T(too_many),
		T(too_many_directories),         T(is_in_order),   T(too_large),
		T(too_large_by_growing),         T(too_deep),      cmocka_unit_test(base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
