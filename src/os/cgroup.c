/* cgroup.c - uses a control group: joins it, reads its counters, freezes and removes it.
 *
 * To meter a group is to measure its CPU time. cgroup v2 can freeze and meter every group. v1 has
 * separate hierarchies for freezing and metering. In v1, a frozen process that gets SIGKILL does
 * not die until it is thawed. */
#include "os/cgroup_priv.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

_Static_assert(CGROUP_MAX_JOIN >= CGROUP_PLACES, "a group joins every controller");

#define FREEZER      "freezer.state"
#define REMOVE_TRIES 10 /* after pauses of 0.1 ms, 0.2 ms, 0.4 ms ...: 0.1 s in total */

int cgroup_write_at(int dir_fd, const char *file, const char *data, size_t len)
{
	auto_fd fd = openat(dir_fd, file, O_WRONLY | O_CLOEXEC);

	if (fd < 0) {
		return -1;
	}
	return write(fd, data, len) == (ssize_t)len ? 0 : -1;
}

void cgroup_read_at(int dir_fd, const char *file, char *out, size_t size)
{
	auto_fd fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n > 0 ? n : 0] = '\0';
}

static void wait_longer(unsigned attempt)
{
	struct timespec t = { .tv_nsec = 100000L << attempt };

	(void)nanosleep(&t, NULL);
}

static void node_close(struct node *node)
{
	own_close(&node->join_fd);
	own_close(&node->dir_fd);
	own_close(&node->base_fd);
}

void cgroup_shed(struct cgroup *cg)
{
	while (cg != NULL && cg->n > 0) {
		struct node *node = &cg->nodes[cg->n - 1];
		if (unlinkat(node->base_fd, cg->name, AT_REMOVEDIR) != 0) {
			return;
		}
		node_close(node);
		cg->n--;
	}
}

/* A group stays busy for a moment after its last process is killed, so try again. */
void cgroup_undo(struct cgroup *cg)
{
	unsigned attempt = 0;

	while (cg->n > 0) {
		struct node *node = &cg->nodes[--cg->n];
		while (unlinkat(node->base_fd, cg->name, AT_REMOVEDIR) < 0 && errno == EBUSY &&
		       attempt < REMOVE_TRIES) {
			wait_longer(attempt++);
		}
		node_close(node);
	}
}

void cgroup_drop_last(struct cgroup *cg)
{
	struct node *node = &cg->nodes[--cg->n];

	(void)unlinkat(node->base_fd, cg->name, AT_REMOVEDIR);
	node_close(node);
}

void cgroup_free(struct cgroup *cg)
{
	if (cg != NULL) {
		cgroup_undo(cg);
		free(cg);
	}
}

const char *cgroup_describe(const struct cgroup *cg)
{
	return cg->about;
}

size_t cgroup_join_fds(const struct cgroup *cg, int ret_fds[CGROUP_MAX_JOIN])
{
	for (size_t i = 0; i < cg->n; i++) {
		ret_fds[i] = cg->nodes[i].join_fd;
	}
	return cg->n;
}

int cgroup_join(const int *fds, size_t n)
{
	assert(n <= CGROUP_MAX_JOIN);
	for (size_t i = 0; i < n; i++) {
		if (write(fds[i], "0", 1) != 1) {
			return -1;
		}
	}
	return 0;
}

const struct node *cgroup_node(const struct cgroup *cg, enum cgroup_controller c)
{
	assert((unsigned)c < CGROUP_PLACES);
	for (size_t i = 0; i < cg->n; i++) {
		if ((cg->nodes[i].controllers & (1u << c)) != 0) {
			return &cg->nodes[i];
		}
	}
	return NULL;
}

bool cgroup_weighs(const struct cgroup *cg)
{
	return cgroup_node(cg, CGROUP_CPU) != NULL;
}

uint64_t cgroup_counter(const struct node *node, const char *file, const char *key)
{
	char text[1024];
	size_t len = strlen(key);

	if (node == NULL) {
		return 0;
	}
	cgroup_read_at(node->dir_fd, file, text, sizeof(text));
	for (const char *line = text; *line != '\0'; line += strspn(line, "\n")) {
		if (strncmp(line, key, len) == 0 && line[len] == ' ') {
			return strtoull(line + len, NULL, 10);
		}
		line += strcspn(line, "\n");
	}
	return 0;
}

uint64_t cgroup_oom_kills(const struct cgroup *cg)
{
	return cgroup_counter(cgroup_node(cg, CGROUP_MEMORY),
	                      cg->v2 ? "memory.events" : "memory.oom_control", "oom_kill");
}

uint64_t cgroup_pids_hits(const struct cgroup *cg)
{
	return cgroup_counter(cgroup_node(cg, CGROUP_PIDS), "pids.events", "max");
}

int cgroup_oom_eventfd(const struct cgroup *cg)
{
	const struct node *node = cgroup_node(cg, CGROUP_MEMORY);
	char text[32];

	if (cg->v2 || node == NULL) {
		return -1;
	}
	auto_fd event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	auto_fd control = openat(node->dir_fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	if (event < 0 || control < 0) {
		return -1;
	}
	int len = snprintf(text, sizeof(text), "%d %d", event, control);
	if (cgroup_write_at(node->dir_fd, "cgroup.event_control", text, (size_t)len) < 0) {
		return -1;
	}
	return steal_fd(&event);
}

/* ---- CPU time, freezing --------------------------------------------------- */

/* Returns the directory with the files of the freezer, or NULL. */
static const struct node *freezer_node(const struct cgroup *cg)
{
	if (cg == NULL || (!cg->governed && !cg->v2) || cg->n == 0) {
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
		/* Since Linux 4.15 every group has this file, whatever controllers are enabled. */
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
	const struct node *node = freezer_node(cg);

	return node != NULL &&
	       faccessat(node->dir_fd, cg->v2 ? "cgroup.freeze" : FREEZER, W_OK, AT_EACCESS) == 0;
}

int cgroup_freeze(const struct cgroup *cg, bool frozen)
{
	const struct node *node = freezer_node(cg);
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
	const struct node *node = freezer_node(cg);
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
	const struct node *node = freezer_node(cg);

	return node == NULL || cg->v2 ? -1 : openat(node->dir_fd, FREEZER, O_WRONLY | O_CLOEXEC);
}

void cgroup_thaw(int fd)
{
	(void)!write(fd, "THAWED", 6);
}

/* Kills all processes in the group. A frozen process cannot fork, so reading the list once is
 * enough. */
static void kill_members(const struct node *node)
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
	const struct node *node = freezer_node(cg);

	if (node != NULL && !cg->v2) {
		kill_members(node);
		(void)cgroup_freeze(cg, false);
	}
}
