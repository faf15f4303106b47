/* stage.c - from clone to execve, in the order that is the security argument.
 *
 * Two processes build the sandbox at the same time, because a network
 * namespace takes as long to make as the whole file view:
 *
 *   init                                 the skill's process
 *   id maps, new root, grants            network, IPC, host name, cgroup namespace
 *            ◄──────────── there ────────────┘
 *   enter those namespaces
 *            └──── the view stands ────────►
 *   old root gone, root read-only,       session, streams, directory,
 *   loopback up; wait for the record     capabilities, Landlock, seccomp
 *            └──── go (cgroup, limits) ────►
 *   gives up what it does not need       limits
 *            └──── confined ───────────────►
 *                                        self-test, execve
 *
 * Landlock forbids later mounts, and the filter comes after it so that it has
 * to allow no set-up; only the limits, which every process may lower, come
 * later still. At the end we try what must not work any more, and refuse to
 * start the skill if any of it does. */
#include "sandbox/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/cgroup.h"
#include "os/clone.h"
#include "os/net.h"

enum phase {
	BY_INIT,  /* while the skill's process makes its namespaces */
	BY_SKILL, /* while init makes the view */
	IN_VIEW,  /* by the skill's process, when the view stands */
	AT_LAST,  /* by the skill's process, when all is said */
};

struct layer {
	enum layer_id id;
	enum phase phase;
	bool needs_namespaces;
	int (*apply)(struct stage *, struct ssb_error *);
};

static const struct layer LAYERS[] = {
	{ LAYER_USERNS, BY_INIT, true, layer_userns },
	{ LAYER_NET, BY_SKILL, true, layer_net },
	{ LAYER_MOUNTS, BY_INIT, true, layer_mounts },
	{ LAYER_ENV, BY_SKILL, false, layer_env },
	{ LAYER_CAPS, IN_VIEW, false, layer_caps },
	{ LAYER_LANDLOCK, IN_VIEW, false, layer_landlock },
	{ LAYER_SECCOMP, IN_VIEW, false, layer_seccomp },
	{ LAYER_LIMITS, AT_LAST, false, layer_limits },
};

/* What init tells the skill's process when the view stands, */
struct view_ready {
	bool unix_sockets;
	struct layer_report userns;
	struct layer_report mounts;
};

/* and when it may start; the cgroup's fds come with it. */
struct start {
	bool watchdog;
	struct layer_report limits;
};

_Noreturn void stage_die(const struct stage *s, const struct ssb_error *err)
{
	struct msg m = { .kind = MSG_FAILED, .error = *err };

	/* write, not sendmsg: allowed by every filter. */
	(void)!write(s->ctl, &m, sizeof(m));
	_exit(125);
}

struct msg stage_wait(const struct stage *s, enum msg_kind kind, struct msg_fds *ret_fds)
{
	struct msg m;

	for (;;) {
		if (msg_recv(s->ctl, &m, sizeof(m), ret_fds) != (ssize_t)sizeof(m)) {
			_exit(125);
		}
		if (m.kind == kind) {
			return m;
		}
		msg_close(ret_fds);
	}
}

static void stage_layers(struct stage *s, enum phase phase)
{
	for (size_t i = 0; i < ARRAY_LEN(LAYERS); i++) {
		const struct layer *l = &LAYERS[i];
		struct ssb_error err = { 0 };

		if (l->phase != phase) {
			continue;
		}
		if (l->needs_namespaces && !s->namespaces) {
			s->reports[l->id].state = LAYER_OFF_BEST_EFFORT;
			snprintf(s->reports[l->id].detail, sizeof(s->reports[l->id].detail),
			         "no namespaces; accepted with --best-effort");
			continue;
		}
		if (l->apply(s, &err) == 0) {
			s->reports[l->id].state = LAYER_ON;
			continue;
		}
		/* Half a view is none: without one of the layers that need
		 * namespaces, the supervisor starts again without any. */
		if (l->needs_namespaces || (s->plan->best_effort >> l->id & 1) == 0) {
			stage_die(s, &err);
		}
		s->reports[l->id].state = LAYER_OFF_BEST_EFFORT;
		snprintf(s->reports[l->id].detail, sizeof(s->reports[l->id].detail), "%.119s",
		         err.text);
	}
}

/* Tries what the layers forbid. A layer that the owner gave up is not asked. */
static int stage_self_test(const struct stage *s, struct ssb_error *err)
{
	const struct layer_report *r = s->reports;
	const char *leak = NULL;
	struct statvfs fs;

	if (r[LAYER_CAPS].state == LAYER_ON &&
	    (!caps_none(s->namespaces) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)) {
		leak = "capabilities are left";
	} else if (s->namespaces && (geteuid() == 0 || getuid() == 0)) {
		leak = "the skill would be root";
	} else if (r[LAYER_SECCOMP].state == LAYER_ON &&
	           (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2 || unshare(CLONE_NEWUSER) == 0)) {
		leak = "a user namespace can be made";
	} else if (r[LAYER_MOUNTS].state == LAYER_ON &&
	           (mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || statvfs("/", &fs) != 0 ||
	            (fs.f_flag & ST_RDONLY) == 0)) {
		leak = "the file view can be changed";
	}
	if (leak != NULL) {
		return ssb_fail(err, SSB_E_LAYER, 0, "self-test", "%s; the skill was not started",
		                leak);
	}
	return 0;
}

static void stage_stdio(struct stage *s)
{
	if (s->pty && ioctl(s->stdio[0], TIOCSCTTY, 0) != 0) {
		_exit(125);
	}
	/* The three may sit in each other's places: lift them first. */
	int up[3];
	for (int i = 0; i < 3; i++) {
		up[i] = fcntl(s->stdio[i], F_DUPFD_CLOEXEC, 10);
	}
	for (int i = 0; i < 3; i++) {
		if (up[i] < 0 || dup2(up[i], i) < 0) {
			_exit(125);
		}
	}
}

/* execvp, but with the plan's PATH and inside the sandbox's view. */
static void stage_exec(struct stage *s, struct ssb_error *err)
{
	char **argv = s->plan->argv.v;
	char **env = s->namespaces ? s->plan->env.v : s->env;
	const char *path = "/usr/local/bin:/usr/bin:/bin";
	int denied = 0;

	if (strchr(argv[0], '/') != NULL) {
		execve(argv[0], argv, env);
		denied = errno;
	} else {
		for (size_t i = 0; i < s->plan->env.n; i++) {
			if (strncmp(env[i], "PATH=", 5) == 0) {
				path = env[i] + 5;
			}
		}
		denied = ENOENT;
		while (*path != '\0') {
			char file[4096];
			size_t n = strcspn(path, ":");
			int len = snprintf(file, sizeof(file), "%.*s/%s", (int)n,
			                   n == 0 ? "." : path, argv[0]);
			path += n + (path[n] == ':');
			if (len < 0 || (size_t)len >= sizeof(file)) {
				continue;
			}
			execve(file, argv, env);
			if (errno != ENOENT && errno != ENOTDIR) {
				denied = errno;
			}
		}
	}
	bool missing = denied == ENOENT || denied == ENOTDIR;
	ssb_fail(
	        err, missing ? SSB_E_NOT_FOUND : SSB_E_NOT_EXEC, denied, "entrypoint",
	        missing ? "'%.200s' (or the interpreter it names) is not in the sandbox; grant its "
	                  "directory with --read DIR, or use --toolchain auto"
	                : "'%.200s' cannot be executed",
	        argv[0]);
}

/* A pty of the sandbox's own devpts: the slave for us, the master to the
 * supervisor. */
static void stage_pty(struct stage *s)
{
	struct ssb_error err = { 0 };
	struct msg m = { .kind = MSG_PTY };
	int unlock = 0;
	auto_fd master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) != 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "pty", "cannot open a terminal of its own");
		stage_die(s, &err);
	}
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || msg_send(s->ctl, &m, sizeof(m), &(struct msg_fds){ { master }, 1 }) != 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "pty", "cannot open a terminal of its own");
		stage_die(s, &err);
	}
	for (int i = 0; i < 3; i++) {
		s->stdio[i] = slave;
	}
}

/* Wipes our command line, which /proc/1/cmdline would show to everybody. Where
 * it lies only the kernel knows for sure: fields 48 and 49 of stat. */
static void stage_forget_arguments(void)
{
	char text[1024];
	auto_fd fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *p = n <= 0 ? NULL : memrchr(text, ')', (size_t)n);

	if (p == NULL) {
		return;
	}
	text[n] = '\0';
	for (int field = 2; field < 48; field++) {
		p = strchr(p + 1, ' ');
		if (p == NULL) {
			return;
		}
	}
	uintptr_t start = (uintptr_t)strtoull(p, &p, 10);
	uintptr_t end = (uintptr_t)strtoull(p, NULL, 10);
	if (start != 0 && end > start) {
		explicit_bzero((void *)start, end - start);
	}
}

/* From here on /proc/PID of this process is closed to the skill; and what it
 * might find there all the same is gone: the owner's environment. */
static void stage_forget(void)
{
	stage_forget_arguments();
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		explicit_bzero(*e, strlen(*e));
	}
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Each process joins by itself: moving another one is far slower. */
static void join_cgroup(const struct stage *s, const struct msg_fds *fds)
{
	struct ssb_error err = { 0 };

	if (fds->n > 0 && cgroup_join(fds->v, fds->n) != 0) {
		ssb_fail(&err, SSB_E_LAYER, errno, "limits", "cannot enter the cgroup");
		stage_die(s, &err);
	}
}

/* The skill's process meets init: our namespaces are there; is the view? */
static void skill_meet(struct stage *s, int meet)
{
	struct ssb_error err = { 0 };
	struct view_ready ready;

	if (write(meet, "", 1) != 1 ||
	    read(meet, &ready, sizeof(ready)) != (ssize_t)sizeof(ready)) {
		_exit(125); /* init has said why */
	}
	s->unix_sockets = ready.unix_sockets;
	s->reports[LAYER_USERNS] = ready.userns;
	s->reports[LAYER_MOUNTS] = ready.mounts;
	/* The id maps are written since init passed its first layer. */
	if (s->namespaces && userns_become(s, &err) != 0) {
		stage_die(s, &err);
	}
	stage_forget();
}

/* All walls are up: the last word, which is init's. */
static void skill_may_start(struct stage *s, int meet)
{
	struct start start;
	struct msg_fds cgroup;
	char confined;

	if (msg_recv(meet, &start, sizeof(start), &cgroup) != (ssize_t)sizeof(start)) {
		_exit(125); /* init has said why */
	}
	s->watchdog = start.watchdog;
	s->reports[LAYER_LIMITS] = start.limits;
	join_cgroup(s, &cgroup);
	msg_close(&cgroup);
	stage_layers(s, AT_LAST);
	if (read(meet, &confined, 1) != 1) {
		_exit(125); /* init could not confine itself, and has said why */
	}
}

static void skill_enter_workdir(const struct stage *s)
{
	struct ssb_error err = { 0 };
	const char *workdir = s->namespaces ? s->plan->workdir : s->workdir;

	if (chdir(workdir) != 0) {
		ssb_fail(&err, SSB_E_NOT_FOUND, errno, "workdir", "'%.200s' is not in the sandbox",
		         workdir);
		stage_die(s, &err);
	}
	umask(022);
}

static void skill_default_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void skill_report(const struct stage *s)
{
	struct msg m = { .kind = MSG_STARTED };

	memcpy(m.reports, s->reports, sizeof(m.reports));
	(void)!write(s->ctl, &m, sizeof(m));
}

/* The skill's process, up to execve. */
static _Noreturn void stage_skill(struct stage *s, int meet)
{
	struct ssb_error err = { 0 };

	stage_layers(s, BY_SKILL);
	/* Whatever the caller had open is not the skill's. */
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
		ssb_fail(&err, SSB_E_LAYER, errno, "fds", "close_range (needs Linux 5.11)");
		stage_die(s, &err);
	}
	skill_default_signals();
	skill_meet(s, meet);
	if (s->pty) {
		stage_pty(s);
	}
	/* A session of its own: kill(0) would otherwise reach our caller. */
	if (setsid() < 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "skill", "setsid");
		stage_die(s, &err);
	}
	stage_stdio(s);
	skill_enter_workdir(s);
	stage_layers(s, IN_VIEW);
	skill_may_start(s, meet);
	if (stage_self_test(s, &err) != 0) {
		stage_die(s, &err);
	}
	skill_report(s);
	if (s->payload != NULL) {
		/* No exec will close what we hold. */
		if (dup2(s->payload_fd, 3) < 0 || close_range(4, ~0U, 0) != 0) {
			_exit(125);
		}
		_exit(s->payload(3, s->payload_arg));
	}
	stage_exec(s, &err);
	stage_die(s, &err);
}

/* No PID 1 then: orphans come to us all the same, and root becomes nobody. */
static int stage_without_namespaces(struct stage *s, struct ssb_error *err)
{
	sigset_t all;

	/* Ended by the end of ctl, so that the descendants can be ended first; not
	 * by a signal to the caller's group, in which we still are. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "userns", "subreaper");
	}
	if (!s->mapped_by_parent) {
		/* A user has none to drop; root of a container drops its own. */
		return caps_none(false) || caps_drop(0) == 0
		               ? 0
		               : ssb_fail(err, SSB_E_LAYER, errno, "caps",
		                          "cannot drop the capabilities");
	}
	uint64_t to_change = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_SETPCAP;
	if (caps_drop(to_change) != 0 || setgroups(0, NULL) != 0 ||
	    setresgid(s->gid, s->gid, s->gid) != 0 || setresuid(s->uid, s->uid, s->uid) != 0 ||
	    caps_drop(0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "userns", "cannot become uid %u", s->uid);
	}
	return 0;
}

/* Init's side of the meeting. */
static int init_meet(struct stage *s, int meet, int skill_pidfd, struct ssb_error *err)
{
	struct view_ready ready = { .unix_sockets = s->unix_sockets,
		                    .userns = s->reports[LAYER_USERNS],
		                    .mounts = s->reports[LAYER_MOUNTS] };
	char there;

	if (read(meet, &there, 1) != 1) {
		_exit(125); /* the skill's process has said why */
	}
	/* Otherwise /proc/1/net would be the host's. */
	if (s->namespaces && setns(skill_pidfd, SKILL_NAMESPACES) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "net",
		                "init cannot enter the skill's namespaces");
	}
	stage_forget();
	return write(meet, &ready, sizeof(ready)) != (ssize_t)sizeof(ready)
	               ? ssb_fail(err, SSB_E_SYS, errno, "init", "the skill's process is gone")
	               : 0;
}

/* The broker's ends of the network, handed to the supervisor. */
static int init_listen(const struct stage *s, struct ssb_error *err)
{
	static struct listeners l;
	int failed = listeners_make(s->egress, &l, err);

	for (size_t at = 0; failed == 0 && at < l.n;) {
		struct msg m = { .kind = MSG_LISTENERS };
		struct msg_fds fds = { .n = 0 };
		while (fds.n < MSG_MAX_FDS && at < l.n) {
			m.listeners.kinds[fds.n] = l.kind[at];
			fds.v[fds.n++] = l.fd[at++];
		}
		m.listeners.last = at == l.n;
		if (msg_send(s->ctl, &m, sizeof(m), &fds) != 0) {
			failed = ssb_fail(err, SSB_E_SYS, errno, "net",
			                  "cannot hand over the network");
		}
	}
	listeners_close(&l);
	return failed;
}

/* What is left to do while the walls come up; then the skill may start, and
 * finds an init that has given up all that it does not need. */
static int init_start_skill(struct stage *s, int meet, struct ssb_error *err)
{
	struct start start = { 0 };
	struct msg_fds cgroup;

	if (s->namespaces && mounts_seal(err) != 0) {
		return -1;
	}
	if (s->namespaces && net_loopback_up() != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "net", "cannot bring up the loopback");
	}
	if (s->egress != NULL && init_listen(s, err) != 0) {
		return -1;
	}
	struct msg go = stage_wait(s, MSG_GO, &cgroup);
	/* Without a pid namespace it would count the whole host. */
	s->watchdog = start.watchdog = go.go.watchdog && s->namespaces;
	memcpy(start.limits.detail, go.go.limits, sizeof(start.limits.detail));
	join_cgroup(s, &cgroup);
	int failed = msg_send(meet, &start, sizeof(start), &cgroup);
	msg_close(&cgroup);
	if (failed != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "init", "the skill's process is gone");
	}
	if (init_confine(s, &meet, err) != 0) {
		return -1;
	}
	return write(meet, "", 1) != 1
	               ? ssb_fail(err, SSB_E_SYS, errno, "init", "the skill's process is gone")
	               : 0;
}

_Noreturn void stage_main(struct stage *s)
{
	struct ssb_error err = { 0 };
	int meet[2];
	int pidfd = -1;

	/* The end of the supervisor is seen as the end of ctl; this is for the
	 * moments before init listens. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* A caller that ignores it would make children vanish unseen. */
	(void)signal(SIGCHLD, SIG_DFL);
	if (!s->namespaces && stage_without_namespaces(s, &err) != 0) {
		stage_die(s, &err);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, meet) != 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "init", "socketpair");
		stage_die(s, &err);
	}
	pid_t skill = clone_process(0, &pidfd);
	if (skill < 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "init", "fork");
		stage_die(s, &err);
	}
	if (skill == 0) {
		(void)close(meet[0]);
		stage_skill(s, meet[1]);
	}
	(void)close(meet[1]);
	stage_layers(s, BY_INIT);
	if (init_meet(s, meet[0], pidfd, &err) != 0 || init_start_skill(s, meet[0], &err) != 0) {
		stage_die(s, &err);
	}
	init_main(s, skill);
}
