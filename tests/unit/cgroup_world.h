/* cgroup_world.h - makes real control groups, on machines that allow it. */
#ifndef TESTS_CGROUP_WORLD_H
#define TESTS_CGROUP_WORLD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/buf.h"
#include "base/own.h"
#include "os/cgroup.h"
#include "os/cgroup_layout.h"
#include "os/file.h"

#define MIB (1024ULL * 1024)

static const struct cgroup_limits SMALL = {
	.memory_bytes = 32 * MIB,
	.cpu_shares = 512,
	.max_processes = 8,
};

static inline struct cgroup *make(const char *id)
{
	struct ssb_error err = { 0 };
	struct cgroup *cg = NULL;

	if (cgroup_create(id, &SMALL, &cg, &err) < 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	return cg;
}

static inline void find_places(struct cgroup_layout *at)
{
	auto_buf mounts = BUF(1 << 20);
	auto_buf self = BUF(1 << 20);
	auto_fd a = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	auto_fd b = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

	assert_int_equal(file_read_all(a, &mounts), 0);
	assert_int_equal(file_read_all(b, &self), 0);
	cgroup_layout_parse(mounts.data, self.data, at);
}

/* Copies to `out` the directory in which the runtime makes its groups for this controller. */
static inline void own_dir(enum cgroup_controller c, char *out, size_t size)
{
	static struct cgroup_layout at;

	find_places(&at);
	if (at.v1[c].found) {
		snprintf(out, size, "%s", at.v1[c].dir);
		return;
	}
	assert_true(at.v2.found);
	snprintf(out, size, "%s%s", at.v2.dir, at.v2.top ? "" : "/..");
}

static inline void group_path(enum cgroup_controller c, pid_t pid, const char *id, char *out,
                              size_t size)
{
	char dir[MAX_PATH_BYTES];

	own_dir(c, dir, sizeof(dir));
	snprintf(out, size, "%s/skillsandbox-%d-%s", dir, (int)pid, id);
}

static inline bool group_exists(enum cgroup_controller c, pid_t pid, const char *id)
{
	char path[MAX_PATH_BYTES + 128];

	group_path(c, pid, id, path, sizeof(path));
	return access(path, F_OK) == 0;
}

static inline bool is_v2(const struct cgroup *cg)
{
	return strstr(cgroup_describe(cg), "v2") != NULL;
}

/* Moves the calling child process into the group. */
static inline void join(const struct cgroup *cg)
{
	int fds[CGROUP_MAX_JOIN];

	if (cgroup_join(fds, cgroup_join_fds(cg, fds)) < 0) {
		_exit(99);
	}
}

/* Returns true if groups can be made here. Otherwise prints why not. */
static inline bool have_groups(void)
{
	struct ssb_error err = { 0 };
	struct cgroup *cg = NULL;

	if (cgroup_create("probe", &SMALL, &cg, &err) < 0) {
		print_message("real groups are NOT tested: %s\n", err.text);
		return false;
	}
	cgroup_free(cg);
	return true;
}

/* Runs the tests, if groups can be made. A user without a delegated group cannot make groups, and
 * neither can a container with a read-only cgroup file system: then no test runs. If
 * SSB_REQUIRE_CGROUP is set (CI as root), that is a failure. */
#define WITH_GROUPS(tests)                                                                         \
	(have_groups() ? cmocka_run_group_tests(tests, NULL, NULL)                                 \
	               : (getenv("SSB_REQUIRE_CGROUP") != NULL ? 1 : 0))

#endif
