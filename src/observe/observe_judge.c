/* observe_judge.c - decides whether the plan allows a call on a path.
 *
 * The decision determines the line in the record and, if the plan does not allow the call, the
 * error that the program gets. It grants nothing: a call that continues is still checked by the
 * mounts and Landlock, which do not depend on this file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>

#include "trace/classes.h"
#include "observe/observe_judge_priv.h"
#include "base/array.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger.h"

static const enum event_rule ZONE_RULES[] = {
	[ZONE_SYSTEM] = RULE_SYSTEM,  [ZONE_PRIVATE] = RULE_PRIVATE, [ZONE_KERNEL] = RULE_KERNEL,
	[ZONE_PARTIAL] = RULE_SYSTEM, [ZONE_OUTSIDE] = RULE_VIEW,
};

size_t observe_covers(const char *place, const char *path)
{
	size_t n = 0;

	while (place[n] != '\0' && place[n] == path[n]) {
		n++;
	}
	return place[n] == '\0' && (path[n] == '\0' || path[n] == '/') ? n : 0;
}

enum zone observe_zone(const struct ssb_plan *plan, const char *path, enum event_rule *ret_rule,
                       const struct grant **ret_grant)
{
	enum zone zone = ZONE_OUTSIDE;
	size_t best = 0;

	*ret_rule = RULE_VIEW;
	*ret_grant = NULL;
	for (size_t i = 0; i < VIEW_ZONES; i++) {
		size_t n = observe_covers(VIEW[i].path, path);
		if (n > best) {
			best = n;
			zone = VIEW[i].zone;
			*ret_rule = ZONE_RULES[zone];
		}
	}
	for (size_t i = 0; i < plan->rootfs_places.n; i++) {
		size_t n = observe_covers(plan->rootfs_places.v[i], path);
		if (n > best) {
			best = n;
			zone = ZONE_SYSTEM;
			*ret_rule = RULE_ROOTFS;
		}
	}
	size_t home = observe_covers(plan->home, path);
	if (home > best) {
		best = home;
		zone = ZONE_PRIVATE;
		*ret_rule = ZONE_RULES[zone];
	}
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		size_t n = observe_covers(g->target, path);
		if (n >= best && n > 0) {
			best = n;
			zone = g->access == ACCESS_WRITE ? ZONE_WRITE : ZONE_READ;
			*ret_grant = g;
			*ret_rule = g->origin == ORIGIN_SKILL ? RULE_SKILL : RULE_ENTRY;
		}
	}
	return zone;
}

bool observe_is_cache(const char *path)
{
	const char *end = strrchr(path, '.');

	return strstr(path, "/__pycache__") != NULL ||
	       (end != NULL && (strncmp(end, ".pyc", 4) == 0)) || strcmp(path, "/var/cache") == 0 ||
	       observe_covers("/var/cache/fontconfig", path) > 0 ||
	       strcmp(path, "/usr/lib/chromium/extensions") == 0;
}

/* Returns whether the path is a name by which tools recognise the top of a project, in a directory
 * above a grant. Tools look for such names in every directory above their working directory, which
 * is harmless. */
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
	bool known = ARRAY_HAS(e, NAMES, ARRAY_LEN(NAMES), strcmp(name, *e) == 0);

	for (size_t i = 0; known && i < plan->n_grants; i++) {
		const char *target = plan->grants[i].target;
		if (strncmp(target, path, above) == 0 && target[above] == '/') {
			return true;
		}
	}
	return known && above == 0;
}

bool observe_is_closed(const char *path)
{
	static const char first[] = "/proc/1", thread[] = "/task/1";
	static const char *const NAMES[] = {
		"/environ", "/mem",     "/maps",         "/root",      "/cwd",     "/fd",
		"/exe",     "/ns",      "/map_files",    "/fdinfo",    "/auxv",    "/stack",
		"/smaps",   "/syscall", "/smaps_rollup", "/numa_maps", "/pagemap",
	};

	if (observe_covers(first, path) == 0) {
		return false;
	}
	path += sizeof(first) - 1;
	path += observe_covers(thread, path);
	return ARRAY_HAS(name, NAMES, ARRAY_LEN(NAMES), observe_covers(*name, path) > 0);
}

/* Returns whether the path belongs to the machine: its memory, its disks, or the settings of its
 * kernel. */
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
	return write && ARRAY_HAS(e, SWITCHES, ARRAY_LEN(SWITCHES), observe_covers(*e, path) > 0);
}

/* Returns whether a cover (struct cover) hides the path. It does so if the path is in a directory
 * of the runtime that some grant contains, unless `g` itself is in that directory. */
static bool is_covered(const struct ssb_plan *plan, const struct grant *g, const char *path)
{
	size_t granted = g != NULL ? strlen(g->target) : 0;

	return ARRAY_HAS(e, plan->covers, plan->n_covers,
	                 observe_covers(e->target, path) > granted);
}

/* Returns whether the path is the socket of a service that could do things on the host that the
 * skill cannot. */
static bool is_host_service(const char *path)
{
	static const char *const NAMES[] = { "docker.sock", "containerd", "podman",
		                             "crio",        "lxd.socket", "systemd/private" };
	size_t n = observe_covers("/run", path) > 0       ? 5
	           : observe_covers("/var/run", path) > 0 ? 9
	                                                  : 0;

	return n > 0 && strlen(path) > n &&
	       ARRAY_HAS(e, NAMES, ARRAY_LEN(NAMES), observe_covers(*e, path + n) > 0);
}

void observe_refuse_path(struct judgement *j, enum reason reason, int error, const char *flag,
                         const char *path)
{
	j->allowed = false;
	j->violation = true;
	j->rule = RULE_NONE;
	j->entry = NULL;
	j->reason = reason;
	j->error = error;
	snprintf(j->text, sizeof(j->text), "%s %s", flag, path);
	j->remedy = j->text;
}

static void refuse_protected(struct judgement *j, const struct grant *g, const char *path)
{
	const char *instead = observe_protect_remedy(g, path);

	observe_refuse_path(j, REASON_PROTECTED, EROFS, "--write", path);
	j->remedy = instead != NULL ? instead : j->remedy;
}

static void refuse_write(struct judgement *j, const char *path, enum zone zone,
                         const struct grant *grant)
{
	bool granted = zone == ZONE_READ;
	/* For a device, EROFS would be wrong: a read-only file system does not prevent writing to a
	 * device. */
	int error = observe_covers("/dev", path) > 0 ? EACCES : EROFS;

	observe_refuse_path(j,
	                    granted || zone == ZONE_SYSTEM ? REASON_READ_ONLY : REASON_OUTSIDE_PLAN,
	                    error, "--write", path);
	j->violation = !observe_is_cache(path);
	bool own = grant != NULL && grant->origin == ORIGIN_SKILL;
	if (own || (!granted && zone != ZONE_OUTSIDE)) {
		j->remedy = NULL; /* this place must not be granted */
	}
}

/* Returns whether a store in the private home belongs to the run alone. This is so if the owner has
 * no such store, and the run made the store or the calling program is the one that keeps it. The
 * first `store` bytes of the path are the path of the store. */
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

/* Returns whether the path contains no secret although the table of secrets names it. These are the
 * start files that shells read, and the public files beside the machine's ssh keys. */
static bool is_no_secret(const char *home, const char *path)
{
	static const char *const SETTINGS[] = { "/etc/ssh/ssh_config", "/etc/ssh/ssh_config.d",
		                                "/etc/ssh/ssh_known_hosts",
		                                "/etc/ssh/ssh_known_hosts2" };

	return classes_startup_file(home, path) ||
	       ARRAY_HAS(name, SETTINGS, ARRAY_LEN(SETTINGS), observe_covers(*name, path) > 0);
}

static bool is_secret(struct observer *o, const struct seccomp_notif *n, const char *path,
                      enum zone zone)
{
	const char *home = o->setup.plan->home;
	size_t store;

	return danger_store(home, path, &store) != NULL && !is_no_secret(home, path) &&
	       !classes_routine_read(home, observe_process(o, n)->program, path) &&
	       !(zone == ZONE_PRIVATE && is_own_store(o, n, path, store));
}

bool observe_is_runtime(const struct observer *o, const char *path)
{
	return danger_is_runtime(o->setup.plan->home, path) ||
	       ARRAY_HAS(dir, o->setup.own_dirs, ARRAY_LEN(o->setup.own_dirs),
	                 *dir != NULL && observe_covers(*dir, path) > 0);
}

bool observe_is_hidden(const struct observer *o, const char *path, enum zone zone)
{
	const struct ssb_plan *plan = o->setup.plan;
	bool partial = zone == ZONE_PRIVATE || zone == ZONE_PARTIAL || zone == ZONE_OUTSIDE ||
	               observe_covers("/dev", path) > 0;
	/* The C library looks there for the number of processors, and has another way. */
	bool counts = observe_covers("/sys/devices/system/cpu", path) > 0;
	bool of_host = plan->rootfs.path == NULL || observe_covers(plan->home, path) > 0;

	return partial && of_host && !counts && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0;
}

/* Returns whether the path is in a home directory that is not the caller's. */
static bool is_other_home(const char *path)
{
	static const char home[] = "/home/";
	char dir[PATH_MAX];

	if (strncmp(path, home, sizeof(home) - 1) != 0) {
		return observe_covers("/root", path) > 0;
	}
	size_t n = sizeof(home) - 1;
	n += strcspn(path + n, "/");
	snprintf(dir, sizeof(dir), "%.*s", (int)n, path);
	return faccessat(AT_FDCWD, dir, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void judge_outside(const struct observer *o, const char *path, struct judgement *j)
{
	if (is_project_mark(o->setup.plan, path)) {
		return;
	}
	if (is_other_home(path)) {
		observe_refuse_path(j, REASON_OTHER_HOME, ENOENT, "--read", path);
	} else if (classes_secret_name(path)) {
		observe_refuse_path(j, REASON_OUTSIDE_PLAN, ENOENT, "--read", path);
	}
}

static void judge_missing(struct observer *o, const struct seccomp_notif *n, const char *path,
                          enum zone zone, struct judgement *j)
{
	bool own = zone == ZONE_READ || zone == ZONE_WRITE;

	bool secret = !own && is_secret(o, n, path, zone);

	if ((secret || zone == ZONE_OUTSIDE) && observe_is_runtime(o, path)) {
		observe_refuse_path(j, REASON_RUNTIME_FILES, ENOENT, "", path);
		j->remedy = NULL; /* the keys and sessions are never granted */
	} else if (secret) {
		observe_refuse_path(j, REASON_CREDENTIAL_STORE, ENOENT, "--read", path);
	} else if (!own && is_host_service(path)) {
		observe_refuse_path(j, REASON_HOST_SERVICE, ENOENT, "--read", path);
		j->remedy = NULL;
	} else if (zone == ZONE_OUTSIDE) {
		judge_outside(o, path, j);
	}
	if (j->allowed && observe_is_hidden(o, path, zone)) {
		observe_refuse_path(j, REASON_NOT_GRANTED, ENOENT, "--read", path);
		j->violation = false;
	}
}

void observe_judge(struct observer *o, const struct seccomp_notif *n, const struct resolved *at,
                   bool write, struct judgement *ret)
{
	const struct ssb_plan *plan = o->setup.plan;
	const struct grant *grant;

	/* Sets every member except `text`, which is long and rarely used. */
	ret->allowed = true;
	ret->violation = false;
	ret->rule = RULE_NONE;
	ret->entry = ret->remedy = NULL;
	ret->reason = REASON_NONE;
	ret->error = 0;
	if (!at->known) {
		return;
	}
	enum zone zone = observe_zone(plan, at->path, &ret->rule, &grant);
	bool writable = zone == ZONE_WRITE || zone == ZONE_PRIVATE || zone == ZONE_KERNEL;
	ret->entry = grant != NULL && ret->rule == RULE_ENTRY ? grant->where : NULL;
	if (observe_is_closed(at->path)) {
		observe_refuse_path(ret, REASON_OTHER_PROCESS, EACCES, "", at->path);
		ret->remedy = NULL; /* this place must not be granted */
	} else if (grant == NULL && is_machine(at->path, write)) {
		observe_refuse_path(ret, REASON_MACHINE, at->exists ? EACCES : ENOENT, "",
		                    at->path);
		ret->remedy = NULL;
	} else if ((write || !at->exists) && is_covered(plan, grant, at->path)) {
		/* Reading the empty directory itself is allowed, because every search does it. */
		observe_refuse_path(ret, REASON_RUNTIME_FILES, write ? EROFS : ENOENT, "",
		                    at->path);
		ret->remedy = NULL; /* this place must not be granted */
	} else if (write && zone == ZONE_OUTSIDE && observe_is_runtime(o, at->path)) {
		observe_refuse_path(ret, REASON_RUNTIME_FILES, EROFS, "", at->path);
		ret->remedy = NULL;
	} else if (write && observe_protect_holds(o, grant, at)) {
		refuse_protected(ret, grant, at->path);
	} else if (write && !writable) {
		refuse_write(ret, at->path, zone, grant);
	} else if (!write && (!at->exists || (at->unseen && zone == ZONE_PRIVATE))) {
		/* A file in the private home can be `unseen` because a program of the run has
		 * closed the directory of the file. Such a file is not the owner's. */
		judge_missing(o, n, at->path, zone, ret);
	}
}

void observe_judge_entry(const struct observer *o, const char *path, struct judgement *j)
{
	const char *home = o->setup.plan->home;
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) : 0;
	bool above_home = strncmp(home, path, n) == 0 && (home[n] == '/' || home[n] == '\0');

	/* Never propose to grant "/", the home or a directory that contains the home, for one name
	 * in it. */
	if (j->remedy != j->text || n == 0 || above_home || j->reason == REASON_GRANTED_ALONE) {
		return;
	}
	snprintf(j->text, sizeof(j->text), "--write %.*s", (int)n, path);
	/* REASON_PROTECTED with a directory that is not protected itself: the directory is already
	 * granted, and only the name is protected. Then propose to grant the name. But a grant of
	 * an existing name is a mount, which keeps the name from being replaced or deleted. */
	const char *around = strchr(j->text, '/');
	if (j->reason == REASON_PROTECTED && !observe_protect_names(o, around)) {
		j->remedy = observe_is_there(o, path) ? observe_protect_instead(path) : j->text;
		snprintf(j->text, sizeof(j->text), "--write %s", path);
	}
}

/* Returns whether Landlock lets the skill make a FIFO or socket at this path: the path is in a
 * private place that contains no writable grant. */
static bool takes_special(const struct ssb_plan *plan, const char *path)
{
	const char *const places[] = { plan->home, "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		bool free = observe_covers(places[i], path) > 0;
		for (size_t k = 0; free && k < plan->n_grants; k++) {
			free = plan->grants[k].access != ACCESS_WRITE ||
			       observe_covers(places[i], plan->grants[k].target) == 0;
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
	const struct grant *grant;
	enum event_rule rule;

	if (!j->allowed || !at->known || !at->exists) {
		return;
	}
	enum zone zone = observe_zone(o->setup.plan, at->path, &rule, &grant);
	if (zone != ZONE_PRIVATE) {
		observe_refuse_path(j, REASON_HOST_SERVICE, EACCES, "", at->path);
		j->violation = zone == ZONE_WRITE;
		j->remedy = zone == ZONE_WRITE ? call_remedy_text(CALL_REMEDY_UNIX_SOCKETS) : NULL;
	}
}

void observe_judge_special(const struct observer *o, const struct resolved *at, bool by_maker,
                           struct judgement *j)
{
	const struct grant *grant;
	enum event_rule rule;

	if (!j->allowed) {
		j->remedy = "a skill must not leave FIFOs or sockets in a directory of the host";
		return;
	}
	if (!at->known || takes_special(o->setup.plan, at->path)) {
		return;
	}
	enum zone zone = observe_zone(o->setup.plan, at->path, &rule, &grant);
	if (by_maker && zone == ZONE_PRIVATE) {
		return;
	}
	bool stays = zone == ZONE_WRITE;
	observe_refuse_path(j, REASON_SPECIAL_FILE, EACCES, "", at->path);
	j->violation = stays;
	j->remedy = NULL;
}
