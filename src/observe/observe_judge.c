/* observe_judge.c - what the plan says of a path.
 *
 * This decides what a line says and, outside of the plan, what the program is
 * told. It grants nothing: what is let go on meets the mounts and Landlock,
 * which know nothing of this file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "trace/classes.h"
#include "observe/observe.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger.h"
#include "policy/path.h"
#include "policy/protect.h"
#include "policy/view.h"

static const char *const ZONE_RULES[] = {
	[ZONE_SYSTEM] = "system",  [ZONE_PRIVATE] = "private", [ZONE_KERNEL] = "kernel",
	[ZONE_PARTIAL] = "system", [ZONE_OUTSIDE] = NULL,
};

/* How much of `path` the place covers; 0: none. */
static size_t covers(const char *place, const char *path)
{
	size_t n = 0;

	while (place[n] != '\0' && place[n] == path[n]) {
		n++;
	}
	return place[n] == '\0' && (path[n] == '\0' || path[n] == '/') ? n : 0;
}

/* The nearest place around the path. */
static enum zone zone_of(const struct ssb_plan *plan, const char *path, const char **ret_rule,
                         const struct grant **ret_grant)
{
	enum zone zone = ZONE_OUTSIDE;
	size_t best = 0;

	for (size_t i = 0; i < VIEW_ZONES; i++) {
		size_t n = covers(VIEW[i].path, path);
		if (n > best) {
			best = n;
			zone = VIEW[i].zone;
			*ret_rule = ZONE_RULES[zone];
		}
	}
	for (size_t i = 0; i < plan->rootfs_places.n; i++) {
		size_t n = covers(plan->rootfs_places.v[i], path);
		if (n > best) {
			best = n;
			zone = ZONE_SYSTEM;
			*ret_rule = "rootfs";
		}
	}
	size_t home = covers(plan->home, path);
	if (home > best) {
		best = home;
		zone = ZONE_PRIVATE;
		*ret_rule = ZONE_RULES[zone];
	}
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		size_t n = covers(g->target, path);
		if (n >= best && n > 0) {
			best = n;
			zone = g->access == ACCESS_WRITE ? ZONE_WRITE : ZONE_READ;
			*ret_grant = g;
			*ret_rule = g->origin == ORIGIN_SKILL ? "skill" : g->where;
		}
	}
	return zone;
}

/* Interpreters leave compiled files beside their sources; programs that draw leave what they
 * learned of the fonts; Chromium makes a directory of its own. All do without. */
static bool is_cache(const char *path)
{
	const char *end = strrchr(path, '.');

	return strstr(path, "/__pycache__") != NULL ||
	       (end != NULL && (strncmp(end, ".pyc", 4) == 0)) || strcmp(path, "/var/cache") == 0 ||
	       covers("/var/cache/fontconfig", path) > 0 ||
	       strcmp(path, "/usr/lib/chromium/extensions") == 0;
}

/* Tools look for the top of a project in every directory above the one they
 * are in: names that mean nothing, in a directory that leads to a grant. */
static bool is_project_mark(const struct ssb_plan *plan, const char *path)
{
	static const char *const NAMES[] = {
		"package.json",
		"node_modules",
		".git",
		"HEAD",
		"pyproject.toml",
		"setup.cfg",
		"tox.ini",
		"pytest.ini",
		"go.mod",
		"go.work",
		"Cargo.toml",
		".cargo",
		".editorconfig",
		"Makefile",
		"tsconfig.json",
		".hg",
		".svn",
		"pyvenv.cfg",
		".gitignore",
		".python-version",
		".nvmrc",
		"deno.json",
		"pnpm-workspace.yaml",
	};
	const char *name = strrchr(path, '/') + 1;
	size_t above = (size_t)(name - path) - 1;
	bool known = false;

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		known = known || strcmp(name, NAMES[i]) == 0;
	}
	for (size_t i = 0; known && i < plan->n_grants; i++) {
		const char *target = plan->grants[i].target;
		if (strncmp(target, path, above) == 0 && target[above] == '/') {
			return true;
		}
	}
	return known && above == 0;
}

/* What only the supervisor's side of the sandbox has: memory, environment and
 * descriptors of its first process, which are those of its thread as well. The kernel
 * would refuse it too. */
bool observe_is_closed(const char *path)
{
	static const char first[] = "/proc/1", thread[] = "/task/1";
	static const char *const NAMES[] = {
		"/environ", "/mem",     "/maps",         "/root",      "/cwd",     "/fd",
		"/exe",     "/ns",      "/map_files",    "/fdinfo",    "/auxv",    "/stack",
		"/smaps",   "/syscall", "/smaps_rollup", "/numa_maps", "/pagemap",
	};

	if (covers(first, path) == 0) {
		return false;
	}
	path += sizeof(first) - 1;
	path += covers(thread, path);
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		if (covers(NAMES[i], path) > 0) {
			return true;
		}
	}
	return false;
}

/* The machine itself: its memory, its disks, the switches of its kernel. */
static bool is_machine(const char *path, bool write)
{
	static const char *const NODES[] = { "mem", "kmem", "port", "kmsg", "sd",     "hd",  "vd",
		                             "xvd", "nvme", "dm-",  "loop", "mapper", "disk" };
	static const char *const SWITCHES[] = { "/proc/sys", "/proc/sysrq-trigger", "/proc/bus",
		                                "/proc/irq" };

	if (strcmp(path, "/proc/kcore") == 0 || strcmp(path, "/proc/kmsg") == 0) {
		return true;
	}
	for (size_t i = 0; strncmp(path, "/dev/", 5) == 0 && i < ARRAY_LEN(NODES); i++) {
		if (strncmp(path + 5, NODES[i], strlen(NODES[i])) == 0) {
			return true;
		}
	}
	for (size_t i = 0; write && i < ARRAY_LEN(SWITCHES); i++) {
		if (covers(SWITCHES[i], path) > 0) {
			return true;
		}
	}
	return false;
}

/* What the host would obey later is read-only in every writable directory. */
static bool is_held(const struct grant *g, const char *path)
{
	size_t n = g != NULL && grant_is_work(g) ? strlen(g->target) : 0;

	for (size_t i = 0; n > 0 && path[n] == '/' && i < PROTECTED_COUNT; i++) {
		bool held = PROTECTED[i].hold == HOLD_ANYWHERE || PROTECTED[i].hold == HOLD_BY_LINK;
		if (held && covers(PROTECTED[i].name, path + n + 1) > 0) {
			return true;
		}
	}
	return false;
}

/* In a ".git" of the grant. One that is not there has a placeholder. */
static bool is_in_git(const char *in_grant)
{
	const char *at = strstr(in_grant, ".git");

	while (at != NULL && ((at != in_grant && at[-1] != '/') || covers(".git", at) == 0)) {
		at = strstr(at + 1, ".git");
	}
	return at != NULL;
}

/* One of the names, at the top of the grant or of anything in it. */
static bool has_protected_name(const char *in_grant)
{
	for (const char *name = in_grant; name != NULL; name = strchr(name, '/')) {
		name += name != in_grant;
		for (size_t i = 0; i < PROTECTED_COUNT; i++) {
			const char *in_git = protect_in_gitdir(&PROTECTED[i]);
			if (covers(PROTECTED[i].name, name) > 0 ||
			    (in_git != NULL && covers(in_git, name) > 0)) {
				return true;
			}
		}
	}
	return false;
}

/* In something that a protected name, or git's settings, lead to. */
static bool is_led_to(const struct observer *o, const char *path)
{
	const struct string_list *held = o->setup.held;
	size_t i = 0;

	while (held != NULL && i < held->n && covers(held->v[i], path) == 0) {
		i++;
	}
	return held != NULL && i < held->n;
}

/* Whether the mount that the path lies in, as far as it is there, is read-only. */
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

/* The same in a repository of the grant, and what is only protected because it is
 * there: the mounts know which. */
static bool is_protected(const struct observer *o, const struct grant *g, const char *path)
{
	size_t n = g != NULL && grant_is_work(g) ? strlen(g->target) : 0;

	return n > 0 && path[n] == '/' &&
	       (has_protected_name(path + n + 1) || is_in_git(path + n + 1) ||
	        is_led_to(o, path)) &&
	       is_on_read_only(o, path);
}

/* Of a name that programs take for a state: to be granted it would have to be there. */
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

/* A directory of the sandbox's own root, mounted in a grant: nothing but the private state of git
 * is. */
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
	const char *rule = NULL;
	const struct grant *g = NULL;
	struct stat st;

	if (zone_of(o->setup.plan, path, &rule, &g) != ZONE_WRITE) {
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

/* In a place of the runtime's own that a grant contains, and in none that the
 * owner named there. */
static bool is_covered(const struct ssb_plan *plan, const struct grant *g, const char *path)
{
	size_t granted = g != NULL ? strlen(g->target) : 0;

	for (size_t i = 0; i < plan->n_covers; i++) {
		if (covers(plan->covers[i].target, path) > granted) {
			return true;
		}
	}
	return false;
}

/* Services that would do on the host what the skill cannot. */
static bool is_host_service(const char *path)
{
	static const char *const NAMES[] = { "docker.sock", "containerd", "podman",
		                             "crio",        "lxd.socket", "systemd/private" };
	size_t n = covers("/run", path) > 0 ? 5 : covers("/var/run", path) > 0 ? 9 : 0;

	for (size_t i = 0; n > 0 && strlen(path) > n && i < ARRAY_LEN(NAMES); i++) {
		if (covers(NAMES[i], path + n) > 0) {
			return true;
		}
	}
	return false;
}

static void refuse(struct judgement *j, enum reason reason, int error, const char *flag,
                   const char *path)
{
	j->allowed = false;
	j->violation = true;
	j->rule = NULL;
	j->reason = reason;
	j->error = error;
	snprintf(j->text, sizeof(j->text), "%s %s", flag, path);
	j->remedy = j->text;
}

static const char IN_A_CLONE[] =
        "work in a clone of the skill's own: git clone . \"$TMPDIR/clone\"";

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

static void refuse_protected(struct judgement *j, const struct grant *g, const char *path)
{
	const char *in_grant = path + (g != NULL ? strlen(g->target) : 0) + 1;

	refuse(j, REASON_PROTECTED, EROFS, "--write", path);
	if (is_state_name(path)) {
		j->remedy = IN_A_CLONE;
	} else if (is_in_git(in_grant) && !has_protected_name(in_grant)) {
		j->remedy = "run 'git init' there before the skill starts, or let the skill run it "
		            "in a new directory";
	}
}

static void refuse_write(struct judgement *j, const char *path, enum zone zone,
                         const struct grant *grant)
{
	bool granted = zone == ZONE_READ;
	/* A device is on no file system that could be read-only. */
	int error = covers("/dev", path) > 0 ? EACCES : EROFS;

	refuse(j, granted || zone == ZONE_SYSTEM ? REASON_READ_ONLY : REASON_OUTSIDE_PLAN, error,
	       "--write", path);
	j->violation = !is_cache(path);
	bool own = grant != NULL && grant->origin == ORIGIN_SKILL;
	if (own || (!granted && zone != ZONE_OUTSIDE)) {
		j->remedy = NULL; /* nobody should */
	}
}

static bool other_home(const char *path)
{
	return covers("/home", path) > 0 || covers("/root", path) > 0;
}

/* A store in the private home that is nobody's but the run's: the owner has none, and it was made
 * there, or belongs to the very program that looks for it. The first `store` bytes of the path are
 * the place of the table. */
static bool is_own_store(struct observer *o, const struct seccomp_notif *n, const char *path,
                         size_t store)
{
	char place[PATH_MAX];

	snprintf(place, sizeof(place), "%.*s", (int)store, path);
	if (o->setup.stores != NULL && string_list_has(o->setup.stores, place)) {
		return false;
	}
	auto_fd made = file_openat2(o->root, place, O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT);
	return made >= 0 ||
	       classes_own_store(o->setup.plan->home, observe_process(o, n)->program, path);
}

/* Shells read their start files, ssh what everybody may read beside the machine's keys: no secret
 * that a skill would be after, and not there either. */
static bool is_no_secret(const char *home, const char *path)
{
	static const char *const SETTINGS[] = { "/etc/ssh/ssh_config", "/etc/ssh/ssh_config.d",
		                                "/etc/ssh/ssh_known_hosts",
		                                "/etc/ssh/ssh_known_hosts2" };
	bool found = classes_startup_file(home, path);

	for (size_t i = 0; i < ARRAY_LEN(SETTINGS); i++) {
		found = found || covers(SETTINGS[i], path) > 0;
	}
	return found;
}

static bool is_secret(struct observer *o, const struct seccomp_notif *n, const char *path,
                      enum zone zone)
{
	const char *home = o->setup.plan->home;
	size_t store;

	return danger_store(home, path, &store) != NULL && !is_no_secret(home, path) &&
	       !(zone == ZONE_PRIVATE && is_own_store(o, n, path, store));
}

static void judge_missing(struct observer *o, const struct seccomp_notif *n, const char *path,
                          enum zone zone, struct judgement *j)
{
	const struct ssb_plan *plan = o->setup.plan;
	bool own = zone == ZONE_READ || zone == ZONE_WRITE;

	if (!own && is_secret(o, n, path, zone)) {
		refuse(j, REASON_CREDENTIAL_STORE, ENOENT, "--read", path);
	} else if (!own && is_host_service(path)) {
		refuse(j, REASON_HOST_SERVICE, ENOENT, "--read", path);
		j->remedy = NULL;
	} else if (zone == ZONE_OUTSIDE && !is_project_mark(plan, path)) {
		refuse(j, other_home(path) ? REASON_OTHER_HOME : REASON_OUTSIDE_PLAN, ENOENT,
		       "--read", path);
	}
}

void observe_judge(struct observer *o, const struct seccomp_notif *n, const struct resolved *at,
                   bool write, struct judgement *ret)
{
	const struct ssb_plan *plan = o->setup.plan;
	const char *rule = NULL;

	/* But for the text, which is long and mostly stays unused. */
	ret->allowed = true;
	ret->violation = false;
	ret->rule = ret->remedy = NULL;
	ret->reason = REASON_NONE;
	ret->error = 0;
	if (!at->known) {
		return;
	}
	const struct grant *grant = NULL;
	enum zone zone = zone_of(plan, at->path, &rule, &grant);
	bool writable = zone == ZONE_WRITE || zone == ZONE_PRIVATE || zone == ZONE_KERNEL;
	ret->rule = rule != NULL ? rule : "view";
	if (observe_is_closed(at->path)) {
		refuse(ret, REASON_OTHER_PROCESS, EACCES, "", at->path);
		ret->remedy = NULL; /* nobody should */
	} else if (grant == NULL && is_machine(at->path, write)) {
		refuse(ret, REASON_MACHINE, at->exists ? EACCES : ENOENT, "", at->path);
		ret->remedy = NULL;
	} else if ((write || !at->exists) && is_covered(plan, grant, at->path)) {
		/* To look into the empty directory itself is what every search does. */
		refuse(ret, REASON_RUNTIME_FILES, write ? EROFS : ENOENT, "", at->path);
		ret->remedy = NULL; /* nobody should */
	} else if (write && (is_held(grant, at->path) || is_protected(o, grant, at->path) ||
	                     (at->exists && is_state_name(at->path) &&
	                      observe_is_placeholder(o, at->path)))) {
		refuse_protected(ret, grant, at->path);
	} else if (write && !writable) {
		refuse_write(ret, at->path, zone, grant);
	} else if (!write && (!at->exists || (at->unseen && zone == ZONE_PRIVATE))) {
		/* A run can close a directory of its own: that hides nothing of the owner's. */
		judge_missing(o, n, at->path, zone, ret);
	}
}

void observe_judge_entry(const struct observer *o, const char *path, struct judgement *j)
{
	const char *home = o->setup.plan->home;
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) : 0;
	bool above_home = strncmp(home, path, n) == 0 && (home[n] == '/' || home[n] == '\0');

	/* These as a whole are not what anybody should grant for one name in them. */
	if (j->remedy != j->text || n == 0 || above_home) {
		return;
	}
	snprintf(j->text, sizeof(j->text), "--write %.*s", (int)n, path);
	/* The directory around a protected name is granted already. */
	const char *around = strchr(j->text, '/');
	if (j->reason == REASON_PROTECTED && !has_protected_name(around + 1) &&
	    !is_led_to(o, around)) {
		snprintf(j->text, sizeof(j->text), "--write %s", path);
	}
}

/* Whether a FIFO or socket can be made there: in a private place with nothing of
 * the host's to be written in it, as Landlock has it. */
static bool takes_special(const struct ssb_plan *plan, const char *path)
{
	const char *const places[] = { plan->home, "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		bool free = covers(places[i], path) > 0;
		for (size_t k = 0; free && k < plan->n_grants; k++) {
			free = plan->grants[k].access != ACCESS_WRITE ||
			       covers(places[i], plan->grants[k].target) == 0;
		}
		if (free) {
			return true;
		}
	}
	return false;
}

void observe_judge_own_socket(const struct observer *o, const struct resolved *at,
                              struct judgement *j)
{
	const struct grant *grant = NULL;
	const char *rule = NULL;

	if (!j->allowed || !at->known || !at->exists) {
		return;
	}
	enum zone zone = zone_of(o->setup.plan, at->path, &rule, &grant);
	if (zone != ZONE_PRIVATE) {
		refuse(j, REASON_HOST_SERVICE, EACCES, "", at->path);
		j->violation = zone == ZONE_WRITE;
		j->remedy = zone == ZONE_WRITE ? "--unix-sockets" : NULL;
	}
}

void observe_judge_special(const struct observer *o, const struct resolved *at, bool by_maker,
                           struct judgement *j)
{
	const struct grant *grant = NULL;
	const char *rule = NULL;

	if (!j->allowed) {
		j->remedy = "FIFOs and sockets are left behind in no directory of the host";
		return;
	}
	if (!at->known || takes_special(o->setup.plan, at->path)) {
		return;
	}
	enum zone zone = zone_of(o->setup.plan, at->path, &rule, &grant);
	if (by_maker && zone == ZONE_PRIVATE) {
		return;
	}
	bool stays = zone == ZONE_WRITE;
	refuse(j, REASON_SPECIAL_FILE, EACCES, "", at->path);
	j->violation = stays;
	j->remedy = NULL;
}
