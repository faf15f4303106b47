/* test_egress.c - the supervisor's end of the egress: a broker that keeps sending, a broker that
 * has died, and file descriptors after a failed start. The linker replaces the ledger and the
 * trace. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "egress/egress.h"
#include "egress/egress_event.h"
#include "os/clock.h"
#include "os/clone.h"
#include "fds_world.h"

static bool without_memory;
static unsigned violations;
static unsigned heard;
static unsigned slow_us;
/* the event that the broker of start_talker() sends */
static struct egress_event word = { .kind = EGRESS_UNKNOWN };
static struct egress_event last_heard;

struct ledger *__real_ledger_new(const struct ssb_plan *plan);
struct ledger *__wrap_ledger_new(const struct ssb_plan *plan);
void __wrap_ledger_take(struct ledger *l, const struct egress_event *e, struct trace *trace);
void __wrap_ledger_close(struct ledger *l, struct trace *trace);
void __wrap_trace_violation(struct trace *t, enum event_kind kind, const char *fmt, ...);

struct ledger *__wrap_ledger_new(const struct ssb_plan *plan)
{
	return without_memory ? NULL : __real_ledger_new(plan);
}

void __wrap_ledger_take(struct ledger *l, const struct egress_event *e, struct trace *trace)
{
	(void)l;
	(void)trace;
	heard++;
	last_heard = *e;
	(void)usleep(slow_us);
}

void __wrap_ledger_close(struct ledger *l, struct trace *trace)
{
	(void)l;
	(void)trace;
}

void __wrap_trace_violation(struct trace *t, enum event_kind kind, const char *fmt, ...)
{
	(void)t;
	(void)kind;
	(void)fmt;
	violations++;
}

/* Starts a broker that sends `n` events, one every `every_us`, and never ends. */
static void start_talker(struct egress *e, unsigned n, unsigned every_us)
{
	static const struct ssb_plan plan;
	int pair[2];
	int said[2]; /* gets one byte: after the first event or, if `every_us` is 0, after all */
	char c;

	egress_init(e);
	heard = 0;
	assert_int_equal(pipe(said), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	e->ledger = __real_ledger_new(&plan);
	e->events = pair[0];
	pid_t pid = clone_fork(&e->broker);
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(pair[0]);
		for (unsigned i = 0; i < n; i++) {
			(void)send(pair[1], &word, sizeof(word), MSG_NOSIGNAL);
			if (i == 0 && every_us > 0) {
				(void)!write(said[1], "x", 1);
			}
			(void)usleep(every_us);
		}
		(void)!write(said[1], "x", 1);
		for (;;) {
			(void)pause();
		}
	}
	(void)close(pair[1]);
	assert_int_equal(read(said[0], &c, 1), 1);
	(void)close(said[0]);
	(void)close(said[1]);
}

/* Returns a pointer that stands for a trace. Only replaced functions get it, and they do not use
 * it. */
static struct trace *some_trace(void)
{
	static char place;

	return (void *)&place;
}

static void test_endless_words(void **state)
{
	struct egress e;

	start_talker(&e, 200, 50000); /* one event every 50 ms, for ten seconds */
	uint64_t start = clock_ms();
	egress_stop(&e, some_trace());
	assert_true(clock_ms() - start < 8000);
	assert_true(heard > 0);
	assert_int_equal(violations, 0);
	assert_int_equal(e.broker, -1);
	egress_done(&e);
}

/* A compromised broker can send any bytes: invalid values in an event are replaced by safe ones. */
static void test_hostile_word(void **state)
{
	const struct egress_event good = word;
	struct egress e;

	memset(&word, 'x', sizeof(word));
	start_talker(&e, 1, 0);
	word = good;
	egress_stop(&e, some_trace());
	egress_done(&e);
	assert_int_equal(heard, 1);
	assert_int_equal(last_heard.protocol, PROTOCOL_OTHER);
	assert_int_equal(last_heard.reason, REASON_UNKNOWN);
	assert_int_equal(strnlen(last_heard.name, sizeof(last_heard.name)),
	                 sizeof(last_heard.name) - 1);
	assert_int_equal(strnlen(last_heard.kind_of, sizeof(last_heard.kind_of)),
	                 sizeof(last_heard.kind_of) - 1);
}

/* Events that were sent in time are all recorded, even if recording them takes longer. */
static void test_many_words(void **state)
{
	struct egress e;

	start_talker(&e, 100, 0); /* the socket's buffer has room for all of these */
	slow_us = 7500;
	egress_stop(&e, some_trace());
	slow_us = 0;
	assert_int_equal(heard, 100);
	egress_done(&e);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* The program that uses the library may get signals: they must not interrupt the reading of the
 * events. */
static void test_words_across_a_signal(void **state)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct sigaction before;
	struct egress e;

	start_talker(&e, 5, 20000); /* sends for 0.1 s; egress_stop() waits up to 2 s */
	assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
	(void)ualarm(10000, 20000);
	egress_stop(&e, some_trace());
	(void)ualarm(0, 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_int_equal(heard, 5);
	egress_done(&e);
}

/* The broker dies just before the run ends, and the supervisor has not noticed that yet: its events
 * are recorded, and its death is a violation. */
static void test_gone_before_the_end(void **state)
{
	struct egress e;

	start_talker(&e, 3, 0);
	assert_int_equal(pidfd_send_signal(e.broker, SIGKILL, NULL, 0), 0);
	assert_int_equal(waitid(P_PIDFD, (id_t)e.broker, NULL, WEXITED | WNOWAIT), 0);
	egress_stop(&e, some_trace());
	assert_int_equal(heard, 3);
	assert_int_equal(violations, 1);
	violations = 0;
	egress_done(&e);
}

/* Starts the egress with only `left` free file descriptors, or without memory. The start must fail
 * with `code` and leave no fd open. */
static void check_failed_start(int left, enum ssb_code code)
{
	static const struct ssb_plan plan;
	struct ssb_error err = { 0 };
	struct rlimit before, few;
	struct egress e;
	int next = lowest_free(), files = open_files();

	egress_init(&e);
	e.table = calloc(1, sizeof(*e.table)); /* egress_done() frees it */
	assert_non_null(e.table);
	e.table->plan = &plan;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ (rlim_t)(next + left), before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int r = egress_start(&e, &plan, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	egress_done(&e);
	assert_int_equal(r, -1);
	assert_int_equal(err.code, code);
	assert_int_equal(open_files(), files);
}

static void test_failed_start_leaves_nothing_open(void **state)
{
	for (int left = 0; left < 6; left++) {
		check_failed_start(left, SSB_E_SYS);
	}
	without_memory = true;
	check_failed_start(16, SSB_E_NOMEM);
	without_memory = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_endless_words),
		cmocka_unit_test(test_hostile_word),
		cmocka_unit_test(test_many_words),
		cmocka_unit_test(test_words_across_a_signal),
		cmocka_unit_test(test_gone_before_the_end),
		cmocka_unit_test(test_failed_start_leaves_nothing_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
