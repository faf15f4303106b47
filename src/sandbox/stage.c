/* stage.c - from clone to execve, in the order that is the security argument.
 *
 * Two processes build the sandbox at the same time, because a network
 * namespace takes as long to make as the whole file view:
 *
 *   init                                 the skill's process
 *   id maps, new root, grants            network, IPC, host name, cgroup namespace
 *            ◄──────────── there ────────────┘
 *   enter those namespaces               loopback up; session, streams
 *            └──── the view stands ────────►
 *   gives up what it does not need;      old root gone, root read-only; directory,
 *   wait for the record                  capabilities, Landlock, seccomp
 *            └──── go (cgroup, limits) ────►
 *                                        limits, self-test, execve
 *
 * Who of the two has to wait for the other lets the old root go, which takes the
 * kernel a while.
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
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/cgroup.h"
#include "os/clone.h"

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
	{ LAYER_SECCOMP, FILTERED, false, layer_seccomp },
	{ LAYER_LIMITS, AT_LAST, false, layer_limits },
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

void stage_layers(struct stage *s, enum phase phase)
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

void stage_forget(const struct arguments *args)
{
	if (args->len > 0) {
		explicit_bzero((void *)args->start, args->len);
	}
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		explicit_bzero(*e, strlen(*e));
	}
}

void stage_join_cgroup(const struct stage *s, const struct msg_fds *fds)
{
	struct ssb_error err = { 0 };

	if (fds->n > 0 && cgroup_join(fds->v, fds->n) != 0) {
		ssb_fail(&err, SSB_E_LAYER, errno, "limits", "cannot enter the cgroup");
		stage_die(s, &err);
	}
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

static bool is_there(int meet)
{
	struct pollfd p = { .fd = meet, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Init's side of the meeting. */
static int init_meet(struct stage *s, int meet, int skill_pidfd, struct ssb_error *err)
{
	struct view_ready ready = { .unix_sockets = s->unix_sockets,
		                    .userns = s->reports[LAYER_USERNS],
		                    .mounts = s->reports[LAYER_MOUNTS] };

	ready.sealed = s->namespaces && !is_there(meet);
	if (ready.sealed && mounts_seal(err) != 0) {
		return -1;
	}
	if (read(meet, &s->arguments, sizeof(s->arguments)) != (ssize_t)sizeof(s->arguments)) {
		_exit(125); /* the skill's process has said why */
	}
	/* Otherwise /proc/1/net would be the host's. */
	if (s->namespaces && setns(skill_pidfd, SKILL_NAMESPACES) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "net",
		                "init cannot enter the skill's namespaces");
	}
	stage_forget(&s->arguments);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* /proc/1 is closed from here on */
	return write(meet, &ready, sizeof(ready)) != (ssize_t)sizeof(ready)
	               ? ssb_fail(err, SSB_E_SYS, errno, "init", "the skill's process is gone")
	               : 0;
}

/* The broker's ends of the network, handed to the supervisor. */
static int init_listen(const struct stage *s, struct ssb_error *err)
{
	static struct listeners l;
	int failed = netns_up(err) != 0 ? -1 : listeners_make(s->egress, &l, err);

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

	if (s->egress != NULL && init_listen(s, err) != 0) {
		return -1;
	}
	if (init_confine(s, &meet, err) != 0) {
		return -1;
	}
	struct msg go = stage_wait(s, MSG_GO, &cgroup);
	/* Without a pid namespace it would count the whole host. */
	s->watchdog = start.watchdog = go.go.watchdog && s->namespaces;
	start.nice = go.go.nice;
	if (go.go.thaw && cgroup.n > 0) {
		init_keep_thaw(cgroup.v[--cgroup.n]);
	}
	memcpy(start.limits.detail, go.go.limits, sizeof(start.limits.detail));
	if (!s->watchdog && init_unwatched(s) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "init", "cannot drop its privileges");
	}
	int failed = msg_send(meet, &start, sizeof(start), &cgroup);
	msg_close(&cgroup);
	return failed != 0 ? ssb_fail(err, SSB_E_SYS, errno, "init", "the skill's process is gone")
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
	/* No code of the caller's runs here; and one that ignores SIGCHLD would make children
	 * vanish unseen. */
	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	plan_wipe_credentials(s->plan);
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
		skill_main(s, meet[1]);
	}
	(void)close(meet[1]);
	/* Both ways are under way; the supervisor's, which waits for the disk, is the
	 * one that may stand behind ours. */
	(void)sched_yield();
	stage_layers(s, BY_INIT);
	if (init_meet(s, meet[0], pidfd, &err) != 0 || init_start_skill(s, meet[0], &err) != 0) {
		stage_die(s, &err);
	}
	init_main(s, skill);
}
