/* skill.c - the skill's process, from fork to execve: its half of stage.c. */
#include "sandbox/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/clone.h"
#include "os/file.h"
#include "sandbox/share.h"

static void skill_must_hold(const struct stage *s, const char *leak)
{
	struct ssb_error err = { 0 };

	if (leak != NULL) {
		ssb_fail(&err, SSB_E_LAYER, 0, "self-test", "%s; the skill was not started", leak);
		stage_die(s, &err);
	}
}

/* Tries what the layers forbid; a layer that the owner gave up is not asked.
 * Before the filter, which would answer in the place of the other walls. */
static void skill_try_walls(const struct stage *s)
{
	const struct layer_report *r = s->reports;
	const char *leak = NULL;

	if (r[LAYER_CAPS].state == LAYER_ON &&
	    (!caps_none(s->namespaces) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)) {
		leak = "capabilities are left";
	} else if (s->namespaces && (geteuid() == 0 || getuid() == 0)) {
		leak = "the skill would be root";
	} else if (r[LAYER_MOUNTS].state == LAYER_ON &&
	           mount("none", "/tmp", "tmpfs", 0, NULL) == 0) {
		leak = "the file view can be changed";
	}
	skill_must_hold(s, leak);
}

/* And at the very end. The call is one that the kernel always has and the filter
 * never, and that the observer is not asked about: the kernel itself answers. */
static void skill_try_filter(const struct stage *s)
{
	const struct layer_report *r = s->reports;
	const char *leak = NULL;
	struct statvfs fs;

	if (r[LAYER_SECCOMP].state == LAYER_ON &&
	    (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2 || syscall(SYS_clone3, NULL, 0) >= 0 ||
	     errno != ENOSYS)) {
		leak = "system calls are not filtered";
	} else if (r[LAYER_MOUNTS].state == LAYER_ON &&
	           (statvfs("/", &fs) != 0 || (fs.f_flag & ST_RDONLY) == 0)) {
		leak = "the file view can be changed";
	}
	skill_must_hold(s, leak);
}

static void skill_stdio(struct stage *s)
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

static char **skill_argv(const struct stage *s)
{
	return s->namespaces ? s->plan->argv.v : s->argv;
}

static char **skill_env(const struct stage *s)
{
	return s->namespaces ? s->plan->env.v : s->env;
}

/* The file `name` in the first directory of `path`, which becomes the rest; false: its path is
 * too long. */
static bool next_file(const char **path, const char *name, char ret[PATH_MAX])
{
	size_t n = strcspn(*path, ":");
	int len =
	        snprintf(ret, PATH_MAX, "%.*s/%s", n == 0 ? 1 : (int)n, n == 0 ? "." : *path, name);

	*path += n + ((*path)[n] == ':');
	return len >= 0 && len < PATH_MAX;
}

/* PATH from the first directory on that has the program; all of it if none has. It must be called
 * before the filter is loaded: with it, each execve that fails is a question to the supervisor. */
static const char *search_path(const struct stage *s)
{
	char **env = skill_env(s);
	const char *path = "/usr/local/bin:/usr/bin:/bin";
	char file[PATH_MAX];

	for (size_t i = 0; i < s->plan->env.n; i++) {
		if (strncmp(env[i], "PATH=", 5) == 0) {
			path = env[i] + 5;
		}
	}
	if (s->payload != NULL || strchr(skill_argv(s)[0], '/') != NULL) {
		return path;
	}
	for (const char *here = path, *next = path; *next != '\0'; here = next) {
		if (next_file(&next, skill_argv(s)[0], file) &&
		    (faccessat(AT_FDCWD, file, F_OK, 0) == 0 || !file_is_missing(errno))) {
			return here;
		}
	}
	return path;
}

/* execvp, but with `path` and inside the sandbox's view. */
static void skill_exec(const struct stage *s, const char *path, struct ssb_error *err)
{
	char **argv = skill_argv(s);
	char **env = skill_env(s);
	int denied = 0;

	if (strchr(argv[0], '/') != NULL) {
		execve(argv[0], argv, env);
		denied = errno;
	} else {
		denied = ENOENT;
		while (*path != '\0') {
			char file[PATH_MAX];
			if (!next_file(&path, argv[0], file)) {
				continue;
			}
			execve(file, argv, env);
			if (!file_is_missing(errno)) {
				denied = errno;
			}
		}
	}
	if (!file_is_missing(denied)) {
		ssb_fail(err, SSB_E_NOT_EXEC, denied, "entrypoint", "'%.200s' cannot be executed",
		         argv[0]);
		return;
	}
	ssb_fail(err, SSB_E_NOT_FOUND, denied, "entrypoint",
	         "'%.200s' (or the interpreter it names) is not in the sandbox; grant its "
	         "directory with --read DIR%s",
	         argv[0], s->plan->toolchain_auto ? "" : ", or use --toolchain auto");
}

/* A pty of the sandbox's own devpts: the slave for us, the master to the
 * supervisor. */
static void skill_pty(struct stage *s)
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
	if (slave < 0 ||
	    msg_send(s->ctl, &m, sizeof(m), &(struct msg_fds){ .v = { master }, .n = 1 }) != 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "pty", "cannot open a terminal of its own");
		stage_die(s, &err);
	}
	for (int i = 0; i < 3; i++) {
		s->stdio[i] = slave;
	}
}

/* Only the kernel knows for sure where it lies: fields 48 and 49 of stat. */
static struct arguments find_arguments(void)
{
	static const struct arguments none = { 0, 0 };
	char text[1024];
	auto_fd fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *p = n <= 0 ? NULL : memrchr(text, ')', (size_t)n);

	if (p == NULL) {
		return none;
	}
	text[n] = '\0';
	for (int field = 2; field < 48; field++) {
		p = strchr(p + 1, ' ');
		if (p == NULL) {
			return none;
		}
	}
	uintptr_t start = (uintptr_t)strtoull(p, &p, 10);
	uintptr_t end = (uintptr_t)strtoull(p, NULL, 10);
	return start != 0 && end > start ? (struct arguments){ start, end - start } : none;
}

/* Init can enter our namespaces. */
static void skill_there(struct stage *s, int meet)
{
	s->arguments = find_arguments();
	if (write(meet, &s->arguments, sizeof(s->arguments)) != (ssize_t)sizeof(s->arguments)) {
		_exit(125); /* init has said why */
	}
}

/* Is the view there? */
static void skill_meet(struct stage *s, int meet)
{
	struct ssb_error err = { 0 };
	struct view_ready ready;

	if (read(meet, &ready, sizeof(ready)) != (ssize_t)sizeof(ready)) {
		_exit(125); /* init has said why */
	}
	s->unix_sockets = ready.unix_sockets;
	s->reports[LAYER_USERNS] = ready.userns;
	s->reports[LAYER_MOUNTS] = ready.mounts;
	/* The id maps are written since init passed its first layer. */
	if (s->namespaces && userns_become(s, &err) != 0) {
		stage_die(s, &err);
	}
	if (s->namespaces && !ready.sealed && mounts_seal(&err) != 0) {
		stage_die(s, &err);
	}
	stage_forget(&s->arguments);
}

/* All walls are up: the last word, which is init's. */
static void skill_may_start(struct stage *s, int meet)
{
	struct start start;
	struct msg_fds cgroup;
	struct ssb_error err = { 0 };

	if (msg_recv(meet, &start, sizeof(start), &cgroup) != (ssize_t)sizeof(start)) {
		_exit(125); /* init has said why */
	}
	s->watchdog = start.watchdog;
	s->nice = start.nice;
	s->reports[LAYER_LIMITS] = start.limits;
	if (share_leave_realtime() != 0 || share_shed_caller() != 0) {
		ssb_fail(&err, SSB_E_LAYER, errno, "limits",
		         "cannot give up the caller's priority or personality");
		stage_die(s, &err);
	}
	stage_join_cgroup(s, &cgroup);
	msg_close(&cgroup);
	stage_layers(s, AT_LAST);
}

static const char *workdir_of(const struct stage *s)
{
	return s->namespaces ? s->plan->workdir : s->workdir;
}

/* Not before the host's root is gone: it lies one ".." away, and the way there may lead by a
 * symlink of the skill's or of an image. Nor by /proc/self/fd or cwd: what we still have open
 * are directories of the host. */
static void skill_enter_workdir(const struct stage *s)
{
	struct ssb_error err = { 0 };
	const char *workdir = workdir_of(s);
	auto_fd dir = file_openat2(AT_FDCWD, workdir, O_PATH | O_DIRECTORY, RESOLVE_NO_MAGICLINKS);

	if (dir < 0 || fchdir(dir) != 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "workdir", "'%.200s' is not in the sandbox",
		         workdir);
		stage_die(s, &err);
	}
}

/* All are as they are by default since stage_main(). */
static void skill_unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Directories of the host are open until the last wall that is made of them stands. execve
 * would close them too late: it has followed the path of the program, and of the interpreter
 * that this names, and by /proc/self/fd both would lead there. */
static void skill_close_others(const struct stage *s, int meet)
{
	const int kept[] = { s->ctl, meet, s->exec_fd, s->payload_fd };
	struct ssb_error err = { 0 };

	if (file_close_others(STDERR_FILENO + 1, kept, ARRAY_LEN(kept)) != 0) {
		ssb_fail(&err, SSB_E_LAYER, errno, "fds", "close_range");
		stage_die(s, &err);
	}
}

static void skill_report(const struct stage *s)
{
	struct msg m = { .kind = MSG_STARTED };

	memcpy(m.reports, s->reports, sizeof(m.reports));
	(void)!write(s->ctl, &m, sizeof(m));
}

_Noreturn void skill_main(struct stage *s, int meet)
{
	struct ssb_error err = { 0 };

	stage_layers(s, BY_SKILL);
	skill_there(s, meet);
	if (s->namespaces && netns_up(&err) != 0) {
		stage_die(s, &err);
	}
	/* Most of what layer_caps has to do, while init builds. */
	s->unbound = s->namespaces && caps_unbound() == 0;
	/* Whatever the caller had open is not the skill's. */
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
		ssb_fail(&err, SSB_E_LAYER, errno, "fds", "close_range (needs Linux 5.11)");
		stage_die(s, &err);
	}
	skill_unblock_signals();
	/* A session of its own: kill(0) would otherwise reach our caller. */
	if (setsid() < 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "skill", "setsid");
		stage_die(s, &err);
	}
	if (!s->pty) {
		skill_stdio(s);
	}
	skill_meet(s, meet);
	if (s->pty) {
		skill_pty(s);
		skill_stdio(s);
	}
	umask(022);
	skill_enter_workdir(s);
	stage_layers(s, IN_VIEW);
	skill_try_walls(s);
	skill_close_others(s, meet);
	if (limits_core(s, &err) != 0) {
		stage_die(s, &err);
	}
	const char *path = search_path(s);
	stage_layers(s, FILTERED);
	skill_may_start(s, meet);
	skill_try_filter(s);
	skill_report(s);
	if (s->payload != NULL) {
		/* Nobody asks for an execve here: a call that is observed comes back
		 * when the supervisor has fetched the listener, and not before. */
		(void)close(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
		/* No exec will close what we hold. */
		if (dup2(s->payload_fd, 3) < 0 || close_range(4, ~0U, 0) != 0) {
			_exit(125);
		}
		_exit(s->payload(3, s->payload_arg));
	}
	skill_exec(s, path, &err);
	stage_die(s, &err);
}
