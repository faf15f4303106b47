/* test_confine.c - the calls that broker and dialler can make after they are confined, tested in
 * real processes. The control: each denied call first succeeds without the confinement. */
#include "os/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nss.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/clone.h"
#include "os/net.h"

static const struct address LOOPBACK = { { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

/* Runs `live` in a child process. Returns its exit status, or minus the number of the signal that
 * killed it. */
static int life(int (*live)(void))
{
	int wstatus;
	pid_t pid = fork();

	if (pid == 0) {
		_exit(live());
	}
	assert_int_equal(waitpid(pid, &wstatus, 0), pid);
	return WIFSIGNALED(wstatus) ? -WTERMSIG(wstatus) : WEXITSTATUS(wstatus);
}

static bool confined(int (*confine)(struct ssb_error *))
{
	struct ssb_error err = { 0 };

	if (confine(&err) != 0) {
		fprintf(stderr, "%s: %s\n", err.where, err.text);
		return false;
	}
	return true;
}

/* ---- the broker ------------------------------------------------------------ */

/* Returns a connected socket that its server has reset. *ret_other is a listener on another
 * port. */
static int reset_socket(int *ret_other)
{
	int first = net_listen(&LOOPBACK, SOCK_STREAM, 4100, false);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons(4100),
		                  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct linger now = { .l_onoff = 1 };

	*ret_other = net_listen(&LOOPBACK, SOCK_STREAM, 4101, false);
	(void)connect(fd, (struct sockaddr *)&to, sizeof(to));
	(void)poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 1000);
	int peer = accept4(first, NULL, NULL, SOCK_CLOEXEC);
	(void)setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(peer);
	(void)close(first);
	(void)poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 1000);
	return fd;
}

/* Tries to connect the socket of reset_socket() to the other listener. Returns 0 if that worked. */
static int reconnect(bool confine)
{
	int other;
	int fd = reset_socket(&other);
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons(4101),
		                  .sin_addr = { htonl(INADDR_LOOPBACK) } };

	if (confine && !confined(confine_to_fds)) {
		return 9;
	}
	for (int i = 0; i < 3; i++) {
		(void)sendto(fd, "loot", 4, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&to,
		             sizeof(to));
	}
	return poll(&(struct pollfd){ .fd = other, .events = POLLIN }, 1, 1000) == 1 ? 0 : 1;
}

static int reconnect_free(void)
{
	return reconnect(false);
}

static int reconnect_confined(void)
{
	return reconnect(true);
}

static void broker_cannot_reconnect(void **state)
{
	assert_int_equal(life(reconnect_free), 0);
	assert_int_equal(life(reconnect_confined), -SIGSYS);
}

static int broker_life(void)
{
	struct linger now = { .l_onoff = 1 };
	int pair[2], pipes[2];
	char c;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
	    !confined(confine_to_fds)) {
		return 9;
	}
	return pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0 &&
	                       send(pair[0], "x", 1, MSG_NOSIGNAL) == 1 &&
	                       recv(pair[1], &c, 1, MSG_DONTWAIT) == 1 &&
	                       setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0 &&
	                       shutdown(pair[0], SHUT_WR) == 0
	               ? 0
	               : 1;
}

static int broker_option(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int)) != 0 ||
	    !confined(confine_to_fds)) {
		return 9;
	}
	return setsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int));
}

static void broker_sets_what_it_needs(void **state)
{
	assert_int_equal(life(broker_life), 0);
	assert_int_equal(life(broker_option), -SIGSYS);
}

/* ---- the dialler ----------------------------------------------------------- */

static void *nothing(void *arg)
{
	return arg;
}

/* Each function do_NAME() returns 0 if its operation worked. */
static int do_thread(void)
{
	pthread_t t;
	return pthread_create(&t, NULL, nothing, NULL) != 0 || pthread_join(t, NULL) != 0;
}

static int do_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int do_read_settings(void)
{
	return do_open("/etc/hosts", O_RDONLY);
}

static int do_read_elsewhere(void)
{
	return do_open("/tmp/secret", O_RDONLY);
}

static int do_read_root(void)
{
	return do_open("/", O_RDONLY);
}

static int do_write(void)
{
	return do_open("/run/secret", O_WRONLY);
}

static int do_create(void)
{
	return do_open("/run/new", O_WRONLY | O_CREAT);
}

static int do_unlink(void)
{
	return unlink("/run/spare");
}

static int do_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		_exit(0);
	}
	return pid < 0 ? -1 : waitpid(pid, NULL, 0) != pid;
}

static int do_exec(void)
{
	char *const argv[] = { (char *)"true", NULL };
	return execv("/bin/true", argv);
}

static int do_trace(void)
{
	return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static int do_namespace(void)
{
	return unshare(CLONE_NEWNS);
}

static int do_signal(void)
{
	return kill(getppid(), 0);
}

static int do_tcp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -1 : close(fd);
}

static int do_datagram_to_services(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -1 : close(fd);
}

static int do_listen(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -1 : listen(fd, 1);
}

static int resolves(const char *name, const char *service)
{
	struct addrinfo *list = NULL;
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };

	if (__nss_configure_lookup("hosts", service) != 0 ||
	    getaddrinfo(name, NULL, &hints, &list) != 0) {
		return -1;
	}
	freeaddrinfo(list);
	return 0;
}

static int do_resolve_by_files(void)
{
	return resolves("localhost", "files");
}

static int do_resolve_by_module(void)
{
	return resolves("module.test", "ssbtest");
}

static int (*step)(void);

static int step_free(void)
{
	return step() == 0 ? 0 : 1;
}

static int step_confined(void)
{
	return confined(confine_dialler) ? step_free() : 9;
}

static void dialler_can_only_dial(void **state)
{
	static const struct {
		const char *what;
		int (*step)(void);
		bool may;
	} CASES[] = {
		{ "thread", do_thread, true },
		{ "tcp", do_tcp, true },
		{ "settings", do_read_settings, true },
		{ "files", do_resolve_by_files, true },
		{ "module", do_resolve_by_module, true },
		{ "read elsewhere", do_read_elsewhere, false },
		{ "read /", do_read_root, false },
		{ "write", do_write, false },
		{ "create", do_create, false },
		{ "unlink", do_unlink, false },
		{ "fork", do_fork, false },
		{ "exec", do_exec, false },
		{ "ptrace", do_trace, false },
		{ "namespace", do_namespace, false },
		{ "signal", do_signal, false },
		{ "unix datagrams", do_datagram_to_services, false },
		{ "listen", do_listen, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		step = CASES[i].step;
		int in = life(step_confined);
		int out = life(step_free);
		if (in != (CASES[i].may ? 0 : 1) || out != 0) {
			fail_msg("%s: %d confined, %d free", CASES[i].what, in, out);
		}
	}
}

/* ---- the report of a confined process --------------------------------------- */

static int fails(struct ssb_error *err)
{
	err->code = SSB_E_LAYER;
	snprintf(err->text, sizeof(err->text), "on purpose");
	return -1;
}

static int works(struct ssb_error *err)
{
	return 0;
}

static int dies(struct ssb_error *err)
{
	_exit(0);
}

static int wait_for(int (*one)(struct ssb_error *), int (*two)(struct ssb_error *),
                    struct ssb_error *err)
{
	int p[2];
	pid_t pids[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			confine_or_exit(i == 0 ? one : two, p[1]);
			_exit(0);
		}
	}
	(void)close(p[1]);
	int r = confine_wait(p[0], 2, err);
	(void)close(p[0]);
	(void)waitpid(pids[0], NULL, 0);
	(void)waitpid(pids[1], NULL, 0);
	return r;
}

static void run_learns_of_failures(void **state)
{
	struct ssb_error err = { 0 };

	assert_int_equal(wait_for(works, works, &err), 0);
	assert_int_equal(wait_for(works, fails, &err), -1);
	assert_string_equal(err.text, "on purpose");
	err = (struct ssb_error){ 0 };
	assert_int_equal(wait_for(dies, works, &err), -1);
	assert_int_equal(err.code, SSB_E_LAYER);
	assert_non_null(strstr(err.text, "before it was confined"));
}

/* ---- capabilities ---------------------------------------------------------- */

static int has_none(struct ssb_error *err)
{
	return caps_none(true) ? 0 : fails(err);
}

static int has_none_to_use(struct ssb_error *err)
{
	return caps_none(false) ? 0 : fails(err);
}

static int drop_all(void)
{
	struct ssb_error err = { 0 };

	return !caps_none(false) && wait_for(has_none, has_none, &err) == 0 ? 0 : 1;
}

/* If the bounding set is not empty and the process may not empty it, caps_unbound() must fail. */
static int unbound_again(void)
{
	if (caps_set(1ULL << CAP_NET_ADMIN) != 0 || caps_unbound() == 0) {
		return 9;
	}
	return 0;
}

static int unbound_is_unbound(void)
{
	return caps_unbound() == 0 && caps_set(0) == 0 && caps_unbound() == 0 ? 0 : 1;
}

/* Root of a container without CAP_SETPCAP: the bounding set cannot be emptied, but no usable
 * capability remains. */
static int drop_without_setpcap(void)
{
	struct ssb_error err = { 0 };

	if (caps_set(1ULL << CAP_NET_ADMIN) != 0 || caps_none(false)) {
		return 9;
	}
	return wait_for(has_none_to_use, has_none_to_use, &err) == 0 ? 0 : 1;
}

static int drop_refused(void)
{
	struct ssb_error err = { 0 };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_capset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) != 0) {
		return 9;
	}
	return wait_for(works, works, &err) == -1 && err.code == SSB_E_LAYER &&
	                       strstr(err.text, "capabilities") != NULL
	               ? 0
	               : 1;
}

static void capabilities_are_gone_or_it_ends(void **state)
{
	assert_int_equal(life(drop_all), 0);
	assert_int_equal(life(drop_without_setpcap), 0);
	assert_int_equal(life(unbound_again), 0);
	assert_int_equal(life(unbound_is_unbound), 0);
	assert_int_equal(life(drop_refused), 0);
}

/* ---- the set-up of the machine --------------------------------------------- */

static void need(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void put(const char *path)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	need(fd >= 0 && write(fd, "x", 1) == 1, path);
}

/* Runs the service that nss_module.c asks: it answers each name with 127.0.0.1. */
static _Noreturn void serve(int sock)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;) {
		char name[256];
		auto_fd client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
		if (client >= 0 && read(client, name, sizeof(name)) > 0) {
			(void)!write(client, LOOPBACK.b + 12, 4);
		}
	}
}

static void copy_module(void)
{
	char path[4096];
	static char bytes[4 << 20];

	snprintf(path, sizeof(path), "%s/tests/unit/libnss_ssbtest.so.2", getenv("SSB_BUILD"));
	auto_fd from = open(path, O_RDONLY | O_CLOEXEC);
	auto_fd to = open("/run/libnss_ssbtest.so.2", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ssize_t n = read(from, bytes, sizeof(bytes));
	need(n > 0 && write(to, bytes, (size_t)n) == n, path);
}

static void map_ids(unsigned uid, unsigned gid)
{
	char uids[32], gids[32];

	snprintf(uids, sizeof(uids), "0 %u 1", uid);
	snprintf(gids, sizeof(gids), "0 %u 1", gid);
	need(clone_proc_write(AT_FDCWD, "/proc/self/setgroups", "deny") == 0 &&
	             clone_proc_write(AT_FDCWD, "/proc/self/uid_map", uids) == 0 &&
	             clone_proc_write(AT_FDCWD, "/proc/self/gid_map", gids) == 0,
	     "id maps");
}

/* Makes namespaces with their own /run, /tmp and network. */
static void make_world(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/run/ssbtest.sock" };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned uid = geteuid(), gid = getegid();

	need(unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0, "unshare");
	map_ids(uid, gid);
	need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount /");
	need(mount("run", "/run", "tmpfs", 0, NULL) == 0, "mount /run");
	copy_module(); /* before /tmp is hidden, because the build may be there */
	need(mount("tmp", "/tmp", "tmpfs", 0, NULL) == 0, "mount /tmp");
	need(net_loopback_up() == 0, "loopback");
	put("/tmp/secret");
	put("/run/secret");
	put("/run/spare");
	need(bind(sock, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(sock, 8) == 0,
	     "service");
	if (fork() == 0) {
		serve(sock);
	}
	(void)close(sock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_learns_of_failures),
		cmocka_unit_test(capabilities_are_gone_or_it_ends),
		cmocka_unit_test(broker_cannot_reconnect),
		cmocka_unit_test(broker_sets_what_it_needs),
		cmocka_unit_test(dialler_can_only_dial),
	};

	if (fork() == 0) {
		make_world();
		_exit(cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1);
	}
	int wstatus;
	(void)wait(&wstatus);
	return WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : 1;
}
