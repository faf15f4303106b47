/* test_caches.c - a cache that another process removed after the plan had opened it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#include "base/own.h"
#include "sandbox/caches.h"

static int begin(int cache, struct ssb_error *err)
{
	struct grant g = { .origin = ORIGIN_CACHE, .path = (char[]){ "/cache" }, .fd = cache };
	const struct ssb_plan plan = { .grants = &g, .n_grants = 1, .cache_mb = 8 };
	struct prepared p = { 0 };
	int rc = caches_begin(&plan, &p, err);

	if (p.has_cache) {
		own_close(&p.cache_fd);
	}
	return rc;
}

static void a_removed_cache(void **state)
{
	char dir[] = "/tmp/caches-XXXXXX";
	struct ssb_error err = { 0 };

	assert_non_null(mkdtemp(dir));
	auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(begin(fd, &err), 0); /* the control */
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(begin(fd, &err), -1);
	assert_non_null(strstr(err.text, "removing this cache"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_removed_cache) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
