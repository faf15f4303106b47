/* herald_deliver.c - takes messages from the outbox and delivers them.
 *
 * One loop uses the store. Each request is a child process that inherits nothing of the store, and
 * is killed if it takes too long. A receiver gets one message at a time; further messages to it
 * wait here in their order, so a slow or dead receiver delays no other receiver. A message that has
 * waited here too long is dropped: its lease ends, and it is taken again later. The same happens to
 * the messages of a herald that was killed. So a message can arrive twice, with the same delivery
 * id. */
#include "session/herald.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"

#define LEASE_MS 60000
#define HOLD_MS  40000 /* longest wait here; a later request could end after the lease */
#define POST_MS  (HERALD_REQUEST_MS + 2000) /* a child that takes longer is killed */
#define STUCK_MS 500
#define LOOK_MS  500 /* maximum delay until a new message is seen */
#define TAKES    256 /* messages taken from the outbox in one turn */

/* A message that was taken from the outbox. */
struct herald_held {
	struct outbox_item item;
	uint64_t taken_ms;
	uint64_t begun_ms; /* start of its request */
	pid_t pid;         /* child of its request; 0: waiting */
	int fd;            /* the result arrives here */
};

struct herald {
	struct session_store *ss;
	uint64_t deadline_ms;
	/* The messages, in the order in which they were taken. The last place is for a new message
	 * while all others are used; one of the messages is then dropped. */
	struct herald_held held[MAX_NOTIFY_HELD + 1];
	size_t n;
	size_t posts;
};

static void let_go(struct herald *h, size_t i)
{
	outbox_item_done(&h->held[i].item);
	h->n--;
	memmove(&h->held[i], &h->held[i + 1], (h->n - i) * sizeof(h->held[0]));
}

/* ---- a request, in its child -------------------------------------------- */

#define RESULT_FD 3

/* Runs in the child: closes the store and the lock, and sends the request. */
static _Noreturn void post_child(const struct outbox_item *item, uint64_t deadline_ms, int fd,
                                 pid_t parent)
{
	struct herald_result r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
	    dup2(fd, RESULT_FD) < 0 || close_range(RESULT_FD + 1, ~0U, 0) != 0) {
		_exit(1);
	}
	herald_post(item, deadline_ms, &r);
	_exit(write(RESULT_FD, &r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 1);
}

static int post_start(struct herald *h, struct herald_held *m, struct ssb_error *err)
{
	uint64_t now = clock_ms();
	pid_t self = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "notify", "pipe");
	}
	auto_fd from = ends[0];
	auto_fd to = ends[1];
	pid_t pid = fork();
	if (pid < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "notify", "fork");
	}
	if (pid == 0) {
		post_child(&m->item, now + HERALD_REQUEST_MS, to, self);
	}
	m->pid = pid;
	m->fd = steal_fd(&from);
	m->begun_ms = now;
	h->posts++;
	return 0;
}

/* Ends a request. `late` is true if the request has timed out and has no result. */
static void post_end(struct herald *h, struct herald_held *m, bool late, struct herald_result *ret)
{
	if (late || read(m->fd, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret)) {
		*ret = (struct herald_result){ .retry = true, .retry_after_ms = -1 };
		snprintf(ret->error, sizeof(ret->error), "%s",
		         late ? "the request did not finish in time"
		              : "the request ended without a result");
	}
	ret->error[sizeof(ret->error) - 1] = '\0';
	(void)kill(m->pid, SIGKILL);
	while (waitpid(m->pid, NULL, 0) < 0 && errno == EINTR) {
	}
	own_close(&m->fd);
	m->pid = 0;
	h->posts--;
}

/* ---- the loop ----------------------------------------------------------- */

static bool same_receiver(const struct outbox_item *a, const struct outbox_item *b)
{
	return a->kind == b->kind && strcmp(a->url, b->url) == 0 &&
	       strcmp(a->secret != NULL ? a->secret : "", b->secret != NULL ? b->secret : "") == 0;
}

/* Returns true if `i` is the first message to its receiver, and no request to this receiver is
 * running. */
static bool is_turn(const struct herald *h, size_t i)
{
	for (size_t k = 0; k < h->n; k++) {
		if (k != i && same_receiver(&h->held[k].item, &h->held[i].item) &&
		    (k < i || h->held[k].pid != 0)) {
			return false;
		}
	}
	return true;
}

static int start_waiting(struct herald *h, struct ssb_error *err)
{
	uint64_t now = clock_ms();

	for (size_t i = 0; i < h->n;) {
		struct herald_held *m = &h->held[i];
		if (m->pid == 0 && (now - m->taken_ms > HOLD_MS || now >= h->deadline_ms)) {
			let_go(h, i);
			continue;
		}
		if (m->pid == 0 && h->posts < MAX_NOTIFY_POSTS && is_turn(h, i) &&
		    post_start(h, m, err) != 0) {
			return -1;
		}
		i++;
	}
	return 0;
}

/* Returns true if a request to the same receiver is slow. */
static bool is_stuck(const struct herald *h, size_t i)
{
	for (size_t k = 0; k < h->n; k++) {
		const struct herald_held *m = &h->held[k];
		if (m->pid != 0 && same_receiver(&m->item, &h->held[i].item)) {
			return clock_ms() - m->begun_ms >= STUCK_MS;
		}
	}
	return false;
}

/* Returns the index of the message to drop for a new one: the newest message that waits for a
 * stuck receiver, because it uses a place that a message to another receiver could use.
 * Dropping the newest one keeps the order. If no receiver is stuck, returns h->n: a place
 * becomes free soon. */
static size_t in_the_way(const struct herald *h)
{
	for (size_t i = h->n; i > 0; i--) {
		if (h->held[i - 1].pid == 0 && is_stuck(h, i - 1)) {
			return i - 1;
		}
	}
	return h->n;
}

static bool has_room(const struct herald *h)
{
	return h->n < MAX_NOTIFY_HELD || in_the_way(h) < h->n;
}

static int take_due(struct herald *h, struct ssb_error *err)
{
	for (size_t i = 0; i < TAKES && clock_ms() < h->deadline_ms && has_room(h); i++) {
		struct herald_held *m = &h->held[h->n];
		*m = (struct herald_held){ .fd = -1, .taken_ms = clock_ms() };
		int got = outbox_take(h->ss, LEASE_MS, &m->item, err);
		if (got <= 0) {
			return got;
		}
		h->n++;
		if (h->n > MAX_NOTIFY_HELD) {
			let_go(h, in_the_way(h)); /* the dropped message may be the new one */
		}
		if (start_waiting(h, err) != 0) {
			return -1;
		}
	}
	return 0;
}

static int wait_a_while(const struct herald *h, uint64_t most_ms)
{
	struct pollfd p[MAX_NOTIFY_POSTS];
	uint64_t now = clock_ms();
	nfds_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		const struct herald_held *m = &h->held[i];
		if (m->pid != 0) {
			uint64_t past = now - m->begun_ms;
			uint64_t left = past < POST_MS ? POST_MS - past : 0;
			most_ms = left < most_ms ? left : most_ms;
			p[n++] = (struct pollfd){ .fd = m->fd, .events = POLLIN };
		}
	}
	return poll(p, n, (int)most_ms);
}

static int collect_items(struct herald *h, struct ssb_error *err)
{
	for (size_t i = 0; i < h->n;) {
		struct herald_held *m = &h->held[i];
		struct pollfd p = { .fd = m->fd, .events = POLLIN };
		struct herald_result r;
		bool late = m->pid != 0 && clock_ms() - m->begun_ms >= POST_MS;
		bool there = m->pid != 0 && poll(&p, 1, 0) > 0;
		if (!late && !there) {
			i++;
			continue;
		}
		post_end(h, m, !there, &r);
		uint64_t again =
		        (m->item.kind == NOTIFY_OTEL ? herald_retry_otel_ms
		                                     : herald_retry_ms)(&r, m->item.tries + 1);
		if (outbox_done(h->ss, &m->item, r.status, r.error[0] != '\0' ? r.error : NULL,
		                again, err) != 0) {
			return -1;
		}
		let_go(h, i);
	}
	return 0;
}

/* Does one turn. Returns 1 if more messages are left, 0 if none is left. Looks into the outbox
 * first, which is cheap: taking a message needs a transaction. */
static int run_turn(struct herald *h, struct ssb_error *err)
{
	int64_t wait = -1;

	if (collect_items(h, err) != 0 || outbox_wait(h->ss, &wait, err) != 0 ||
	    (wait == 0 && take_due(h, err) != 0) || start_waiting(h, err) != 0) {
		return -1;
	}
	if (h->n == 0 && (wait < 0 || clock_ms() + (uint64_t)wait >= h->deadline_ms)) {
		return 0;
	}
	wait = wait <= 0 || wait > LOOK_MS ? LOOK_MS : wait;
	if (wait_a_while(h, (uint64_t)wait) < 0 && errno != EINTR) {
		return ssb_fail(err, SSB_E_SYS, errno, "notify", "poll");
	}
	return 1;
}

int herald_deliver(struct session_store *ss, uint64_t deadline_ms, struct ssb_error *err)
{
	assert(ss != NULL);

	struct herald h = { .ss = ss, .deadline_ms = deadline_ms };
	struct herald_result unread;
	int left = 1;

	while (left > 0) {
		left = run_turn(&h, err);
	}
	while (h.n > 0) { /* the store is lost: running requests end, and their results are not
		             recorded */
		if (h.held[h.n - 1].pid != 0) {
			post_end(&h, &h.held[h.n - 1], true, &unread);
		}
		let_go(&h, h.n - 1);
	}
	return left;
}

int herald_due(struct session_store *ss, bool *ret, struct ssb_error *err)
{
	int64_t wait = -1;

	if (outbox_wait(ss, &wait, err) != 0) {
		return -1;
	}
	*ret = wait == 0;
	return 0;
}
