/* observer.c - starts and ends the observer: its listener, its thread and its queue. */
#include "observe/observer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "observe/observe.h"
#include "trace/trace_limits.h"
#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/notify.h"

/* The supervisor's loop answers the first calls of a run; a program that needs only libc makes
 * four. After CALLS_BEFORE_THREAD calls, a thread is started that does nothing but answer calls.
 * Starting the thread takes as long as six calls in the loop, but then a call takes only a fifth of
 * the time. */
#define CALLS_BEFORE_THREAD 5
#define THREAD_STACK        ((size_t)256 * 1024)
#define WRITE_MS            15 /* how long an event waits in the queue for more events */
#define SERVICE_LOOKS       20 /* searches per second for a service of the skill */

int observer_new(const struct observer_setup *setup, struct observer **ret, struct ssb_error *err)
{
	struct observer *o = calloc(1, sizeof(*o));

	if (o == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "audit", "out of memory");
	}
	o->setup = *setup;
	bucket_init(&o->service_looks, SERVICE_LOOKS, SERVICE_LOOKS, clock_us());
	o->listener = o->root = o->stop = o->queue.wake = -1;
	o->maker = UNIX_MAKER_NONE;
	atomic_init(&o->maker_fd, -1);
	*ret = o;
	return 0;
}

void observer_free(struct observer *o)
{
	if (o != NULL) {
		observer_stop(o);
		observe_queue_done(&o->queue);
		own_close(&o->stop);
		own_close(&o->root);
		observe_processes_done(o);
		string_list_done(&o->named);
		string_list_done(&o->lost);
		free(o->lost_relative);
		free(o);
	}
}

int observer_attach(struct observer *o, pid_t first, int number, struct ssb_error *err)
{
	char root[32];

	assert(o->listener < 0 && first > 0);
	o->first = first;
	o->listener = notify_fetch(first, number);
	if (o->listener < 0) {
		return ssb_fail(
		        err, SSB_E_LAYER, errno, "audit",
		        "cannot fetch the notifications of the skill; is ptrace forbidden here "
		        "(kernel.yama.ptrace_scope 3)? --audit off runs without observation");
	}
	snprintf(root, sizeof(root), "/proc/%d/root", first);
	o->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (o->root < 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "audit", "cannot see the skill's files");
	}
	notify_prepare(o->listener);
	observe_first(o);
	return 0;
}

void observer_started(struct observer *o)
{
	if (o != NULL && !o->armed) {
		observe_arm(o);
	}
}

int observer_fd(const struct observer *o)
{
	return o == NULL ? -1 : !o->threaded ? o->listener : o->write_at == 0 ? o->queue.wake : -1;
}

int observer_maker(const struct observer *o)
{
	return o == NULL ? -1 : atomic_load(&o->maker_fd);
}

/* Receives a call and answers it. Returns false if no call was waiting. */
static bool answer_next(struct observer *o)
{
	struct seccomp_notif n;

	if (notify_receive(o->listener, &n) != 0) {
		return false;
	}
	observe_call(o, &n);
	return true;
}

/* Waits for a call. Returns false if no process is left that could make calls, or the thread must
 * end. */
static bool wait_for_call(const struct observer *o)
{
	struct pollfd p[2] = { { .fd = o->listener, .events = POLLIN },
		               { .fd = o->stop, .events = POLLIN } };

	if (poll(p, 2, -1) < 0) {
		return errno == EINTR;
	}
	return (p[0].revents & POLLIN) != 0 || (p[0].revents == 0 && p[1].revents == 0);
}

/* A poll() before each call would take a sixth of the time that a call needs. So if notify_ends()
 * is true, the thread waits in answer_next() itself. That wait ends when every process in the
 * sandbox is dead or killed, and only then is observer_stop() called. */
static void *thread_main(void *arg)
{
	struct observer *o = arg;
	const bool stays = notify_ends();

	while (wait_for_call(o)) {
		while (answer_next(o) && stays) {
		}
	}
	/* No process is left that needs sockets. The kernel ends the maker together with this
	 * thread. */
	atomic_store(&o->maker_fd, -1);
	return NULL;
}

/* Starts the observer's own thread. If that fails, the loop continues to answer calls. */
static void start_thread(struct observer *o)
{
	pthread_attr_t attr;
	sigset_t all, before;

	o->stop = eventfd(0, EFD_CLOEXEC);
	if (o->stop < 0 || pthread_attr_init(&attr) != 0) {
		return;
	}
	(void)pthread_attr_setstacksize(&attr, THREAD_STACK);
	/* `threaded` must be set before the thread runs: it decides that events go into the
	 * queue. */
	o->threaded = observe_queue_init(&o->queue) == 0;
	/* The thread must not run signal handlers of the program that called us. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (o->threaded && pthread_create(&o->thread, &attr, thread_main, o) != 0) {
		o->threaded = false;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
}

void observer_turn(struct observer *o, bool call)
{
	if (o->threaded) {
		/* do not write at once: more events will follow */
		o->write_at = clock_ms() + WRITE_MS;
		return;
	}
	if (!call) {
		own_close(&o->listener);
		return;
	}
	(void)answer_next(o);
	/* The thread must not start before `armed` is set: until then several parts of the loop use
	 * the observer. */
	if (++o->calls >= CALLS_BEFORE_THREAD && o->armed && o->stop < 0) {
		start_thread(o);
	}
}

uint64_t observer_due(const struct observer *o)
{
	return o != NULL ? o->write_at : 0;
}

static void write_down(struct observer *o)
{
	o->write_at = 0;
	if (o->threaded && o->setup.trace != NULL) {
		observe_queue_empty(&o->queue, o->setup.trace);
	}
}

void observer_tick(struct observer *o)
{
	if (o != NULL && o->write_at != 0 && clock_ms() >= o->write_at) {
		write_down(o);
	}
}

void observer_write(struct observer *o)
{
	if (o != NULL) {
		write_down(o);
	}
}

void observer_stop(struct observer *o)
{
	if (o != NULL && o->threaded) {
		(void)!write(o->stop, &(uint64_t){ 1 }, sizeof(uint64_t));
		(void)pthread_join(o->thread, NULL);
		write_down(o);
		o->threaded = false;
	}
	if (o != NULL) {
		atomic_store(&o->maker_fd, -1);
		unix_maker_stop(&o->maker);
		own_close(&o->listener);
	}
}

bool observer_killed_first(const struct observer *o)
{
	return o != NULL && o->killed_first;
}

bool observer_files_full(const struct observer *o)
{
	return o != NULL && o->files_full;
}

bool observer_disk_full(const struct observer *o)
{
	return o != NULL && o->disk_full;
}

/* Writes as many names as a line has room for. Returns how many names were left out. A name may
 * contain any bytes, because not every name comes from a manifest. So each byte may need an escape
 * sequence of six bytes. */
static size_t put_names(struct json *j, const char *key, const struct string_list *names)
{
	size_t left_out = 0;

	json_kopen(j, key, '[');
	for (size_t i = 0; i < names->n; i++) {
		size_t len = strcspn(names->v[i], "=");
		if (j->out->len + 6 * len > TRACE_ENV_BYTES) {
			left_out++;
		} else {
			json_strn(j, names->v[i], len);
		}
	}
	json_close(j, ']');
	return left_out;
}

static void put_environment(struct json *j, void *arg)
{
	const struct ssb_plan *plan = arg;
	size_t left_out = put_names(j, "granted", &plan->env);

	left_out += put_names(j, "absent", &plan->env_missing);
	json_kuint(j, "withheld", plan->env_withheld);
	if (left_out > 0) {
		json_kuint(j, "left_out", left_out);
	}
}

void observer_environment(struct trace *t, const struct ssb_plan *plan)
{
	char message[128];
	int n = snprintf(message, sizeof(message),
	                 "%zu variables passed, %zu asked for and absent, %zu withheld",
	                 plan->env.n, plan->env_missing.n, plan->env_withheld);
	struct event e = { .kind = EV_ENV_VAR_ACCESS,
		           .message = { message, (size_t)n },
		           .more = put_environment,
		           .more_arg = (void *)(uintptr_t)plan };

	trace_add(t, &e);
}
