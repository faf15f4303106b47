/* test_serve_job.c - one run of the server: its streams, its record, its end; then canceled runs,
 * crashed runs, and many runs at once. */
#include "serve_world.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "os/clock.h"
#include "os/clone.h"
#include "os/loop.h"
#include "serve/job.h"
#include "serve/job_priv.h"
#include "serve/plans.h"

struct seen {
	struct serve_job *job;
	int ended;
	int started;
	int lines;
	bool denied;
	char run_id[40];
	char live[256]; /* the beginning of stdout, as it came while the run was running */
	struct job_end end;
	char out[2][512];
	bool cancel_on_output;
	uint64_t canceled_ms;
	uint64_t ended_ms;
	int left; /* the loop stops when this many runs have ended */
};

static int setup(void **state)
{
	struct ssb_error err = { 0 };

	world_setup(state);
	assert_int_equal(loop_new(&w->serve.loop, &err), 0);
	assert_int_equal(plans_new(&w->serve, &w->serve.plans, &err), 0);
	return job_list_new(&w->serve, &w->serve.jobs, &err);
}

static int teardown(void **state)
{
	job_list_free(w->serve.jobs);
	plans_free(w->serve.plans);
	loop_free(w->serve.loop);
	return world_teardown(state);
}

static void on_output(void *arg, int stream, const char *data, size_t len)
{
	struct seen *s = arg;

	if (stream == 1) {
		size_t room = sizeof(s->live) - 1 - strlen(s->live);
		strncat(s->live, data, len < room ? len : room);
	}
	if (s->cancel_on_output && s->canceled_ms == 0) {
		s->canceled_ms = clock_ms();
		job_cancel(s->job);
	}
}

static void on_started(void *arg, const char *run_id)
{
	struct seen *s = arg;

	s->started++;
	snprintf(s->run_id, sizeof(s->run_id), "%s", run_id);
}

static void on_line(void *arg, const struct line *l)
{
	struct seen *s = arg;

	s->lines++;
	s->denied |= l->kind == EV_FILE_BLOCKED;
}

static void on_ended(void *arg, const struct job_end *end)
{
	struct seen *s = arg;

	s->ended++;
	s->ended_ms = clock_ms();
	s->end = *end;
	for (int i = 0; i < 2; i++) {
		size_t n = end->out_len[i] < 511 ? end->out_len[i] : 511;
		if (n > 0) {
			memcpy(s->out[i], end->out[i], n);
		}
	}
	if (--s->left <= 0) {
		loop_stop(w->serve.loop);
	}
}

static void begin(struct seen *s, const char *permissions, const char *script)
{
	auto_free char *name = strdup("s");
	auto_free char *dir = world_path("s");
	const struct skill skill = { name, dir };
	const struct plan_wish wish = { .skill = &skill };
	struct job_wish jw = { .keep = 400, .who = "test" };
	struct ssb_error err = { 0 };
	const struct job_watch watch = { on_output, on_started, on_line, on_ended, s };

	world_skill("s", permissions, script);
	assert_int_equal(plans_get(w->serve.plans, &wish, &jw.plan, NULL, &err), 0);
	if (job_start(&w->serve, &jw, &watch, &s->job, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	assert_int_equal(s->ended, 0);
}

static void run(struct seen *s, const char *permissions, const char *script)
{
	begin(s, permissions, script);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(s->ended, 1);
	assert_int_equal(job_list_count(w->serve.jobs), 0);
}

static void succeeds(void **state)
{
	struct seen s = { 0 };

	run(&s, "{}", "echo out; echo err >&2; exit 3");
	assert_true(s.end.ran);
	assert_int_equal(s.end.result.end, SSB_END_EXITED);
	assert_int_equal(s.end.result.exit_status, 3);
	assert_string_equal(s.out[0], "out\n");
	assert_string_equal(s.out[1], "err\n");
	assert_string_equal(s.live, "out\n");
	assert_int_equal(s.started, 1);
	assert_string_equal(s.run_id, s.end.result.run_id);
	assert_true(s.lines > 3);
	assert_false(s.denied);
}

static void shows_what_is_denied(void **state)
{
	struct seen s = { 0 };

	run(&s, "{}", "cat /etc/shadow || true");
	assert_true(s.end.ran);
	assert_true(s.end.result.violations > 0);
	assert_true(s.denied);
}

/* A run gets an empty stdin and cannot read the server's. */
static void has_an_empty_stdin(void **state)
{
	struct seen s = { 0 };
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(write(p[1], "secret\n", 7), 7);
	int before = dup(STDIN_FILENO);
	assert_true(dup2(p[0], STDIN_FILENO) >= 0);
	run(&s, "{}", "cat; ls /proc/self/fd | wc -l");
	assert_true(dup2(before, STDIN_FILENO) >= 0);
	close(before);
	assert_true(s.end.ran);
	assert_null(strstr(s.out[0], "secret"));
	char left[8] = "";
	assert_int_equal(read(p[0], left, sizeof(left)), 7); /* the control: the text is unread */
	close(p[0]);
	close(p[1]);
}

static void keeps_the_head(void **state)
{
	struct seen s = { 0 };

	run(&s, "{}", "head -c 300000 /dev/zero | tr \"\\\\0\" x");
	assert_int_equal(s.end.out_len[0], 400);
	assert_int_equal(s.end.out_all[0], 300000);
	assert_int_equal(s.end.out_len[1], 0);
}

static void says_why_it_did_not_run(void **state)
{
	struct seen s = { 0 };
	auto_free char *file = world_path("s/skillsandbox.yaml");

	begin(&s, "{filesystem: {read: [/etc/shadow]}}", "true");
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_false(s.end.ran);
	assert_int_equal(s.end.err.code, SSB_E_POLICY);
	assert_int_equal(s.started, 0);
}

static void is_canceled(void **state)
{
	uint64_t took = UINT64_MAX;

	/* A canceled skill must end within 100 ms. This test also waits until the record has ended,
	 * and the machine may be busy, so it allows 1.9 s. If the server waited for the grace
	 * period of 2 s, all four tries would be slower. */
	for (int i = 0; i < 4 && took >= 1900; i++) {
		struct seen s = { .cancel_on_output = true };
		run(&s, "{}", "trap : TERM INT; echo go; while :; do sleep 1; done");
		assert_true(s.end.ran);
		assert_int_equal(s.end.result.end, SSB_END_CANCELED);
		assert_int_equal(world_children(), 0);
		assert_true(s.run_id[0] != '\0');
		took = s.ended_ms - s.canceled_ms;
	}
	assert_true(took < 1900);
}

static void a_crash_is_an_error(void **state)
{
	struct seen s = { 0 };
	char path[64];
	int pid = 0;

	begin(&s, "{}", "sleep 60");
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	auto_file f = fopen(path, "re");
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_false(s.end.ran);
	assert_int_equal(s.end.err.code, SSB_E_SYS);
	assert_non_null(strstr(s.end.err.text, "signal 9"));
}

static void many_at_once(void **state)
{
	enum { MANY = 12 };
	struct seen *s = calloc(MANY, sizeof(*s));

	for (int i = 0; i < MANY; i++) {
		s[i].left = 1000;
		begin(&s[i], "{}", "sleep 0.2; echo done");
	}
	assert_int_equal(job_list_count(w->serve.jobs), MANY);
	for (int left = MANY; left > 0;) {
		for (int i = 0; i < MANY; i++) {
			s[i].left = 1; /* stop the loop when the next run ends */
		}
		assert_int_equal(loop_run(w->serve.loop), 0);
		left = 0;
		for (int i = 0; i < MANY; i++) {
			left += !s[i].ended;
		}
	}
	for (int i = 0; i < MANY; i++) {
		assert_true(s[i].end.ran);
		assert_string_equal(s[i].out[0], "done\n");
	}
	free(s);
}

/* If set, it is called instead of the real supervisor. */
static void (*supervisor)(const struct job_child *c);

_Noreturn void __real_job_supervise(const struct job_child *c);
_Noreturn void __wrap_job_supervise(const struct job_child *c);
_Noreturn void __wrap_job_supervise(const struct job_child *c)
{
	sigset_t none;

	if (supervisor == NULL) {
		__real_job_supervise(c);
	}
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	supervisor(c);
	_exit(0);
}

/* A canceled supervisor has FINISH_MS to finish. The test calls `over` when it decides that this
 * time has passed. */
#define FINISH_MS 20000
static struct {
	int asked_for;
	loop_fn *over;
	void *arg;
} finish_time;

int __real_loop_after(struct loop *l, uint64_t ms, loop_fn *fn, void *arg, struct loop_timer **ret);
int __wrap_loop_after(struct loop *l, uint64_t ms, loop_fn *fn, void *arg, struct loop_timer **ret);
int __wrap_loop_after(struct loop *l, uint64_t ms, loop_fn *fn, void *arg, struct loop_timer **ret)
{
	if (ms == FINISH_MS) {
		finish_time.asked_for++;
		finish_time.over = fn;
		finish_time.arg = arg;
	}
	return __real_loop_after(l, ms, fn, arg, ret);
}

/* At its end, the server waits FINISH_MS for a canceled supervisor. Here it waits only 50 ms. */
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return __real_poll(fds, n, timeout == FINISH_MS && supervisor != NULL ? 50 : timeout);
}

/* A fake supervisor that makes no sandbox, because the tests that count runs start hundreds of
 * runs. */
static void idle(const struct job_child *c)
{
	(void)c;
	for (;;) {
		(void)pause();
	}
}

static void allow_runs(size_t n)
{
	struct ssb_error err = { 0 };

	w->opt.max_runs = n;
	job_list_free(w->serve.jobs);
	assert_int_equal(job_list_new(&w->serve, &w->serve.jobs, &err), 0);
}

/* Starts runs for the client `who` until one is refused with `why`. Returns how many were
 * started. */
static size_t begun_by(const char *who, struct seen *s, const char *why)
{
	auto_free char *name = strdup("s");
	auto_free char *dir = world_path("s");
	const struct skill skill = { name, dir };
	const struct plan_wish wish = { .skill = &skill };
	const struct job_watch watch = { .ended = on_ended, .arg = s };
	struct job_wish jw = { .keep = 400, .who = who };
	struct ssb_error err = { 0 };
	size_t n = 0;

	assert_int_equal(plans_get(w->serve.plans, &wish, &jw.plan, NULL, &err), 0);
	while (job_start(&w->serve, &jw, &watch, &s->job, &err) == 0) {
		n++;
	}
	assert_int_equal(err.code, SSB_E_LIMIT);
	assert_non_null(strstr(err.text, why));
	return n;
}

/* If there can be several clients, one client may take at most half of the free runs. A single
 * client on a pipe may take all of them. */
static void each_client_has_a_share(void **state)
{
	struct seen s = { .left = 1000 };

	world_skill("s", "{}", "true");
	supervisor = idle;
	allow_runs(8);
	w->opt.socket = "/tmp/s";
	assert_int_equal(begun_by("a", &s, "4 runs of yours"), 4);
	assert_int_equal(begun_by("a", &s, "other clients"), 0);
	assert_int_equal(begun_by("b", &s, "2 runs of yours"), 2);
	assert_int_equal(begun_by("c", &s, "1 runs of yours"), 1);
	assert_int_equal(begun_by("d", &s, "8 runs are running"), 1);
	assert_int_equal(begun_by("e", &s, "--max-runs"), 0);
	w->opt.socket = NULL;
	allow_runs(8);
	assert_int_equal(begun_by("a", &s, "8 runs are running"), 8);
	allow_runs(0);
	assert_true(begun_by("a", &s, "runs are running") >= 32);
	supervisor = NULL;
	allow_runs(0);
	assert_int_equal(world_children(), 0);
}

static void as_many_as_there_may_be(void **state)
{
	auto_free struct seen *s = calloc(MAX_JOBS + 1, sizeof(*s));
	auto_free char *name = strdup("s");
	auto_free char *dir = world_path("s");
	const struct skill skill = { name, dir };
	const struct plan_wish wish = { .skill = &skill };
	struct job_watch watch = { .ended = on_ended };
	struct job_wish jw = { .keep = 400, .who = "test" };
	struct rlimit files = { 8192, 8192 };
	struct ssb_error err = { 0 };

	assert_non_null(s);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	world_skill("s", "{}", "true");
	assert_int_equal(plans_get(w->serve.plans, &wish, &jw.plan, NULL, &err), 0);
	allow_runs(MAX_JOBS);
	supervisor = idle;
	for (size_t i = 0; i <= MAX_JOBS; i++) {
		watch.arg = &s[i];
		int failed = job_start(&w->serve, &jw, &watch, &s[i].job, &err);
		assert_int_equal(failed, i < MAX_JOBS ? 0 : -1);
	}
	assert_int_equal(err.code, SSB_E_LIMIT);
	assert_int_equal(job_list_count(w->serve.jobs), MAX_JOBS);
	assert_int_equal(world_children(), MAX_JOBS); /* the refused run has no process */

	/* When a run has ended, a new one can start. */
	job_cancel(s[7].job);
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_int_equal(s[7].ended, 1);
	assert_int_equal(job_start(&w->serve, &jw, &watch, &s[MAX_JOBS].job, &err), 0);
	assert_int_equal(job_list_count(w->serve.jobs), MAX_JOBS);
	supervisor = NULL;
	job_list_free(w->serve.jobs);
	assert_int_equal(job_list_new(&w->serve, &w->serve.jobs, &err), 0);
	for (size_t i = 0; i <= MAX_JOBS; i++) {
		assert_int_equal(s[i].ended, 1);
	}
	assert_int_equal(world_children(), 0);
}

static int told_to;

static void on_told(int sig)
{
	(void)!write(told_to, sig == SIGINT ? "i" : "t", 1);
}

/* A fake supervisor that writes the name of each signal that it gets, and does not end. */
static void stubborn(const struct job_child *c)
{
	struct sigaction hear = { .sa_handler = on_told };

	told_to = c->out;
	sigfillset(&hear.sa_mask); /* handle one signal after the other, in the order of arrival */
	(void)sigaction(SIGINT, &hear, NULL);
	(void)sigaction(SIGTERM, &hear, NULL);
	(void)!write(c->out, "up ", 3);
	idle(c);
}

static void run_for(uint64_t ms)
{
	assert_int_equal(loop_after(w->serve.loop, ms, (loop_fn *)loop_stop, w->serve.loop, NULL),
	                 0);
	assert_int_equal(loop_run(w->serve.loop), 0);
}

static void begin_stubborn(struct seen *s)
{
	supervisor = stubborn;
	begin(s, "{}", "true");
	finish_time.asked_for = 0;
	while (strcmp(s->live, "up ") != 0) {
		run_for(5);
	}
	job_cancel(s->job);
	while (strlen(s->live) < strlen("up it")) {
		run_for(5);
	}
}

static void was_killed(const struct seen *s)
{
	supervisor = NULL;
	assert_int_equal(s->ended, 1);
	assert_false(s->end.ran);
	assert_non_null(strstr(s->end.err.text, "was killed by signal 9"));
	assert_string_equal(s->live, "up it");
	assert_int_equal(world_children(), 0);
}

/* A canceled supervisor that does not end is killed, but only when its time to finish has passed:
 * it may be waiting for a slow store of sessions. */
static void one_that_does_not_end_is_killed(void **state)
{
	struct seen s = { 0 };

	begin_stubborn(&s);
	run_for(50);
	assert_int_equal(s.ended, 0);
	assert_int_equal(finish_time.asked_for, 1);
	finish_time.over(finish_time.arg);
	assert_int_equal(loop_run(w->serve.loop), 0);
	was_killed(&s);
}

/* If a run is canceled twice, the supervisor gets no second signal and no more time. */
static void is_canceled_twice(void **state)
{
	struct seen s = { 0 };

	begin_stubborn(&s);
	job_cancel(s.job);
	run_for(100);
	assert_int_equal(finish_time.asked_for, 1);
	finish_time.over(finish_time.arg);
	assert_int_equal(loop_run(w->serve.loop), 0);
	was_killed(&s);
}

/* When the server ends, a supervisor that does not end is killed. */
static void the_end_kills_what_does_not_end(void **state)
{
	struct seen s = { 0 };
	struct ssb_error err = { 0 };

	begin_stubborn(&s);
	job_list_free(w->serve.jobs);
	assert_int_equal(job_list_new(&w->serve, &w->serve.jobs, &err), 0);
	was_killed(&s);
}

/* bytes: more than one read() returns, and more than fit into a pipe of the default size */
#define MUCH 300000

/* A fake supervisor that fills both pipes and ends before the server reads them. Its child keeps
 * both pipes open. */
static void writes_and_goes(const struct job_child *c)
{
	const int fds[] = { c->out, c->err };
	auto_free char *data = malloc(MUCH);

	memset(data, 'x', MUCH);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		if (fcntl(fds[i], F_SETPIPE_SZ, 1 << 20) < MUCH ||
		    write(fds[i], data, MUCH) != MUCH) {
			_exit(1);
		}
	}
	struct job_msg m = { .kind = JOB_RESULT, .result = { .exit_status = fork() } };
	if (m.result.exit_status == 0) {
		(void)alarm(20);
		idle(c);
	}
	(void)msg_fds_send(c->sock, &m, sizeof(m), NULL);
}

/* A supervisor ends with much unread output, while its child keeps the pipes open: the server gets
 * all of the output and does not wait for the child. */
static void nothing_is_lost_at_the_end(void **state)
{
	struct seen s = { 0 };
	siginfo_t dead;

	supervisor = writes_and_goes;
	begin(&s, "{}", "true");
	supervisor = NULL;
	assert_int_equal(waitid(P_ALL, 0, &dead, WEXITED | WNOWAIT), 0);
	uint64_t from = clock_ms();
	assert_int_equal(loop_run(w->serve.loop), 0);
	assert_true(clock_ms() - from < 10000);
	assert_int_equal(s.ended, 1);
	assert_true(s.end.ran);
	/* exit_status is the child's pid; the child was still running */
	assert_int_equal(kill(s.end.result.exit_status, SIGKILL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(s.end.out_all[i], MUCH);
		assert_int_equal(s.end.out_len[i], 400);
	}
}

static void the_end_waits_for_all(void **state)
{
	struct seen s[3] = { 0 };
	struct ssb_error err = { 0 };

	for (int i = 0; i < 3; i++) {
		begin(&s[i], "{}", "sleep 60");
	}
	job_list_free(w->serve.jobs);
	assert_int_equal(job_list_new(&w->serve, &w->serve.jobs, &err), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(s[i].ended, 1);
	}
	assert_int_equal(world_children(), 0);
}

/* If the server is killed, its runs end and their records are complete. */
static void dies_with_the_server(void **state)
{
	int life[2];
	char byte;

	assert_int_equal(pipe(life), 0); /* without CLOEXEC: the supervisor must close it itself */
	pid_t pid = fork();
	if (pid == 0) {
		struct seen s = { 0 };
		close(life[0]);
		begin(&s, "{}", "echo go; sleep 60");
		while (s.live[0] == '\0') {
			s.left = 1;
			struct loop_timer *t = NULL;
			(void)loop_after(w->serve.loop, 50, (loop_fn *)loop_stop, w->serve.loop,
			                 &t);
			(void)loop_run(w->serve.loop);
		}
		(void)!write(life[1], "x", 1);
		(void)raise(SIGKILL);
	}
	close(life[1]);
	assert_int_equal(read(life[0], &byte, 1), 1);
	/* When the server is killed, this pipe ends, because no supervisor has kept it open. */
	assert_int_equal(read(life[0], &byte, 1), 0);
	close(life[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	auto_free char *runs = world_path("home/.local/state/skillsandbox/runs");
	bool whole = false;
	for (int i = 0; i < 300 && !whole; i++) {
		auto_free char *cmd = NULL;
		assert_true(asprintf(&cmd, "grep -qs '\"signature\"' %s/*/trace.jsonl", runs) > 0);
		usleep(100000);
		whole = system(cmd) == 0;
	}
	assert_true(whole);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(succeeds),
		T(shows_what_is_denied),
		T(has_an_empty_stdin),
		T(keeps_the_head),
		T(says_why_it_did_not_run),
		T(is_canceled),
		T(a_crash_is_an_error),
		T(many_at_once),
		T(as_many_as_there_may_be),
		T(each_client_has_a_share),
		T(one_that_does_not_end_is_killed),
		T(is_canceled_twice),
		T(the_end_kills_what_does_not_end),
		T(nothing_is_lost_at_the_end),
		T(the_end_waits_for_all),
		T(dies_with_the_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
