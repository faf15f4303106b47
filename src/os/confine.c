/* confine.c - takes rights away from processes of the runtime before they read a hostile byte. */
#include "os/confine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "os/seccomp.h"

/* The directories that resolvers read: their settings, their modules, and the files of local name
 * services. On some hosts all of these are elsewhere, and /etc contains only symlinks. Connecting
 * to a unix socket by its path needs no rule, because Landlock does not restrict it. */
static const char *const READS[] = {
	"/etc",        "/usr",         "/lib",
	"/lib32",      "/lib64",       "/libx32",
	"/run",        "/var/run",     "/var/lib/sss",
	"/var/db",     "/var/cache",   "/var/lib/extrausers",
	"/nix/store",  "/gnu/store",   "/var/guix/profiles",
	"/dev/random", "/dev/urandom",
};

/* If these files are symlinks, a rename may replace their targets. So the directory of the target
 * is allowed. */
static const char *const LINKS[] = {
	"/etc/resolv.conf", "/etc/hosts",    "/etc/nsswitch.conf",
	"/etc/host.conf",   "/etc/gai.conf", "/etc/services",
};

static int fail_confine(struct ssb_error *err, const char *what)
{
	return ssb_fail(err, SSB_E_LAYER, errno, "egress", "cannot confine: %s", what);
}

/* Allows reading `path`. A path that does not exist needs no rule. */
static int allow_read(int rules, int abi, const char *path, struct ssb_error *err)
{
	auto_fd fd = open(path, O_PATH | O_CLOEXEC);

	return fd >= 0 && landlock_allow(rules, abi, fd, LL_READ) != 0 ? fail_confine(err, path)
	                                                               : 0;
}

/* Allows reading the directory that contains the target of a link, unless that is "/". */
static int allow_target(int rules, int abi, const char *link, struct ssb_error *err)
{
	char target[PATH_MAX];

	if (realpath(link, target) == NULL) {
		return 0;
	}
	char *slash = strrchr(target, '/');
	if (slash != NULL && slash != target) {
		*slash = '\0';
	}
	return allow_read(rules, abi, target, err);
}

static int enforce_rules(int rules, struct ssb_error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
		return fail_confine(err, "prctl");
	}
	return rules >= 0 && landlock_enforce(rules) != 0 ? fail_confine(err, "landlock") : 0;
}

/* Makes an empty set of rules. If the kernel has no Landlock, sets *ret_rules to -1 and succeeds:
 * the owner has accepted a run without Landlock, otherwise the run was refused before. */
static int new_rules(int *ret_abi, int *ret_rules, struct ssb_error *err)
{
	int abi = landlock_abi();
	int rules = abi > 0 ? landlock_new(abi) : -1;

	if (abi > 0 && rules < 0) {
		return fail_confine(err, "landlock");
	}
	*ret_abi = abi;
	*ret_rules = rules;
	return 0;
}

int confine_to_fds(struct ssb_error *err)
{
	int abi = 0;
	auto_fd rules = -1;

	if (new_rules(&abi, &rules, err) != 0 || enforce_rules(rules, err) != 0) {
		return -1;
	}
	own_close(&rules);
	return seccomp_load_broker(err);
}

int confine_dialler(struct ssb_error *err)
{
	int abi = 0;
	auto_fd rules = -1;

	if (new_rules(&abi, &rules, err) != 0) {
		return -1;
	}
	for (size_t i = 0; rules >= 0 && i < ARRAY_LEN(READS); i++) {
		if (allow_read(rules, abi, READS[i], err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; rules >= 0 && i < ARRAY_LEN(LINKS); i++) {
		if (allow_target(rules, abi, LINKS[i], err) != 0) {
			return -1;
		}
	}
	if (enforce_rules(rules, err) != 0) {
		return -1;
	}
	own_close(&rules);
	return seccomp_load_dialler(err);
}

/* Drops all capabilities. Only a privileged process can empty the bounding set. For any other
 * process, dropping the other sets is enough because of no_new_privs. */
static int drop_caps(struct ssb_error *err)
{
	if (caps_drop(0) != 0 && (caps_set(0) != 0 || !caps_none(false))) {
		return fail_confine(err, "capabilities");
	}
	return 0;
}

void confine_or_exit(int (*confine)(struct ssb_error *), int ready)
{
	struct ssb_error word = { 0 };
	int failed = drop_caps(&word) != 0 || confine(&word) != 0;

	if (ready >= 0) {
		(void)!write(ready, &word,
		             sizeof(word)); /* atomic, because it is smaller than PIPE_BUF */
		(void)close(ready);
	}
	if (failed != 0) {
		_exit(1);
	}
}

int confine_wait(int ready, int n, struct ssb_error *err)
{
	assert(ready >= 0 && n > 0);
	for (int i = 0; i < n; i++) {
		struct ssb_error word = { 0 };
		ssize_t got = 0;
		do {
			got = read(ready, &word, sizeof(word));
		} while (got < 0 && errno == EINTR);
		if (got != (ssize_t)sizeof(word)) {
			return ssb_fail(
			        err, SSB_E_LAYER, 0, "egress",
			        "a process of the egress broker ended before it was confined");
		}
		if (word.code != SSB_OK) {
			*err = word;
			return -1;
		}
	}
	return 0;
}
