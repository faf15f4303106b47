/* prove_world.c - plants and removes the decoys for the attacks of `prove`.
 *
 * All decoys are new and belong to the owner: a directory with a secret in it, sockets, shared
 * memory, a sleeping process. prove_world_done() removes all of it, even if only a part was
 * planted. If this machine does not allow a decoy (no /dev/shm, no loopback), the decoy is left out
 * and its attack is void. */
#include "sandbox/prove.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/own.h"
#include "base/string_list.h"
#include "policy/path.h"
#include "policy/view.h"

#define HIGH_FD 1100

/* ---- what the plan shows ---------------------------------------------------------- */

bool prove_granted(const struct ssb_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_grants; i++) {
		const char *target = plan->grants[i].target;
		if (path_beneath(path, target) != NULL || path_beneath(target, path) != NULL) {
			return true;
		}
	}
	return false;
}

bool prove_granted_write(const struct ssb_plan *plan, const char *path)
{
	return ARRAY_HAS(e, plan->grants, plan->n_grants,
	                 e->access == ACCESS_WRITE && path_beneath(path, e->target) != NULL);
}

ino_t prove_own_ns(const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* ---- files -------------------------------------------------------------------------- */

static int draw_secret(struct prove_world *w)
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw)) {
		return -1;
	}
	hex_encode(raw, sizeof(raw), w->secret);
	return 0;
}

/* Makes the directory of the decoys in the owner's home, where the real secrets are. If the plan
 * grants the home, makes it in another writable directory. */
static int plant_dir(struct prove_world *w)
{
	for (size_t i = VIEW_ROWS + 1; i > 0; i--) {
		const struct view_row *r = i <= VIEW_ROWS ? &VIEW[i - 1] : NULL;
		const char *place = r == NULL                  ? w->plan->home
		                    : r->shown == VIEW_PRIVATE ? r->path
		                                               : NULL;
		char dir[PATH_MAX];
		if (place == NULL) {
			continue;
		}
		int n = snprintf(dir, sizeof(dir), "%s/.ssb-prove-XXXXXX", place);
		bool fits = n > 0 && (size_t)n < sizeof(dir);
		if (fits && !prove_granted(w->plan, dir) && mkdtemp(dir) != NULL) {
			snprintf(w->dir, sizeof(w->dir), "%s", dir);
			return 0;
		}
	}
	return -1;
}

static int plant_secret(const char *path, const char *secret)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0 && write(fd, secret, strlen(secret)) != (ssize_t)strlen(secret)) {
		own_close(&fd);
	}
	return fd;
}

static void plant_handle(struct prove_world *w)
{
	struct file_handle *h = (struct file_handle *)(void *)w->handle;
	int mount_id = 0;

	h->handle_bytes = MAX_HANDLE_SZ;
	w->have_handle = name_to_handle_at(AT_FDCWD, w->decoy, h, &mount_id, 0) == 0;
}

/* Opens the two fds that attacks look for. They are the only fds of this program without CLOEXEC,
 * so every process inherits them. */
static void plant_fds(struct prove_world *w, int decoy)
{
	struct rlimit old;

	w->low_fd = fcntl(decoy, F_DUPFD, 5);
	if (getrlimit(RLIMIT_NOFILE, &old) != 0) {
		return;
	}
	/* An fd above the limit stays open when the limit goes down again. */
	struct rlimit high = { old.rlim_max, old.rlim_max };
	(void)setrlimit(RLIMIT_NOFILE, &high);
	w->high_fd = fcntl(decoy, F_DUPFD, HIGH_FD);
	(void)setrlimit(RLIMIT_NOFILE, &old);
}

static int plant_files(struct prove_world *w, struct ssb_error *err)
{
	struct stat st;

	if (draw_secret(w) != 0 || plant_dir(w) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "prove",
		                "cannot make a directory for the decoys in %s or /tmp",
		                w->plan->home != NULL ? w->plan->home : "the home directory");
	}
	snprintf(w->decoy, sizeof(w->decoy), "%s/secret", w->dir);
	auto_fd fd = plant_secret(w->decoy, w->secret);
	if (fd < 0 || fstat(fd, &st) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "prove", "cannot write a decoy in '%.200s'",
		                w->dir);
	}
	w->decoy_dev = st.st_dev;
	w->decoy_ino = st.st_ino;
	plant_handle(w);
	plant_fds(w, fd);

	char name[64];
	snprintf(name, sizeof(name), "/dev/shm/ssb-prove-%.16s", w->secret);
	auto_fd shm = plant_secret(name, w->secret);
	if (shm >= 0) {
		snprintf(w->shm_path, sizeof(w->shm_path), "%s", name);
	}
	return 0;
}

/* ---- sockets and shared memory ------------------------------------------------------- */

static int listen_on(const struct sockaddr *addr, socklen_t len)
{
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && (bind(fd, addr, len) != 0 || listen(fd, 8) != 0)) {
		own_close(&fd);
	}
	return fd;
}

static void plant_sockets(struct prove_world *w)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);

	int n = snprintf(w->unix_path, sizeof(w->unix_path), "%s/socket", w->dir);
	if (n > 0 && (size_t)n < sizeof(un.sun_path)) {
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", w->unix_path);
		w->unix_fd = listen_on((struct sockaddr *)&un, sizeof(un));
	}
	snprintf(w->abstract, sizeof(w->abstract), "ssb-prove-%.16s", w->secret);
	memset(un.sun_path, 0, sizeof(un.sun_path));
	memcpy(un.sun_path + 1, w->abstract, strlen(w->abstract));
	size_t size = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(w->abstract);
	w->abstract_fd = listen_on((struct sockaddr *)&un, (socklen_t)size);

	w->tcp_fd = listen_on((struct sockaddr *)&in, sizeof(in));
	if (w->tcp_fd >= 0 && getsockname(w->tcp_fd, (struct sockaddr *)&in, &len) == 0) {
		w->tcp_port = ntohs(in.sin_port);
	}
}

static void plant_shm(struct prove_world *w)
{
	w->shm_id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	void *p = w->shm_id < 0 ? (void *)-1 : shmat(w->shm_id, NULL, 0);
	if (p != (void *)-1) {
		memcpy(p, w->secret, sizeof(w->secret));
		(void)shmdt(p);
	}
}

/* ---- the sleeping process --------------------------------------------------------------- */

static volatile unsigned *hits; /* shared memory: the helper's signal handler counts in it */

static void count_hit(int sig)
{
	(void)sig;
	(*hits)++;
}

/* The helper process. It ends when its parent ends, for any reason. */
static _Noreturn void helper_main(const struct prove_world *w, int ready)
{
	hits = w->helper_hits;
	(void)signal(SIGURG, count_hit);
	(void)prctl(PR_SET_NAME, w->helper_comm);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Yama may allow only an ancestor to attach; this decoy allows every process. */
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	(void)!write(ready, "", 1);
	alarm(300);
	for (;;) {
		(void)pause();
	}
}

static int plant_helper(struct prove_world *w, struct ssb_error *err)
{
	int ready[2] = { -1, -1 };
	char c;

	snprintf(w->helper_comm, sizeof(w->helper_comm), "ssb%.12s", w->secret);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || pipe2(ready, O_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "prove", "cannot prepare a decoy process");
	}
	w->helper_hits = page;
	pid_t pid = fork();
	if (pid == 0) {
		helper_main(w, ready[1]);
	}
	(void)close(ready[1]);
	ssize_t n = pid > 0 ? read(ready[0], &c, 1) : -1;
	(void)close(ready[0]);
	w->helper = pid > 0 ? pid : 0;
	return n == 1 ? 0
	              : ssb_fail(err, SSB_E_SYS, errno, "prove", "cannot start a decoy process");
}

/* ---- the environment ---------------------------------------------------------------------- */

/* Chooses as token the longest variable that the plan withholds. It must have been in the
 * environment when this process started, because setenv() does not change /proc/PID/environ. */
static void choose_env_token(struct prove_world *w)
{
	static char text[64 * 1024];
	size_t best = 8; /* a shorter text may occur elsewhere by chance */

	auto_fd fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	for (char *p = text; n > 0 && p < text + n; p += strlen(p) + 1) {
		size_t len = strlen(p);
		if (len > best && len < sizeof(w->env_token) &&
		    !string_list_has(&w->plan->env, p)) {
			snprintf(w->env_token, sizeof(w->env_token), "%s", p);
			best = len;
		}
	}
	explicit_bzero(text, sizeof(text));
}

/* ---- all of it ------------------------------------------------------------------------------ */

int prove_world_init(struct prove_world *w, const struct ssb_plan *plan, struct ssb_error *err)
{
	*w = (struct prove_world){
		.plan = plan,
		.out_fd = -1,
		.low_fd = -1,
		.high_fd = -1,
		.unix_fd = -1,
		.abstract_fd = -1,
		.tcp_fd = -1,
		.shm_id = -1,
		.session = getsid(0),
	};
	w->secret_at = w->secret;
	w->pid_ns = prove_own_ns("pid");
	w->user_ns = prove_own_ns("user");
	if (plant_files(w, err) != 0 || plant_helper(w, err) != 0) {
		prove_world_done(w);
		return -1;
	}
	plant_sockets(w);
	plant_shm(w);
	choose_env_token(w);
	if (setenv(PROVE_CANARY, w->secret, 1) != 0) {
		prove_world_done(w);
		return ssb_fail(err, SSB_E_NOMEM, 0, "prove", "out of memory");
	}
	return 0;
}

void prove_world_done(struct prove_world *w)
{
	int *const fds[] = { &w->low_fd, &w->high_fd, &w->unix_fd, &w->abstract_fd, &w->tcp_fd };

	(void)unsetenv(PROVE_CANARY);
	if (w->helper > 0) {
		(void)kill(w->helper, SIGKILL);
		(void)waitpid(w->helper, NULL, 0);
		w->helper = 0;
	}
	if (w->helper_hits != NULL) {
		(void)munmap((void *)(uintptr_t)w->helper_hits, 4096);
		w->helper_hits = NULL;
	}
	if (w->shm_id >= 0) {
		(void)shmctl(w->shm_id, IPC_RMID, NULL);
		w->shm_id = -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		own_close(fds[i]);
	}
	if (w->shm_path[0] != '\0') {
		(void)unlink(w->shm_path);
	}
	if (w->dir[0] != '\0') {
		(void)unlink(w->unix_path);
		(void)unlink(w->decoy);
		(void)rmdir(w->dir);
	}
	explicit_bzero(w->env_token, sizeof(w->env_token));
}
