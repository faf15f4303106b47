/* The owner's file of approvals: what is in it, whose it must be, and how large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "serve/approved.h"

static char dir[] = "/tmp/ssb-approved-XXXXXX";
static char file[64];
static struct owner owner;

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/approvals.jsonl", dir);
	owner = (struct owner){ .uid = getuid(), .gid = getgid(), .home = dir, .state_dir = dir };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	char lock[64];
	snprintf(lock, sizeof(lock), "%s/approvals.lock", dir);
	(void)unlink(lock);
	(void)unlink(file);
	return rmdir(dir);
}

static struct approved grant(const char *skill, uint8_t digest, enum ssb_option option,
                             const char *value)
{
	struct approved a = { .skill = (char *)(uintptr_t)skill,
		              .option = option,
		              .value = (char *)(uintptr_t)value,
		              .by = (char *)(uintptr_t) "a test" };

	memset(a.manifest, digest, sizeof(a.manifest));
	return a;
}

static void write_file(const char *text, mode_t mode)
{
	auto_fd fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void test_comes_back(void **state)
{
	(void)state;
	AUTO(approved_done) struct approved_list l = { 0 };
	struct ssb_error err = { 0 };
	struct approved v[] = { grant("/a", 1, SSB_OPT_READ, "~/.ssh"),
		                grant("/a", 1, SSB_OPT_ENV, "A\"B\n"),
		                grant("/b", 2, SSB_OPT_NET, "127.0.0.1:80") };
	size_t n = 0;

	(void)unlink(file);
	assert_int_equal(approved_load(&owner, &l, &err), 0);
	assert_int_equal(l.n, 0);
	assert_int_equal(approved_add(&owner, v, ARRAY_LEN(v), &err), 0);
	assert_int_equal(approved_add(&owner, v, ARRAY_LEN(v), &err), 0); /* not twice */
	assert_int_equal(approved_load(&owner, &l, &err), 0);
	assert_int_equal(l.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(l.v[i].skill, v[i].skill);
		assert_string_equal(l.v[i].value, v[i].value);
		assert_int_equal(l.v[i].option, v[i].option);
		assert_memory_equal(l.v[i].manifest, v[i].manifest, 32);
		assert_string_equal(l.v[i].by, "a test");
	}
	assert_int_equal(approved_remove(&owner, "/a", &n, &err), 0);
	assert_int_equal(n, 2);
	approved_done(&l);
	assert_int_equal(approved_load(&owner, &l, &err), 0);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0].skill, "/b");
}

#define GOOD_HASH "\"sha256:0000000000000000000000000000000000000000000000000000000000000000\""
#define GOOD                                                                                       \
	"{\"skill\":\"/a\",\"manifest\":" GOOD_HASH                                                \
	",\"option\":\"read\",\"value\":\"/x\",\"at\":\"t\",\"by\":\"b\"}\n"

/* One bad line, and nothing in the file counts. */
static void test_not_understood(void **state)
{
	(void)state;
	static const char *const BAD[] = {
		"{}\n",
		"x\n",
		GOOD "{\"skill\":\"/a\"}\n",
		"{\"skill\":\"/a\",\"manifest\":\"sha256:00\",\"option\":\"read\",\"value\":\"/"
		"x\",\"at\":\"t\",\"by\":\"b\"}\n",
		"{\"skill\":\"/a\",\"manifest\":" GOOD_HASH
		",\"option\":\"policy\",\"value\":\"/x\",\"at\":\"t\",\"by\":\"b\"}\n",
		"{\"skill\":\"/a\",\"manifest\":" GOOD_HASH
		",\"option\":\"read\",\"value\":\"/x\\u0000y\",\"at\":\"t\",\"by\":\"b\"}\n",
		"{\"skill\":\"/a\",\"manifest\":" GOOD_HASH
		",\"option\":\"read\",\"value\":\"/x\",\"at\":\"t\",\"by\":\"b\"}", /* cut */
	};
	struct approved_list l = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct ssb_error err = { 0 };
		write_file(BAD[i], 0600);
		assert_int_equal(approved_load(&owner, &l, &err), -1);
		assert_int_equal(err.code, SSB_E_POLICY);
		assert_int_equal(l.n, 0);
	}
	struct ssb_error err = { 0 };
	write_file(GOOD, 0600);
	assert_int_equal(approved_load(&owner, &l, &err), 0);
	assert_int_equal(l.n, 1);
	approved_done(&l);
}

static void test_whose_it_is(void **state)
{
	(void)state;
	struct approved_list l = { 0 };
	struct ssb_error err = { 0 };
	struct ssb_error fine = { 0 };

	write_file(GOOD, 0666);
	assert_int_equal(approved_load(&owner, &l, &err), -1);
	write_file(GOOD, 0600);
	assert_int_equal(approved_load(&owner, &l, &fine), 0);
	approved_done(&l);
	(void)unlink(file);
	assert_int_equal(symlink("/etc/hostname", file), 0);
	assert_int_equal(approved_load(&owner, &l, &err), -1);
	(void)unlink(file);
}

static void test_bounds(void **state)
{
	(void)state;
	AUTO(approved_done) struct approved_list l = { 0 };
	auto_free struct approved *v = calloc(MAX_APPROVED + 1, sizeof(*v));
	static char values[MAX_APPROVED + 1][12];
	struct ssb_error err = { 0 };
	struct ssb_error past = { 0 };

	(void)unlink(file);
	for (size_t i = 0; i <= MAX_APPROVED; i++) {
		snprintf(values[i], sizeof(values[i]), "/%zu", i);
		v[i] = grant("/a", 1, SSB_OPT_READ, values[i]);
	}
	assert_int_equal(approved_add(&owner, v, MAX_APPROVED, &err), 0);
	assert_int_equal(approved_add(&owner, v + MAX_APPROVED, 1, &past), -1);
	assert_int_equal(past.code, SSB_E_LIMIT);
	assert_int_equal(approved_load(&owner, &l, &err), 0);
	assert_int_equal(l.n, MAX_APPROVED);
}

/* Only for this skill, this manifest and this word. */
static void test_lifts(void **state)
{
	(void)state;
	struct ssb_plan plan = { 0 };
	struct refusal r = { .option = SSB_OPT_READ, .value = (char *)(uintptr_t) "~/.ssh" };
	struct refusal none = { .option = SSB_OPT_READ };
	struct approved a = grant("/a", 7, SSB_OPT_READ, "~/.ssh");

	memset(plan.manifest_digest, 7, sizeof(plan.manifest_digest));
	assert_true(approved_lifts(&a, "/a", &plan, &r));
	assert_false(approved_lifts(&a, "/a/", &plan, &r));
	assert_false(approved_lifts(&a, "/a", &plan, &none));
	r.option = SSB_OPT_WRITE;
	assert_false(approved_lifts(&a, "/a", &plan, &r));
	r.option = SSB_OPT_READ;
	plan.manifest_digest[31] = 8;
	assert_false(approved_lifts(&a, "/a", &plan, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comes_back),  cmocka_unit_test(test_not_understood),
		cmocka_unit_test(test_whose_it_is), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_lifts),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
