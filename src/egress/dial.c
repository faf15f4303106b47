/* dial.c - the process that resolves names and connects.
 *
 * Theory of operation. The supervisor forks the dialler, which confines itself (confine_dialler())
 * before it reads a request. The main thread reads requests and starts a thread for each, because
 * the host's resolver blocks. If nothing has to be waited for (a name that was resolved a moment
 * ago, a server nearby), the main thread dials itself, because starting a thread costs more than
 * everything else. The main thread also enforces the deadlines. It cannot interrupt a resolver that
 * hangs, so it answers for an overdue job, and the job's own answer is dropped when it comes. Until
 * then the job counts against MAX_DIALS.
 *
 * The dialler may: read the files that the host's resolver reads (/etc, /usr, /run and similar),
 * load the resolver's modules, make sockets, and connect to addresses that it has judged itself
 * (guard.h) or to the owner's proxy.
 *
 * The dialler must not: write a file, start a program, listen, accept, or trust the broker. The
 * broker reads the skill's bytes, so each request is checked against the plan as if the skill had
 * written it (request_read()). The broker gets a socket that is connected to an allowed address
 * (for UDP, a gate to one), and never chooses an address. Landlock and a seccomp filter enforce
 * these limits (confine.c, tools/seccomp_rules.c). */
#include "egress/dial.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "egress/gate.h"
#include "egress/proxy.h"
#include "egress/race.h"
#include "egress/resolve.h"
#include "os/clone.h"
#include "os/confine.h"
#include "os/file.h"

#define STACK_BYTES  (256 * 1024)
#define GRACE_US     100000 /* a job that does not hang answers at most this late */
#define ENOUGH_FILES (MAX_DIALS * MAX_DIAL_ADDRESSES + 2 * MAX_UDP_FLOWS + 64)

_Static_assert(MAX_SPARES <= MSG_MAX_FDS, "spares go in one message");

struct dialler;

struct dial_job {
	struct dialler *dialler;
	struct dial_request request;
	struct race race; /* race.n is 0 until the race is begun */
	int64_t deadline_us;
	bool used;     /* protected by dialler->lock, like `answered` */
	bool answered; /* answered by its thread or by expire_jobs() */
};

struct dialler {
	int sock;
	const struct dial_config *config;
	pthread_mutex_t lock;
	atomic_uint n_used;
	struct dial_job jobs[MAX_DIALS];
};

static const enum reason RESULT_REASONS[] = {
	[DIAL_OK] = REASON_OK,
	[DIAL_REFUSED_RULE] = REASON_REFUSED_RULE,
	[DIAL_NO_NAME] = REASON_NO_NAME,
	[DIAL_GUARDED] = REASON_GUARDED,
	[DIAL_UNREACHABLE] = REASON_UNREACHABLE,
	[DIAL_TIMEOUT] = REASON_TIMEOUT,
	[DIAL_BUSY] = REASON_BUSY,
	[DIAL_PROXY_UNREACHABLE] = REASON_PROXY_UNREACHABLE,
	[DIAL_PROXY_REFUSED] = REASON_PROXY_REFUSED,
	[DIAL_PROXY_AUTH] = REASON_PROXY_AUTH,
	[DIAL_PROXY_BROKEN] = REASON_PROXY_BROKEN,
	[DIAL_PROXY_NO_UDP] = REASON_PROXY_NO_UDP,
};

enum reason dial_result_reason(enum dial_result r)
{
	return (size_t)r < ARRAY_LEN(RESULT_REASONS) ? RESULT_REASONS[r] : REASON_UNKNOWN;
}

/* ---- one request ------------------------------------------------------- */

static int choose_type(const struct dial_request *q)
{
	return q->id.kind == DIAL_UDP ? SOCK_DGRAM : SOCK_STREAM;
}

/* Returns the targets from the cache or, if there are none, from the resolver. */
static size_t resolve_patiently(const char *name, int type, struct race_target *targets)
{
	int64_t until_us;
	size_t n = resolve_known(name, type, targets, &until_us);

	return n > 0 ? n : resolve(name, type, targets);
}

/* Finds the targets of a request. If no answer is cached, asks the resolver if `wait` is true, and
 * otherwise returns 0. */
static size_t find_targets(const struct dial_config *config, const struct dial_request *q,
                           bool wait, struct race_target *targets)
{
	if (egress_is_literal(&config->table->plan->egress[q->rule])) {
		return address_parse(q->name, &targets[0].address) ? 1 : 0;
	}
	int64_t until_us;
	return wait ? resolve_patiently(q->name, choose_type(q), targets)
	            : resolve_known(q->name, choose_type(q), targets, &until_us);
}

/* Keeps the targets that may be dialled, and returns how many there are. Writes the last refused
 * target into the reply, where it stays if none is allowed. */
static size_t keep_allowed(const struct dial_config *config, struct race_target *targets, size_t n,
                           struct dial_reply *reply)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const char *kind = NULL;
		if (guard_allows(&targets[i].address, config->allow_private,
		                 config->n_allow_private, &kind)) {
			targets[kept++] = targets[i];
			continue;
		}
		reply->address = targets[i].address;
		(void)snprintf(reply->range, sizeof(reply->range), "%s", kind);
	}
	return kept;
}

/* Resolves the name and judges the addresses. Returns true with a race that may be run, or false
 * with the reply filled. Also returns false for a request that needs a proxy, because connect_job()
 * must talk to the proxy first. */
static bool aim_race(const struct dial_config *config, const struct dial_request *q, bool wait,
                     struct race *ret_race, struct dial_reply *reply)
{
	struct race_target targets[MAX_DIAL_ADDRESSES] = { 0 };

	if (proxy_for(config->table->plan, q) != NULL) {
		return false;
	}
	size_t n = find_targets(config, q, wait, targets);
	if (n == 0) {
		reply->result = DIAL_NO_NAME;
		return false;
	}
	n = keep_allowed(config, targets, n, reply);
	if (n == 0) {
		reply->result = DIAL_GUARDED;
		return false;
	}
	memset(reply->range, 0, sizeof(reply->range));
	race_interleave(targets, n);
	race_init(ret_race, targets, n, q->port, choose_type(q));
	return true;
}

/* Resolves, judges and connects, or continues a race that was already begun. Fills the reply and
 * returns the socket or -1. */
static int connect_job(struct dial_job *job, struct dial_reply *reply)
{
	const struct dial_config *config = job->dialler->config;
	const struct upstream *proxy = proxy_for(config->table->plan, &job->request);
	size_t tried = 0;

	if (proxy != NULL) {
		return proxy_dial(config, proxy, &job->request, resolve_patiently, job->deadline_us,
		                  reply);
	}
	if (job->race.n == 0 && !aim_race(config, &job->request, true, &job->race, reply)) {
		return -1;
	}
	int fd = race_finish(&job->race, job->deadline_us, &tried);
	reply->address = job->race.targets[tried].address;
	if (fd < 0) {
		reply->result = errno == ETIMEDOUT ? DIAL_TIMEOUT : DIAL_UNREACHABLE;
		return -1;
	}
	reply->result = DIAL_OK;
	return fd;
}

static int send_patiently(int sock, const struct dial_reply *reply, const struct msg_fds *fds)
{
	while (msg_fds_send(sock, reply, sizeof(*reply), fds) < 0) {
		struct pollfd p = { .fd = sock, .events = POLLOUT };
		if (errno != EAGAIN) {
			return -1;
		}
		(void)poll(&p, 1, -1);
	}
	return 0;
}

/* Opens a gate for `udp`, which it takes. Returns the end for the broker, which must not get the
 * UDP socket itself (gate.h). */
static int pass_gate(int udp, struct dial_reply *reply)
{
	int end = gate_open(udp);

	if (end < 0) {
		reply->result = DIAL_BUSY;
	}
	return end;
}

/* Sends a reply with fds. Takes the fds. */
static void send_with(const struct dialler *d, const struct dial_reply *reply, struct msg_fds *fds)
{
	if (send_patiently(d->sock, reply, fds) < 0 && errno == ETOOMANYREFS) {
		/* The kernel refuses the message: too many sockets wait in it until the broker
		 * receives them. */
		struct dial_reply busy = *reply;
		busy.result = DIAL_BUSY;
		(void)send_patiently(d->sock, &busy, NULL);
	}
	msg_fds_close(fds);
}

/* Sends a reply with `fd` (-1: none), which it takes. */
static void send_reply(const struct dialler *d, const struct dial_reply *reply, int fd)
{
	struct msg_fds fds = { .v = { fd }, .n = fd >= 0 ? 1 : 0 };

	send_with(d, reply, &fds);
}

/* Replies with a job's socket, or its gate. Takes `fd` (-1: none). */
static void answer_job(const struct dial_job *job, struct dial_reply *reply, int fd)
{
	if (fd >= 0 && job->request.id.kind == DIAL_UDP) {
		fd = pass_gate(fd, reply);
	}
	send_reply(job->dialler, reply, fd);
}

static bool claim_answer(struct dial_job *job)
{
	(void)pthread_mutex_lock(&job->dialler->lock);
	bool mine = !job->answered;
	job->answered = true;
	(void)pthread_mutex_unlock(&job->dialler->lock);
	return mine;
}

static void job_release(struct dial_job *job)
{
	(void)pthread_mutex_lock(&job->dialler->lock);
	job->used = false;
	atomic_fetch_sub(&job->dialler->n_used, 1);
	(void)pthread_mutex_unlock(&job->dialler->lock);
}

static void *job_main(void *arg)
{
	struct dial_job *job = arg;
	struct dial_reply reply = { .id = job->request.id };
	auto_fd fd = connect_job(job, &reply);

	if (claim_answer(job)) {
		answer_job(job, &reply, steal_fd(&fd));
	}
	job_release(job);
	return NULL;
}

/* ---- the broker's requests ---------------------------------------------- */

/* Reads and checks a request of `len` bytes in `raw`. `len` is negative if the message was longer
 * than the buffer. Returns false if the request is not valid or no rule grants it. */
static bool request_read(const struct dialler *d, const uint8_t *raw, ssize_t len,
                         struct dial_request *ret)
{
	const struct ssb_plan *plan = d->config->table->plan;
	struct dial_request q;

	if (len != (ssize_t)sizeof(q)) {
		return false;
	}
	memcpy(&q, raw, sizeof(q));
	bool counted = q.id.kind == DIAL_SPARES ? q.spares > 0 && q.spares <= MAX_SPARES
	                                        : q.id.kind <= DIAL_UDP && q.spares == 0;
	if (!counted || memchr(q.name, '\0', sizeof(q.name)) == NULL || q.rule >= plan->n_egress) {
		return false;
	}
	const struct egress_rule *rule = &plan->egress[q.rule];
	if ((rule->protocol == PROTO_UDP) != (q.id.kind == DIAL_UDP) ||
	    !egress_rule_has_port(rule, q.port) || !egress_name_matches(rule, q.name)) {
		return false;
	}
	*ret = q;
	return true;
}

static struct dial_job *job_take(struct dialler *d)
{
	struct dial_job *job = NULL;

	(void)pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < MAX_DIALS && job == NULL; i++) {
		if (!d->jobs[i].used) {
			job = &d->jobs[i];
			job->used = true;
			atomic_fetch_add(&d->n_used, 1);
			job->answered = false;
		}
	}
	(void)pthread_mutex_unlock(&d->lock);
	return job;
}

static int job_start(struct dial_job *job)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr) != 0) {
		return -1;
	}
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	int r = pthread_create(&thread, &attr, job_main, job);
	(void)pthread_attr_destroy(&attr);
	return r == 0 ? 0 : -1;
}

static void refuse_request(const struct dialler *d, struct dial_id id, enum dial_result result)
{
	struct dial_reply reply = { .id = id, .result = result };

	send_reply(d, &reply, -1);
}

/* Makes the first attempt if no waiting is needed, and answers if it succeeds. Returns false if a
 * thread must continue. */
static bool serve_at_once(struct dial_job *job)
{
	struct dial_reply reply = { .id = job->request.id, .result = DIAL_OK };

	if (!aim_race(job->dialler->config, &job->request, false, &job->race, &reply)) {
		return false;
	}
	int fd = race_at_once(&job->race);
	if (fd < 0) {
		return false;
	}
	reply.address = job->race.targets[0].address;
	answer_job(job, &reply, fd);
	return true;
}

/* Replies with aimed sockets, if the addresses of the name are cached. */
static void serve_spares(const struct dialler *d, const struct dial_request *q)
{
	struct dial_reply reply = { .id = q->id, .result = DIAL_OK };
	struct race_target known[MAX_DIAL_ADDRESSES];
	struct msg_fds fds = { .n = 0 };
	struct race race;
	int64_t now = race_now_us();
	int64_t until_us = 0;
	/* In TLS and HTTP the client sends first, and the broker has these bytes before it uses a
	 * spare. */
	bool speaks =
	        egress_first_bytes(&d->config->table->plan->egress[q->rule], q->port) != FIRST_RAW;
	bool may = resolve_known(q->name, SOCK_STREAM, known, &until_us) > 0 &&
	           aim_race(d->config, q, false, &race, &reply);

	while (may && fds.n < q->spares && (fds.v[fds.n] = race_aim(&race, speaks)) >= 0) {
		fds.n++;
	}
	if (fds.n == 0) {
		refuse_request(d, q->id, DIAL_BUSY);
		return;
	}
	reply.address = race.targets[0].address;
	reply.valid_us = until_us > now ? (uint32_t)(until_us - now) : 0; /* at most 2 s */
	send_with(d, &reply, &fds);
}

static void serve_request(struct dialler *d, const struct dial_request *q)
{
	struct dial_job *job = job_take(d);

	if (job == NULL) {
		refuse_request(d, q->id, DIAL_BUSY);
		return;
	}
	job->dialler = d;
	job->request = *q;
	job->race.n = job->race.started = 0;
	job->deadline_us = race_now_us() + (int64_t)d->config->timeout_ms * 1000;
	if (serve_at_once(job)) {
		job_release(job);
	} else if (job_start(job) < 0) {
		race_done(&job->race);
		job_release(job);
		refuse_request(d, q->id, DIAL_BUSY);
	}
}

/* Answers for overdue jobs. Returns the milliseconds until the next job may be overdue, or -1 if no
 * job is waiting. */
static int expire_jobs(struct dialler *d)
{
	int64_t now = race_now_us();
	int64_t next = -1;

	if (atomic_load(&d->n_used) == 0) {
		return -1;
	}
	for (size_t i = 0; i < MAX_DIALS; i++) {
		struct dial_job *job = &d->jobs[i];
		(void)pthread_mutex_lock(&d->lock);
		bool waiting = job->used && !job->answered;
		(void)pthread_mutex_unlock(&d->lock);
		if (!waiting) {
			continue;
		}
		int64_t left = job->deadline_us + GRACE_US - now;
		if (left > 0) {
			next = next < 0 || left < next ? left : next;
		} else if (claim_answer(job)) {
			struct dial_reply reply = { .id = job->request.id, .result = DIAL_TIMEOUT };
			send_reply(d, &reply, -1);
		}
	}
	return next < 0 ? -1 : next > 60000000 ? 60000 : (int)(next / 1000) + 1;
}

/* Reads and serves one message. Returns -1 if the peer has closed the socket. */
static int hear_request(struct dialler *d)
{
	uint8_t raw[sizeof(struct dial_request)] = { 0 };
	struct msg_fds fds = { .n = 0 };
	struct dial_request q;
	struct dial_id id;
	ssize_t len = msg_fds_recv(d->sock, raw, sizeof(raw), &fds);

	if (len == 0 || (len < 0 && errno != EMSGSIZE && errno != EAGAIN)) {
		return -1;
	}
	if (len < 0 && errno == EAGAIN) {
		return 0;
	}
	bool bare = fds.n == 0;
	msg_fds_close(&fds);
	memcpy(&id, raw, sizeof(id));
	if (!bare || !request_read(d, raw, len, &q)) {
		refuse_request(d, id, DIAL_REFUSED_RULE);
	} else if (q.id.kind == DIAL_SPARES) {
		serve_spares(d, &q);
	} else {
		serve_request(d, &q);
	}
	return 0;
}

/* ---- the process -------------------------------------------------------- */

static void fit_limits(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	file_limit_raise(ENOUGH_FILES);
}

_Noreturn void dial_main(int sock, const struct dial_config *config)
{
	assert(sock >= 0 && config->table != NULL);
	assert(config->n_allow_private == 0 || config->allow_private != NULL);

	struct dialler d = { .sock = sock, .config = config };

	(void)pthread_mutex_init(&d.lock, NULL);
	fit_limits();
	confine_or_exit(confine_dialler, config->ready);
	for (;;) {
		struct pollfd p = { .fd = d.sock, .events = POLLIN };
		int wait = expire_jobs(&d);
		/* If no job is running, hear_request() may block. */
		int r = wait < 0 ? 1 : poll(&p, 1, wait);
		if (r < 0 && errno != EINTR) {
			break;
		}
		if (r > 0 && hear_request(&d) < 0) {
			break;
		}
	}
	gate_finish();
	_exit(0); /* exits at once, even if threads are still running */
}
