/* Racing connects, against listeners that answer, refuse and hang. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/own.h"
#include "dial_world.h"
#include "egress/race.h"

static struct race_target target(const char *text)
{
	struct race_target t = { .scope = 0 };

	assert_true(address_parse(text, &t.address));
	return t;
}

/* The lowest free number: what was leaked would be below it. */
static int next_fd(void)
{
	auto_fd fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd;
}

static void race(void **state)
{
	(void)state;
	auto_fd second = world_listen(2, SOCK_STREAM, FULL);
	struct race_target targets[] = { target("127.0.0.1"), target("127.0.0.2") };
	struct race_target refusing[] = { target("127.0.0.3"), target("127.0.0.4"),
		                          target("127.0.0.2") };
	struct race_target hanging[] = { target("127.0.0.3"), target("127.0.0.1") };
	size_t tried = 9;
	int lowest = next_fd();

	assert_true(second >= 0);

	int64_t from = race_now_us(); /* the first hangs, the second answers */
	int fd = race_connect(targets, 2, FULL, SOCK_STREAM, from + 5000000, &tried);
	int64_t took = race_now_us() - from;
	assert_true(fd >= 0);
	assert_int_equal(tried, 1);
	assert_true(took >= RACE_STAGGER_MS * 1000 && took < 1000000);
	(void)close(fd);

	from = race_now_us(); /* failures do not wait */
	fd = race_connect(refusing, 3, FULL, SOCK_STREAM, from + 5000000, &tried);
	assert_true(fd >= 0 && race_now_us() - from < RACE_STAGGER_MS * 1000);
	assert_int_equal(tried, 2);
	(void)close(fd);

	from = race_now_us(); /* one fails, one hangs */
	assert_int_equal(race_connect(hanging, 2, FULL, SOCK_STREAM, from + 300000, &tried), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(tried, 1);
	assert_int_equal(race_connect(refusing, 2, FULL, SOCK_STREAM, from + 5000000, &tried), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(next_fd(), lowest);
}

static void interleaving(void **state)
{
	(void)state;
	static const char *const before[] = { "::1", "::2", "::3", "1.1.1.1", "::4", "1.1.1.2" };
	static const char *const after[] = { "::1", "1.1.1.1", "::2", "1.1.1.2", "::3", "::4" };
	struct race_target t[6];
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < 6; i++) {
		t[i] = target(before[i]);
	}
	race_interleave(t, 6);
	for (size_t i = 0; i < 6; i++) {
		address_format(&t[i].address, text);
		assert_string_equal(text, after[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(race),
		cmocka_unit_test(interleaving),
	};
	struct world world;

	world_start(&world);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	world_stop(&world);
	return failed;
}
