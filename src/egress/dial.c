/* Theory of operation.
 *
 * The main thread reads requests and gives each a thread of its own, for the
 * host's resolver blocks. It also keeps the time: a resolver that hangs cannot
 * be interrupted, so the main thread answers for an overdue job, and the
 * job's own answer is dropped when it comes at last. Until then the job counts
 * against MAX_DIALS.
 *
 * The broker reads the skill's bytes and is not believed: a request is checked
 * against the plan as if the skill had written it. It gets a socket that is
 * connected to a judged address (for UDP a gate to one), and never the choice
 * of one. */
#include "egress/dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "egress/confine.h"
#include "egress/gate.h"
#include "egress/race.h"
#include "os/clone.h"

#define STACK_BYTES  (256 * 1024)
#define GRACE_US     100000 /* a job that is not stuck answers for itself, with its address */
#define ENOUGH_FILES (MAX_DIALS * MAX_DIAL_ADDRESSES + 2 * MAX_UDP_FLOWS + 64)

struct dialler;

struct job {
	struct dialler *dialler;
	struct dial_request request;
	int64_t start_us;
	int64_t deadline_us;
	bool used;     /* under dialler->lock, as is `answered` */
	bool answered; /* by its thread, or for it */
};

struct dialler {
	int sock;
	const struct dial_config *config;
	pthread_mutex_t lock;
	struct job jobs[MAX_DIALS];
};

static const char *const RESULT_NAMES[] = {
	[DIAL_OK] = "ok",
	[DIAL_REFUSED_RULE] = "refused_rule",
	[DIAL_NO_NAME] = "no_name",
	[DIAL_GUARDED] = "guarded",
	[DIAL_UNREACHABLE] = "unreachable",
	[DIAL_TIMEOUT] = "timeout",
	[DIAL_BUSY] = "busy",
};

const char *dial_result_name(enum dial_result r)
{
	return (size_t)r < ARRAY_LEN(RESULT_NAMES) ? RESULT_NAMES[r] : "unknown";
}

/* ---- one request ------------------------------------------------------- */

static bool add_target(struct race_target *targets, size_t n, const struct addrinfo *ai)
{
	struct race_target t = { .address.b = { [10] = 0xff, 0xff } };

	if (ai->ai_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, ai->ai_addr, sizeof(in));
		memcpy(t.address.b + 12, &in.sin_addr, sizeof(in.sin_addr));
	} else if (ai->ai_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, ai->ai_addr, sizeof(in6));
		memcpy(t.address.b, &in6.sin6_addr, sizeof(in6.sin6_addr));
		t.scope = in6.sin6_scope_id;
	} else {
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		if (memcmp(&targets[i], &t, sizeof(t)) == 0) {
			return false;
		}
	}
	targets[n] = t;
	return true;
}

/* The host's resolver, without its search list: "api" must not become
 * api.lan, nor an undefined name one of another domain. A final dot would say
 * so too, but names with one are not found in /etc/hosts. The options are the
 * thread's own. */
static size_t resolve(const char *name, int type, struct race_target *targets)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
		                  .ai_socktype = type,
		                  .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	size_t n = 0;

	if (res_init() < 0) {
		return 0;
	}
	_res.options &= ~(unsigned long)(RES_DNSRCH | RES_DEFNAMES);
	_res.options |= RES_NOALIASES;
	if (getaddrinfo(name, NULL, &hints, &list) != 0) {
		return 0;
	}
	for (struct addrinfo *ai = list; ai != NULL && n < MAX_DIAL_ADDRESSES; ai = ai->ai_next) {
		n += add_target(targets, n, ai) ? 1 : 0;
	}
	freeaddrinfo(list);
	return n;
}

/* What was resolved a moment ago. Only the answer is kept, never a judgement:
 * every address is judged anew for every connection. */
#define CACHE_SLOTS 64
#define CACHE_US    2000000

static struct {
	char name[254];
	int type;
	int64_t until_us;
	size_t n;
	struct race_target targets[MAX_DIAL_ADDRESSES];
} cache[CACHE_SLOTS];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t cache_slot(const char *name, int type)
{
	uint32_t hash = 2166136261U ^ (uint32_t)type;

	for (; *name != '\0'; name++) {
		hash = (hash ^ (unsigned char)*name) * 16777619U;
	}
	return hash % CACHE_SLOTS;
}

static size_t resolve_cached(const char *name, int type, struct race_target *targets)
{
	size_t slot = cache_slot(name, type);
	size_t n = 0;

	(void)pthread_mutex_lock(&cache_lock);
	if (cache[slot].type == type && cache[slot].until_us > race_now_us() &&
	    strcmp(cache[slot].name, name) == 0) {
		n = cache[slot].n;
		memcpy(targets, cache[slot].targets, n * sizeof(*targets));
	}
	(void)pthread_mutex_unlock(&cache_lock);
	if (n > 0) {
		return n;
	}
	n = resolve(name, type, targets);
	if (n > 0) {
		(void)pthread_mutex_lock(&cache_lock);
		(void)snprintf(cache[slot].name, sizeof(cache[slot].name), "%s", name);
		cache[slot].type = type;
		cache[slot].until_us = race_now_us() + CACHE_US;
		cache[slot].n = n;
		memcpy(cache[slot].targets, targets, n * sizeof(*targets));
		(void)pthread_mutex_unlock(&cache_lock);
	}
	return n;
}

/* Keeps the targets that may be dialled; the last refused one goes into the
 * reply, for the case that none is left. */
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
		(void)snprintf(reply->kind, sizeof(reply->kind), "%s", kind);
	}
	return kept;
}

/* Resolves, judges and connects; fills the reply and returns the socket or -1. */
static int dial(const struct job *job, struct dial_reply *reply)
{
	const struct dial_request *q = &job->request;
	const struct dial_config *config = job->dialler->config;
	int type = q->udp ? SOCK_DGRAM : SOCK_STREAM;
	struct race_target targets[MAX_DIAL_ADDRESSES] = { 0 };
	size_t n = 1;
	size_t tried = 0;

	if (config->table->plan->egress[q->rule].kind != HOST_ADDRESS) {
		n = resolve_cached(q->name, type, targets);
	} else if (!address_parse(q->name, &targets[0].address)) {
		n = 0;
	}
	if (n == 0) {
		reply->result = DIAL_NO_NAME;
		return -1;
	}
	n = keep_allowed(config, targets, n, reply);
	if (n == 0) {
		reply->result = DIAL_GUARDED;
		return -1;
	}
	memset(reply->kind, 0, sizeof(reply->kind));
	race_interleave(targets, n);
	int fd = race_connect(targets, n, q->port, type, job->deadline_us, &tried);
	reply->address = targets[tried].address;
	if (fd < 0) {
		reply->result = errno == ETIMEDOUT ? DIAL_TIMEOUT : DIAL_UNREACHABLE;
		return -1;
	}
	reply->result = DIAL_OK;
	return fd;
}

static int send_patiently(int sock, const struct dial_reply *reply, const struct msg_fds *fds)
{
	while (msg_send(sock, reply, sizeof(*reply), fds) < 0) {
		struct pollfd p = { .fd = sock, .events = POLLOUT };
		if (errno != EAGAIN) {
			return -1;
		}
		(void)poll(&p, 1, -1);
	}
	return 0;
}

/* What the broker gets of a UDP socket: gate.h says why. Takes `udp`. */
static int through_gate(int udp, struct dial_reply *reply)
{
	int end = gate_open(udp);

	if (end < 0) {
		reply->result = DIAL_BUSY;
	}
	return end;
}

/* Takes `fd` (-1: none). */
static void answer(const struct dialler *d, int64_t start_us, struct dial_reply *reply, int fd)
{
	auto_fd connected = fd;
	struct msg_fds fds = { .v = { connected }, .n = connected >= 0 ? 1 : 0 };
	int64_t micros = race_now_us() - start_us;

	reply->micros = micros < UINT32_MAX ? (uint32_t)micros : UINT32_MAX;
	if (send_patiently(d->sock, reply, &fds) < 0 && errno == ETOOMANYREFS) {
		/* The broker has let too many sockets pile up unread. */
		reply->result = DIAL_BUSY;
		(void)send_patiently(d->sock, reply, NULL);
	}
}

static bool claim_answer(struct job *job)
{
	(void)pthread_mutex_lock(&job->dialler->lock);
	bool mine = !job->answered;
	job->answered = true;
	(void)pthread_mutex_unlock(&job->dialler->lock);
	return mine;
}

static void job_release(struct job *job)
{
	(void)pthread_mutex_lock(&job->dialler->lock);
	job->used = false;
	(void)pthread_mutex_unlock(&job->dialler->lock);
}

static void *job_main(void *arg)
{
	struct job *job = arg;
	struct dial_reply reply = { .id = job->request.id };
	auto_fd fd = dial(job, &reply);

	if (claim_answer(job)) {
		if (fd >= 0 && job->request.udp) {
			fd = through_gate(steal_fd(&fd), &reply);
		}
		answer(job->dialler, job->start_us, &reply, steal_fd(&fd));
	}
	job_release(job);
	return NULL;
}

/* ---- the broker's requests ---------------------------------------------- */

static bool rule_has_port(const struct egress_rule *rule, uint16_t port)
{
	for (size_t i = 0; i < rule->n_ports; i++) {
		if (rule->ports[i] == port) {
			return true;
		}
	}
	return false;
}

/* The message is `len` bytes of `raw`, or longer than that where len < 0. */
static bool request_read(const struct dialler *d, const uint8_t *raw, ssize_t len,
                         struct dial_request *ret)
{
	const struct ssb_plan *plan = d->config->table->plan;
	struct dial_request q;

	/* Only 0 and 1 may be read as a bool at all. */
	if (len != (ssize_t)sizeof(q) || raw[offsetof(struct dial_request, udp)] > 1) {
		return false;
	}
	memcpy(&q, raw, sizeof(q));
	if (memchr(q.name, '\0', sizeof(q.name)) == NULL || q.rule >= plan->n_egress) {
		return false;
	}
	const struct egress_rule *rule = &plan->egress[q.rule];
	if ((rule->protocol == PROTO_UDP) != q.udp || !rule_has_port(rule, q.port) ||
	    !egress_name_matches(rule, q.name)) {
		return false;
	}
	*ret = q;
	return true;
}

static struct job *job_take(struct dialler *d)
{
	struct job *job = NULL;

	(void)pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < MAX_DIALS && job == NULL; i++) {
		if (!d->jobs[i].used) {
			job = &d->jobs[i];
			job->used = true;
			job->answered = false;
		}
	}
	(void)pthread_mutex_unlock(&d->lock);
	return job;
}

static int job_start(struct job *job)
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

static void refuse(const struct dialler *d, uint64_t id, enum dial_result result)
{
	struct dial_reply reply = { .id = id, .result = result };

	answer(d, race_now_us(), &reply, -1);
}

static void serve(struct dialler *d, const struct dial_request *q)
{
	struct job *job = job_take(d);

	if (job == NULL) {
		refuse(d, q->id, DIAL_BUSY);
		return;
	}
	job->dialler = d;
	job->request = *q;
	job->start_us = race_now_us();
	job->deadline_us = job->start_us + (int64_t)d->config->timeout_ms * 1000;
	if (job_start(job) < 0) {
		job_release(job);
		refuse(d, q->id, DIAL_BUSY);
	}
}

/* Answers for jobs that are overdue; milliseconds until the next may be, or -1. */
static int expire(struct dialler *d)
{
	int64_t now = race_now_us();
	int64_t next = -1;

	for (size_t i = 0; i < MAX_DIALS; i++) {
		struct job *job = &d->jobs[i];
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
			answer(d, job->start_us, &reply, -1);
		}
	}
	return next < 0 ? -1 : next > 60000000 ? 60000 : (int)(next / 1000) + 1;
}

/* Reads and serves one message; -1 at the peer's end. */
static int hear(struct dialler *d)
{
	uint8_t raw[sizeof(struct dial_request)] = { 0 };
	struct msg_fds fds = { .n = 0 };
	struct dial_request q;
	uint64_t id;
	ssize_t len = msg_recv(d->sock, raw, sizeof(raw), &fds);

	if (len == 0 || (len < 0 && errno != EMSGSIZE && errno != EAGAIN)) {
		return -1;
	}
	if (len < 0 && errno == EAGAIN) {
		return 0;
	}
	bool bare = fds.n == 0;
	msg_close(&fds);
	memcpy(&id, raw, sizeof(id));
	if (bare && request_read(d, raw, len, &q)) {
		serve(d, &q);
	} else {
		refuse(d, id, DIAL_REFUSED_RULE);
	}
	return 0;
}

/* ---- the process -------------------------------------------------------- */

static void fit_limits(void)
{
	struct rlimit files;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < ENOUGH_FILES) {
		files.rlim_cur = files.rlim_max < ENOUGH_FILES ? files.rlim_max : ENOUGH_FILES;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

_Noreturn void dial_main(int sock, const struct dial_config *config)
{
	struct dialler d = { .sock = sock, .config = config };

	(void)pthread_mutex_init(&d.lock, NULL);
	fit_limits();
	confine_or_exit(confine_dialler, config->ready);
	for (;;) {
		struct pollfd p = { .fd = d.sock, .events = POLLIN };
		int r = poll(&p, 1, expire(&d));
		if (r < 0 && errno != EINTR) {
			break;
		}
		if (r > 0 && hear(&d) < 0) {
			break;
		}
	}
	_exit(0); /* at once, whatever the threads are doing */
}
