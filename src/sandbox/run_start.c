/* run_start.c - prepares a run, and clones the child. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clone.h"
#include "sandbox/fallback.h"
#include "sandbox/governed.h"
#include "sandbox/supervise.h"

/* If root starts the run, the skill gets a uid on the host that no account has, and that is
 * different for each running supervisor. */
#define HOST_UID_BASE 1610612736U /* 0x60000000, above the uids that distributions assign */
#define INNER_ID      1000U

void run_init(struct run *r, const struct run_request *q, const struct owner *owner,
              struct prepared *prepared)
{
	assert(q->plan != NULL && prepared != NULL);
	*r = (struct run){ .request = q, .plan = q->plan, .owner = owner, .prepared = prepared };
	r->pidfd = r->ctl = r->master = r->oom = r->thaw = r->exec_pipe = r->payload_spare = -1;
	for (int i = 0; i < 3; i++) {
		r->pipes[i] = r->config.stdio[i] = -1;
	}
	r->config.ctl = r->config.payload_fd = r->config.exec_fd = -1;
	r->config.rootfs = -1;
	r->config.plan = q->plan;
	r->config.of_run = prepared;
	r->config.max_seconds = q->max_seconds;
	egress_init(&r->egress);
	r->egress.metered = q->govern_fd >= 0;
	r->config.unix_sockets = q->plan->unix_sockets;
	r->config.namespaces = true;
}

static void close_child_ends(struct run *r)
{
	for (int i = 0; i < 3; i++) {
		own_close(&r->config.stdio[i]);
	}
	own_close(&r->config.ctl);
	own_close(&r->config.payload_fd);
	own_close(&r->config.exec_fd);
	own_close(&r->config.rootfs);
	sources_close(&r->config);
}

void run_kill(struct run *r)
{
	if (r->dead) {
		return;
	}
	r->killed = true;
	if (r->config.namespaces) {
		/* Not kill(): if the caller reaps on SIGCHLD, the pid may already belong to another
		 * process. */
		(void)pidfd_send_signal(r->pidfd, SIGKILL, NULL, 0);
	} else {
		/* Without a pid namespace init must end the other processes first, and closing this
		 * socket makes init do it. */
		(void)shutdown(r->ctl, SHUT_WR);
	}
	pause_let_die(r);
}

static void wait_for_end(const struct run *r, int more)
{
	siginfo_t how;

	(void)TEMP_FAILURE_RETRY(waitid(P_PIDFD, (id_t)r->pidfd, &how, WEXITED | more));
}

void run_reap(struct run *r)
{
	if (r->govern != NULL) {
		wait_for_end(r, WNOWAIT);
		governed_last_look(r); /* before the process is reaped */
	}
	wait_for_end(r, 0);
	r->dead = true;
}

void run_done(struct run *r)
{
	if (r->pid > 0 && !r->dead) {
		run_kill(r);
		cgroup_shed(r->cgroup);
		wait_for_end(r, 0);
	}
	close_child_ends(r);
	for (int i = 0; i < 3; i++) {
		own_close(&r->pipes[i]);
	}
	own_close(&r->pidfd);
	own_close(&r->ctl);
	own_close(&r->master);
	own_close(&r->oom);
	own_close(&r->thaw);
	own_close(&r->exec_pipe);
	own_close(&r->payload_spare);
	egress_done(&r->egress);
	observer_free(r->observer);
	placeholders_remove(r->placeholders);
	repo_links_free(r->repo_links);
	repos_free(r->repos);
	string_list_done(&r->stores);
	marks_done(&r->seen);
	cgroup_free(r->cgroup);
	sources_done(&r->config);
	fallback_leave(&r->config);
}

/* Makes a pipe for each standard stream: one end for the skill, one for the supervisor. */
static int make_pipes(struct run *r, struct ssb_error *err)
{
	for (int i = 0; i < 3; i++) {
		int p[2];
		if (pipe2(p, O_CLOEXEC) != 0) {
			return ssb_fail(err, SSB_E_SYS, errno, "streams", "cannot make a pipe");
		}
		r->pipes[i] = p[i == 0];
		r->config.stdio[i] = p[i != 0];
		(void)fcntl(r->pipes[i], F_SETFL, O_NONBLOCK);
	}
	return 0;
}

/* True for root that can map `id`: root of the whole machine. Root of a container may have no such
 * uids, and then counts as an ordinary user. */
static bool owns_ids(uid_t uid, uid_t id)
{
	char map[1024];
	auto_fd fd = uid == 0 ? open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? 0 : read(fd, map, sizeof(map) - 1);

	map[n > 0 ? n : 0] = '\0';
	for (char *line = map; line != NULL && *line != '\0';) {
		unsigned long inside = strtoul(line, &line, 10);
		(void)strtoul(line, &line, 10);
		unsigned long count = strtoul(line, &line, 10);
		if (id >= inside && id - inside < count) {
			return true;
		}
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	return false;
}

/* Makes the skill's uid the owner of the pipes: a program that opens /dev/stderr opens its pipe
 * again, which only the owner of the pipe may do. */
static void give_streams(const struct run *r, uid_t id)
{
	for (int i = 0; i < 3; i++) {
		(void)!fchown(r->config.stdio[i], id, id);
	}
}

static int make_sources(struct run *r, struct ssb_error *err)
{
	uid_t host_id = HOST_UID_BASE + (uid_t)getpid();
	uid_t uid = geteuid();
	gid_t gid = getegid();
	bool root = owns_ids(uid, host_id);

	r->config.mapped_by_parent = root;
	r->config.outer_uid = uid;
	r->config.outer_gid = gid;
	/* The uid inside is never 0, even if root starts us. */
	r->config.uid = uid == 0 ? INNER_ID : uid;
	r->config.gid = uid == 0 ? INNER_ID : gid;
	if (repos_find(r->plan, r->prepared, r->owner != NULL ? r->owner->state_dir : NULL,
	               &r->repos, err) != 0 ||
	    repo_links_new(r->plan, r->prepared, r->repos, &r->repo_links, err) != 0 ||
	    placeholders_make(r->plan, r->prepared, r->repos, &r->placeholders, err) != 0 ||
	    links_hold(r->plan, r->prepared, r->repos, r->placeholders, err) != 0 ||
	    sources_init(&r->config, err) != 0) {
		return -1;
	}
	r->config.repos = r->repos;
	if (!root) {
		return 0;
	}
	give_streams(r, host_id);
	return rootfs_take(&r->config, err) != 0 ? -1
	                                         : sources_idmap(&r->config, host_id, host_id, err);
}

/* As root, maps the child's uid and gid to a separate uid and gid on the host. */
static int map_child(const struct run *r, struct ssb_error *err)
{
	char path[64], map[64];
	uid_t host_id = HOST_UID_BASE + (uid_t)getpid();
	struct msg m = { .kind = MSG_MAPPED };

	snprintf(path, sizeof(path), "/proc/%d", r->pid);
	auto_fd proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(map, sizeof(map), "%u %u 1\n", INNER_ID, host_id);
	if (proc < 0 || clone_proc_write(proc, "uid_map", map) != 0 ||
	    clone_proc_write(proc, "gid_map", map) != 0) {
		return ssb_fail(
		        err, SSB_E_LAYER, errno, "userns",
		        "root cannot map the skill's own uid; in a container this needs CAP_SETUID "
		        "and CAP_SETGID; or start skillsandbox as an unprivileged user");
	}
	return msg_fds_send(r->ctl, &m, sizeof(m), NULL) != 0
	               ? ssb_fail(err, SSB_E_LAYER, errno, "userns", "the sandbox ended early")
	               : 0;
}

static int clone_failed(int error, struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_LAYER, error, "userns",
	                error == ENOSPC ? "the limit of user namespaces is reached: raise "
	                                  "/proc/sys/user/max_user_namespaces"
	                                : "this machine does not allow user namespaces; "
	                                  "'skillsandbox doctor' shows why and what to do, and "
	                                  "--best-effort userns accepts a weaker sandbox");
}

/* Clones the child without namespaces. The owner has accepted this with --best-effort. */
static int clone_without(struct run *r, struct ssb_error *err)
{
	bool root = r->config.mapped_by_parent;

	r->config.uid = root ? HOST_UID_BASE + (uid_t)getpid() : geteuid();
	r->config.gid = root ? HOST_UID_BASE + (uid_t)getpid() : getegid();
	if (fallback_enter(&r->config, err) != 0) {
		return -1;
	}
	r->pid = clone_process(0, &r->pidfd);
	return r->pid < 0 ? ssb_fail(err, SSB_E_SYS, errno, "start", "cannot fork") : 0;
}

static int clone_with(struct run *r, struct ssb_error *err)
{
	r->pid = clone_process(INIT_NAMESPACES, &r->pidfd);
	return r->pid < 0 ? clone_failed(errno, err) : 0;
}

/* Returns whether names that the skill looks up must be recorded although no host is granted. A
 * skill without sockets cannot look up a name. */
static bool names_lookups(const struct run *r)
{
	return r->config.observe && r->owner != NULL && r->plan->profile != PROFILE_STRICT;
}

int run_start(struct run *r, struct ssb_error *err)
{
	assert(!r->started && r->pidfd < 0);

	const struct run_request *q = r->request;
	int pair[2], exec_pipe[2];
	bool tty = !r->without_namespaces &&
	           (q->tty == TTY_YES ||
	            (q->tty == TTY_AUTO && isatty(q->stdio[0]) && isatty(q->stdio[1])));

	if (pipe2(exec_pipe, O_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "start", "cannot make a pipe");
	}
	r->exec_pipe = exec_pipe[0];
	r->config.exec_fd = exec_pipe[1];
	r->config.observe = r->plan->audit != AUDIT_OFF && !r->without_namespaces;
	r->egress.on_demand = r->plan->n_egress == 0;
	if (r->plan->n_egress > 0 || names_lookups(r)) {
		if (egress_table_new(r->plan, &r->egress.table, err) != 0) {
			return -1;
		}
		r->config.egress = r->egress.table;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "start", "cannot make a socket pair");
	}
	r->ctl = pair[0];
	r->config.ctl = pair[1];
	/* The child sends the number of its notification fd. With SO_PASSCRED the kernel adds the
	 * sender's pid in the supervisor's pid namespace. */
	(void)setsockopt(r->ctl, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int));
	r->config.pty = tty;
	r->config.governed = r->govern != NULL;
	if ((!tty && make_pipes(r, err) != 0) || make_sources(r, err) != 0) {
		return -1;
	}
	if (r->without_namespaces ? clone_without(r, err) != 0 : clone_with(r, err) != 0) {
		return -1;
	}
	if (r->pid == 0) {
		/* Close the supervisor's end here: the child must notice when the supervisor
		 * ends. */
		own_close(&r->ctl);
		stage_main(&r->config);
	}
	/* Let the child run first: the kernel may have queued it behind this process on the same
	 * core, and its work takes longer than the rest of this function. */
	(void)sched_yield();
	close_child_ends(r);
	if (r->config.mapped_by_parent && r->config.namespaces && map_child(r, err) != 0) {
		return -1;
	}
	/* Note the symlinks while the child builds the sandbox. The skill cannot make any yet,
	 * because it waits for MSG_GO. */
	return repo_links_note(r->repo_links, r->prepared, err);
}
