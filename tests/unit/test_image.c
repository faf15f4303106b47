/* test_image.c - layers of images: which files are unpacked, and that nothing is written outside of
 * the directory, whatever the reader of the layer reports. */
#include "tar_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "image/layer.h"
#include "os/file.h"
#include "os/tree.h"

static char top[64];
static int root;
static int outside;

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/test-image-XXXXXX");
	assert_non_null(mkdtemp(top));
	outside = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(outside, "root", 0755), 0);
	root = openat(outside, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(tree_empty(outside), 0);
	own_close(&root);
	own_close(&outside);
	assert_int_equal(rmdir(top), 0);
	return 0;
}

static int layer_of(const struct made *v, size_t n)
{
	static const uint8_t zeroes[2 * TAR_BLOCK];
	int fd = memfd_create("layer", MFD_CLOEXEC);
	uint8_t block[TAR_BLOCK];

	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++) {
		size_t len = v[i].data != NULL ? strlen(v[i].data) : 0;
		tar_make(&v[i], block);
		assert_int_equal(file_write_all(fd, block, sizeof(block)), 0);
		assert_int_equal(file_write_all(fd, v[i].data, len), 0);
		assert_int_equal(file_write_all(fd, zeroes, (size_t)tar_padded(len) - len), 0);
	}
	assert_int_equal(file_write_all(fd, zeroes, sizeof(zeroes)), 0);
	return fd;
}

static struct unpack_left left;

static int unpack(const struct made *v, size_t n, enum layer_pass pass, struct ssb_error *err)
{
	auto_fd fd = layer_of(v, n);

	return layer_unpack(root, fd, "test", pass, &left, err);
}

static bool has(const char *name)
{
	struct stat st;

	return fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void must_unpack(const struct made *v, size_t n, enum layer_pass pass)
{
	struct ssb_error err = { 0 };

	if (unpack(v, n, pass, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static void begin(void)
{
	assert_int_equal(tree_empty(root), 0);
	left = (struct unpack_left){ 1000, 1000000 };
}

static void test_what_is_kept(void **state)
{
	static const struct made LAYER[] = {
		{ '5', "./", NULL, NULL, 0 },
		{ '5', "./etc/", NULL, NULL, 0700 },
		{ '0', "./etc//x", NULL, "hello", 0600 },
		{ '0', "deep/er/file", NULL, "", 04711 },
		{ '2', "link", "/etc/x", NULL, 0 },
		{ '1', "hard", "etc/x", NULL, 0 },
		{ '3', "dev/null", NULL, NULL, 0666 },
		{ '0', "link", NULL, "a file now", 0 },
	};
	struct stat st;

	begin();
	must_unpack(LAYER, ARRAY_LEN(LAYER), PASS_ADD);
	assert_int_equal(fstatat(root, "etc/x", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(fstatat(root, "deep/er/file", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0755); /* without setuid */
	assert_int_equal(fstatat(root, "etc", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(fstatat(root, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode)); /* this file has replaced the symlink */
	assert_false(has("dev/null"));
	/* "deep" and "deep/er" have no entry, but count as files */
	assert_int_equal(left.files, 1000 - 6 - 2);
	assert_int_equal(left.bytes, 1000000 - 5 - 10);
}

static void test_whiteouts(void **state)
{
	static const struct made LOWER[] = {
		{ '0', "a/gone", NULL, "1", 0 }, { '0', "a/stays", NULL, "1", 0 },
		{ '0', "b/one", NULL, "1", 0 },  { '0', "b/d/two", NULL, "1", 0 },
		{ '0', "c/x/y", NULL, "1", 0 },
	};
	static const struct made UPPER[] = {
		{ '0', "b/new", NULL, "1", 0 },         { '0', "a/.wh.gone", NULL, "", 0 },
		{ '0', "b/.wh..wh..opq", NULL, "", 0 }, { '0', ".wh.c", NULL, "", 0 },
		{ '0', ".wh..wh.plnk", NULL, "", 0 },   { '0', "no/.wh.where", NULL, "", 0 },
	};

	begin();
	must_unpack(LOWER, ARRAY_LEN(LOWER), PASS_ADD);
	must_unpack(UPPER, ARRAY_LEN(UPPER), PASS_REMOVE);
	assert_false(has("b/new")); /* PASS_REMOVE only removes files */
	must_unpack(UPPER, ARRAY_LEN(UPPER), PASS_ADD);
	assert_true(has("a/stays") && has("b/new") && has("b"));
	assert_false(has("a/gone") || has("b/one") || has("b/d") || has("c"));
	assert_false(has("a/.wh.gone") || has(".wh.c") || has("no"));
}

/* Each bad entry is refused. The good entry is accepted in the same layer. */
static void test_hostile_layers(void **state)
{
	static const struct {
		struct made before;
		char type;
		const char *bad, *bad_link, *good, *good_link;
	} CASES[] = {
		{ { 0 }, '0', "../out", NULL, "in", NULL },
		{ { 0 }, '0', "a/../../out", NULL, "a/out", NULL },
		{ { 0 }, '0', "/abs", NULL, "abs", NULL },
		{ { 0 }, '5', "..", NULL, "d", NULL },
		{ { 0 }, '0', ".wh...", NULL, ".wh.x", NULL },
		{ { '0', "f", NULL, "x", 0 }, '1', "h", "../out", "h", "f" },
		{ { '0', "f", NULL, "x", 0 }, '1', "h", "/etc/passwd", "h", "f" },
		{ { '2', "f", "/etc/passwd", NULL, 0 }, '1', "h", "f", "other", NULL },
		{ { '5', "f", NULL, NULL, 0 }, '1', "h", "f", "other", NULL },
		{ { 0 }, '2', "empty", "", "full", "x" },
		{ { '2', "l", "/nonexistent", NULL, 0 }, '0', "l/x", NULL, "m/x", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		char good_type =
		        CASES[i].good_link == NULL && CASES[i].type != '5' ? '0' : CASES[i].type;
		const struct made bad[] = { { CASES[i].type, CASES[i].bad, CASES[i].bad_link, NULL,
			                      0 } };
		const struct made good[] = { { good_type, CASES[i].good, CASES[i].good_link, NULL,
			                       0 } };
		struct ssb_error err = { 0 };
		begin();
		if (CASES[i].before.name != NULL) {
			must_unpack(&CASES[i].before, 1, PASS_ADD);
		}
		if (unpack(bad, 1, PASS_ADD, &err) == 0) {
			fail_msg("%s was unpacked", CASES[i].bad);
		}
		assert_int_not_equal(err.code, SSB_OK);
		must_unpack(good, 1, PASS_ADD);
	}
}

/* A symlink to an absolute path or above the image is followed inside of the image. Nothing is
 * written outside. */
static void test_symlinks_stay_inside(void **state)
{
	char target[80];
	snprintf(target, sizeof(target), "%s", top);
	const struct made LAYER[] = {
		{ '2', "up", "../..", NULL, 0 },        { '0', "up/by-dots", NULL, "x", 0 },
		{ '2', "abs", "/", NULL, 0 },           { '0', "abs/by-root", NULL, "x", 0 },
		{ '0', target + 1, NULL, NULL, 0 }, /* replaced by the next entry */
		{ '5', target + 1, NULL, NULL, 0 },     { '2', "there", target, NULL, 0 },
		{ '0', "there/by-name", NULL, "x", 0 },
	};

	begin();
	must_unpack(LAYER, ARRAY_LEN(LAYER), PASS_ADD);
	assert_int_equal(faccessat(outside, "by-name", F_OK, 0), -1);
	assert_int_equal(faccessat(outside, "by-dots", F_OK, 0), -1);
	assert_int_equal(access("/by-root", F_OK), -1);
	assert_true(has("by-dots") && has("by-root"));
	char inside[128];
	snprintf(inside, sizeof(inside), "%s/by-name", top + 1);
	assert_true(has(inside));
}

/* Calls unpack_step() with every kind of invalid step that a compromised reader could report. */
static void test_the_writer_believes_nothing(void **state)
{
	static const char *const NAMES[] = { "",     ".",    "..",    "/a",  "a/",    "a//b",
		                             "a/..", "../a", "a/./b", "./a", "a/../b" };

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		for (uint32_t kind = STEP_DIR; kind <= STEP_EMPTY; kind++) {
			struct step s = { .kind = kind };
			struct ssb_error err = { 0 };
			begin();
			bool fine = *NAMES[i] == '\0' && kind == STEP_EMPTY;
			assert_int_equal(unpack_step(root, &s, NAMES[i], "x", -1, &left, &err),
			                 fine ? 0 : -1);
			s.kind = STEP_HARD;
			err.code = SSB_OK;
			assert_int_equal(unpack_step(root, &s, "h", NAMES[i], -1, &left, &err), -1);
		}
	}
	for (uint32_t kind = 0; kind < 64; kind++) {
		struct step s = { .kind = kind };
		struct ssb_error err = { 0 };
		if (kind < STEP_DIR || kind > STEP_EMPTY) {
			assert_int_equal(unpack_step(root, &s, "n", "x", -1, &left, &err), -1);
			assert_false(has("n"));
		}
	}
}

static void test_depth(void **state)
{
	char name[2 * (MAX_IMAGE_DEPTH + 1) + 1] = "d";
	struct ssb_error err = { 0 };

	begin();
	for (int i = 1; i < MAX_IMAGE_DEPTH; i++) {
		strncat(name, "/d", 3);
	}
	struct step s = { .kind = STEP_DIR };
	assert_int_equal(unpack_step(root, &s, name, "", -1, &left, &err), 0);
	strncat(name, "/d", 3);
	assert_int_equal(unpack_step(root, &s, name, "", -1, &left, &err), -1);
	/* A path through a symlink has the same limit of depth as any other path. */
	name[strlen(name) - 2] = '\0';
	struct step link = { .kind = STEP_LINK };
	err.code = SSB_OK;
	assert_int_equal(unpack_step(root, &link, "short", name, -1, &left, &err), 0);
	assert_int_equal(unpack_step(root, &s, "short/e", "", -1, &left, &err), 0);
	assert_int_equal(unpack_step(root, &s, "short/e/f", "", -1, &left, &err), -1);
}

static void test_caps(void **state)
{
	static const struct made LAYER[] = {
		{ '0', "a", NULL, "12345", 0 },
		{ '5', "d", NULL, NULL, 0 },
	};
	static const struct made DEEP[] = { { '0', "1/2/3/4", NULL, "", 0 } };
	struct ssb_error err = { 0 };

	begin();
	left = (struct unpack_left){ 2, 5 };
	must_unpack(LAYER, 2, PASS_ADD);
	assert_true(left.files == 0 && left.bytes == 0);
	left = (struct unpack_left){ 1, 5 };
	assert_int_equal(unpack(LAYER, 2, PASS_ADD, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	left = (struct unpack_left){ 2, 4 };
	err = (struct ssb_error){ 0 };
	assert_int_equal(unpack(LAYER, 2, PASS_ADD, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	/* Directories without an entry count as files, too. */
	left = (struct unpack_left){ 3, 0 };
	err = (struct ssb_error){ 0 };
	assert_int_equal(unpack(DEEP, 1, PASS_ADD, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	assert_false(has("1/2/3"));
	left = (struct unpack_left){ 2, 0 };
	must_unpack(DEEP, 1, PASS_ADD);
	assert_true(has("1/2/3/4"));
}

/* A layer that is cut at any place is refused. */
static void test_cut_layers(void **state)
{
	static const struct made LAYER[] = { { '0', "a", NULL, "12345", 0 } };
	struct ssb_error err = { 0 };

	for (off_t at = 1; at < 2 * TAR_BLOCK; at += 101) {
		auto_fd fd = layer_of(LAYER, 1);
		assert_int_equal(ftruncate(fd, at), 0);
		begin();
		err = (struct ssb_error){ 0 };
		assert_int_equal(layer_unpack(root, fd, "cut", PASS_ADD, &left, &err), -1);
	}
	auto_fd zstd = memfd_create("zstd", MFD_CLOEXEC);
	assert_int_equal(file_write_all(zstd, "\x28\xb5\x2f\xfd rest", 9), 0);
	err = (struct ssb_error){ 0 };
	assert_int_equal(layer_unpack(root, zstd, "zstd", PASS_ADD, &left, &err), -1);
	assert_non_null(strstr(err.text, "zstd"));
	auto_fd gzip = memfd_create("gzip", MFD_CLOEXEC);
	assert_int_equal(file_write_all(gzip, "\x1f\x8b\x08\x00 rest", 9), 0);
	err = (struct ssb_error){ 0 };
	assert_int_equal(layer_unpack(root, gzip, "gzip", PASS_ADD, &left, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_kept),
		cmocka_unit_test(test_whiteouts),
		cmocka_unit_test(test_hostile_layers),
		cmocka_unit_test(test_symlinks_stay_inside),
		cmocka_unit_test(test_the_writer_believes_nothing),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_cut_layers),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
