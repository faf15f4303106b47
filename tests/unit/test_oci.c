/* test_oci.c - the layout of an image: how large its layers may be, and that no larger one is
 * copied. */
#include <stdio.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "image/oci.h"
#include "os/tree.h"
#include "os/file.h"

static char top[64];
static int layout;

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/test-oci-XXXXXX");
	assert_non_null(mkdtemp(top));
	layout = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(layout, "blobs", 0755), 0);
	assert_int_equal(mkdirat(layout, "blobs/sha256", 0755), 0);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(tree_empty(layout), 0);
	own_close(&layout);
	return rmdir(top);
}

static void put(const char *name, const char *text)
{
	auto_fd fd = openat(layout, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

/* Writes `text` as a blob. Writes to `ret` the descriptor of the blob, which claims that its size
 * is `size`. */
static void blob(const char *text, uint64_t size, char ret[160])
{
	uint8_t digest[SHA256_BYTES];
	char hex[OCI_HEX], name[32 + OCI_HEX];

	sha256(text, strlen(text), digest);
	hex_encode(digest, sizeof(digest), hex);
	snprintf(name, sizeof(name), "blobs/sha256/%s", hex);
	put(name, text);
	snprintf(ret, 160, "{\"digest\": \"sha256:%s\", \"size\": %llu}", hex,
	         (unsigned long long)size);
}

static int open_with(uint64_t first, uint64_t second, struct oci_image *ret, struct ssb_error *err)
{
	char a[160], b[160], c[160], m[160], text[1024];

	*err = (struct ssb_error){ 0 };
	blob("first", first, a);
	blob("second", second, b);
	blob("{}", 2, c);
	snprintf(text, sizeof(text), "{\"config\": %s, \"layers\": [%s, %s]}", c, a, b);
	blob(text, strlen(text), m);
	snprintf(text, sizeof(text), "{\"manifests\": [%s]}", m);
	put("index.json", text);
	return oci_open(top, NULL, ret, err);
}

static void test_sizes_of_layers(void **state)
{
	static const struct {
		uint64_t first, second;
		bool fine;
	} CASES[] = {
		{ 5, 6, true },
		{ MAX_IMAGE_BYTES, 0, true },
		{ MAX_IMAGE_BYTES + 1, 0, false },
		{ 0, MAX_IMAGE_BYTES + 1, false },
		{ 1, MAX_IMAGE_BYTES - 1, true },
		{ 1, MAX_IMAGE_BYTES, false }, /* both layers together are too large */
		{ INT64_MAX, INT64_MAX, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		AUTO(oci_done) struct oci_image image = { .layout = -1 };
		struct ssb_error err;
		int rc = open_with(CASES[i].first, CASES[i].second, &image, &err);
		if (rc != (CASES[i].fine ? 0 : -1)) {
			fail_msg("%zu: %d %s", i, rc, err.text);
		}
		assert_int_equal(err.code, CASES[i].fine ? SSB_OK : SSB_E_LIMIT);
	}
}

/* A blob is copied only if it has exactly the size that its descriptor claims. A sparse file counts
 * with its full size. */
static void test_a_blob_of_another_size(void **state)
{
	AUTO(oci_done) struct oci_image image = { .layout = -1 };
	auto_fd to = memfd_create("copy", MFD_CLOEXEC);
	char name[32 + OCI_HEX];
	struct ssb_error err;
	struct stat st;

	assert_int_equal(open_with(5, 6, &image, &err), 0);
	assert_int_equal(oci_copy(&image, &image.layers[0], to, &err), 0);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 5);

	snprintf(name, sizeof(name), "blobs/sha256/%s", image.layers[1].hex);
	auto_fd fd = openat(layout, name, O_WRONLY | O_CLOEXEC);
	static const off_t SIZES[] = { 5, 7, (off_t)1 << 40 };
	for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
		assert_int_equal(ftruncate(fd, SIZES[i]), 0);
		assert_int_equal(ftruncate(to, 0), 0);
		assert_int_equal(oci_copy(&image, &image.layers[1], to, &err), -1);
		assert_int_equal(fstat(to, &st), 0);
		assert_int_equal(st.st_size, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_of_layers),
		cmocka_unit_test(test_a_blob_of_another_size),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
