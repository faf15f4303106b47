/* cgroup.c - a control group in use: join, count, remove. */
#include "os/cgroup_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"

_Static_assert(CGROUP_MAX_JOIN >= CGROUP_PLACES, "a group joins every controller");

#define REMOVE_TRIES 10 /* 0.1 ms, doubled each time: 0.1 s in all */

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

static void nap(unsigned attempt)
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

/* A group stays busy for a moment after its last process was killed. */
void cgroup_undo(struct cgroup *cg)
{
	unsigned attempt = 0;

	while (cg->n > 0) {
		struct node *node = &cg->nodes[--cg->n];
		while (unlinkat(node->base_fd, cg->name, AT_REMOVEDIR) < 0 && errno == EBUSY &&
		       attempt < REMOVE_TRIES) {
			nap(attempt++);
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
	for (size_t i = 0; i < n; i++) {
		if (write(fds[i], "0", 1) != 1) {
			return -1;
		}
	}
	return 0;
}

const struct node *cgroup_node(const struct cgroup *cg, enum cgroup_controller c)
{
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
