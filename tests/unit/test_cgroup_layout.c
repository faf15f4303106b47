/* test_cgroup_layout.c - finds the control groups in the texts of several kinds of systems. */
#include <string.h>

#include "unit.h"
#include "base/own.h"
#include "os/cgroup_layout.h"

struct layout_case {
	const char *name;
	const char *mountinfo;
	const char *self;
	const char *v2; /* NULL: not found */
	const char *v1[CGROUP_CONTROLLERS];
	bool v2_top;
};

static const struct layout_case LAYOUTS[] = {
	{ .name = "pure v2, user session",
	  .mountinfo = "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	               "35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - "
	               "cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
	  .self = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n",
	  .v2 = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/"
	        "a.scope" },
	{ .name = "pure v2, container with a cgroup namespace",
	  .mountinfo = "35 25 0:30 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
	  .self = "0::/\n",
	  .v2 = "/sys/fs/cgroup",
	  .v2_top = true },
	{ .name = "v2, only the container's subtree is mounted",
	  .mountinfo = "35 25 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
	  .self = "0::/docker/abc/inner\n",
	  .v2 = "/sys/fs/cgroup/inner" },
	{ .name = "v2, another subtree with the same beginning",
	  .mountinfo = "35 25 0:30 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
	  .self = "0::/docker/abc\n" },
	{ .name = "v2, above the namespace root",
	  .mountinfo = "35 25 0:30 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
	  .self = "0::/../other\n" },
	{ .name = "hybrid with co-mounted controllers and escapes",
	  .mountinfo = "1 2 0:3 / /cg\\040roup/unified rw - cgroup2 cgroup2 rw\n"
	               "3 2 0:4 / /cg\\040roup/cpu,cpuacct rw shared:1 master:2 - cgroup cgroup "
	               "rw,cpu,cpuacct\n"
	               "5 2 0:6 / /cg\\040roup/memory rw - cgroup cgroup rw,memory\n"
	               "7 2 0:8 / /cg\\040roup/cpuset rw - cgroup cgroup rw,cpuset\n"
	               "9 2 0:9 / /cg\\040roup/pids rw - cgroup cgroup rw,pids\n",
	  .self = "9:cpuset:/\n5:cpu,cpuacct:/user.slice\n4:memory:/u:s/x\n3:pids:/\n"
	          "1:name=systemd:/user.slice\n0::/user.slice\n",
	  .v2 = "/cg roup/unified/user.slice",
	  .v1 = { [CGROUP_PIDS] = "/cg roup/pids",
	          [CGROUP_MEMORY] = "/cg roup/memory/u:s/x",
	          [CGROUP_CPU] = "/cg roup/cpu,cpuacct/user.slice" } },
	{ .name = "no cgroups", .mountinfo = "22 27 0:21 / /proc rw - proc proc rw\n", .self = "" },
	{ .name = "cut short", .mountinfo = "22 27 0:21 / /x rw - cgroup2", .self = "0::/\n0" },
	{ .name = "nothing", .mountinfo = "", .self = "" },
};

static void check_place(const char *name, const struct cgroup_place *place, const char *want)
{
	if (want == NULL ? place->found : (!place->found || strcmp(place->dir, want) != 0)) {
		fail_msg("%s: got '%s', not '%s'", name, place->found ? place->dir : "none",
		         want != NULL ? want : "none");
	}
}

static void test_layouts(void **state)
{
	static struct cgroup_layout at;

	for (size_t i = 0; i < ARRAY_LEN(LAYOUTS); i++) {
		const struct layout_case *c = &LAYOUTS[i];
		cgroup_layout_parse(c->mountinfo, c->self, &at);
		check_place(c->name, &at.v2, c->v2);
		if (c->v2 != NULL) {
			assert_int_equal(at.v2.top, c->v2_top);
		}
		for (size_t k = 0; k < CGROUP_CONTROLLERS; k++) {
			check_place(c->name, &at.v1[k], c->v1[k]);
		}
	}
}

static void test_long_paths_are_not_found(void **state)
{
	static struct cgroup_layout at;
	static char self[2 * MAX_PATH_BYTES];
	const char *mounts = "1 2 0:3 / /c rw - cgroup2 cgroup2 rw\n";

	memset(self, 'x', sizeof(self));
	memcpy(self, "0::/", 4);
	size_t fits = MAX_PATH_BYTES - 1 - 2; /* minus "/c" at the start and the NUL at the end */
	self[3 + fits] = '\0';
	cgroup_layout_parse(mounts, self, &at);
	assert_true(at.v2.found);
	assert_int_equal(strlen(at.v2.dir), MAX_PATH_BYTES - 1);
	self[3 + fits] = 'x';
	self[3 + fits + 1] = '\0';
	cgroup_layout_parse(mounts, self, &at);
	assert_false(at.v2.found);
}

static void test_list(void **state)
{
	assert_true(cgroup_list_has("cpuset cpu memory pids\n", "pids"));
	assert_true(cgroup_list_has("memory", "memory"));
	assert_false(cgroup_list_has("cpuset memory\n", "cpu"));
	assert_false(cgroup_list_has("\npids", "pids"));
	assert_false(cgroup_list_has("", "pids"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_long_paths_are_not_found),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
