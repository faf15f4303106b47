/* present.c - lists a directory once and compares its entries with the protected names. */
#include "sandbox/present.h"

#include <errno.h>
#include <fcntl.h>

#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"

/* True if the letters are equal on a file system that ignores case. */
static bool may_be_same(char a, char b)
{
	return ((a ^ b) & ~0x20) == 0;
}

/* True if `entry` may be the first component of `name`. */
static bool may_begin(const char *name, const char *entry)
{
	size_t len = 0;

	while (entry[len] != '\0' && may_be_same(entry[len], name[len])) {
		len++;
	}
	return entry[len] == '\0' && (name[len] == '\0' || name[len] == '/');
}

/* Names beyond ASCII need care: on a file system that ignores case, such a letter can equal an
 * ASCII letter. */
static bool is_ascii(const char *name)
{
	while (*name != '\0' && (*name & 0x80) == 0) {
		name++;
	}
	return *name == '\0';
}

static const char *name_of(size_t i, bool gitdir)
{
	return gitdir ? protect_in_gitdir(&PROTECTED[i]) : PROTECTED[i].name;
}

static void take_entry(struct present *p, bool gitdir, const char *entry)
{
	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		const char *name = name_of(i, gitdir);
		p->name[i] |= name != NULL && may_begin(name, entry);
	}
}

int present_list(int dir, bool gitdir, struct present *ret)
{
	auto_fd fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent64 *e;
	struct entries names;
	struct present p = { 0 };
	bool all = fd < 0; /* the directory can be entered, but not listed */
	size_t n = 0;

	if (fd < 0 && errno != EACCES) {
		return -1;
	}
	entries_init(&names, fd);
	while (!all && (e = entries_next(&names)) != NULL) {
		take_entry(&p, gitdir, e->d_name);
		all = ++n > MAX_LISTED_NAMES || !is_ascii(e->d_name);
	}
	if (!all && errno != 0) {
		return -1;
	}
	for (size_t i = 0; all && i < PROTECTED_COUNT; i++) {
		p.name[i] = name_of(i, gitdir) != NULL;
	}
	*ret = p;
	return 0;
}
