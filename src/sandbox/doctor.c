/* doctor.c - ssb_doctor(): checks which features this machine has for each layer, and says what to
 * do if one is missing.
 *
 * The table has one row per check. A row names either the one probe that decides (`id`), or a
 * function (`look`). The checks try each feature out and leave nothing behind. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/cgroup.h"
#include "os/landlock.h"
#include "os/probe.h"
#include "skillsandbox.h"

struct check_row {
	const char *name;
	/* fills ok, detail and, if not ok, remedy of the check; NULL: the probe `id` decides */
	void (*look)(struct ssb_check *c);
	enum probe_id id;
	const char *good;   /* detail if the feature is present */
	const char *remedy; /* what the owner can do if the feature is missing */
};

static void set_check(struct ssb_check *c, int ok, const char *detail, const char *remedy)
{
	c->ok = ok;
	snprintf(c->detail, sizeof(c->detail), "%s", detail);
	snprintf(c->remedy, sizeof(c->remedy), "%s", ok ? "" : remedy);
}

static const char *errno_text(int e)
{
	const char *s = strerrordesc_np(e);

	return s != NULL ? s : "unknown error";
}

/* ---- checks with a function ----------------------------------------------- */

static void look_kernel(struct ssb_check *c)
{
	char release[64] = "unknown";
	char text[128];
	unsigned major = 0;
	unsigned minor = 0;

	(void)probe_line("/proc/sys/kernel/osrelease", release, sizeof(release));
	snprintf(text, sizeof(text), "Linux %s (minimum %d.%d)", release, PROBE_MIN_MAJOR,
	         PROBE_MIN_MINOR);
	bool ok = probe_kernel(&major, &minor) == 0 && probe_version_ok(major, minor);
	set_check(c, ok, text, "install a newer kernel; on Debian 12 the stock one is new enough");
}

/* Settings that can forbid user namespaces: the value that forbids them, and the remedy. */
static const struct {
	const char *path;
	long bad;
	const char *detail;
	const char *remedy;
} USERNS_SWITCHES[] = {
	{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
	  "AppArmor restricts user namespaces",
	  "install an AppArmor profile for skillsandbox that has 'userns,', or as root: "
	  "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
	{ "/proc/sys/kernel/unprivileged_userns_clone", 0,
	  "the kernel refuses user namespaces to ordinary users",
	  "as root: sysctl -w kernel.unprivileged_userns_clone=1" },
	{ "/proc/sys/user/max_user_namespaces", 0, "the number of user namespaces is limited to 0",
	  "as root: sysctl -w user.max_user_namespaces=15000" },
};

static void look_userns(struct ssb_check *c)
{
	char text[160];
	int e = probe_feature(PROBE_USERNS);

	if (e == 0) {
		set_check(c, 1, "a new user namespace can be made", "");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(USERNS_SWITCHES); i++) {
		long v = 0;
		if (probe_sysctl(USERNS_SWITCHES[i].path, &v) == 0 && v == USERNS_SWITCHES[i].bad) {
			set_check(c, 0, USERNS_SWITCHES[i].detail, USERNS_SWITCHES[i].remedy);
			return;
		}
	}
	snprintf(text, sizeof(text), "cannot be made: %s", errno_text(e));
	set_check(c, 0, text,
	          "inside a container, start the container with user namespaces allowed; or "
	          "accept the loss with --best-effort userns (no egress, no sockets, no private "
	          "file view)");
}

static void look_landlock(struct ssb_check *c)
{
	char text[160];
	int abi = landlock_abi();

	snprintf(text, sizeof(text), "ABI %d%s", abi,
	         abi >= 6   ? ": files, abstract sockets and signals"
	         : abi >= 1 ? ": files (6 and newer also scope abstract sockets and signals)"
	                    : ": missing or switched off");
	set_check(c, abi > 0, text,
	          "boot with 'landlock' in the lsm= list, or accept the loss with --best-effort "
	          "landlock");
}

static void look_cgroup(struct ssb_check *c)
{
	const struct cgroup_limits limits = { .memory_bytes = 16 << 20, .max_processes = 4 };
	struct cgroup *cg = NULL;
	struct ssb_error why = { 0 };

	if (cgroup_create("doctor", &limits, &cg, &why) == 0) {
		set_check(c, 1, cgroup_describe(cg), "");
		cgroup_free(cg);
		return;
	}
	/* systemd itself makes this directory, and no other init does: sd_booted(3). */
	bool systemd = access("/run/systemd/system", F_OK) == 0;
	set_check(c, 0, why.text,
	          systemd ? "limits fall back to rlimits and a memory watchdog; for cgroups, start "
	                    "skillsandbox with: systemd-run --user --scope -p Delegate=yes"
	                  : "limits fall back to rlimits and a memory watchdog; a cgroup that you "
	                    "may write would be used");
}

static void look_idmap(struct ssb_check *c)
{
	char text[160];
	const char *home = getenv("HOME");

	if (geteuid() != 0) {
		set_check(c, 1, "not needed: you are not root", "");
		return;
	}
	const char *dir = home != NULL && home[0] == '/' ? home : "/";
	int e = probe_idmap(dir);
	snprintf(text, sizeof(text), "the file system of %.80s %s idmapped mounts%s%s", dir,
	         e == 0 ? "supports" : "does not allow", e == 0 ? "" : ": ",
	         e == 0 ? "" : errno_text(e));
	set_check(c, e == 0, text,
	          "the skill and declared reads are shown as read-only copies, and declared writes "
	          "fail; keep these directories on ext4, xfs, btrfs or tmpfs, or run as an "
	          "ordinary user");
}

static void look_groups(struct ssb_check *c)
{
	char groups[120];
	char text[200];

	if (geteuid() == 0) {
		set_check(c, 1, "you are root: the skill runs under its own unprivileged uid", "");
		return;
	}
	bool none = probe_risky_groups(groups, sizeof(groups)) == 0;
	snprintf(text, sizeof(text),
	         none ? "you are in no group that is equivalent to root" : "you are in: %s",
	         groups);
	set_check(
	        c, none, text,
	        "the skill's processes stay in these groups, and only the file view hides what the "
	        "groups can open; run as a user who is not in these groups, or grant no path that "
	        "such a group owns");
}

static void look_core_pattern(struct ssb_check *c)
{
	struct rlimit own = { .rlim_max = 1 };
	char taker = probe_core_taker();

	(void)getrlimit(RLIMIT_CORE, &own);
	if (taker == '@') {
		/* The kernel (6.16, coredump_socket()) sends the service no byte beyond the limit
		 * of core files, but it connects to the service. */
		set_check(c, 0,
		          "a service of the host receives core dumps by a socket: it learns of a "
		          "skill's crash, but does not get its memory",
		          "set kernel.core_pattern to a file or, with '|', to a program");
	} else if (taker == '|') {
		set_check(
		        c, own.rlim_max != 0,
		        own.rlim_max != 0
		                ? "a program of the host receives core dumps, but no core dumps "
		                  "of skills"
		                : "a program of the host receives core dumps, also of skills: "
		                  "the kernel starts it because your hard limit is 0",
		        "set the hard limit of core files to 1 or more (LimitCORE=, limits.conf): "
		        "a skill then gets the limit 1. The kernel starts the program with the "
		        "limit 0, but not with the limit 1");
	} else {
		set_check(c, 1, "core dumps are files; skills write none", "");
	}
}

/* ---- the table --------------------------------------------------------------- */

#define OLD_KERNEL "needs a newer kernel, or a container that does not filter the call"
#define IN_A_USERNS                                                                                \
	"check the seccomp profile of the outer container, and "                                   \
	"/proc/sys/user/max_*_namespaces"

static const struct check_row ROWS[] = {
	{ "kernel", look_kernel, 0, NULL, NULL },
	{ "userns", look_userns, 0, NULL, NULL },
	{ "mntns", NULL, PROBE_MNTNS, "mount namespace", IN_A_USERNS },
	{ "pidns", NULL, PROBE_PIDNS, "process namespace", IN_A_USERNS },
	{ "netns", NULL, PROBE_NETNS, "network namespace", IN_A_USERNS },
	{ "ipcns", NULL, PROBE_IPCNS, "IPC namespace", IN_A_USERNS },
	{ "utsns", NULL, PROBE_UTSNS, "host name namespace", IN_A_USERNS },
	{ "cgroupns", NULL, PROBE_CGROUPNS, "cgroup namespace", IN_A_USERNS },
	{ "proc", NULL, PROBE_PROC, "a fresh /proc can be mounted",
	  "the outer container masks parts of /proc: start that container with an unmasked /proc "
	  "(docker: --security-opt systempaths=unconfined)" },
	{ "tmpfs", NULL, PROBE_TMPFS, "private tmpfs mounts", IN_A_USERNS },
	{ "overlay", NULL, PROBE_OVERLAY, "read-only overlays in a user namespace",
	  "load the module as root: modprobe overlay; without it, declared reads are shown in "
	  "another way or refused" },
	{ "mount-api", NULL, PROBE_MOUNT_API, "fsopen, open_tree, move_mount", OLD_KERNEL },
	{ "mount-setattr", NULL, PROBE_MOUNT_SETATTR, "recursive read-only mounts", OLD_KERNEL },
	{ "idmap", look_idmap, 0, NULL, NULL },
	{ "landlock", look_landlock, 0, NULL, NULL },
	{ "seccomp", NULL, PROBE_SECCOMP, "system call filters",
	  "the kernel needs CONFIG_SECCOMP_FILTER" },
	{ "seccomp-notify", NULL, PROBE_SECCOMP_NOTIFY, "user notification",
	  "already used by an outer supervisor, or the kernel is too old: attempts are still "
	  "blocked, but not observed" },
	{ "openat2", NULL, PROBE_OPENAT2, "paths without symlinks", OLD_KERNEL },
	{ "close_range", NULL, PROBE_CLOSE_RANGE, "closes every inherited fd", OLD_KERNEL },
	{ "clone3", NULL, PROBE_CLONE3, "available", OLD_KERNEL },
	{ "pidfd", NULL, PROBE_PIDFD, "available", OLD_KERNEL },
	{ "cgroup", look_cgroup, 0, NULL, NULL },
	{ "groups", look_groups, 0, NULL, NULL },
	{ "core-dumps", look_core_pattern, 0, NULL, NULL },
};

static void look_feature(const struct check_row *row, bool userns, struct ssb_check *c)
{
	if (!userns && probe_needs_userns(row->id)) {
		set_check(c, 0, "needs a user namespace", "see userns");
		return;
	}
	int e = probe_feature(row->id);
	set_check(c, e == 0, e == 0 ? row->good : errno_text(e), row->remedy);
}

int ssb_doctor(struct ssb_check **ret_checks, size_t *ret_count, struct ssb_error *err)
{
	struct ssb_check *checks = calloc(ARRAY_LEN(ROWS), sizeof(*checks));
	bool userns = probe_feature(PROBE_USERNS) == 0;

	if (checks == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "doctor", "out of memory");
	}
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		checks[i].name = ROWS[i].name;
		if (ROWS[i].look != NULL) {
			ROWS[i].look(&checks[i]);
		} else {
			look_feature(&ROWS[i], userns, &checks[i]);
		}
	}
	*ret_checks = checks;
	*ret_count = ARRAY_LEN(ROWS);
	return 0;
}
