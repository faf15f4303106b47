/* test_race.c - racing connects to listeners that answer, refuse and hang. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "dial_world.h"
#include "egress/race.h"

static struct race_target target(const char *text)
{
	struct race_target t = { .scope = 0 };

	assert_true(address_parse(text, &t.address));
	return t;
}

/* Returns the lowest free fd number. If the race leaks an fd, the next number is higher. */
static int next_fd(void)
{
	auto_fd fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd;
}

static void race(void **state)
{
	auto_fd second = world_listen(2, SOCK_STREAM, FULL);
	struct race_target targets[] = { target("127.0.0.1"), target("127.0.0.2") };
	struct race_target refusing[] = { target("127.0.0.3"), target("127.0.0.4"),
		                          target("127.0.0.2") };
	struct race_target hanging[] = { target("127.0.0.3"), target("127.0.0.1") };
	size_t tried = 9;
	int lowest = next_fd();

	assert_true(second >= 0);

	int64_t from = race_now_us(); /* the first target hangs, the second answers */
	int fd = race_connect(targets, 2, FULL, SOCK_STREAM, from + 5000000, &tried);
	int64_t took = race_now_us() - from;
	assert_true(fd >= 0);
	assert_int_equal(tried, 1);
	assert_true(took >= RACE_STAGGER_MS * 1000 && took < 4500000);
	(void)close(fd);

	/* A refused connect must start the next one at once. A busy machine may delay that, so one
	 * fast round of ten is enough. */
	took = INT64_MAX;
	for (int i = 0; i < 10 && took >= RACE_STAGGER_MS * 1000; i++) {
		from = race_now_us();
		fd = race_connect(refusing, 3, FULL, SOCK_STREAM, from + 5000000, &tried);
		took = race_now_us() - from;
		assert_true(fd >= 0);
		assert_int_equal(tried, 2);
		(void)close(fd);
	}
	assert_true(took < RACE_STAGGER_MS * 1000);

	from = race_now_us(); /* one target refuses, one hangs */
	assert_int_equal(race_connect(hanging, 2, FULL, SOCK_STREAM, from + 3000000, &tried), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(tried, 1);
	assert_int_equal(race_connect(refusing, 2, FULL, SOCK_STREAM, from + 5000000, &tried), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(next_fd(), lowest);
}

static bool arrives(int listener, int ms)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	return poll(&p, 1, ms) == 1;
}

/* race_at_once() returns an fd only if the first connect() succeeds at once. Otherwise
 * race_finish() continues that connect(), and does not begin it again. */
static void at_once(void **state)
{
	auto_fd listener = world_listen(2, SOCK_STREAM, FULL);
	struct race_target near = target("127.0.0.2"), closed = target("127.0.0.3");
	struct race_target hanging[] = { target("127.0.0.1"), near };
	size_t tried = 9;
	int lowest = next_fd();
	struct race r;

	race_init(&r, &near, 1, FULL, SOCK_STREAM);
	int fd = race_at_once(&r);
	assert_true(fd >= 0 && arrives(listener, 20000));
	(void)close(fd);
	(void)close(accept(listener, NULL, NULL));

	race_init(&r, &closed, 1, FULL, SOCK_STREAM);
	assert_int_equal(race_at_once(&r), -1);
	assert_int_equal(race_finish(&r, race_now_us() + 5000000, &tried), -1);
	assert_int_equal(errno, ECONNREFUSED);

	/* the second connect() starts RACE_STAGGER_MS after the first, even if the first was
	 * started by race_at_once() */
	int64_t from = race_now_us();
	race_init(&r, hanging, 2, FULL, SOCK_STREAM);
	assert_int_equal(race_at_once(&r), -1);
	assert_true(race_now_us() - from < 4500000);
	fd = race_finish(&r, from + 5000000, &tried);
	assert_true(fd >= 0 && tried == 1 && race_now_us() - from >= RACE_STAGGER_MS * 1000);
	(void)close(fd);
	(void)close(accept(listener, NULL, NULL));

	/* race_done() without race_finish() must close all fds */
	race_init(&r, hanging, 2, FULL, SOCK_STREAM);
	assert_int_equal(race_at_once(&r), -1);
	race_done(&r);
	assert_int_equal(next_fd(), lowest);
}

/* A socket of race_aim() sends nothing until the caller fires it by an empty send(). Then it sends
 * a SYN without data. */
static void aimed(void **state)
{
	auto_fd listener = world_listen(2, SOCK_STREAM, FULL);
	auto_fd other = world_listen(3, SOCK_STREAM, FULL);
	struct race_target near = target("127.0.0.2");
	struct sockaddr_in elsewhere = { .sin_family = AF_INET,
		                         .sin_port = htons(FULL),
		                         .sin_addr.s_addr = htonl(0x7f000003) };
	char got[8];
	struct race r;

	race_init(&r, &near, 1, FULL, SOCK_STREAM);
	for (int fired = 0; fired < 2; fired++) {
		auto_fd fd = race_aim(&r, false);
		assert_true(fd >= 0 && !arrives(listener, 50));
		if (fired == 0) {
			continue; /* closed without being fired: nothing arrives */
		}
		/* An address in sendto() has no effect: the target is fixed. */
		ssize_t n = sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
		                   (struct sockaddr *)&elsewhere, sizeof(elsewhere));
		assert_true(n == 0 || errno == EINPROGRESS);
		auto_fd there = arrives(listener, 20000) ? accept(listener, NULL, NULL) : -1;
		assert_true(there >= 0 && !arrives(other, 50));
		assert_int_equal(send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL), 0);
		assert_int_equal(send(fd, "hello", 5, MSG_NOSIGNAL), 5);
		assert_int_equal(recv(there, got, sizeof(got), 0), 5);
	}
	assert_false(arrives(listener, 50));
}

/* With race_aim(.., true), the listener gets the connection together with the first data, or after
 * a delay if no data comes. */
static void aimed_to_speak(void **state)
{
	auto_fd listener = world_listen(4, SOCK_STREAM, FULL);
	struct race_target near = target("127.0.0.4");
	char got[8];
	struct race r;

	race_init(&r, &near, 1, FULL, SOCK_STREAM);
	for (int spoken = 0; spoken < 2; spoken++) {
		auto_fd fd = race_aim(&r, true);
		assert_true(fd >= 0);
		(void)send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL);
		assert_int_equal(send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL), 0);
		int64_t from = race_now_us();
		bool early = arrives(listener, 5);
		/* The connection may come early only if this test was suspended. */
		assert_true(!early || race_now_us() - from > 30000);
		if (spoken == 1) {
			assert_int_equal(send(fd, "hello", 5, MSG_NOSIGNAL), 5);
		}
		auto_fd there = arrives(listener, 20000) ? accept(listener, NULL, NULL) : -1;
		assert_true(there >= 0);
		assert_int_equal(recv(there, got, sizeof(got), spoken ? 0 : MSG_DONTWAIT),
		                 spoken ? 5 : -1);
	}
}

static void interleaving(void **state)
{
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
		cmocka_unit_test(race),         cmocka_unit_test(at_once),
		cmocka_unit_test(aimed),        cmocka_unit_test(aimed_to_speak),
		cmocka_unit_test(interleaving),
	};
	struct world world;

	world_start(&world);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	world_stop(&world);
	return failed;
}
