/* errand.c - errands, from the queue to their end, and calls that are answered by one.
 *
 * The child (child.h) writes its answer into a buffer, sends the buffer through its pipe, and then
 * runs `after`. */
#include "serve/errand.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "serve/child.h"
#include "serve/records.h"

#define NICE         5 /* nice(2): the loop gets more CPU time than errands */
#define STATUS_LARGE 2
#define STATUS_AFTER 3

static const char *const WHY[ERRAND_FATES] = {
	[ERRAND_CANCELED] = "it was canceled",
	[ERRAND_UNSTARTED] = "no process could be started for this call",
	[ERRAND_LATE] = "the call took too long",
	[ERRAND_LARGE] = "the answer is too large",
	[ERRAND_CRASHED] = "the process that handled the call ended without an answer",
	[ERRAND_UNDONE] = "the call was started, and could not be finished",
};

struct errand {
	struct errands *all;
	struct errand *next; /* the next errand in the queue, or in `running` */
	struct errand_wish wish;
	char *who;
	enum errand_fate fate; /* ERRAND_DONE until the fate is known */
	bool told;             /* `ended` was already called */
	bool started;
	struct child child;
	struct loop_timer *limit;
	struct buf data;
};

struct errands {
	struct serve *serve;
	struct errand *queue; /* the oldest errand first */
	struct errand *running;
	size_t n_running; /* running errands for which the server waits */
	struct loop_timer *pump;
};

static void pump_soon(struct errands *a);

int errands_new(struct serve *s, struct errands **ret, struct ssb_error *err)
{
	struct errands *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	a->serve = s;
	*ret = a;
	return 0;
}

static void unlink_from(struct errand **list, const struct errand *e)
{
	while (*list != e) {
		list = &(*list)->next;
	}
	*list = e->next;
}

static void errand_free(struct errand *e)
{
	if (e->started) {
		child_done(&e->child);
	}
	loop_untimer(&e->limit);
	buf_done(&e->data);
	free(e->who);
	free(e);
}

/* ---- its end ---------------------------------------------------------------------- */

static void tell_end(struct errand *e)
{
	const struct errand_end end = {
		.fate = e->fate, .why = WHY[e->fate], .data = e->data.data, .len = e->data.len
	};

	if (!e->told) {
		e->told = true;
		loop_untimer(&e->limit);
		e->wish.ended(e->wish.arg, &end);
	}
}

static void kill_errand(struct errand *e, enum errand_fate fate)
{
	e->fate = fate;
	child_signal(&e->child, SIGKILL);
}

static void on_data(void *arg, size_t pipe, const char *data, size_t len)
{
	struct errand *e = arg;

	(void)pipe;
	buf_add(&e->data, data, len);
	if (e->data.failed && e->fate == ERRAND_DONE) {
		kill_errand(e, ERRAND_LARGE);
	}
}

static enum errand_fate fate_of(int status)
{
	if (!WIFEXITED(status)) {
		return WTERMSIG(status) == SIGXCPU ? ERRAND_LATE : ERRAND_CRASHED;
	}
	switch (WEXITSTATUS(status)) {
	case 0:
		return ERRAND_DONE;
	case STATUS_LARGE:
		return ERRAND_LARGE;
	case STATUS_AFTER:
		return ERRAND_UNDONE;
	default:
		return ERRAND_CRASHED;
	}
}

/* Frees the errand. */
static void on_child_ended(void *arg, int status)
{
	struct errand *e = arg;
	struct errands *a = e->all;

	if (e->fate == ERRAND_DONE) {
		e->fate = fate_of(status);
	}
	unlink_from(&a->running, e);
	a->n_running -= !e->told;
	pump_soon(a);
	tell_end(e);
	errand_free(e);
}

/* An errand with `after` must be finished, so it continues, but the server no longer waits for
 * it. */
static void on_limit(void *arg)
{
	struct errand *e = arg;

	if (e->wish.after == NULL) {
		kill_errand(e, ERRAND_LATE);
		return;
	}
	e->fate = child_pipe_ended(&e->child, 0) ? ERRAND_DONE : ERRAND_LATE;
	e->all->n_running--;
	pump_soon(e->all);
	tell_end(e);
}

void errand_cancel(struct errand *e)
{
	if (!e->started) {
		e->fate = ERRAND_CANCELED;
		pump_soon(e->all);
	} else if (e->wish.after == NULL) {
		kill_errand(e, ERRAND_CANCELED);
	}
}

/* ---- its process ------------------------------------------------------------------- */

/* Limits what an errand may use, because a record can contain anything. An errand that must be
 * finished gets no limits: the processes that it starts would inherit them. */
static void set_limits(void)
{
	const struct rlimit cpu = { MAX_ERRAND_TIME, MAX_ERRAND_TIME + 1 };
	const struct rlimit core = { 0, 0 };

	(void)setrlimit(RLIMIT_CPU, &cpu);
	(void)setrlimit(RLIMIT_CORE, &core);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
}

static void do_errand(void *arg, const int pipes[CHILD_PIPES])
{
	const struct errand *e = arg;
	const bool lasts = e->wish.after != NULL;
	const int keep[] = { pipes[0], records_fd(e->all->serve->records) };
	const struct child_needs needs = { .goes_with_server = lasts ? 0 : SIGKILL,
		                           .keep = keep,
		                           .n_keep = ARRAY_LEN(keep) };
	struct buf out;

	if (child_settle(&needs) != 0) {
		_exit(1);
	}
	if (!lasts) {
		set_limits();
	}
	buf_init(&out, MAX_ERRAND_BYTES);
	e->wish.run(e->wish.arg, &out);
	if (out.failed) {
		_exit(STATUS_LARGE);
	}
	bool sent = file_write_all(pipes[0], out.data, out.len) == 0;
	(void)close(pipes[0]);
	if (lasts && e->wish.after(e->wish.arg) != 0) {
		_exit(STATUS_AFTER);
	}
	_exit(sent ? 0 : 1);
}

static unsigned long limit_of(const struct errand_wish *w)
{
	return w->limit_ms != 0   ? w->limit_ms
	       : w->after != NULL ? MAX_ERRAND_TIME * 500UL
	                          : MAX_ERRAND_TIME * 1000UL;
}

/* If it returns -1, it has left no process and no open fd. */
static int launch_errand(struct errand *e)
{
	struct loop *l = e->all->serve->loop;
	const struct child_wish wish = { .loop = l,
		                         .n_pipes = 1,
		                         .work = do_errand,
		                         .data = on_data,
		                         .ended = on_child_ended,
		                         .arg = e };
	struct ssb_error none = { 0 };

	if (loop_after(l, limit_of(&e->wish), on_limit, e, &e->limit) != 0) {
		return -1;
	}
	e->started = child_start(&e->child, &wish, &none) == 0;
	return e->started ? 0 : -1;
}

/* ---- its start ----------------------------------------------------------------------- */

static size_t running_of(const struct errands *a, const char *who)
{
	size_t n = 0;

	for (const struct errand *e = a->running; e != NULL; e = e->next) {
		n += !e->told && strcmp(e->who, who) == 0;
	}
	return n;
}

/* Returns the errand that leaves the queue next: the oldest one of the client that has the fewest
 * running errands. Returns NULL if all must wait. */
static struct errand *find_next(const struct errands *a)
{
	size_t least = MAX_ERRANDS_EACH;
	struct errand *found = NULL;

	for (struct errand *e = a->queue; e != NULL; e = e->next) {
		if (e->fate == ERRAND_CANCELED) {
			return e;
		}
		size_t n = a->n_running < MAX_ERRANDS ? running_of(a, e->who) : least;
		if (n < least) {
			least = n;
			found = e;
		}
	}
	return found;
}

static void on_pump(void *arg)
{
	struct errands *a = arg;
	struct errand *e;

	while ((e = find_next(a)) != NULL) {
		unlink_from(&a->queue, e);
		if (e->fate != ERRAND_CANCELED && launch_errand(e) == 0) {
			e->next = a->running;
			a->running = e;
			a->n_running++;
			continue;
		}
		e->fate = e->fate == ERRAND_CANCELED ? ERRAND_CANCELED : ERRAND_UNSTARTED;
		tell_end(e);
		errand_free(e);
	}
}

static void pump_soon(struct errands *a)
{
	if (a->pump == NULL && a->queue != NULL) {
		(void)loop_after(a->serve->loop, 0, on_pump, a, &a->pump);
	}
}

int errand_start(struct serve *s, const struct errand_wish *w, struct errand **ret,
                 struct ssb_error *err)
{
	assert(w->run != NULL && w->ended != NULL);

	struct errand *e = calloc(1, sizeof(*e));
	/* A copy, because the client can disconnect before the errand ends. */
	char *who = strdup(w->who);
	struct errand **last = &s->errands->queue;

	if (e == NULL || who == NULL) {
		free(e);
		free(who);
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	*e = (struct errand){ .all = s->errands, .wish = *w, .who = who };
	buf_init(&e->data, MAX_ERRAND_BYTES);
	while (*last != NULL) {
		last = &(*last)->next;
	}
	*last = e;
	pump_soon(s->errands);
	*ret = e;
	return 0;
}

void errands_free(struct errands *a)
{
	if (a == NULL) {
		return;
	}
	loop_untimer(&a->pump);
	for (struct errand *e = a->queue; e != NULL; e = a->queue) {
		a->queue = e->next;
		e->fate = ERRAND_CANCELED;
		tell_end(e);
		errand_free(e);
	}
	for (struct errand *e = a->running; e != NULL; e = a->running) {
		if (e->wish.after == NULL) {
			kill_errand(e, ERRAND_CANCELED);
			child_finish(&e->child, -1);
			continue;
		}
		a->running = e->next;
		e->fate = ERRAND_CANCELED;
		tell_end(e);
		errand_free(e);
	}
	loop_untimer(&a->pump);
	free(a);
}

/* ---- a call that is answered by an errand --------------------------------------------
 *
 * The errand returns the messages of the call (mcp_call_back()), followed by facts about records
 * that the next errand can use (records_note()). */

struct errand_call {
	struct serve *serve;
	struct mcp_call *call;
	struct errand_answer how;
};

static void call_freep(struct errand_call **x)
{
	if (*x != NULL && (*x)->how.free != NULL) {
		(*x)->how.free((*x)->how.arg);
	}
	free(*x);
}

/* Runs in the errand's process. */
static void run_answer(void *arg, struct buf *out)
{
	struct errand_call *x = arg;

	mcp_call_away(x->call, out);
	x->how.answer(x->how.arg, x->call);
	records_note(x->serve->records, out);
}

static int run_after(void *arg)
{
	struct errand_call *x = arg;

	return x->how.after(x->how.arg);
}

static void fail_call(const struct errand_call *x, const struct errand_end *end)
{
	if (x->how.failed != NULL) {
		x->how.failed(x->how.arg, x->call, end);
	} else if (x->how.tool) {
		mcp_tool_fail(x->call, end->fate == ERRAND_LATE ? "timeout" : "unavailable",
		              end->why, "ask for less, or try again later");
	} else {
		mcp_fail(x->call, MCP_E_INTERNAL, "%s", end->why);
	}
}

static void on_answered(void *arg, const struct errand_end *end)
{
	AUTO(call_freep) struct errand_call *x = arg;
	struct errand_end e = *end;

	mcp_on_cancel(x->call, NULL, NULL);
	if (e.fate == ERRAND_DONE) {
		size_t len = records_take_note(x->serve->records, end->data, end->len);
		if (mcp_call_back(x->call, end->data, len) == 0) {
			return;
		}
		e.fate = ERRAND_CRASHED;
		e.why = WHY[ERRAND_CRASHED];
	}
	fail_call(x, &e);
}

static void on_cancel(void *arg)
{
	errand_cancel(arg);
}

int errand_of_call(struct serve *s, struct mcp_call *c, const struct errand_wish *w,
                   struct ssb_error *err)
{
	struct errand_wish wish = *w;
	struct errand *e = NULL;

	wish.who = mcp_principal(c);
	if (errand_start(s, &wish, &e, err) != 0) {
		return -1;
	}
	mcp_on_cancel(c, on_cancel, e);
	return 0;
}

void errand_answer(struct serve *s, struct mcp_call *c, const struct errand_answer *w)
{
	AUTO(call_freep) struct errand_call *x = calloc(1, sizeof(*x));
	struct ssb_error err = { 0 };

	if (x == NULL) {
		if (w->free != NULL) {
			w->free(w->arg);
		}
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	*x = (struct errand_call){ .serve = s, .call = c, .how = *w };
	const struct errand_wish wish = { .run = run_answer,
		                          .after = w->after != NULL ? run_after : NULL,
		                          .ended = on_answered,
		                          .arg = x,
		                          .limit_ms = w->limit_ms };
	if (errand_of_call(s, c, &wish, &err) != 0) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	(void)steal_ptr(&x);
}

void errand_method(struct serve *s, struct mcp_call *c, mcp_handler *handle)
{
	const struct errand_answer w = { .answer = handle, .arg = s };

	errand_answer(s, c, &w);
}

void errand_tool(struct serve *s, struct mcp_call *c, mcp_handler *handle)
{
	const struct errand_answer w = { .answer = handle, .tool = true, .arg = s };

	errand_answer(s, c, &w);
}
