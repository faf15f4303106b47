/* cgroup_make.c - makes a control group with its limits, and removes groups that dead supervisors
 * left.
 *
 * Every run needs this, so it must be fast: the mount table is read at most once, all files are
 * opened from held directory fds, and each setting is one write.
 *
 * v2: the group is made beside the caller's own group, if possible, because the kernel forbids
 * controllers in children of a group that has processes itself. The parent's cgroup.subtree_control
 * lists the controllers that a child gets. It is read first, so that no useless group is made. v1:
 * the group is a directory beneath the caller's own in each hierarchy.
 *
 * In v1 the pids directory is made first and removed last. So each group that a killed
 * supervisor left has a directory in the pids hierarchy, and only that hierarchy is searched for
 * such groups. */
#include "os/cgroup_priv.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "base/own.h"
#include "os/entries.h"

#define NAME_TRIES         8 /* further names that are tried if another group has the name */
#define REQUIRED           ((1u << CGROUP_MEMORY) | (1u << CGROUP_PIDS))
#define MAX_SWEEP_SEEN     512 /* directory entries read at one start of a run */
#define MAX_SWEEP_REMOVALS 16
#define MIN_SWEEP_AGE      30 /* seconds */

enum knob_value { VAL_MEMORY, VAL_PROCESSES, VAL_SHARES, VAL_WEIGHT, VAL_ZERO, VAL_ONE };
enum knob_need { MUST, MAY, ELSE /* write it only if the file of the row above does not exist */ };

struct knob {
	enum cgroup_controller controller;
	enum knob_value value;
	enum knob_need need;
	const char *file;
};

static const struct knob V1_KNOBS[] = {
	{ CGROUP_PIDS, VAL_PROCESSES, MUST, "pids.max" },
	{ CGROUP_MEMORY, VAL_MEMORY, MUST, "memory.limit_in_bytes" },
	{ CGROUP_MEMORY, VAL_MEMORY, MAY, "memory.memsw.limit_in_bytes" },
	{ CGROUP_MEMORY, VAL_ZERO, ELSE, "memory.swappiness" },
	/* v1 counts the memory of TCP sockets separately, so it gets a second limit of the same
	 * size. */
	{ CGROUP_MEMORY, VAL_MEMORY, MAY, "memory.kmem.tcp.limit_in_bytes" },
	{ CGROUP_CPU, VAL_SHARES, MUST, "cpu.shares" },
};

static const struct knob V2_KNOBS[] = {
	{ CGROUP_PIDS, VAL_PROCESSES, MUST, "pids.max" },
	{ CGROUP_MEMORY, VAL_MEMORY, MUST, "memory.max" },
	{ CGROUP_MEMORY, VAL_ZERO, MAY, "memory.swap.max" },
	{ CGROUP_MEMORY, VAL_ONE, MAY, "memory.oom.group" },
	{ CGROUP_CPU, VAL_WEIGHT, MUST, "cpu.weight" },
};

/* The reason why a hierarchy cannot be used, as part of a sentence. */
struct cgroup_reason {
	char text[170];
	bool taken; /* another group has that name */
};

static int reason_set(struct cgroup_reason *why, const char *what, const char *where, int error)
{
	const char *desc = error != 0 ? strerrordesc_np(error) : NULL;

	(void)snprintf(why->text, sizeof(why->text), "%s %.100s%s%s", what, where,
	               desc != NULL ? ": " : "", desc != NULL ? desc : "");
	return -1;
}

/* ---- knobs ------------------------------------------------------------- */

/* The scheduler treats weight 100 like 1024 shares. */
static uint64_t weight_of_shares(uint64_t shares)
{
	uint64_t weight = (shares * 100 + 512) / 1024;

	return weight < 1 ? 1 : weight > 10000 ? 10000 : weight;
}

/* Sets *ret to the number to write. Returns false if this resource has no limit: the file is not
 * written then. */
static bool knob_number(enum knob_value value, const struct cgroup_limits *l, uint64_t *ret)
{
	switch (value) {
	case VAL_MEMORY:
		*ret = l->memory_bytes;
		return l->memory_bytes != 0;
	case VAL_PROCESSES:
		*ret = l->max_processes;
		return l->max_processes != 0;
	case VAL_SHARES:
		*ret = l->cpu_shares;
		return l->cpu_shares != 0;
	case VAL_WEIGHT:
		*ret = weight_of_shares(l->cpu_shares);
		return l->cpu_shares != 0;
	case VAL_ZERO:
	case VAL_ONE:
		*ret = value == VAL_ONE;
		return l->memory_bytes != 0;
	}
	return false;
}

static int node_limit(const struct node *node, bool v2, const struct cgroup_limits *limits,
                      struct cgroup_reason *why)
{
	const struct knob *knobs = v2 ? V2_KNOBS : V1_KNOBS;
	size_t n = v2 ? ARRAY_LEN(V2_KNOBS) : ARRAY_LEN(V1_KNOBS);
	bool missing = false;

	for (size_t i = 0; i < n; i++) {
		const struct knob *k = &knobs[i];
		uint64_t number;
		char text[24];
		if ((node->controllers & (1u << k->controller)) == 0 ||
		    (k->need == ELSE && !missing) || !knob_number(k->value, limits, &number)) {
			continue;
		}
		int len = snprintf(text, sizeof(text), "%" PRIu64, number);
		missing = false;
		if (cgroup_write_at(node->dir_fd, k->file, text, (size_t)len) < 0) {
			if (k->need == MUST || errno != ENOENT) {
				return reason_set(why, "cannot set", k->file, errno);
			}
			missing = true;
		}
	}
	return 0;
}

/* ---- directories ------------------------------------------------------- */

/* Makes the group beneath `base` with its limits. Takes `base`, even on failure. */
static int node_make(struct cgroup *cg, int base, unsigned controllers,
                     const struct cgroup_limits *limits, struct cgroup_reason *why)
{
	auto_fd base_fd = base;

	if (mkdirat(base_fd, cg->name, 0755) < 0) {
		why->taken = errno == EEXIST;
		return reason_set(why, "cannot create", cg->name, errno);
	}
	struct node *node = &cg->nodes[cg->n++];
	node->controllers = controllers;
	node->base_fd = steal_fd(&base_fd);
	node->join_fd = -1;
	node->dir_fd =
	        openat(node->base_fd, cg->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (node->dir_fd < 0) {
		return reason_set(why, "cannot open", cg->name, errno);
	}
	if (node_limit(node, cg->v2, limits, why) < 0) {
		return -1;
	}
	const char *join = cg->v2 ? "cgroup.procs" : "tasks";
	node->join_fd = openat(node->dir_fd, join, O_WRONLY | O_CLOEXEC);
	if (node->join_fd < 0) {
		return reason_set(why, "cannot open", join, errno);
	}
	return 0;
}

static unsigned controllers_in(const char *list)
{
	unsigned set = 0;

	for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (cgroup_list_has(list, CGROUP_NAMES[i])) {
			set |= 1u << i;
		}
	}
	return set;
}

static int create_v2_in(struct cgroup *cg, const char *dir, const struct cgroup_limits *limits,
                        struct cgroup_reason *why)
{
	auto_fd base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char list[256];

	if (base < 0) {
		return reason_set(why, "cannot open", dir, errno);
	}
	cgroup_read_at(base, "cgroup.subtree_control", list, sizeof(list));
	unsigned controllers = controllers_in(list);
	if ((controllers & REQUIRED) != REQUIRED) {
		return reason_set(why, "the controllers memory and pids are not enabled in", dir,
		                  0);
	}
	/* To move a process, the kernel requires this right on the common ancestor of both
	 * groups. */
	if (faccessat(base, "cgroup.procs", W_OK, AT_EACCESS) < 0) {
		return reason_set(why, "this user may not use", dir, 0);
	}
	cg->v2 = true;
	if (node_make(cg, steal_fd(&base), controllers, limits, why) < 0) {
		cgroup_undo(cg);
		return -1;
	}
	return 0;
}

static int create_v2(struct cgroup *cg, const struct cgroup_layout *at,
                     const struct cgroup_limits *limits, struct cgroup_reason *why)
{
	if (!at->v2.found) {
		return reason_set(why, "not", "mounted", 0);
	}
	if (at->v1[CGROUP_MEMORY].found || at->v1[CGROUP_PIDS].found) {
		return reason_set(why, "the controllers memory and pids", "are in v1", 0);
	}
	if (!at->v2.top) {
		char parent[MAX_PATH_BYTES];
		const char *cut = strrchr(at->v2.dir, '/');
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(cut - at->v2.dir), at->v2.dir);
		if (create_v2_in(cg, parent, limits, why) == 0) {
			return 0;
		}
	}
	struct cgroup_reason own = { "", false };
	if (create_v2_in(cg, at->v2.dir, limits, &own) == 0) {
		return 0;
	}
	if (at->v2.top) { /* If the parent group was tried, report why it was refused: the user can
		             change that. */
		*why = own;
	}
	return -1;
}

static int create_v1(struct cgroup *cg, const struct cgroup_layout *at,
                     const struct cgroup_limits *limits, struct cgroup_reason *why)
{
	unsigned done = 0;

	cg->v2 = false;
	for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++) {
		const struct cgroup_place *place = &at->v1[i];
		if (!place->found && (REQUIRED & (1u << i)) != 0) {
			return reason_set(why, "no hierarchy has the controller", CGROUP_NAMES[i],
			                  0);
		}
		if (!place->found || (done & (1u << i)) != 0) {
			continue;
		}
		unsigned here = 0;
		for (unsigned k = i; k < CGROUP_CONTROLLERS; k++) {
			if (at->v1[k].found && strcmp(at->v1[k].dir, place->dir) == 0) {
				here |= 1u << k;
			}
		}
		done |= here;
		int base = open(place->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (base < 0) {
			return reason_set(why, "cannot open", place->dir, errno);
		}
		if (node_make(cg, base, here, limits, why) < 0) {
			return -1;
		}
	}
	return 0;
}

/* Adds the v1 hierarchies that freeze and meter. A run works without them. */
static void add_governed(struct cgroup *cg, const struct cgroup_layout *at)
{
	static const struct cgroup_limits none;
	struct cgroup_reason why;

	for (unsigned i = CGROUP_CONTROLLERS; i < CGROUP_PLACES; i++) {
		struct node *with = NULL;
		for (unsigned k = 0; k < i; k++) {
			if (at->v1[i].found && at->v1[k].found &&
			    strcmp(at->v1[i].dir, at->v1[k].dir) == 0) {
				with = (struct node *)(uintptr_t)cgroup_node(cg, k);
			}
		}
		if (with != NULL) {
			with->controllers |= 1u << i; /* mounted together */
			continue;
		}
		size_t before = cg->n;
		int base = at->v1[i].found ? open(at->v1[i].dir, O_PATH | O_DIRECTORY | O_CLOEXEC)
		                           : -1;
		if (base >= 0 && node_make(cg, base, 1u << i, &none, &why) < 0 && cg->n > before) {
			cgroup_drop_last(cg);
		}
	}
}

/* ---- groups of dead supervisors --------------------------------------------- */

/* Returns the pid in "skillsandbox-<pid>-<id>"; 0 for any other name. */
static pid_t parse_pid(const char *name)
{
	size_t prefix = sizeof(CGROUP_PREFIX) - 1;
	uint64_t pid = 0;

	if (strncmp(name, CGROUP_PREFIX, prefix) != 0 || name[prefix] == '0') {
		return 0;
	}
	const char *rest = number_read(name + prefix, INT32_MAX, &pid);
	return rest != NULL && *rest == '-' ? (pid_t)pid : 0;
}

static bool is_governed(const char *name)
{
	size_t n = strlen(name);
	size_t tail = sizeof(CGROUP_GOVERNED) - 1;

	return n > tail && strcmp(name + n - tail, CGROUP_GOVERNED) == 0;
}

/* Removes some of the groups that dead supervisors left. The kernel removes only groups
 * without a process, so that a wrong guess does no harm. */
static void sweep_dead(const struct cgroup *cg)
{
	struct stat st;
	unsigned seen = 0;
	unsigned removed = 0;

	/* The link count is 2, plus 1 for each child. If it is 3, the only child is the group of
	 * this run. */
	if (fstat(cg->nodes[0].base_fd, &st) < 0 || st.st_nlink <= 3) {
		return;
	}
	auto_dir dir = entries_open(cg->nodes[0].base_fd, ".");
	const struct dirent *e;
	while (dir != NULL && seen++ < MAX_SWEEP_SEEN && removed < MAX_SWEEP_REMOVALS &&
	       (e = entries_of(dir)) != NULL) {
		pid_t pid = parse_pid(e->d_name);
		/* A governed group has directories in the hierarchies that freeze and meter, too. A
		 * run that is not governed does not use these, so only a governed run removes such
		 * a group. */
		if (!cg->governed && is_governed(e->d_name)) {
			continue;
		}
		/* A pid that does not exist here may exist in another pid namespace. So a group is
		 * removed only if it is old. */
		if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH ||
		    fstatat(cg->nodes[0].base_fd, e->d_name, &st, 0) != 0 ||
		    time(NULL) - st.st_mtime < MIN_SWEEP_AGE) {
			continue;
		}
		for (size_t i = cg->n; i > 0; i--) {
			(void)unlinkat(cg->nodes[i - 1].base_fd, e->d_name, AT_REMOVEDIR);
		}
		removed++;
	}
}

/* ---- the object -------------------------------------------------------- */

static void write_about(struct cgroup *cg)
{
	static const enum cgroup_controller ORDER[] = { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU };
	unsigned set = 0;
	const char *sep = ": ";

	for (size_t i = 0; i < cg->n; i++) {
		set |= cg->nodes[i].controllers;
	}
	int n = snprintf(cg->about, sizeof(cg->about), "cgroup v%d", cg->v2 ? 2 : 1);
	for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
		if ((set & (1u << ORDER[i])) != 0) {
			n += snprintf(cg->about + n, sizeof(cg->about) - (size_t)n, "%s%s", sep,
			              CGROUP_NAMES[ORDER[i]]);
			sep = ", ";
		}
	}
}

static bool id_valid(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return n > 0 && n <= CGROUP_MAX_ID_BYTES && id[n] == '\0';
}

/* Makes the group. Its name may exist already: a killed supervisor may have had the same pid, or a
 * supervisor in another pid namespace has it. The two cases cannot be distinguished, so another
 * name is tried. */
static int create_named(struct cgroup *cg, const char *id, const struct cgroup_layout *at,
                        const struct cgroup_limits *limits, struct ssb_error *err)
{
	for (unsigned i = 0;; i++) {
		struct cgroup_reason why2 = { "", false };
		struct cgroup_reason why1 = { "", false };
		char again[16] = "";

		if (i > 0) {
			(void)snprintf(again, sizeof(again), "-%u", i);
		}
		(void)snprintf(cg->name, sizeof(cg->name), CGROUP_PREFIX "%d-%s%s%s", (int)getpid(),
		               id, again, cg->governed ? CGROUP_GOVERNED : "");
		if (create_v2(cg, at, limits, &why2) == 0 ||
		    create_v1(cg, at, limits, &why1) == 0) {
			return 0;
		}
		cgroup_undo(cg);
		if (i == NAME_TRIES || !(why2.taken || why1.taken)) {
			return ssb_fail(err, SSB_E_LAYER, 0, "cgroup", "no cgroup: v2: %s; v1: %s",
			                why2.text, why1.text);
		}
	}
}

int cgroup_create(const char *id, const struct cgroup_limits *limits, struct cgroup **ret,
                  struct ssb_error *err)
{
	struct cgroup_layout at;
	struct cgroup_reason why = { "", false };
	const char *unread = NULL;

	assert(id != NULL && limits != NULL && ret != NULL);
	if (!id_valid(id)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "cgroup",
		                "'%.80s' is not a name for a control group", id);
	}
	if (cgroup_locate(&at, &unread) < 0) {
		(void)reason_set(&why, "cannot read", unread, errno);
		return ssb_fail(err, SSB_E_LAYER, 0, "cgroup", "no cgroup: %s", why.text);
	}
	struct cgroup *cg = calloc(1, sizeof(*cg));
	if (cg == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "cgroup", "out of memory");
	}
	cg->governed = limits->governed;
	if (create_named(cg, id, &at, limits, err) < 0) {
		cgroup_free(cg);
		return -1;
	}
	if (cg->governed && !cg->v2) {
		add_governed(cg, &at);
	}
	sweep_dead(cg);
	write_about(cg);
	*ret = cg;
	return 0;
}
