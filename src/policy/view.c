/* view.c - the table of what every sandbox shows. */
#include "policy/view.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "os/landlock.h"
#include "policy/path.h"

#define RX  (LL_READ | LL_EXEC)
#define RW  (LL_READ | LL_WRITE)
#define ALL (LL_READ | LL_EXEC | LL_WRITE | LL_CHANGE | LL_SPECIAL)

#define HOST(p)                                                                                    \
	{                                                                                          \
		(p), VIEW_HOST, ZONE_AROUND, 0, 0, NULL                                            \
	}
#define SYSTEM(p)                                                                                  \
	{                                                                                          \
		(p), VIEW_HOST, ZONE_SYSTEM, RX, VIEW_OURS | VIEW_ALWAYS, NULL                     \
	}
#define DEVICE(p)                                                                                  \
	{                                                                                          \
		(p), VIEW_DEVICE, ZONE_AROUND, 0, 0, NULL                                          \
	}
#define LINK(p, to)                                                                                \
	{                                                                                          \
		(p), VIEW_LINK, ZONE_AROUND, 0, 0, (to)                                            \
	}
#define FILE_AT(p)                                                                                 \
	{                                                                                          \
		(p), VIEW_FILE, ZONE_AROUND, 0, 0, NULL                                            \
	}
#define MASKED(p)                                                                                  \
	{                                                                                          \
		(p), VIEW_MASKED, ZONE_AROUND, 0, 0, NULL                                          \
	}
#define PARTIAL(p, c)                                                                              \
	{                                                                                          \
		(p), VIEW_NOTHING, ZONE_PARTIAL, 0, (c), NULL                                      \
	}

const struct view_row VIEW[VIEW_ROWS] = {
	{ "/", VIEW_DIR, ZONE_OUTSIDE, LL_LIST, VIEW_ITSELF, NULL },
	SYSTEM("/usr"),
	SYSTEM("/bin"),
	SYSTEM("/sbin"),
	SYSTEM("/lib"),
	SYSTEM("/lib32"),
	SYSTEM("/lib64"),
	SYSTEM("/libx32"),
	{ "/etc", VIEW_DIR, ZONE_PARTIAL, LL_READ, VIEW_OURS | VIEW_STAYS, NULL },
	/* The skill can write only to files of the run's own processes; the kernel's files belong
	 * to root. */
	{ "/proc", VIEW_KERNEL, ZONE_KERNEL, RW, VIEW_OURS | VIEW_STAYS | VIEW_ROOTFS, NULL },
	{ "/dev", VIEW_DIR, ZONE_KERNEL, RW, VIEW_OURS | VIEW_STAYS | VIEW_ROOTFS, NULL },
	{ "/dev/shm", VIEW_PRIVATE, ZONE_PRIVATE, ALL, VIEW_OURS | VIEW_STAYS, NULL },
	{ "/tmp", VIEW_PRIVATE, ZONE_PRIVATE, ALL, VIEW_ITSELF | VIEW_STAYS | VIEW_ROOTFS, NULL },
	{ "/var", VIEW_DIR, ZONE_PARTIAL, 0, VIEW_ITSELF, NULL },
	{ "/var/tmp", VIEW_PRIVATE, ZONE_PRIVATE, ALL, VIEW_ITSELF | VIEW_STAYS | VIEW_ROOTFS,
	  NULL },
	{ "/run", VIEW_DIR, ZONE_PARTIAL, 0, VIEW_OURS | VIEW_ROOTFS, NULL },
	{ "/skill", VIEW_DIR, ZONE_OUTSIDE, 0, VIEW_OURS | VIEW_STAYS | VIEW_ROOTFS,
	  NULL }, /* the skill's directory is shown there by its own grant */
	PARTIAL("/sys", VIEW_OURS | VIEW_ROOTFS),
	PARTIAL("/opt", 0),
	PARTIAL("/selinux", 0),
	{ "/home", VIEW_NOTHING, ZONE_OUTSIDE, 0, VIEW_ITSELF, NULL },
	/* The following rows are entries inside the directories above. */
	{ "/etc/alternatives", VIEW_HOST, ZONE_AROUND, 0, VIEW_ALWAYS, NULL },
	HOST("/etc/ca-certificates"),
	HOST("/etc/chromium.d"), /* read by the script that starts Debian's Chromium */
	HOST("/etc/fonts"),
	HOST("/etc/java-8-openjdk"), /* the settings of Debian's Java */
	HOST("/etc/java-11-openjdk"),
	HOST("/etc/java-17-openjdk"),
	HOST("/etc/java-21-openjdk"),
	HOST("/etc/java-25-openjdk"),
	HOST("/etc/ld.so.cache"),
	HOST("/etc/locale.alias"),
	HOST("/etc/localtime"),
	HOST("/etc/maven/logging"),
	HOST("/etc/maven/m2.conf"), /* not settings.xml, which may hold passwords */
	HOST("/etc/mime.types"),
	HOST("/etc/os-release"),
	HOST("/etc/pki/ca-trust/extracted"),
	HOST("/etc/pki/tls/certs"),
	HOST("/etc/services"),
	HOST("/etc/ssl/certs"), /* not /etc/ssl/private */
	HOST("/etc/ssl/openssl.cnf"),
	FILE_AT("/etc/passwd"),
	FILE_AT("/etc/group"),
	FILE_AT("/etc/hostname"),
	FILE_AT("/etc/hosts"),
	FILE_AT("/etc/host.conf"),
	FILE_AT("/etc/gai.conf"),
	FILE_AT("/etc/resolv.conf"),
	FILE_AT("/etc/nsswitch.conf"),
	LINK("/etc/mtab", "/proc/self/mounts"),
	DEVICE("/dev/null"),
	DEVICE("/dev/zero"),
	DEVICE("/dev/full"),
	DEVICE("/dev/random"),
	DEVICE("/dev/urandom"),
	DEVICE("/dev/tty"),
	{ "/dev/pts", VIEW_KERNEL, ZONE_AROUND, 0, 0, NULL },
	LINK("/dev/fd", "/proc/self/fd"),
	LINK("/dev/stdin", "/proc/self/fd/0"),
	LINK("/dev/stdout", "/proc/self/fd/1"),
	LINK("/dev/stderr", "/proc/self/fd/2"),
	LINK("/dev/ptmx", "pts/ptmx"),
	/* These files list the keys of the owner's other sessions, whichever keyring the reader
	 * has. */
	MASKED("/proc/keys"),
	MASKED("/proc/key-users"),
	/* If the plan names the worker (sandbox/worker.c), the worker is in this directory. */
	{ "/run/skillsandbox", VIEW_NOTHING, ZONE_AROUND, LL_READ, 0, NULL },
};

bool view_claimed(const char *path, unsigned claim)
{
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		const struct view_row *r = &VIEW[i];
		unsigned by = r->claim & claim;
		if (by != 0 &&
		    ((by & ~(unsigned)VIEW_ITSELF) != 0 ? path_beneath(path, r->path) != NULL
		                                        : strcmp(path, r->path) == 0)) {
			return true;
		}
	}
	return false;
}

unsigned view_may(const struct view_row *r)
{
	assert(r >= VIEW && r < VIEW + VIEW_ROWS);

	unsigned may = r->may;

	for (size_t i = 0; i < VIEW_ROWS && r->may == 0; i++) {
		bool around = VIEW[i].may != 0 && path_beneath(r->path, VIEW[i].path) != NULL;
		may = around ? VIEW[i].may : may;
	}
	return may;
}

static bool is_within(const char *path, const char *place)
{
	const char *rest = path_beneath(path, place);

	return rest != NULL && *rest != '\0';
}

bool view_in_private(const struct ssb_plan *plan, const char *path)
{
	return is_within(path, plan->home) ||
	       ARRAY_HAS(row, VIEW, VIEW_ROWS,
	                 row->shown == VIEW_PRIVATE && is_within(path, row->path));
}
