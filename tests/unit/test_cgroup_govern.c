/* test_cgroup_govern.c - groups that can be frozen and whose CPU time can be measured. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cgroup_world.h"
#include "os/cgroup_priv.h"

static struct cgroup *make_governed(void)
{
	struct ssb_error err = { 0 };
	struct cgroup *cg = NULL;
	struct cgroup_limits limits = SMALL;

	limits.governed = true;
	if (cgroup_create("brake", &limits, &cg, &err) < 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	return cg;
}

/* Starts a process in the group that counts in shared memory. Returns its pid after the first
 * count. */
static pid_t counter_inside(const struct cgroup *cg, volatile uint64_t *n)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		join(cg);
		for (;;) {
			++*n;
		}
	}
	while (*n == 0) {
		usleep(1000);
	}
	return pid;
}

/* Returns true if the counter grows. On a busy machine this may take a while. */
static bool counts(const volatile uint64_t *n)
{
	uint64_t before = *n;

	for (int i = 0; i < 2000 && *n == before; i++) {
		usleep(5000);
	}
	return *n != before;
}

static bool stands(const volatile uint64_t *n)
{
	uint64_t before = *n;

	usleep(100000);
	return *n == before;
}

static void freeze(const struct cgroup *cg)
{
	assert_int_equal(cgroup_freeze(cg, true), 0);
	for (int i = 0; i < 10000 && !cgroup_is_frozen(cg); i++) {
		usleep(1000);
	}
	assert_true(cgroup_is_frozen(cg));
}

/* Freezes and thaws the group. At the end its last process is dead. */
static void try_brake(const struct cgroup *cg)
{
	volatile uint64_t *n =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t before = 0, after = 0;

	assert_true(cgroup_freezes(cg));
	pid_t pid = counter_inside(cg, n);
	assert_true(counts(n));
	assert_false(cgroup_is_frozen(cg));
	freeze(cg);
	assert_true(stands(n));
	assert_true(cgroup_cpu_us(cg, &before));
	assert_true(before > 0);
	assert_int_equal(cgroup_freeze(cg, false), 0);
	for (int i = 0; i < 2000 && cgroup_cpu_us(cg, &after) && after < before + 20000; i++) {
		usleep(5000);
	}
	assert_true(counts(n));
	assert_in_range(after, before + 20000, before + 60000000);
	/* A frozen process that is killed dies at once: it does not count again. */
	freeze(cg);
	uint64_t last = *n;
	kill(pid, SIGKILL);
	cgroup_end_frozen(cg);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(*n, last);
	munmap((void *)(uintptr_t)n, 4096);
}

static void test_freeze_and_meter(void **state)
{
	struct cgroup *cg = make_governed();

	try_brake(cg);
	cgroup_free(cg);
	for (int c = 0; c < CGROUP_PLACES; c++) {
		assert_false(group_exists((enum cgroup_controller)c, getpid(), "brake-governed"));
	}
}

/* In v2 a group can be frozen even if it has no controllers, so this works on a machine whose
 * controllers are in v1, too. */
static void test_freeze_v2(void **state)
{
	static struct cgroup_layout at;
	struct cgroup cg = { .v2 = true, .governed = true, .n = 1, .name = "ssb-test-v2" };
	struct node *node = &cg.nodes[0];

	find_places(&at);
	if (geteuid() != 0 || !at.v2.found) {
		return; /* no v2 on this machine; test_freeze_and_meter has tested v1 */
	}
	node->base_fd = open(at.v2.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(node->base_fd, cg.name, 0755), 0);
	node->dir_fd = openat(node->base_fd, cg.name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	node->join_fd = openat(node->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	try_brake(&cg);
	cgroup_undo(&cg);
	assert_int_equal(cg.n, 0);
}

/* Through the fd of cgroup_thaw_fd(), init can thaw the group after the supervisor has ended. */
static void test_thaw_by_fd(void **state)
{
	struct cgroup *cg = make_governed();
	volatile uint64_t *n =
	        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = counter_inside(cg, n);
	auto_fd fd = cgroup_thaw_fd(cg);

	assert_true((fd < 0) == is_v2(cg));
	freeze(cg);
	kill(pid, SIGKILL);
	if (fd >= 0) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		cgroup_thaw(fd);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	cgroup_free(cg);
	munmap((void *)(uintptr_t)n, 4096);
}

/* A group that was not made to be frozen cannot be frozen, and is not in the freezer hierarchy. */
static void test_ungoverned(void **state)
{
	struct cgroup *cg = make("plain");

	assert_false(cgroup_freezes(cg));
	assert_int_equal(cgroup_freeze(cg, true), -1);
	assert_int_equal(cgroup_thaw_fd(cg), -1);
	if (!is_v2(cg)) {
		assert_false(group_exists(CGROUP_FREEZER, getpid(), "plain"));
	}
	cgroup_free(cg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_freeze_and_meter),
		cmocka_unit_test(test_thaw_by_fd),
		cmocka_unit_test(test_freeze_v2),
		cmocka_unit_test(test_ungoverned),
	};

	return WITH_GROUPS(tests);
}
