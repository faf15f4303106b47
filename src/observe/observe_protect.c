/* observe_protect.c - recognises the names that the mounts keep read-only in a writable grant:
 * names that the host would later execute or read settings from, and the states of git that the
 * sandbox holds. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "observe/observe_judge_priv.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/path.h"
#include "policy/protect.h"

/* Returns whether the path is, or is beneath, a protected name at the top of the grant that the run
 * holds there (enum protect_hold). Such a name is read-only even if it does not exist. */
static bool is_held(const struct grant *g, const char *path)
{
	size_t n = g != NULL && grant_is_work(g) ? strlen(g->target) : 0;

	for (size_t i = 0; n > 0 && path[n] == '/' && i < PROTECTED_COUNT; i++) {
		bool held = PROTECTED[i].hold == HOLD_ANYWHERE || PROTECTED[i].hold == HOLD_BY_LINK;
		if (held && observe_covers(PROTECTED[i].name, path + n + 1) > 0) {
			return true;
		}
	}
	return false;
}

/* Returns whether the path is, or is in, a ".git" of the grant. In place of a missing ".git" there
 * is a placeholder. */
static bool is_in_git(const char *in_grant)
{
	const char *at = strstr(in_grant, ".git");

	while (at != NULL &&
	       ((at != in_grant && at[-1] != '/') || observe_covers(".git", at) == 0)) {
		at = strstr(at + 1, ".git");
	}
	return at != NULL;
}

/* Returns whether the path is beneath a protected name, at the top of the grant or of any directory
 * in the grant. */
static bool has_protected_name(const char *in_grant)
{
	for (const char *name = in_grant; name != NULL; name = strchr(name, '/')) {
		name += name != in_grant;
		for (size_t i = 0; i < PROTECTED_COUNT; i++) {
			const char *in_git = protect_in_gitdir(&PROTECTED[i]);
			if (observe_covers(PROTECTED[i].name, name) > 0 ||
			    (in_git != NULL && observe_covers(in_git, name) > 0)) {
				return true;
			}
		}
	}
	return false;
}

/* Returns whether the path is in a place to which a protected name or git's settings lead. */
static bool is_led_to(const struct observer *o, const char *path)
{
	const struct string_list *held = o->setup.held;
	size_t i = 0;

	while (held != NULL && i < held->n && observe_covers(held->v[i], path) == 0) {
		i++;
	}
	return held != NULL && i < held->n;
}

/* Returns whether the path, or the longest part of it that exists, is on a read-only mount. */
static bool is_on_read_only(const struct observer *o, const char *path)
{
	char above[PATH_MAX];
	struct statfs fs;
	auto_fd fd = file_openat2(o->root, path, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT);

	if (fd < 0 && observe_above(o, path, above) != NULL) {
		fd = file_openat2(o->root, above, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT);
	}
	return fd >= 0 && fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_RDONLY) != 0;
}

/* Returns whether the path has a protected name and is on a read-only mount. The name alone is not
 * enough: read-only are only names in a repository inside the grant, and names that exist. */
static bool is_protected(const struct observer *o, const struct grant *g, const char *path)
{
	size_t n = g != NULL && grant_is_work(g) ? strlen(g->target) : 0;

	return n > 0 && path[n] == '/' &&
	       (has_protected_name(path + n + 1) || is_in_git(path + n + 1) ||
	        is_led_to(o, path)) &&
	       is_on_read_only(o, path);
}

/* Returns whether the last name of the path is the name of a state of git, such as "rebase-merge".
 * Such a name cannot be granted while it does not exist. */
static bool is_state_name(const char *path)
{
	for (size_t i = 0; i < PROTECTED_COUNT; i++) {
		const char *name = protect_in_gitdir(&PROTECTED[i]);
		bool state = PROTECTED[i].hold == HOLD_BY_LINK || PROTECTED[i].hold == HOLD_PRIVATE;
		if (state && strcmp(name, path_base(path)) == 0) {
			return true;
		}
	}
	return false;
}

/* Returns whether the fd is a directory of the sandbox's root file system that is mounted in a
 * grant. Only the private directory for a state of git (HOLD_PRIVATE) is mounted like this. */
static bool is_private_state(const struct observer *o, int fd, const struct stat *st)
{
	struct stat root;
	struct statx at;

	return S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0 && fstat(o->root, &root) == 0 &&
	       root.st_dev == st->st_dev && statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &at) == 0 &&
	       (at.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

bool observe_is_placeholder(const struct observer *o, const char *path)
{
	enum event_rule rule;
	const struct grant *g;
	struct stat st;

	if (observe_zone(o->setup.plan, path, &rule, &g) != ZONE_WRITE) {
		return false;
	}
	auto_fd fd = file_openat2(o->root, path, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT);
	if (fd < 0 || fstat(fd, &st) != 0) {
		return false;
	}
	if (S_ISREG(st.st_mode)) {
		return (st.st_mode & S_ISVTX) != 0 && is_protected(o, g, path);
	}
	return is_state_name(path) &&
	       (is_private_state(o, fd, &st) ||
	        (S_ISLNK(st.st_mode) && file_is_link_to(fd, "", OBSERVER_NOTHING)));
}

static const char IN_A_CLONE[] =
        "let the skill work in its own clone: git clone . \"$TMPDIR/clone\"";

const char *observe_held_state(const struct observer *o, const char *dir, const char *name)
{
	char path[PATH_MAX];

	for (size_t n = strlen(dir); n > 0; n -= n > 0) {
		int len = snprintf(path, sizeof(path), "%.*s/.git/%s", (int)n, dir, name);
		if (len >= (int)sizeof(path)) {
			return NULL;
		}
		path[(size_t)len - strlen(name) - 1] = '\0';
		auto_fd git = file_openat2(o->root, path, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT);
		if (git >= 0) {
			path[strlen(path)] = '/';
			return observe_is_placeholder(o, path) ? IN_A_CLONE : NULL;
		}
		while (n > 0 && dir[n - 1] != '/') {
			n--;
		}
	}
	return NULL;
}

bool observe_protect_holds(const struct observer *o, const struct grant *g,
                           const struct resolved *at)
{
	return is_held(g, at->path) || is_protected(o, g, at->path) ||
	       (at->exists && is_state_name(at->path) && observe_is_placeholder(o, at->path));
}

bool observe_protect_names(const struct observer *o, const char *path)
{
	return has_protected_name(path + 1) || is_led_to(o, path);
}

const char *observe_protect_remedy(const struct grant *g, const char *path)
{
	const char *in_grant = path + (g != NULL ? strlen(g->target) : 0) + 1;

	if (is_state_name(path)) {
		return IN_A_CLONE;
	}
	return is_in_git(in_grant) && !has_protected_name(in_grant)
	               ? "run 'git init' there before the skill starts, or let the skill run it "
	                 "in a new directory"
	               : NULL;
}

const char *observe_protect_instead(const char *path)
{
	return is_in_git(path + 1) ? "run this git command yourself, outside the sandbox"
	                           : "replace or delete it yourself, outside the sandbox";
}
