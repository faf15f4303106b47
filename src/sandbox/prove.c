/* prove.c - ssb_prove(): attacks the sandbox that a run would get.
 *
 * Theory of operation. Decoys are planted outside (prove_world.c). Each attack is made twice:
 * outside, as a control in a forked child, and inside, by a payload that the finished sandbox runs
 * in place of the skill. Inside, too, each attack runs in its own child process, because the filter
 * may kill that process. If the profile forbids fork, the payload makes the attacks itself; if one
 * of them ends the payload, a new sandbox continues with the next attack.
 *
 * The payload reports over a pipe in records of fixed size: one before each attack and one after
 * it. If the second record is missing, the attack did not return.
 *
 * The outcome is "held" only if the attack worked outside and did not work inside. */
#include "sandbox/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/own.h"
#include "manifest/resources.h"
#include "os/probe.h"
#include "sandbox/sandbox.h"

#define ATTACK_SECONDS   10
#define MIN_RUN_SECONDS  60 /* the plan's own limit may be too short for all attacks */
#define MAX_RECORD_BYTES (256UL * 1024)
#define CONTROL_NS       (CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

static const struct attack_group *const GROUPS[] = { &ATTACKS_FILES, &ATTACKS_PROCESS,
	                                             &ATTACKS_SYSCALLS, &ATTACKS_NETWORK,
	                                             &ATTACKS_LIMITS };

static size_t attack_count(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++) {
		n += GROUPS[i]->n;
	}
	return n;
}

static const struct attack *attack_at(size_t i)
{
	size_t g = 0;

	while (i >= GROUPS[g]->n) {
		i -= GROUPS[g++]->n;
	}
	return &GROUPS[g]->attacks[i];
}

/* ---- how attacks report ----------------------------------------------------------- */

#define SAY(f, fmt)                                                                                \
	do {                                                                                       \
		va_list ap;                                                                        \
		va_start(ap, fmt);                                                                 \
		(void)vsnprintf((f)->text, sizeof((f)->text), fmt, ap);                            \
		va_end(ap);                                                                        \
	} while (0)

enum attack_result attack_worked(struct finding *f, const char *fmt, ...)
{
	SAY(f, fmt);
	return ATTACK_WORKED;
}

enum attack_result attack_failed(struct finding *f, const char *fmt, ...)
{
	SAY(f, fmt);
	return ATTACK_FAILED;
}

enum attack_result attack_void(struct finding *f, const char *fmt, ...)
{
	SAY(f, fmt);
	return ATTACK_VOID;
}

enum attack_result attack_errno(struct finding *f, const char *what)
{
	const char *name = strerrorname_np(errno);

	snprintf(f->text, sizeof(f->text), "%s: %s", what, name != NULL ? name : "error");
	return ATTACK_FAILED;
}

bool prove_reads_secret(const struct prove_world *w, int fd)
{
	char got[sizeof(w->secret)] = "";
	ssize_t n = read(fd, got, sizeof(got) - 1);

	return n == (ssize_t)(sizeof(got) - 1) && memcmp(got, w->secret, sizeof(got)) == 0;
}

/* ---- one attack --------------------------------------------------------------------- */

/* Values of prove_record.result in the record that is sent before an attack. They say whether the
 * attack runs in its own process (FORKED) or in the payload (IN_PROCESS). */
enum { MARK_FORKED = 100, MARK_IN_PROCESS };

struct prove_record {
	uint32_t index;
	int32_t result;
	struct finding finding;
};

static void send_record(int fd, size_t index, int result, const struct finding *f)
{
	struct prove_record r = { .index = (uint32_t)index, .result = result };

	if (f != NULL) {
		r.finding = *f;
	}
	(void)!write(fd, &r, sizeof(r)); /* less than PIPE_BUF: written completely or not at all */
}

static void make_attack(size_t index, const struct prove_world *w)
{
	const struct attack *a = attack_at(index);
	struct finding f = { "" };
	enum attack_result r = ATTACK_VOID;

	alarm(ATTACK_SECONDS);
	if (!w->outside && a->not_permissive && w->plan->profile == PROFILE_PERMISSIVE) {
		r = attack_void(
		        &f, "the permissive profile allows this among the skill's own processes");
	} else {
		r = a->run(a, w, &f);
	}
	alarm(0);
	send_record(w->out_fd, index, (int)r, &f);
}

/* Judges an attack that sent no result by the way its own process ended. */
static enum attack_result judge_end(const struct attack *a, int status, struct finding *f)
{
	if (!WIFSIGNALED(status)) {
		return attack_void(f, "ended without a result");
	}
	int sig = WTERMSIG(status);
	if (sig == SIGSYS || (a->may_end && sig == SIGKILL)) {
		return attack_failed(f, "ended with SIG%s", sigabbrev_np(sig));
	}
	return sig == SIGALRM ? attack_void(f, "did not finish in %d s", ATTACK_SECONDS)
	                      : attack_void(f, "ended with signal %d", sig);
}

/* ---- inside ---------------------------------------------------------------------------- */

struct prove_job {
	const struct prove_world *world;
	size_t first;
};

/* If the payload makes the attack itself: the record that on_crash() sends if the attack crashes or
 * hangs. SIGSYS of the filter kills the process without a handler; so if no record follows the
 * attack, the cause was SIGSYS. */
static struct prove_record last_words;
static int last_fd;

static void on_crash(int sig)
{
	(void)sig;
	(void)!write(last_fd, &last_words, sizeof(last_words));
	_exit(1);
}

static void attack_in_process(size_t index, const struct prove_world *w)
{
	static const int SIGNALS[] = { SIGALRM, SIGSEGV, SIGBUS, SIGILL, SIGFPE };

	last_fd = w->out_fd;
	last_words.index = (uint32_t)index;
	last_words.result = (int32_t)attack_void(&last_words.finding, "crashed or did not finish");
	for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
		(void)signal(SIGNALS[i], on_crash);
	}
	send_record(w->out_fd, index, MARK_IN_PROCESS, NULL);
	make_attack(index, w);
}

static void attack_in_child(size_t index, pid_t pid, const struct prove_world *w)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		struct finding f = { "" };
		enum attack_result r = judge_end(attack_at(index), status, &f);
		send_record(w->out_fd, index, (int)r, &f);
	}
}

static int prove_payload(int out_fd, void *arg)
{
	const struct prove_job *job = arg;
	struct prove_world w = *job->world;

	w.outside = false;
	w.out_fd = out_fd;
	w.scratch = "/tmp";
	/* Make the process dumpable, as execve would do: otherwise it cannot open its own files in
	 * /proc. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	for (size_t i = job->first; i < attack_count(); i++) {
		send_record(out_fd, i, MARK_FORKED, NULL);
		pid_t pid = fork();
		if (pid == 0) {
			make_attack(i, &w);
			_exit(0);
		}
		if (pid > 0) {
			attack_in_child(i, pid, &w);
		} else {
			attack_in_process(i, &w);
		}
	}
	return 0;
}

/* ---- results --------------------------------------------------------------------------- */

struct result {
	enum attack_result result;
	struct finding finding;
};

struct results {
	struct result *v;
	size_t n;
	size_t started; /* the index of the last attack that was started, plus one */
	bool open;      /* the attack that was started last has no result */
	bool in_process;
};

static void take_record(struct results *r, const struct prove_record *rec)
{
	if (rec->index >= r->n) {
		return;
	}
	if (rec->result == MARK_FORKED || rec->result == MARK_IN_PROCESS) {
		r->started = rec->index + 1;
		r->open = true;
		r->in_process = rec->result == MARK_IN_PROCESS;
		return;
	}
	r->v[rec->index].result = (enum attack_result)rec->result;
	r->v[rec->index].finding = rec->finding;
	r->v[rec->index].finding.text[sizeof(rec->finding.text) - 1] = '\0';
	r->open = r->open && rec->index + 1 != r->started;
}

static void absorb_all(struct results *r, const char *data, size_t len)
{
	for (size_t at = 0; at + sizeof(struct prove_record) <= len;
	     at += sizeof(struct prove_record)) {
		struct prove_record rec;
		memcpy(&rec, data + at, sizeof(rec));
		take_record(r, &rec);
	}
}

/* Fills the result of the last attack, during which the sandbox ended. If the payload made the
 * attack itself, the filter has ended it. An attack in its own process should not end the sandbox,
 * except if that is the expected defence (may_end). */
static void close_open(struct results *r)
{
	size_t i = r->started - 1;
	const struct attack *a = attack_at(i);

	if (r->in_process || a->may_end) {
		r->v[i].result = attack_failed(&r->v[i].finding, "ended by the sandbox");
	} else {
		r->v[i].result =
		        attack_void(&r->v[i].finding, "the sandbox ended during the attack");
	}
	r->open = false;
}

/* Makes the attacks inside, in as many sandboxes as needed. The time limit is raised and no
 * terminal is used, because no attack is directed at them. */
static int attack_inside(const struct prove_world *w, struct results *r, struct ssb_error *err)
{
	struct run_request q = run_request_of(w->plan, (const int[3]){ -1, -1, -1 });

	if (q.max_seconds < MIN_RUN_SECONDS || q.max_seconds == RESOURCE_UNLIMITED) {
		q.max_seconds = MIN_RUN_SECONDS;
	}
	q.tty = TTY_NO;
	while (r->started < r->n) {
		struct prove_job job = { .world = w, .first = r->started };
		auto_buf out = BUF(MAX_RECORD_BYTES);

		if (sandbox_run_payload(&q, prove_payload, &job, &out, err) != 0) {
			return ssb_wrap(err, "prove");
		}
		if (out.data != NULL) {
			absorb_all(r, out.data, out.len);
		}
		if (r->started == job.first) {
			return ssb_fail(err, SSB_E_LAYER, 0, "prove",
			                "the sandbox ended before the attack '%s' was made",
			                attack_at(job.first)->name);
		}
		if (r->open) {
			close_open(r);
		}
	}
	return 0;
}

/* ---- outside ----------------------------------------------------------------------------- */

static _Noreturn void control_child(size_t index, struct prove_world *w, int fd)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	w->outside = true;
	w->out_fd = fd;
	w->scratch = w->dir;
	if (attack_at(index)->as_ns_root) {
		/* If this call fails, the attack outside fails, too, and the report says that the
		 * attack has no control. */
		(void)probe_enter_userns(CONTROL_NS);
	}
	make_attack(index, w);
	_exit(0);
}

static void run_control(size_t index, struct prove_world *w, struct results *r)
{
	int pipe_fds[2];
	int status = 0;
	struct prove_record rec;

	r->v[index].result = attack_void(&r->v[index].finding, "the control could not be run");
	if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		control_child(index, w, pipe_fds[1]);
	}
	(void)close(pipe_fds[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (pid > 0 && read(pipe_fds[0], &rec, sizeof(rec)) == (ssize_t)sizeof(rec)) {
		take_record(r, &rec);
	} else if (pid > 0) {
		r->v[index].result = judge_end(attack_at(index), status, &r->v[index].finding);
	}
	(void)close(pipe_fds[0]);
}

/* ---- the verdict ---------------------------------------------------------------------------- */

static enum ssb_probe_outcome judge_probe(enum attack_result inside, enum attack_result outside)
{
	if (inside == ATTACK_WORKED) {
		return SSB_PROBE_LEAKED;
	}
	return inside == ATTACK_FAILED && outside == ATTACK_WORKED ? SSB_PROBE_HELD
	                                                           : SSB_PROBE_NO_CONTROL;
}

static void fill_probe(struct ssb_probe *p, size_t i, const struct results *in,
                       const struct results *out)
{
	p->name = attack_at(i)->name;
	p->what = attack_at(i)->what;
	p->outcome = judge_probe(in->v[i].result, out->v[i].result);
	snprintf(p->inside, sizeof(p->inside), "%s", in->v[i].finding.text);
	snprintf(p->outside, sizeof(p->outside), "%s", out->v[i].finding.text);
}

static int prove_both(const struct ssb_plan *plan, struct results *in, struct results *out,
                      struct ssb_error *err)
{
	struct prove_world *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "prove", "out of memory");
	}
	int r = prove_world_init(w, plan, err);
	if (r == 0) {
		for (size_t i = 0; i < out->n; i++) {
			run_control(i, w, out);
		}
		r = attack_inside(w, in, err);
		prove_world_done(w);
	}
	free(w);
	return r;
}

/* Blocks signals that would end this process, so that the decoys are always removed. */
static int prove_uninterrupted(const struct ssb_plan *plan, struct results *in, struct results *out,
                               struct ssb_error *err)
{
	static const int SIGNALS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t wait;
	sigset_t old;

	sigemptyset(&wait);
	for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
		sigaddset(&wait, SIGNALS[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &wait, &old);
	int r = prove_both(plan, in, out, err);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return r;
}

/* Fills n probes; `work` has room for 2 n results. */
static int prove_into(const struct ssb_plan *plan, struct ssb_probe *probes, size_t n,
                      struct result *work, struct ssb_error *err)
{
	struct results in = { .v = work, .n = n };
	struct results out = { .v = work + n, .n = n };

	for (size_t i = 0; i < n; i++) {
		in.v[i].result = attack_void(&in.v[i].finding, "not made");
	}
	if (prove_uninterrupted(plan, &in, &out, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		fill_probe(&probes[i], i, &in, &out);
	}
	return 0;
}

int ssb_prove(const struct ssb_plan *p, struct ssb_probe **ret_probes, size_t *ret_count,
              struct ssb_error *err)
{
	size_t n = attack_count();

	if (p->n_refusals > 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, "prove", "the plan has refusals: %s",
		                p->refusals[0].what);
	}
	struct result *work = calloc(2 * n, sizeof(*work));
	struct ssb_probe *probes = calloc(n, sizeof(*probes));
	int failed = work != NULL && probes != NULL
	                     ? prove_into(p, probes, n, work, err)
	                     : ssb_fail(err, SSB_E_NOMEM, 0, "prove", "out of memory");
	free(work);
	if (failed != 0) {
		free(probes);
		return -1;
	}
	*ret_probes = probes;
	*ret_count = n;
	return 0;
}
