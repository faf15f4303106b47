/* test_manifest_load.c - opens manifests: only a regular file inside of the skill is accepted. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"

#define SMALL                                                                                      \
	"skill: {name: weather, version: 1.0}\n"                                                   \
	"permissions: {}\n"                                                                        \
	"entrypoint: {command: python3}\n"

static char root[64];

static int set_up(void **state)
{
	snprintf(root, sizeof(root), "/tmp/ssb-manifest-XXXXXX");
	return mkdtemp(root) != NULL && chdir(root) == 0 && mkdir("skill", 0700) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const files[] = { "skill/" MANIFEST_FILE, "skill/other.yaml",
		                             "skill/sub/m.yaml", "outside.yaml", "link.yaml" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)unlink(files[i]);
		(void)rmdir(files[i]);
	}
	(void)rmdir("skill/sub");
	(void)rmdir("skill");
	return chdir("/") == 0 ? rmdir(root) : -1;
}

static void put(const char *path, size_t padding)
{
	auto_file f = fopen(path, "w");

	assert_non_null(f);
	fputs(SMALL, f);
	for (size_t i = 0; i < padding; i++) {
		fputc('#', f);
	}
}

static void put_text(const char *path, const char *text)
{
	auto_file f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
}

static void expect_good(const char *path, const char *file)
{
	struct ssb_error err = { 0 };
	struct manifest *m = NULL;

	alarm(10); /* opening must not block: then the alarm ends the test */
	if (manifest_load(path, &m, NULL, &err) < 0) {
		fail_msg("%s: %s: %s", path, err.where, err.text);
	}
	alarm(0);
	assert_string_equal(m->file, file);
	assert_string_equal(m->name, "weather");
	manifest_free(m);
}

static void expect_bad(const char *path, enum ssb_code code, const char *word)
{
	struct ssb_error err = { 0 };
	struct manifest *m = NULL;
	struct ssb_diags *d = ssb_diags_new();

	alarm(10);
	assert_int_equal(manifest_load(path, &m, d, &err), -1);
	alarm(0);
	assert_null(m);
	if (err.code != code || strstr(err.text, word) == NULL) {
		fail_msg("%s: code %u: %s", path, err.code, err.text);
	}
	/* only a manifest that was read can have findings */
	assert_int_equal(ssb_diags_count(d), code == SSB_E_MANIFEST ? 1 : 0);
	ssb_diags_free(d);
}

static void a_directory_and_a_file(void **state)
{
	put("skill/" MANIFEST_FILE, 0);
	put("skill/other.yaml", 0);
	expect_good("skill", "skill/" MANIFEST_FILE);
	expect_good("skill//", "skill/" MANIFEST_FILE);
	expect_good("./skill", "./skill/" MANIFEST_FILE);
	expect_good("skill/other.yaml", "skill/other.yaml");
	assert_int_equal(chdir("skill"), 0);
	expect_good(".", "./" MANIFEST_FILE);
	expect_good(MANIFEST_FILE, MANIFEST_FILE);
	assert_int_equal(chdir(".."), 0);
}

/* A skill with a SKILL.md needs no entrypoint. The owner's own manifest can name the directory of
 * such a skill. */
static void without_an_entrypoint(void **state)
{
	static const char text[] = "skill: {name: weather, version: 1.0}\npermissions: {}\n";
	static const char *const files[] = { "skill/" MANIFEST_FILE, "skill/other.yaml" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		put_text(files[i], text);
	}
	expect_bad("skill", SSB_E_MANIFEST, "entrypoint is missing");
	expect_bad("skill/other.yaml", SSB_E_MANIFEST, "entrypoint is missing");
	for (size_t i = 0; i < N_MANIFEST_MARKDOWN; i++) {
		char path[64];
		snprintf(path, sizeof(path), "skill/%s", MANIFEST_MARKDOWN[i]);
		assert_int_equal(mkdir(path, 0700), 0); /* not a file */
		expect_bad("skill", SSB_E_MANIFEST, "entrypoint is missing");
		assert_int_equal(rmdir(path), 0);
		put(path, 0);
		expect_good("skill", "skill/" MANIFEST_FILE);
		expect_good("skill/" MANIFEST_FILE, "skill/" MANIFEST_FILE);
		expect_good("skill/other.yaml", "skill/other.yaml");
		assert_int_equal(unlink(path), 0);
	}
	put_text("skill/other.yaml", "skill: {name: weather, version: 1, directory: /srv/x}\n"
	                             "permissions: {}\n");
	expect_good("skill/other.yaml", "skill/other.yaml");
}

static void what_is_not_there(void **state)
{
	expect_bad("skill", SSB_E_NOT_FOUND, "write a " MANIFEST_FILE);
	expect_bad("nowhere", SSB_E_NOT_FOUND, "no such file or directory");
	expect_bad("", SSB_E_NOT_FOUND, "name a skill");
	put("skill/" MANIFEST_FILE, 0);
	expect_bad("skill/" MANIFEST_FILE "/", SSB_E_NOT_FOUND, "no such manifest");
	expect_bad("skill/" MANIFEST_FILE "/x", SSB_E_NOT_FOUND, "no such manifest");
	char path[MAX_PATH_BYTES + 1];
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	expect_bad(path, SSB_E_NOT_FOUND, "not a path");
	path[300] = '\0'; /* longer than a file name may be */
	expect_bad(path, SSB_E_SYS, "cannot open");
}

static void links_stay_inside(void **state)
{
	assert_int_equal(mkdir("skill/sub", 0700), 0);
	put("skill/sub/m.yaml", 0);
	put("outside.yaml", 0);
	assert_int_equal(symlink("sub/m.yaml", "skill/" MANIFEST_FILE), 0);
	expect_good("skill", "skill/" MANIFEST_FILE); /* the control */
	assert_int_equal(unlink("skill/" MANIFEST_FILE), 0);

	assert_int_equal(symlink("../outside.yaml", "skill/" MANIFEST_FILE), 0);
	expect_bad("skill", SSB_E_MANIFEST, "leaves the skill");
	expect_bad("skill/" MANIFEST_FILE, SSB_E_MANIFEST, "leaves the skill");
	assert_int_equal(unlink("skill/" MANIFEST_FILE), 0);

	assert_int_equal(symlink("/etc/passwd", "skill/" MANIFEST_FILE), 0);
	expect_bad("skill", SSB_E_MANIFEST, "leaves the skill");
	assert_int_equal(unlink("skill/" MANIFEST_FILE), 0);

	assert_int_equal(symlink(MANIFEST_FILE, "skill/" MANIFEST_FILE), 0);
	expect_bad("skill", SSB_E_MANIFEST, "symlink");
	assert_int_equal(unlink("skill/" MANIFEST_FILE), 0);

	assert_int_equal(symlink("/proc/self/fd/0", "skill/" MANIFEST_FILE), 0);
	expect_bad("skill", SSB_E_MANIFEST, "leaves the skill");
}

static void a_fifo_does_not_hang(void **state)
{
	assert_int_equal(mkfifo("skill/" MANIFEST_FILE, 0600), 0);
	expect_bad("skill", SSB_E_MANIFEST, "is a FIFO");
	expect_bad("skill/" MANIFEST_FILE, SSB_E_MANIFEST, "is a FIFO");
}

static void a_socket_is_refused(void **state)
{
	struct sockaddr_un addr = { AF_UNIX, "skill/" MANIFEST_FILE };
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	expect_bad("skill", SSB_E_MANIFEST, "socket");
}

static void a_directory_or_device_is_refused(void **state)
{
	assert_int_equal(mkdir("skill/" MANIFEST_FILE, 0700), 0);
	expect_bad("skill", SSB_E_MANIFEST, "is a directory");
	expect_bad("/dev/null", SSB_E_MANIFEST, "is a device");
	expect_bad("/dev/zero", SSB_E_MANIFEST, "is a device");
}

static void size_cap(void **state)
{
	const size_t room = MAX_YAML_BYTES - (sizeof(SMALL) - 1);

	put("skill/" MANIFEST_FILE, room);
	expect_good("skill", "skill/" MANIFEST_FILE);
	put("skill/" MANIFEST_FILE, room + 1);
	expect_bad("skill", SSB_E_MANIFEST, "larger than 262144 bytes");
	put("skill/" MANIFEST_FILE, 2 * MAX_YAML_BYTES);
	expect_bad("skill", SSB_E_MANIFEST, "larger than 262144 bytes");
}

static void an_empty_file(void **state)
{
	auto_fd fd = open("skill/" MANIFEST_FILE, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	expect_bad("skill", SSB_E_MANIFEST, "the manifest is empty");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_directory_and_a_file),
		TEST(without_an_entrypoint),
		TEST(what_is_not_there),
		TEST(links_stay_inside),
		TEST(a_fifo_does_not_hang),
		TEST(a_socket_is_refused),
		TEST(a_directory_or_device_is_refused),
		TEST(size_cap),
		TEST(an_empty_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
