/* cgroup_sweep.c - removes what dead supervisors left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/own.h"
#include "os/cgroup_priv.h"

#define MAX_SWEEP_SEEN     512 /* directory entries looked at per start */
#define MAX_SWEEP_REMOVALS 16
#define MIN_SWEEP_AGE      30 /* seconds */

/* The pid in "skillsandbox-<pid>-<id>"; 0 for any other name. */
static pid_t name_pid(const char *name)
{
	size_t prefix = sizeof(CGROUP_PREFIX) - 1;
	uint64_t pid = 0;

	if (strncmp(name, CGROUP_PREFIX, prefix) != 0 || name[prefix] == '0') {
		return 0;
	}
	const char *rest = number_read(name + prefix, INT32_MAX, &pid);
	return rest != NULL && *rest == '-' ? (pid_t)pid : 0;
}

static bool is_governed(const char *name)
{
	size_t n = strlen(name);
	size_t tail = sizeof(CGROUP_GOVERNED) - 1;

	return n > tail && strcmp(name + n - tail, CGROUP_GOVERNED) == 0;
}

/* Only groups without a process can be removed: a wrong guess does no harm. */
void cgroup_sweep(const struct cgroup *cg)
{
	struct stat st;
	unsigned seen = 0;
	unsigned removed = 0;

	/* Links: itself, ".", and one per child, of which ours is one. */
	if (fstat(cg->nodes[0].base_fd, &st) < 0 || st.st_nlink <= 3) {
		return;
	}
	int fd = openat(cg->nodes[0].base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL) {
		own_close(&fd);
		return;
	}
	const struct dirent *e;
	while (seen++ < MAX_SWEEP_SEEN && removed < MAX_SWEEP_REMOVALS &&
	       (e = readdir(dir)) != NULL) {
		pid_t pid = name_pid(e->d_name);
		/* One of more directories than we have is for a run that has them. */
		if (!cg->governed && is_governed(e->d_name)) {
			continue;
		}
		/* A young one may belong to a supervisor in another pid namespace. */
		if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH ||
		    fstatat(cg->nodes[0].base_fd, e->d_name, &st, 0) != 0 ||
		    time(NULL) - st.st_mtime < MIN_SWEEP_AGE) {
			continue;
		}
		for (size_t i = cg->n; i > 0; i--) {
			(void)unlinkat(cg->nodes[i - 1].base_fd, e->d_name, AT_REMOVEDIR);
		}
		removed++;
	}
	(void)closedir(dir);
}
