/* test_prove.c - unit tests of how ssb_prove() judges its attacks. The attacks run in fake
 * sandboxes: a plain child process (where no attack may count as blocked), a process that cannot
 * fork, and a process that dies. The linker replaces sandbox_run_payload() by the test's own;
 * tests/e2e test the real one. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/file.h"
#include "sandbox/prove.h"
#include "sandbox/sandbox.h"

enum fake { FAKE_OPEN, FAKE_KILLS_PERF, FAKE_NO_FORK, FAKE_DIES_AT_ONCE, FAKE_FAILS };

static enum fake fake;
static int sandboxes;

int __wrap_sandbox_run_payload(const struct run_request *q, sandbox_payload payload, void *arg,
                               struct buf *out, struct ssb_error *err);

/* Loads a filter that kills a process that calls perf_event_open, and allows all other calls. */
static void kill_perf(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) != 0) {
		_exit(1);
	}
}

static _Noreturn void fake_sandbox(sandbox_payload payload, void *arg, int fd)
{
	struct rlimit none = { 0, 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	if (fake == FAKE_NO_FORK) {
		if (geteuid() == 0 && setresuid(65533, 65533, 65533) != 0) {
			_exit(1); /* RLIMIT_NPROC has no effect on root */
		}
		(void)setrlimit(RLIMIT_NPROC, &none);
	}
	if (fake == FAKE_NO_FORK || fake == FAKE_KILLS_PERF) {
		kill_perf();
	}
	_exit(fake == FAKE_DIES_AT_ONCE ? 0 : payload(fd, arg));
}

int __wrap_sandbox_run_payload(const struct run_request *q, sandbox_payload payload, void *arg,
                               struct buf *out, struct ssb_error *err)
{
	int p[2];

	assert_true(q->max_seconds >= 60 && q->tty == TTY_NO);
	sandboxes++;
	if (fake == FAKE_FAILS) {
		return ssb_fail(err, SSB_E_LAYER, 0, "landlock", "no sandbox today");
	}
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fake_sandbox(payload, arg, p[1]);
	}
	(void)close(p[1]);
	assert_int_equal(file_read_all(p[0], out), 0);
	(void)close(p[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return 0;
}

static char home[] = "/tmp/ssb-test-prove-XXXXXX";

static struct ssb_plan test_plan(void)
{
	static char path[] = "PATH=/bin";
	static char *env[] = { path, NULL };

	return (struct ssb_plan){
		.home = home,
		.env = { env, 1 },
		.res = { .memory_mb = 16,
		         .max_runtime_seconds = 1,
		         .max_processes = 8,
		         .max_open_files = 64,
		         .max_disk_mb = 1 },
	};
}

static const struct ssb_probe *find(const struct ssb_probe *p, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(p[i].name, name) == 0) {
			return &p[i];
		}
	}
	fail_msg("no probe '%s'", name);
	return NULL;
}

static size_t entries(const char *dir)
{
	size_t n = 0;
	DIR *d = opendir(dir);

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	}
	if (d != NULL) {
		(void)closedir(d);
	}
	return n;
}

/* Attacks that succeed on every machine if there is no sandbox. */
static const char *const LEAK_EVERYWHERE[] = {
	"env",    "file",       "file-write",  "suid-chmod", "suid-create", "suid-mknod",
	"fd-low", "fd-any",     "device-node", "open-tree",  "tiocsti",     "tiocsti-64",
	"perf",   "netlink",    "alg",         "families",   "loopback",    "abstract-unix",
	"unix",   "open-files", "disk",        "processes",  "memory",      "see-process",
	"signal", "vm-read",    "ptrace",      "session",    "sysv-shm",    "caps-bounding",
};

static size_t prove(enum fake how, struct ssb_probe **ret, int *ret_sandboxes)
{
	struct ssb_plan plan = test_plan();
	struct ssb_error err = { 0 };
	size_t n = 0;

	fake = how;
	sandboxes = 0;
	if (ssb_prove(&plan, ret, &n, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	assert_int_equal(entries(home), 0); /* no decoy file remains */
	assert_null(getenv(PROVE_CANARY));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	*ret_sandboxes = sandboxes;
	return n;
}

static void expect(const struct ssb_probe *p, enum ssb_probe_outcome outcome, const char *inside)
{
	if (p->outcome != outcome || (inside != NULL && strcmp(p->inside, inside) != 0)) {
		fail_msg("%s: outcome %d, inside '%s', outside '%s'", p->name, (int)p->outcome,
		         p->inside, p->outside);
	}
}

static void test_no_sandbox_is_all_leaks(void **state)
{
	struct ssb_probe *probes = NULL;
	int made = 0;

	size_t n = prove(FAKE_OPEN, &probes, &made);
	assert_true(n >= 35);
	assert_int_equal(made, 1);
	for (size_t i = 0; i < ARRAY_LEN(LEAK_EVERYWHERE); i++) {
		expect(find(probes, n, LEAK_EVERYWHERE[i]), SSB_PROBE_LEAKED, NULL);
	}
	for (size_t i = 0; i < n; i++) {
		assert_true(strlen(probes[i].what) > 0 && strlen(probes[i].inside) > 0);
		assert_true(strlen(probes[i].outside) > 0);
		/* each name occurs once */
		assert_ptr_equal(find(probes, n, probes[i].name), &probes[i]);
	}
	free(probes);
}

/* The plan has neither a skill nor a read grant. So attacks on a skill or on a read grant cannot be
 * tried, and must not count as blocked. */
static void test_void_is_never_held(void **state)
{
	struct ssb_probe *probes = NULL;
	int made = 0;

	size_t n = prove(FAKE_OPEN, &probes, &made);
	expect(find(probes, n, "write-skill"), SSB_PROBE_NO_CONTROL, NULL);
	expect(find(probes, n, "write-reads"), SSB_PROBE_NO_CONTROL, NULL);
	free(probes);
}

static void test_a_filter_that_kills_holds(void **state)
{
	struct ssb_probe *probes = NULL;
	int made = 0;

	size_t n = prove(FAKE_KILLS_PERF, &probes, &made);
	assert_int_equal(made, 1);
	expect(find(probes, n, "perf"), SSB_PROBE_HELD, "ended with SIGSYS");
	expect(find(probes, n, "open-tree"), SSB_PROBE_LEAKED, NULL);
	free(probes);
}

/* If the sandbox cannot fork, the attacks run one after another in one process. When an attack
 * kills that process, the next sandbox continues with the next attack. */
static void test_no_fork_inside(void **state)
{
	struct ssb_probe *probes = NULL;
	int made = 0;

	size_t n = prove(FAKE_NO_FORK, &probes, &made);
	assert_int_equal(made, 2);
	expect(find(probes, n, "perf"), SSB_PROBE_HELD, "ended by the sandbox");
	expect(find(probes, n, "processes"), SSB_PROBE_HELD, "no process at all: EAGAIN");
	expect(find(probes, n, "open-tree"), SSB_PROBE_LEAKED, NULL);
	expect(find(probes, n, "tiocsti"), SSB_PROBE_LEAKED, NULL);
	free(probes);
}

static void test_sandbox_that_fails_is_an_error(void **state)
{
	static const struct {
		enum fake how;
		const char *text;
	} CASES[] = {
		{ FAKE_FAILS, "no sandbox today" },
		{ FAKE_DIES_AT_ONCE, "before the attack 'env' was made" },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_plan plan = test_plan();
		struct ssb_probe *probes = NULL;
		struct ssb_error err = { 0 };
		size_t n = 77;
		fake = CASES[i].how;
		assert_int_equal(ssb_prove(&plan, &probes, &n, &err), -1);
		assert_int_equal(err.code, SSB_E_LAYER);
		assert_non_null(strstr(err.text, CASES[i].text));
		assert_null(probes);
		assert_int_equal(n, 77);
		assert_int_equal(entries(home), 0);
	}
}

static void test_refused_plan_is_not_attacked(void **state)
{
	struct refusal refusal = { .what = (char *)(uintptr_t) "read ~/.ssh" };
	struct ssb_plan plan = test_plan();
	struct ssb_probe *probes = NULL;
	struct ssb_error err = { 0 };
	size_t n = 0;

	plan.refusals = &refusal;
	plan.n_refusals = 1;
	sandboxes = 0;
	assert_int_equal(ssb_prove(&plan, &probes, &n, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	assert_int_equal(sandboxes, 0);
}

static void test_granted(void **state)
{
	struct grant grants[] = {
		{ .target = (char *)(uintptr_t) "/srv/data", .access = ACCESS_READ },
		{ .target = (char *)(uintptr_t) "/srv/out", .access = ACCESS_WRITE },
	};
	struct ssb_plan plan = { .grants = grants, .n_grants = 2 };

	assert_true(prove_granted(&plan, "/srv/data"));
	assert_true(prove_granted(&plan, "/srv/data/x"));
	assert_true(prove_granted(&plan, "/srv")); /* there is a grant beneath it */
	assert_false(prove_granted(&plan, "/srv/database"));
	assert_false(prove_granted(&plan, "/etc"));
	assert_true(prove_granted_write(&plan, "/srv/out/x"));
	assert_false(prove_granted_write(&plan, "/srv/data"));
	assert_false(prove_granted_write(&plan, "/srv"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_sandbox_is_all_leaks),
		cmocka_unit_test(test_void_is_never_held),
		cmocka_unit_test(test_a_filter_that_kills_holds),
		cmocka_unit_test(test_no_fork_inside),
		cmocka_unit_test(test_sandbox_that_fails_is_an_error),
		cmocka_unit_test(test_refused_plan_is_not_attacked),
		cmocka_unit_test(test_granted),
	};

	if (mkdtemp(home) == NULL) {
		return 1;
	}
	int r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)rmdir(home);
	return r;
}
