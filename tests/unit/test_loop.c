/* test_loop.c - the event loop: fds, timers and children that are added and removed while it
 * runs. */
#include "os/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "unit.h"
#include "os/clock.h"

#define MANY 500

static struct loop *loop;

static int set_up(void **state)
{
	return loop_new(&loop, NULL);
}

static int tear_down(void **state)
{
	loop_free(loop);
	return 0;
}

struct run_end {
	struct loop_timer *timer;
	unsigned turns;
};

/* Stops the loop, but only after some more turns. If the machine paused, this timer may be due in
 * the same turn as events that should come before it. */
static void stop(void *arg)
{
	struct run_end *e = arg;

	if (e->turns-- > 0) {
		assert_int_equal(loop_after(loop, 1, stop, e, &e->timer), 0);
	} else {
		loop_stop(loop);
	}
}

/* Runs the loop until `ms` have passed, or a callback stops it. */
static void run_for(uint64_t ms)
{
	struct run_end end = { .turns = 20 };

	assert_int_equal(loop_after(loop, ms, stop, &end, &end.timer), 0);
	assert_int_equal(loop_run(loop), 0);
	loop_untimer(&end.timer);
}

/* A pipe with one byte in it, and what its callback does when it is readable. */
struct end {
	int fd[2];
	struct loop_watch *watch;
	unsigned called;
	struct end *lets_go; /* the callback removes the watch of this one */
	bool reads;
};

static void end_ready(void *arg, uint32_t events)
{
	struct end *e = arg;
	char c;

	assert_true((events & EPOLLIN) != 0);
	assert_non_null(e->watch); /* a removed watch is not called */
	e->called++;
	if (e->reads) {
		assert_int_equal(read(e->fd[0], &c, 1), 1);
	}
	if (e->lets_go != NULL) {
		loop_unwatch(&e->lets_go->watch);
	}
}

static void end_open(struct end *e)
{
	assert_int_equal(pipe2(e->fd, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(loop_watch(loop, e->fd[0], EPOLLIN, end_ready, e, &e->watch), 0);
	assert_int_equal(write(e->fd[1], "x", 1), 1);
}

static void end_close(struct end *e)
{
	loop_unwatch(&e->watch);
	(void)close(e->fd[0]);
	(void)close(e->fd[1]);
}

static void lets_go_of_itself(void **state)
{
	struct end e = { .lets_go = &e };

	end_open(&e);
	run_for(20);
	assert_int_equal(e.called, 1); /* only once, although its byte is still there */
	end_close(&e);
}

/* Two fds are ready in the same turn. The callback of the first removes the watch of the second,
 * whose callback must then not be called. */
static void lets_go_of_another(void **state)
{
	struct end a = { .reads = true }, b = { .reads = true };

	a.lets_go = &b;
	b.lets_go = &a;
	end_open(&a);
	end_open(&b);
	run_for(20);
	assert_int_equal(a.called + b.called, 1);
	end_close(&a);
	end_close(&b);
}

static void without_letting_go_both_are_called(void **state)
{
	struct end a = { .reads = true }, b = { .reads = true };

	end_open(&a);
	end_open(&b);
	run_for(20);
	assert_int_equal(a.called, 1);
	assert_int_equal(b.called, 1);
	end_close(&a);
	end_close(&b);
}

static void again(void *arg, uint32_t events)
{
	struct end *e = arg;

	e->called++;
	loop_unwatch(&e->watch);
	(void)close(e->fd[0]);
	(void)close(e->fd[1]);
	if (e->called < 3) { /* in the same turn, a new pipe gets the numbers of closed fds */
		assert_int_equal(pipe2(e->fd, O_CLOEXEC), 0);
		assert_int_equal(write(e->fd[1], "x", 1), 1);
		assert_int_equal(loop_watch(loop, e->fd[0], EPOLLIN, again, e, &e->watch), 0);
	}
}

static void a_number_is_used_again(void **state)
{
	struct end e = { .called = 0 };

	assert_int_equal(pipe2(e.fd, O_CLOEXEC), 0);
	assert_int_equal(write(e.fd[1], "x", 1), 1);
	assert_int_equal(loop_watch(loop, e.fd[0], EPOLLIN, again, &e, &e.watch), 0);
	run_for(30);
	assert_int_equal(e.called, 3);
	assert_null(e.watch);
}

static void rewatching(void **state)
{
	struct end e = { .reads = true };

	end_open(&e);
	loop_rewatch(e.watch, 0);
	run_for(10);
	assert_int_equal(e.called, 0);
	loop_rewatch(e.watch, EPOLLIN);
	run_for(10);
	assert_int_equal(e.called, 1);
	end_close(&e);
}

static void many_fds(void **state)
{
	static struct end many[MANY];
	unsigned called = 0;

	(void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 2 * MANY + 64, 4096 });
	for (size_t i = 0; i < MANY; i++) {
		many[i] = (struct end){ .reads = true };
		if (i % 2 == 1) {
			many[i].lets_go = &many[i];
		}
		end_open(&many[i]);
	}
	run_for(100);
	for (size_t i = 0; i < MANY; i++) {
		called += many[i].called;
		end_close(&many[i]);
	}
	assert_int_equal(called, MANY);
}

static void a_bad_fd(void **state)
{
	struct loop_watch *w = NULL;

	assert_int_equal(loop_watch(loop, -1, EPOLLIN, end_ready, NULL, &w), -1);
	assert_null(w);
}

static void file_ready(void *arg, uint32_t events)
{
	struct end *e = arg;
	char c;

	assert_int_equal(events, EPOLLIN);
	if (read(e->fd[0], &c, 1) == 1) {
		e->called++;
	} else {
		loop_unwatch(&e->watch);
		loop_stop(loop);
	}
}

/* epoll refuses regular files. The loop treats them as always ready. */
static void a_regular_file(void **state)
{
	FILE *f = tmpfile();
	struct end e = { .called = 0 };

	assert_non_null(f);
	assert_true(fputs("four", f) >= 0 && fflush(f) == 0);
	e.fd[0] = fileno(f);
	assert_int_equal(lseek(e.fd[0], 0, SEEK_SET), 0);
	assert_int_equal(loop_watch(loop, e.fd[0], EPOLLIN, file_ready, &e, &e.watch), 0);
	run_for(5000);
	assert_int_equal(e.called, 4);
	assert_null(e.watch);
	(void)fclose(f);
}

/* ---- timers ------------------------------------------------------------------ */

struct note {
	struct loop_timer *timer;
	struct note *lets_go;
	char name;
	uint64_t again_ms;
	unsigned called;
};

static char notes[64];

static void note_due(void *arg)
{
	struct note *n = arg;

	assert_null(n->timer);
	n->called++;
	if (strlen(notes) < sizeof notes - 1) {
		notes[strlen(notes)] = n->name;
	}
	if (n->lets_go != NULL) {
		loop_untimer(&n->lets_go->timer);
	}
	if (n->again_ms > 0) {
		assert_int_equal(loop_after(loop, n->again_ms - 1, note_due, n, &n->timer), 0);
	}
}

static void note_set(struct note *n, uint64_t ms)
{
	assert_int_equal(loop_after(loop, ms, note_due, n, &n->timer), 0);
}

static void in_order(void **state)
{
	static const struct {
		char name;
		uint64_t ms;
	} set[] = { { 'e', 40 }, { 'c', 20 }, { 'b', 10 }, { 'd', 20 }, { 'a', 0 }, { 'f', 50 } };
	struct note n[6] = { 0 };
	uint64_t from;

	memset(notes, 0, sizeof notes);
	do { /* repeats until all timers are set within 5 ms: otherwise their order could change */
		from = clock_ms();
		for (size_t i = 0; i < 6; i++) {
			loop_untimer(&n[i].timer);
			n[i].name = set[i].name;
			note_set(&n[i], set[i].ms);
		}
	} while (clock_ms() - from > 5);
	run_for(60);
	assert_string_equal(notes, "abcdef");
}

static void never_too_early(void **state)
{
	uint64_t from = clock_ms();

	run_for(25);
	assert_true(clock_ms() - from >= 25);
}

static void taken_back(void **state)
{
	struct note a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };

	memset(notes, 0, sizeof notes);
	a.lets_go = &b; /* both are due in the same turn */
	note_set(&a, 5);
	note_set(&b, 5);
	note_set(&c, 5);
	c.lets_go = &c; /* when c is called, its timer is not set any more: no effect */
	run_for(15);
	assert_string_equal(notes, "ac");
	assert_null(b.timer);
}

static void many_taken_back(void **state)
{
	static struct note many[MANY];
	unsigned called = 0;

	for (size_t i = 0; i < MANY; i++) {
		many[i] = (struct note){ .name = '.' };
		note_set(&many[i], (i * 7919) % 50);
	}
	for (size_t i = 0; i < MANY; i += 2) {
		loop_untimer(&many[i].timer);
	}
	run_for(60);
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal(many[i].called, i % 2);
		called += many[i].called;
	}
	assert_int_equal(called, MANY / 2);
}

/* A timer that always sets itself again must not delay other events. */
static void none_starves(void **state)
{
	struct note n = { .name = 'n', .again_ms = 1 };
	struct end e = { .reads = true };

	end_open(&e);
	note_set(&n, 0);
	run_for(20);
	assert_int_equal(e.called, 1);
	assert_true(n.called > 1);
	loop_untimer(&n.timer);
	end_close(&e);
}

static void nothing(int sig)
{
}

static void signals_do_not_end_it(void **state)
{
	uint64_t from = clock_ms();

	(void)sigaction(SIGALRM, &(struct sigaction){ .sa_handler = nothing }, NULL);
	(void)setitimer(
	        ITIMER_REAL,
	        &(struct itimerval){ .it_value.tv_usec = 5000, .it_interval.tv_usec = 5000 }, NULL);
	run_for(30);
	(void)setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	assert_true(clock_ms() - from >= 30);
}

/* loop_free() frees all that is left; the sanitizer reports leaks. */
static void leftovers(void **state)
{
	struct end e = { .reads = true };
	static struct note n;

	end_open(&e);
	note_set(&n, 1000000);
	assert_int_equal(loop_after(loop, UINT64_MAX, stop, NULL, NULL), 0);
	(void)close(e.fd[0]);
	(void)close(e.fd[1]);
}

#define IN_A_LOOP(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_A_LOOP(lets_go_of_itself),
		IN_A_LOOP(lets_go_of_another),
		IN_A_LOOP(without_letting_go_both_are_called),
		IN_A_LOOP(a_number_is_used_again),
		IN_A_LOOP(rewatching),
		IN_A_LOOP(many_fds),
		IN_A_LOOP(a_bad_fd),
		IN_A_LOOP(a_regular_file),
		IN_A_LOOP(in_order),
		IN_A_LOOP(never_too_early),
		IN_A_LOOP(taken_back),
		IN_A_LOOP(many_taken_back),
		IN_A_LOOP(none_starves),
		IN_A_LOOP(signals_do_not_end_it),
		IN_A_LOOP(leftovers),
	};
	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
