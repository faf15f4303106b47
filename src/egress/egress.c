/* egress.c - starts and ends the two processes of the egress, and reads the broker's reports. */
#include "egress/egress.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "egress/broker.h"
#include "egress/dial.h"
#include "egress/egress_event.h"
#include "os/clock.h"
#include "os/clone.h"
#include "os/confine.h"
#include "os/file.h"

#define DIAL_TIMEOUT_MS 15000
#define EVENT_BUFFER    (4 << 20)
#define LAST_WORDS_MS   2000 /* limit for reading the last reports, also on a busy machine */
#define DIALLER_MS      200
#define REST_MS         10
#define EVENTS_AT_ONCE  256
#define ALL_EVENTS      (EVENT_BUFFER / sizeof(struct egress_event)) /* events in a full socket */

void egress_init(struct egress *e)
{
	*e = (struct egress){ .dialler = -1, .broker = -1, .events = -1, .ready = -1 };
}

/* Closes all fds of a forked child except `fds`; 0 to 2 become /dev/null. */
static void keep_only(const int *fds, size_t n)
{
	for (int i = 0; i < 3; i++) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null >= 0 && null != i) {
			(void)dup2(null, i);
			(void)close(null);
		}
	}
	(void)file_close_others(STDERR_FILENO + 1, fds, n);
}

static int parse_ranges(const struct ssb_plan *plan, struct cidr *ranges)
{
	for (size_t i = 0; i < plan->allow_private.n; i++) {
		if (!cidr_parse(plan->allow_private.v[i], &ranges[i])) {
			return -1;
		}
	}
	return 0;
}

/* Wipes the environment and blocks signals. Neither process needs the owner's secrets, and one of
 * them parses hostile bytes. A signal to the caller's process group must not end the process or run
 * a signal handler of the caller in it. Root's privileges are given up later
 * (confine_or_exit()). */
static void give_up(const struct ssb_plan *plan)
{
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	for (char **v = environ; v != NULL && *v != NULL; v++) {
		explicit_bzero(*v, strlen(*v));
	}
	for (size_t i = 0; i < plan->env.n; i++) {
		explicit_bzero(plan->env.v[i], strlen(plan->env.v[i]));
	}
}

static int start_dialler(const struct egress *e, const struct ssb_plan *plan, int sock, int ready)
{
	int pidfd = -1;

	if (clone_fork(&pidfd) == 0) {
		struct cidr *ranges = calloc(plan->allow_private.n + 1, sizeof(*ranges));
		struct dial_config config = { .table = e->table,
			                      .allow_private = ranges,
			                      .n_allow_private = plan->allow_private.n,
			                      .timeout_ms = DIAL_TIMEOUT_MS,
			                      .ready = ready };
		keep_only((int[]){ sock, ready }, 2);
		give_up(plan);
		if (ranges == NULL || parse_ranges(plan, ranges) != 0) {
			_exit(1);
		}
		dial_main(sock, &config);
	}
	return pidfd;
}

static int start_broker(struct egress *e, const struct ssb_plan *plan, int dial, int events,
                        int ready)
{
	int pidfd = -1;

	if (clone_fork(&pidfd) == 0) {
		struct broker_config config = { .table = e->table,
			                        .listeners = &e->listeners,
			                        .dial = dial,
			                        .events = events,
			                        .ready = ready,
			                        .max_connections = plan->net.max_connections,
			                        .max_connections_per_second =
			                                plan->net.max_connections_per_second,
			                        .max_bytes_out = plan->net.max_bytes_out,
			                        .max_bytes_in = plan->net.max_bytes_in,
			                        .metered = e->metered };
		int keep[MAX_LISTENERS + 3] = { dial, events, ready };
		memcpy(keep + 3, e->listeners.fd, e->listeners.n * sizeof(int));
		keep_only(keep, e->listeners.n + 3);
		give_up(plan);
		plan_wipe_credentials(plan);
		broker_main(&config);
	}
	return pidfd;
}

int egress_start(struct egress *e, const struct ssb_plan *plan, struct ssb_error *err)
{
	int dial[2], events[2], ready[2], deep = EVENT_BUFFER;

	assert(e->table != NULL && e->table->plan == plan);
	assert(e->dialler < 0 && e->broker < 0 && e->ledger == NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, dial) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "egress", "cannot make a socket pair");
	}
	auto_fd ours = dial[0], theirs = dial[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "egress", "cannot make a socket pair");
	}
	auto_fd broker_end = events[1];
	e->events = events[0];
	e->ledger = ledger_new(plan);
	if (e->ledger == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "egress", "out of memory");
	}
	if (pipe2(ready, O_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "egress", "cannot make a pipe");
	}
	auto_fd told = ready[1];
	e->ready = ready[0];
	(void)setsockopt(broker_end, SOL_SOCKET, SO_SNDBUF, &deep, sizeof(deep));
	(void)fcntl(ours, F_SETFL, O_RDWR | O_NONBLOCK);
	e->dialler = start_dialler(e, plan, theirs, told);
	e->broker = e->dialler < 0 ? -1 : start_broker(e, plan, ours, broker_end, told);
	listeners_close(&e->listeners);
	return e->broker < 0 ? ssb_fail(err, SSB_E_SYS, errno, "egress", "cannot start a process")
	                     : 0;
}

int egress_sleeper(const struct egress *e, size_t n)
{
	return e->on_demand && n < e->listeners.n ? e->listeners.fd[n] : -1;
}

void egress_wake(struct egress *e, struct trace *trace)
{
	struct ssb_error err = { 0 };

	assert(e->on_demand && e->listeners.n > 0);
	if (egress_start(e, e->table->plan, &err) != 0 || egress_ready(e, &err) != 0) {
		listeners_close(&e->listeners);
		trace_eventf(trace, EV_NETWORK_POLICY_REMOVED,
		             "lookups of names are not recorded: %s", err.text);
	}
}

int egress_ready(struct egress *e, struct ssb_error *err)
{
	auto_fd ready = steal_fd(&e->ready);

	return ready < 0 ? 0 : confine_wait(ready, 2, err);
}

/* ---- events ------------------------------------------------------------- */

static void close_ledger(struct egress *e, struct trace *trace)
{
	if (e->ledger != NULL && trace != NULL) {
		ledger_close(e->ledger, trace);
		ledger_bytes(e->ledger, &e->bytes_out, &e->bytes_in);
	}
	ledger_free(e->ledger);
	e->ledger = NULL;
}

/* Reads up to `most` events. Closes e->events when the broker is gone. */
static void hear_events(struct egress *e, struct trace *trace, size_t most)
{
	for (size_t i = 0; i < most && e->events >= 0; i++) {
		struct egress_event ev;
		ssize_t n = recv(e->events, &ev, sizeof(ev), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			return;
		}
		if (n != (ssize_t)sizeof(ev)) {
			own_close(&e->events);
			return;
		}
		/* The event comes from an untrusted process, so terminate each string, and check
		 * each enum that is used as an index. The ledger checks the kind. */
		ev.name[sizeof(ev.name) - 1] = ev.shown[sizeof(ev.shown) - 1] = '\0';
		ev.kind_of[sizeof(ev.kind_of) - 1] = '\0';
		if ((unsigned)ev.protocol >= PROTOCOL_COUNT) {
			ev.protocol = PROTOCOL_OTHER;
		}
		if ((unsigned)ev.reason >= REASON_COUNT) {
			ev.reason = REASON_UNKNOWN;
		}
		if (trace != NULL && e->ledger != NULL) {
			ledger_take(e->ledger, &ev, trace);
		}
		if (e->opened != NULL && ev.kind == EGRESS_OPENED) {
			e->opened(e->opened_arg, ev.name);
		}
	}
}

void egress_bytes(const struct egress *e, uint64_t *ret_out, uint64_t *ret_in)
{
	*ret_out = e->bytes_out;
	*ret_in = e->bytes_in;
	if (e->ledger != NULL) {
		ledger_bytes(e->ledger, ret_out, ret_in);
	}
}

/* Reads events of a broker that was not told to end. If it has ended anyway, the skill has lost its
 * network but is still confined; the trace says so. */
static void hear_running(struct egress *e, struct trace *trace, size_t most)
{
	hear_events(e, trace, most);
	if (e->events < 0) {
		if (trace != NULL) {
			trace_violation(trace, EV_POLICY_VIOLATION,
			                "the egress broker ended during the run");
		}
		close_ledger(e, trace);
	}
}

void egress_hear(struct egress *e, struct trace *trace)
{
	hear_running(e, trace, EVENTS_AT_ONCE);
	/* Events that are already in the supervisor's socket are not lost, even if the broker dies
	 * now. So read several of them together, later: waking up for each one would cost as much
	 * as half a connection. */
	e->hear_at = clock_ms() + REST_MS;
}

/* Reads until the broker ends. One deadline applies to all reads together, because the broker is
 * not trusted to end. */
static void hear_last_words(struct egress *e, struct trace *trace)
{
	struct pollfd p = { .fd = e->events, .events = POLLIN };
	uint64_t now = clock_ms();
	uint64_t deadline = now + LAST_WORDS_MS;

	while (e->events >= 0 && now < deadline) {
		int n = poll(&p, 1, (int)(deadline - now));
		if (n == 0 || (n < 0 && errno != EINTR)) {
			return;
		}
		if (n > 0) {
			hear_events(e, trace, EVENTS_AT_ONCE);
		}
		now = clock_ms();
	}
}

static bool has_datagrams(const struct ssb_plan *plan)
{
	return ARRAY_HAS(egress, plan->egress, plan->n_egress, egress->protocol == PROTO_UDP);
}

/* Waits for the dialler. When the broker has ended, the dialler passes on the last datagrams and
 * ends. */
static void wait_for_dialler(const struct egress *e)
{
	struct pollfd p = { .fd = e->dialler, .events = POLLIN };

	(void)TEMP_FAILURE_RETRY(poll(&p, 1, DIALLER_MS));
}

void egress_finish(struct egress *e, struct trace *trace)
{
	if (e->events >= 0) {
		hear_running(e, trace, ALL_EVENTS);
	}
	if (e->events < 0 || send(e->events, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) {
		return;
	}
	hear_last_words(e, trace);
	if (has_datagrams(e->table->plan)) {
		wait_for_dialler(e);
	}
}

void egress_stop(struct egress *e, struct trace *trace)
{
	if (e->events >= 0) {
		hear_running(e, trace, ALL_EVENTS);
	}
	if (e->events >= 0) {
		(void)shutdown(e->events, SHUT_WR);
		hear_last_words(e, trace);
	}
	clone_end(&e->broker);
	/* Read the events that the broker sent in time and that were not read yet. */
	hear_events(e, trace, ALL_EVENTS);
	close_ledger(e, trace);
	clone_end(&e->dialler);
}

void egress_done(struct egress *e)
{
	clone_end(&e->broker);
	clone_end(&e->dialler);
	own_close(&e->events);
	own_close(&e->ready);
	ledger_free(e->ledger);
	e->ledger = NULL;
	listeners_close(&e->listeners);
	egress_table_free(e->table);
	e->table = NULL;
}
