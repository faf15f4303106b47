/* cgroup_govern.c - a control group as a clock and a brake.
 *
 * v2 has both in every group. v1 has a hierarchy for each, and one trap: what
 * is frozen does not die of SIGKILL until it is thawed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "os/cgroup_priv.h"

#define FREEZER "freezer.state"

/* The directory that can be frozen, or NULL. */
static const struct node *brake(const struct cgroup *cg)
{
	if (cg == NULL || !cg->governed || cg->n == 0) {
		return NULL;
	}
	return cg->v2 ? &cg->nodes[0] : cgroup_node(cg, CGROUP_FREEZER);
}

bool cgroup_cpu_us(const struct cgroup *cg, uint64_t *ret_us)
{
	const struct node *node = cg == NULL || cg->n == 0 ? NULL
	                          : cg->v2                 ? &cg->nodes[0]
	                                                   : cgroup_node(cg, CGROUP_CPUACCT);
	char text[32];

	if (node == NULL) {
		return false;
	}
	if (cg->v2) {
		/* There since Linux 4.15, whatever controllers are enabled. */
		*ret_us = cgroup_counter(node, "cpu.stat", "usage_usec");
		return true;
	}
	cgroup_read_at(node->dir_fd, "cpuacct.usage", text, sizeof(text));
	if (text[0] == '\0') {
		return false;
	}
	*ret_us = strtoull(text, NULL, 10) / 1000;
	return true;
}

bool cgroup_freezes(const struct cgroup *cg)
{
	const struct node *node = brake(cg);

	return node != NULL &&
	       faccessat(node->dir_fd, cg->v2 ? "cgroup.freeze" : FREEZER, W_OK, AT_EACCESS) == 0;
}

int cgroup_freeze(const struct cgroup *cg, bool frozen)
{
	const struct node *node = brake(cg);
	const char *word = cg == NULL || cg->v2 ? (frozen ? "1" : "0")
	                   : frozen             ? "FROZEN"
	                                        : "THAWED";

	if (node == NULL) {
		errno = ENOTSUP;
		return -1;
	}
	return cgroup_write_at(node->dir_fd, cg->v2 ? "cgroup.freeze" : FREEZER, word,
	                       strlen(word));
}

bool cgroup_is_frozen(const struct cgroup *cg)
{
	const struct node *node = brake(cg);
	char text[32];

	if (node == NULL) {
		return false;
	}
	if (cg->v2) {
		return cgroup_counter(node, "cgroup.events", "frozen") == 1;
	}
	cgroup_read_at(node->dir_fd, FREEZER, text, sizeof(text));
	return strcmp(text, "FROZEN\n") == 0;
}

int cgroup_thaw_fd(const struct cgroup *cg)
{
	const struct node *node = brake(cg);

	return node == NULL || cg->v2 ? -1 : openat(node->dir_fd, FREEZER, O_WRONLY | O_CLOEXEC);
}

void cgroup_thaw(int fd)
{
	(void)!write(fd, "THAWED", 6);
}

/* Nobody in it can fork meanwhile: one pass over the list is all. */
static void end_all(const struct node *node)
{
	auto_fd fd = openat(node->dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char text[4096];
	size_t kept = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
		size_t len = kept + (size_t)n;
		char *line = text;
		text[len] = '\0';
		for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			intmax_t pid = strtoimax(line, NULL, 10);
			if (pid > 1) {
				(void)kill((pid_t)pid, SIGKILL);
			}
		}
		kept = len - (size_t)(line - text);
		memmove(text, line, kept);
	}
}

void cgroup_end_frozen(const struct cgroup *cg)
{
	const struct node *node = brake(cg);

	if (node != NULL && !cg->v2) {
		end_all(node);
		(void)cgroup_freeze(cg, false);
	}
}
