/* herald.c - starts the process that delivers messages. This process, the herald, is this
 * executable, started again through /proc/self/exe under another name. Its environment has little
 * more than the variables that its libraries read.
 *
 * There is one lock per state directory. If a herald finds that another herald has the lock, it
 * ends at once. The message for which it was started is not lost: it is already in the outbox, and
 * the herald with the lock checks the outbox once more after it has released the lock. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/detach.h"
#include "os/file.h"
#include "policy/owner.h"
#include "session/herald.h"

#define HERALD     "skillsandbox-herald"
#define KEPT       64
#define HARD_S     (HERALD_TOTAL_MS / 1000 + 60) /* limit for the process if a call never returns */
#define MEMORY     ((size_t)256 << 20)
#define EXIT_SORRY 1

static bool able; /* true if main() has called herald_role() */

/* ---- what it does ------------------------------------------------------- */

static int open_lock(const struct owner *o)
{
	auto_fd dir = file_mkdirs(o->state_dir);

	if (dir < 0) {
		return -1;
	}
	return openat(dir, "herald.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
	              0600);
}

#define LOOK_MS 5 /* wait for the lock: another process holds it for a moment in is_at_work() */

static int deliver_all(struct session_store *ss, int lock)
{
	uint64_t deadline = clock_ms() + HERALD_TOTAL_MS;
	struct ssb_error err = { 0 };
	int64_t wait = 0;

	while (wait >= 0 && clock_ms() + (uint64_t)wait < deadline) {
		if (file_lock(lock, LOOK_MS) != 0) {
			return 0; /* another herald delivers them */
		}
		if (herald_deliver(ss, deadline, &err) != 0) {
			return EXIT_SORRY;
		}
		(void)flock(lock, LOCK_UN);
		if (outbox_wait(ss, &wait, &err) != 0) {
			return EXIT_SORRY;
		}
	}
	return 0;
}

static int herald_main(void)
{
	AUTO(owner_done) struct owner o = { 0 };
	struct session_store *ss = NULL;
	struct ssb_error err = { 0 };

	detach_settle(&(struct detach){
	        .name = "skillsandbox-he",
	        .seconds = HARD_S,
	        .memory = MEMORY,
	});
	if (owner_load(&o, &err) != 0) {
		return EXIT_SORRY;
	}
	auto_fd lock = open_lock(&o);
	if (lock < 0 || session_store_open(&o, &ss, &err) != 0) {
		return EXIT_SORRY;
	}
	int status = deliver_all(ss, lock);
	session_store_close(ss);
	return status;
}

int herald_role(char *const argv[])
{
	able = true;
	return argv[0] != NULL && strcmp(argv[0], HERALD) == 0 ? herald_main() : -1;
}

/* ---- how it is started -------------------------------------------------- */

/* Returns true for a variable that the herald's libraries read: place of the store, proxies,
 * certificates for TLS. */
static bool is_kept(const char *entry)
{
	static const char *const NAMES[] = {
		"HOME",        "USER",          "XDG_STATE_HOME", "XDG_CONFIG_HOME", "http_proxy",
		"https_proxy", "HTTPS_PROXY",   "all_proxy",      "ALL_PROXY",       "no_proxy",
		"NO_PROXY",    "SSL_CERT_FILE", "SSL_CERT_DIR",   "LD_LIBRARY_PATH",
	};
	size_t len = strcspn(entry, "=");

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		if (strlen(NAMES[i]) == len && memcmp(NAMES[i], entry, len) == 0) {
			return true;
		}
	}
	/* variables of libpq (PG...) and about collectors (OTEL_...) */
	return strncmp(entry, "PG", 2) == 0 || strncmp(entry, "OTEL_", 5) == 0;
}

/* Returns true if a herald is running. That herald will deliver all messages that are in the outbox
 * now, because it checks the outbox again after it has released the lock. So an agent that acts
 * often does not start a process for each action. */
static bool is_at_work(const struct owner *o)
{
	auto_fd dir = open(o->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_fd lock = dir < 0 ? -1
	                       : openat(dir, "herald.lock",
	                                O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

static void keep_environment(const struct owner *o, char *ret[KEPT + 1])
{
	size_t n = 0;

	for (char *const *e = o->environ; e != NULL && *e != NULL && n < KEPT; e++) {
		if (is_kept(*e)) {
			ret[n++] = *e;
		}
	}
	ret[n] = NULL;
}

static _Noreturn void give_up(int report)
{
	int error = errno;

	(void)!write(report, &error, sizeof(error));
	_exit(EXIT_SORRY);
}

/* Runs in the grandchild. Only /dev/null stays open. */
static _Noreturn void become_herald(char *const env[], int report)
{
	char name[] = HERALD;
	char *argv[] = { name, NULL };
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (none >= 0 && dup2(none, 0) == 0 && dup2(none, 1) == 1 && dup2(none, 2) == 2 &&
	    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
		(void)execve("/proc/self/exe", argv, env);
	}
	give_up(report);
}

/* Puts the herald into a new process session (setsid()), and makes it a child of init. */
static _Noreturn void fork_away(char *const env[], int report)
{
	pid_t pid = setsid() < 0 ? -1 : fork();

	if (pid < 0) {
		give_up(report);
	}
	if (pid == 0) {
		become_herald(env, report);
	}
	_exit(0);
}

/* Waits until the exec of the herald closes `report`. If the exec failed, reads its errno from
 * `report`. */
static int wait_for_exec(int report, struct ssb_error *err)
{
	int error = 0;
	ssize_t n;

	do {
		n = read(report, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	return n == 0 ? 0 : ssb_fail(err, SSB_E_SYS, error, "notify", "start the herald");
}

int herald_start(const struct owner *o, struct ssb_error *err)
{
	char *env[KEPT + 1];
	int ends[2];

	if (!able) {
		return ssb_fail(
		        err, SSB_E_USAGE, 0, "notify",
		        "this program cannot start the process that sends messages (herald)");
	}
	if (is_at_work(o)) {
		return 0;
	}
	keep_environment(o, env);
	if (pipe2(ends, O_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "notify", "pipe");
	}
	auto_fd from = ends[0];
	auto_fd to = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
	(void)close(ends[1]);
	pid_t pid = to < 0 ? -1 : fork();
	if (pid < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "notify", "fork");
	}
	if (pid == 0) {
		fork_away(env, to);
	}
	own_close(&to);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
	}
	return wait_for_exec(from, err);
}
