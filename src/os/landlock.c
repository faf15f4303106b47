/* landlock.c - makes and enforces Landlock rulesets. */
#include "os/landlock.h"

#include <assert.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* These constants are newer than the kernel headers that the build requires. */
#define ACCESS_FS_REFER     (1ULL << 13) /* ABI 2 */
#define ACCESS_FS_TRUNCATE  (1ULL << 14) /* ABI 3 */
#define ACCESS_FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)  /* ABI 6 */
#define SCOPE_SIGNAL        (1ULL << 1)

struct ruleset_attr {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

#define FS_FILE                                                                                    \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |                              \
	 LANDLOCK_ACCESS_FS_READ_FILE | ACCESS_FS_TRUNCATE | ACCESS_FS_IOCTL_DEV)

static const struct {
	unsigned may;
	uint64_t fs;
} RIGHTS[] = {
	{ LL_LIST, LANDLOCK_ACCESS_FS_READ_DIR },
	{ LL_READ, LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_READ_FILE },
	{ LL_EXEC, LANDLOCK_ACCESS_FS_EXECUTE },
	{ LL_WRITE, LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_FS_TRUNCATE | ACCESS_FS_IOCTL_DEV },
	{ LL_CHANGE, LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
	                     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
	                     LANDLOCK_ACCESS_FS_MAKE_SYM | ACCESS_FS_REFER },
	{ LL_SPECIAL, LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO },
};

/* Returns the bits of all file rights that the version `abi` has. */
static uint64_t landlock_known(int abi)
{
	uint64_t all = (1ULL << 13) - 1;
	all |= abi >= 2 ? ACCESS_FS_REFER : 0;
	all |= abi >= 3 ? ACCESS_FS_TRUNCATE : 0;
	all |= abi >= 5 ? ACCESS_FS_IOCTL_DEV : 0;
	return all;
}

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi < 0 ? 0 : (int)abi;
}

int landlock_new(int abi)
{
	struct ruleset_attr attr = { .fs = landlock_known(abi) };
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);

	if (abi >= 6) {
		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	}
	/* Landlock fds are always CLOEXEC. */
	return (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

int landlock_allow(int ruleset_fd, int abi, int path_fd, unsigned may)
{
	assert(ruleset_fd >= 0 && path_fd >= 0);

	struct landlock_path_beneath_attr rule = { .parent_fd = path_fd };
	struct stat st;

	for (size_t i = 0; i < sizeof(RIGHTS) / sizeof(RIGHTS[0]); i++) {
		if ((may & RIGHTS[i].may) != 0) {
			rule.allowed_access |= RIGHTS[i].fs;
		}
	}
	rule.allowed_access &= landlock_known(abi);
	if (fstat(path_fd, &st) != 0) {
		return -1;
	}
	if (S_ISLNK(st.st_mode)) {
		return 0;
	}
	if (!S_ISDIR(st.st_mode)) {
		rule.allowed_access &= FS_FILE;
	}
	return (int)syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
	                    0);
}

int landlock_enforce(int ruleset_fd)
{
	assert(ruleset_fd >= 0);
	return (int)syscall(SYS_landlock_restrict_self, ruleset_fd, 0);
}
