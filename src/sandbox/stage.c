/* stage.c - from clone to execve, in the order that is the security argument.
 *
 * Landlock forbids later mounts, and seccomp comes last so that no filter has
 * to allow set-up. After the last layer we try what must not work any more,
 * and refuse to start the skill if any of it does. */
#include "sandbox/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/clone.h"

struct layer {
	enum layer_id id;
	bool          by_init; /* applied once, before the skill's process exists */
	bool          needs_namespaces;
	int (*apply)(struct stage *, struct ssb_error *);
};

static const struct layer LAYERS[] = {
	{ LAYER_USERNS, true, true, layer_userns },
	{ LAYER_NET, true, true, layer_net },
	{ LAYER_MOUNTS, true, true, layer_mounts },
	{ LAYER_ENV, false, false, layer_env },
	{ LAYER_LIMITS, false, false, layer_limits },
	{ LAYER_CAPS, false, false, layer_caps },
	{ LAYER_LANDLOCK, false, false, layer_landlock },
	{ LAYER_SECCOMP, false, false, layer_seccomp },
};

_Noreturn void stage_die(const struct stage *s, const struct ssb_error *err)
{
	struct msg m = { .kind = MSG_FAILED, .error = *err };

	/* write, not sendmsg: allowed by every filter. */
	(void)!write(s->ctl, &m, sizeof(m));
	_exit(125);
}

void stage_wait(const struct stage *s, enum msg_kind kind)
{
	struct msg m;
	int fd = -1;

	do {
		ssize_t n = msg_recv(s->ctl, &m, sizeof(m), &fd);
		if (n != (ssize_t)sizeof(m)) {
			_exit(125);
		}
		own_close(&fd);
	} while (m.kind != kind);
}

static void stage_layers(struct stage *s, bool by_init)
{
	for (size_t i = 0; i < ARRAY_LEN(LAYERS); i++) {
		const struct layer *l = &LAYERS[i];
		struct ssb_error err = { 0 };

		if (l->by_init != by_init) {
			continue;
		}
		if (l->needs_namespaces && !s->namespaces) {
			s->reports[l->id].state = LAYER_OFF_BEST_EFFORT;
			snprintf(s->reports[l->id].detail, sizeof(s->reports[l->id].detail),
			         "no user namespaces; accepted with --best-effort userns");
			continue;
		}
		if (l->apply(s, &err) == 0) {
			s->reports[l->id].state = LAYER_ON;
			continue;
		}
		if ((s->plan->best_effort >> l->id & 1) == 0) {
			stage_die(s, &err);
		}
		s->reports[l->id].state = LAYER_OFF_BEST_EFFORT;
		snprintf(s->reports[l->id].detail, sizeof(s->reports[l->id].detail), "%.119s", err.text);
	}
}

/* Tries what the layers forbid. A layer that the owner gave up is not asked. */
static int stage_self_test(const struct stage *s, struct ssb_error *err)
{
	const struct layer_report *r = s->reports;
	const char *leak = NULL;

	if (r[LAYER_CAPS].state == LAYER_ON && (!caps_none() || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)) {
		leak = "capabilities are left";
	} else if (s->namespaces && (geteuid() == 0 || getuid() == 0)) {
		leak = "the skill would be root";
	} else if (r[LAYER_SECCOMP].state == LAYER_ON &&
	           (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2 || unshare(CLONE_NEWUSER) == 0)) {
		leak = "a user namespace can be made";
	} else if (r[LAYER_MOUNTS].state == LAYER_ON &&
	           (mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || mkdir("/leak", 0700) == 0)) {
		leak = "the file view can be changed";
	}
	if (leak != NULL) {
		return ssb_fail(err, SSB_E_LAYER, 0, "self-test", "%s; the skill was not started", leak);
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
	char **env = s->plan->env.v;
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
			int len = snprintf(file, sizeof(file), "%.*s/%s", (int)n, n == 0 ? "." : path,
			                   argv[0]);
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
	ssb_fail(err, missing ? SSB_E_NOT_FOUND : SSB_E_NOT_EXEC, denied, "entrypoint",
	         missing ? "'%.200s' (or the interpreter it names) is not in the sandbox; grant its "
	                   "directory with --read DIR, or use --toolchain auto"
	                 : "'%.200s' cannot be executed",
	         argv[0]);
}

/* The skill's process, up to execve. */
static _Noreturn void stage_skill(struct stage *s)
{
	struct ssb_error err = { 0 };
	sigset_t none;

	/* A session of its own: kill(0) would otherwise reach our caller. */
	if (setsid() < 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "skill", "setsid");
		stage_die(s, &err);
	}
	stage_stdio(s);
	/* Whatever the caller had open is not the skill's. */
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
		ssb_fail(&err, SSB_E_LAYER, errno, "fds", "close_range (needs Linux 5.11)");
		stage_die(s, &err);
	}
	if (s->namespaces && chdir(s->plan->workdir) != 0) {
		ssb_fail(&err, SSB_E_NOT_FOUND, errno, "workdir", "'%.200s' is not in the sandbox",
		         s->plan->workdir);
		stage_die(s, &err);
	}
	umask(022);
	stage_layers(s, false);
	if (stage_self_test(s, &err) != 0) {
		stage_die(s, &err);
	}
	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	struct msg m = { .kind = MSG_STARTED };
	memcpy(m.reports, s->reports, sizeof(m.reports));
	(void)!write(s->ctl, &m, sizeof(m));

	if (s->payload != NULL) {
		int out = s->payload_fd;
		/* No exec will close what we hold. */
		if (dup2(out, 3) < 0 || close_range(4, ~0U, 0) != 0) {
			_exit(125);
		}
		_exit(s->payload(3, s->payload_arg));
	}
	stage_exec(s, &err);
	stage_die(s, &err);
}

/* A pty of the sandbox's own devpts: the slave for the skill, the master to
 * the supervisor. */
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
	if (slave < 0 || msg_send(s->ctl, &m, sizeof(m), master) != 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "pty", "cannot open a terminal of its own");
		stage_die(s, &err);
	}
	for (int i = 0; i < 3; i++) {
		s->stdio[i] = slave;
	}
}

/* From here on /proc/PID of this process is closed to the skill; and what it
 * might find there all the same is gone: the owner's environment. */
static void stage_forget(void)
{
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		explicit_bzero(*e, strlen(*e));
	}
}

_Noreturn void stage_main(struct stage *s)
{
	struct ssb_error err = { 0 };

	/* The end of the supervisor is seen as the end of ctl; this is for the
	 * moments before init listens. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	stage_layers(s, true);
	stage_forget();
	if (s->pty) {
		stage_pty(s);
	}
	stage_wait(s, MSG_GO);

	pid_t skill = fork();
	if (skill < 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "init", "fork");
		stage_die(s, &err);
	}
	if (skill == 0) {
		stage_skill(s);
	}
	init_main(s, skill);
}
