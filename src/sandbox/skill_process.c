/* skill_process.c - the steps of the skill's process, from fork to execve (see stage.c). */
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
#include "os/cgroup.h"
#include "os/clone.h"
#include "os/file.h"
#include "sandbox/share.h"

static int fail_self_test(const char *leak, struct ssb_error *err)
{
	return leak == NULL ? 0
	                    : ssb_fail(err, SSB_E_LAYER, 0, "self-test",
	                               "%s; the skill was not started", leak);
}

/* Self-test: tries some actions that the layers must forbid. Skips layers that the owner gave up
 * (--best-effort). It must run before the filter is loaded: the filter would refuse the calls
 * first, and the other layers would not be tested. */
int skill_try_walls(struct stage *s, struct ssb_error *err)
{
	const struct layer_report *r = s->reports;
	const char *leak = NULL;

	if (r[LAYER_CAPS].state == LAYER_ON &&
	    (!caps_none(s->config->namespaces) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)) {
		leak = "capabilities are left";
	} else if (s->config->namespaces && (geteuid() == 0 || getuid() == 0)) {
		leak = "the skill would be root";
	} else if (r[LAYER_MOUNTS].state == LAYER_ON &&
	           mount("none", "/tmp", "tmpfs", 0, NULL) == 0) {
		leak = "the file view can be changed";
	}
	return fail_self_test(leak, err);
}

/* The last self-test: checks that the filter refuses clone3 with ENOSYS, and that "/" is read-only.
 * The filter never allows clone3, and the observer never handles it. */
int skill_try_filter(struct stage *s, struct ssb_error *err)
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
	return fail_self_test(leak, err);
}

/* Moves the streams to fds 0, 1 and 2. */
static int place_streams(const struct stage *s, struct ssb_error *err)
{
	int up[3];
	int failed = s->config->pty ? ioctl(s->stdio[0], TIOCSCTTY, 0) : 0;

	/* Each fd may have the number of another stream: move all three up first. */
	for (int i = 0; i < 3 && failed == 0; i++) {
		up[i] = fcntl(s->stdio[i], F_DUPFD_CLOEXEC, 10);
		failed = up[i] < 0 ? -1 : 0;
	}
	for (int i = 0; i < 3 && failed == 0; i++) {
		failed = dup2(up[i], i) < 0 ? -1 : 0;
	}
	return failed == 0 ? 0
	                   : ssb_fail(err, SSB_E_SYS, errno, "streams",
	                              "cannot open the skill's streams");
}

static char **skill_argv(const struct stage *s)
{
	return s->config->namespaces ? s->config->plan->argv.v : s->config->argv;
}

static char **skill_env(const struct stage *s)
{
	return s->config->namespaces ? s->config->plan->env.v : s->config->env;
}

/* Writes the path of `name` in the first directory of *path to `ret`, and advances *path to
 * the next directory. Returns false if the path is too long. */
static bool next_file(const char **path, const char *name, char ret[PATH_MAX])
{
	size_t n = strcspn(*path, ":");
	int len =
	        snprintf(ret, PATH_MAX, "%.*s/%s", n == 0 ? 1 : (int)n, n == 0 ? "." : *path, name);

	*path += n + ((*path)[n] == ':');
	return len >= 0 && len < PATH_MAX;
}

/* Sets s->path to the rest of PATH that begins with the first directory that contains the program,
 * or to all of PATH if none contains it. This saves failing execve calls: once the filter is
 * loaded, each one would have to wait for the supervisor. So it must run before that. */
int skill_find_program(struct stage *s, struct ssb_error *err)
{
	char **env = skill_env(s);
	char file[PATH_MAX];

	(void)err;
	s->path = "/usr/local/bin:/usr/bin:/bin";
	for (size_t i = 0; i < s->config->plan->env.n; i++) {
		if (strncmp(env[i], "PATH=", 5) == 0) {
			s->path = env[i] + 5;
		}
	}
	if (s->config->payload != NULL || strchr(skill_argv(s)[0], '/') != NULL) {
		return 0;
	}
	for (const char *here = s->path, *next = here; *next != '\0'; here = next) {
		if (next_file(&next, skill_argv(s)[0], file) &&
		    (faccessat(AT_FDCWD, file, F_OK, 0) == 0 || !file_is_missing(errno))) {
			s->path = here;
			return 0;
		}
	}
	return 0;
}

/* Like execvp() with s->path, inside the sandbox's view. Returns only on failure. */
static void exec_program(const struct stage *s, struct ssb_error *err)
{
	const char *path = s->path;
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
	/* For a bare command, the caller finds the program and prints the whole command. */
	const char *slash = strrchr(argv[0], '/');
	bool skill = s->config->plan->skill_dir != NULL && slash != NULL && slash > argv[0] &&
	             strncmp(argv[0], "/skill/", strlen("/skill/")) != 0;
	ssb_fail(err, SSB_E_NOT_FOUND, denied, "entrypoint",
	         "'%.200s', or the interpreter that it names, is not in the sandbox%s%.*s", argv[0],
	         skill                             ? "; to show it: --read "
	         : s->config->plan->toolchain_auto ? ""
	                                           : "; --toolchain auto may show it",
	         skill ? (int)(slash - argv[0]) : 0, argv[0]);
}

static int fail_pty(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_SYS, errno, "pty", "cannot open a terminal for the skill");
}

/* Opens a pty in the sandbox's own devpts, so the view must be ready. The slave becomes the three
 * streams; the supervisor gets the master. */
int skill_open_pty(struct stage *s, struct ssb_error *err)
{
	struct msg m = { .kind = MSG_PTY };
	int unlock = 0;

	if (!s->config->pty) {
		return 0;
	}
	auto_fd master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) != 0) {
		return fail_pty(err);
	}
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || msg_fds_send(s->ctl, &m, sizeof(m),
	                              &(struct msg_fds){ .v = { master }, .n = 1 }) != 0) {
		return fail_pty(err);
	}
	for (int i = 0; i < 3; i++) {
		s->stdio[i] = slave;
	}
	return place_streams(s, err);
}

/* Reads the address of the command line in memory from fields 48 and 49 of /proc/self/stat, the
 * only reliable source. If that fails, returns an address and length of 0. */
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

/* Sends init the address of the arguments. The message also means that init may enter the
 * namespaces of this process. */
int skill_tell_init(struct stage *s, struct ssb_error *err)
{
	(void)err;
	s->arguments = find_arguments();
	if (write(s->meet, &s->arguments, sizeof(s->arguments)) != (ssize_t)sizeof(s->arguments)) {
		_exit(125); /* init has reported the reason */
	}
	return 0;
}

/* Does most of the work of layer_caps() early, while init builds the view. */
int skill_unbind_caps(struct stage *s, struct ssb_error *err)
{
	(void)err;
	s->unbound = caps_unbound() == 0;
	return 0;
}

/* Waits until init has completed the view. Detaches the host's root unless init has done so. */
int skill_take_view(struct stage *s, struct ssb_error *err)
{
	struct view_ready ready;

	if (read(s->meet, &ready, sizeof(ready)) != (ssize_t)sizeof(ready)) {
		_exit(125); /* init has reported the reason */
	}
	s->unix_sockets = ready.unix_sockets;
	s->reports[LAYER_USERNS] = ready.userns;
	s->reports[LAYER_MOUNTS] = ready.mounts;
	/* The id maps are written: init wrote them before the view. */
	if (s->config->namespaces && layer_take_ids(s, err) != 0) {
		return -1;
	}
	if (s->config->namespaces && !ready.sealed && layer_seal_mounts(err) != 0) {
		return -1;
	}
	stage_wipe_memory(&s->arguments);
	return 0;
}

/* Waits for init's message that the skill may start: the record is on disk. */
int skill_wait_start(struct stage *s, struct ssb_error *err)
{
	struct start_order start;
	struct msg_fds cgroup;

	if (msg_fds_recv(s->meet, &start, sizeof(start), &cgroup) != (ssize_t)sizeof(start)) {
		_exit(125); /* init has reported the reason */
	}
	s->watchdog = start.watchdog;
	s->nice = start.nice;
	s->reports[LAYER_LIMITS] = start.limits;
	if (share_leave_realtime() != 0 || share_shed_caller() != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits",
		                "cannot give up the caller's priority or personality");
	}
	/* Each process joins the cgroup by itself: moving another process is far slower. */
	if (cgroup.n > 0 && cgroup_join(cgroup.v, cgroup.n) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits", "cannot enter the cgroup");
	}
	msg_fds_close(&cgroup);
	return 0;
}

static const char *workdir_of(const struct stage *s)
{
	return s->config->namespaces ? s->config->plan->workdir : s->config->workdir;
}

/* Enters the working directory. The path may contain symlinks of the skill or of an image. So the
 * host's root must be detached before: until then ".." from "/" can lead to it. The path must not
 * pass /proc/self/fd or cwd either: directories of the host are still open there. */
int skill_enter_workdir(struct stage *s, struct ssb_error *err)
{
	const char *workdir = workdir_of(s);
	auto_fd dir = file_openat2(AT_FDCWD, workdir, O_PATH | O_DIRECTORY, RESOLVE_NO_MAGICLINKS);

	return dir < 0 || fchdir(dir) != 0 ? ssb_fail(err, SSB_E_SYS, errno, "workdir",
	                                              "'%.200s' is not in the sandbox", workdir)
	                                   : 0;
}

/* Unblocks all signals. stage_main() has reset their handlers. */
static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Drops what the skill must not share with the caller: fds, signal mask, session, umask. */
int skill_leave_caller(struct stage *s, struct ssb_error *err)
{
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "fds",
		                "cannot close the caller's files: close_range needs Linux 5.11");
	}
	unblock_signals();
	/* Without a session of its own, the skill could signal the caller with kill(0). */
	if (setsid() < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "skill",
		                "cannot start a new session (setsid) for the skill");
	}
	umask(022);
	return s->config->pty ? 0 : place_streams(s, err);
}

/* Closes the directories of the host that were opened to build the layers. They are CLOEXEC, but
 * execve closes them too late: it first follows the paths of the program and of its interpreter,
 * which could lead through /proc/self/fd into these directories. */
int skill_close_others(struct stage *s, struct ssb_error *err)
{
	const int kept[] = { s->ctl, s->meet, s->config->exec_fd, s->config->payload_fd };

	return file_close_others(STDERR_FILENO + 1, kept, ARRAY_LEN(kept)) != 0
	               ? ssb_fail(err, SSB_E_LAYER, errno, "fds",
	                          "cannot close the remaining files")
	               : 0;
}

/* Sends the reports of all layers: execve is next. */
int skill_report(struct stage *s, struct ssb_error *err)
{
	struct msg m = { .kind = MSG_STARTED };

	(void)err;
	memcpy(m.reports, s->reports, sizeof(m.reports));
	(void)!write(s->ctl, &m, sizeof(m));
	return 0;
}

static _Noreturn void run_payload(const struct stage_config *config)
{
	/* The kernel blocks an observed call until the supervisor has fetched the listener. For a
	 * skill, execve waits for this; a payload has no execve, so this open() waits. */
	(void)close(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	/* Close all other fds, as execve would do. */
	if (dup2(config->payload_fd, 3) < 0 || close_range(4, ~0U, 0) != 0) {
		_exit(125);
	}
	_exit(config->payload(3, config->payload_arg));
}

_Noreturn void skill_main(struct stage *s)
{
	struct ssb_error err = { 0 };

	stage_take_steps(s, BY_SKILL);
	if (s->config->payload != NULL) {
		run_payload(s->config);
	}
	exec_program(s, &err);
	stage_die(s, &err);
}
