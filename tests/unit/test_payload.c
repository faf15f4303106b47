/* test_payload.c - a payload (a function that runs in a sandbox) whose sandbox cannot start: no
 * file descriptor stays open. */
#include "unit.h"

#include <sys/resource.h>

#include "base/buf.h"
#include "base/own.h"
#include "sandbox/sandbox.h"
#include "fds_world.h"

static int nothing(int fd, void *arg)
{
	return 0;
}

/* With too few free file descriptors for the pipe or the signalfd, the start fails, and no fd stays
 * open. */
static void test_no_descriptor_for(void **state)
{
	for (int left = 0; left < 4; left++) {
		struct ssb_plan plan = { 0 };
		const struct run_request q = run_request_of(&plan, (const int[3]){ -1, -1, -1 });
		struct ssb_error err = { 0 };
		struct rlimit before, few;
		struct buf out = BUF(4096);
		int next = lowest_free(), files = open_files();

		assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
		few = (struct rlimit){ (rlim_t)(next + left), before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		int r = sandbox_run_payload(&q, nothing, NULL, &out, &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		buf_done(&out);
		assert_int_equal(r, -1);
		assert_int_equal(err.code, SSB_E_SYS);
		assert_int_equal(open_files(), files);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_descriptor_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
