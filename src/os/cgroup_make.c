/* cgroup_make.c - the way to a control group: find, make, limit, sweep.
 *
 * It is on the start path of every run: the mount table is read once, all
 * files are reached from held directory fds, and every knob is one write.
 *
 * v2: a sibling of the caller's own group is preferred, since the kernel
 * forbids controllers in children of a group that holds processes itself.
 * What a child would get is read from its parent first, so that nothing is
 * made in vain. v1: a directory beneath the caller's own in each hierarchy.
 *
 * In v1 the pids directory is made first and removed last: whatever a killed
 * supervisor leaves behind is therefore listed there, and the sweep looks at
 * that hierarchy only. */
#include "os/cgroup_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/own.h"
#include "os/file.h"

#define MAX_MOUNTINFO (4u << 20)
#define NAME_TRIES    8 /* where a dead supervisor of our number has left its group */
#define REQUIRED      ((1u << CGROUP_MEMORY) | (1u << CGROUP_PIDS))

enum knob_value { VAL_MEMORY, VAL_PROCESSES, VAL_SHARES, VAL_WEIGHT, VAL_ZERO, VAL_ONE };
enum knob_need { MUST, MAY, ELSE /* only where the one before is missing */ };

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
	/* Buffers of sockets count apart from all other memory here, and as much again. */
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

/* Why a hierarchy cannot be used; becomes part of one sentence. */
struct reason {
	char text[170];
	bool taken; /* there is a group of that name */
};

static int reason_set(struct reason *why, const char *what, const char *where, int error)
{
	const char *desc = error != 0 ? strerrordesc_np(error) : NULL;

	(void)snprintf(why->text, sizeof(why->text), "%s %.100s%s%s", what, where,
	               desc != NULL ? ": " : "", desc != NULL ? desc : "");
	return -1;
}

static int read_whole(const char *path, struct buf *out, struct reason *why)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || file_read_all(fd, out) < 0) {
		return reason_set(why, "cannot read", path, errno);
	}
	return 0;
}

/* ---- knobs ------------------------------------------------------------- */

/* Weight 100 and 1024 shares are the same number inside of the scheduler. */
static uint64_t weight_of_shares(uint64_t shares)
{
	uint64_t weight = (shares * 100 + 512) / 1024;

	return weight < 1 ? 1 : weight > 10000 ? 10000 : weight;
}

/* false: this resource has no limit, leave the knob alone. */
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
                      struct reason *why)
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

/* Makes the group beneath base_fd (taken in any case) with its limits. */
static int node_make(struct cgroup *cg, int base, unsigned controllers,
                     const struct cgroup_limits *limits, struct reason *why)
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
                        struct reason *why)
{
	auto_fd base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char list[256];

	if (base < 0) {
		return reason_set(why, "cannot open", dir, errno);
	}
	cgroup_read_at(base, "cgroup.subtree_control", list, sizeof(list));
	unsigned controllers = controllers_in(list);
	if ((controllers & REQUIRED) != REQUIRED) {
		return reason_set(why, "memory and pids are not enabled in", dir, 0);
	}
	/* Moving a process asks for this right on the common ancestor. */
	if (faccessat(base, "cgroup.procs", W_OK, AT_EACCESS) < 0) {
		return reason_set(why, "not delegated to this user:", dir, 0);
	}
	cg->v2 = true;
	if (node_make(cg, steal_fd(&base), controllers, limits, why) < 0) {
		cgroup_undo(cg);
		return -1;
	}
	return 0;
}

static int create_v2(struct cgroup *cg, const struct cgroup_layout *at,
                     const struct cgroup_limits *limits, struct reason *why)
{
	if (!at->v2.found) {
		return reason_set(why, "not", "mounted", 0);
	}
	if (at->v1[CGROUP_MEMORY].found || at->v1[CGROUP_PIDS].found) {
		return reason_set(why, "without memory and pids,", "which are in v1", 0);
	}
	if (!at->v2.top) {
		char parent[MAX_PATH_BYTES];
		const char *cut = strrchr(at->v2.dir, '/');
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(cut - at->v2.dir), at->v2.dir);
		if (create_v2_in(cg, parent, limits, why) == 0) {
			return 0;
		}
	}
	struct reason own = { "", false };
	if (create_v2_in(cg, at->v2.dir, limits, &own) == 0) {
		return 0;
	}
	if (at->v2.top) { /* else the parent's reason is the one that can be helped */
		*why = own;
	}
	return -1;
}

static int create_v1(struct cgroup *cg, const struct cgroup_layout *at,
                     const struct cgroup_limits *limits, struct reason *why)
{
	unsigned done = 0;

	cg->v2 = false;
	for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++) {
		const struct cgroup_place *place = &at->v1[i];
		if (!place->found && (REQUIRED & (1u << i)) != 0) {
			return reason_set(why, "no hierarchy with", CGROUP_NAMES[i], 0);
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

/* v1: the hierarchies that limit nothing. What cannot be had is done without. */
static void add_governed(struct cgroup *cg, const struct cgroup_layout *at)
{
	static const struct cgroup_limits none;
	struct reason why;

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

/* ---- the object -------------------------------------------------------- */

static void describe(struct cgroup *cg)
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

/* Where distributions mount the hierarchies. */
#define USUAL_ROOT "/sys/fs/cgroup"

static bool is_cgroup(const char *dir, long magic)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 && (long)fs.f_type == magic;
}

/* Writes the mount table as it usually is, for the hierarchies of `self`.
 * False: at least one of them is not where it usually is. */
static bool usual_mounts(const char *self, struct buf *out)
{
	const char *v2 =
	        is_cgroup(USUAL_ROOT, CGROUP2_SUPER_MAGIC) ? USUAL_ROOT : USUAL_ROOT "/unified";

	for (const char *line = self; *line != '\0';) {
		const char *list = line + strcspn(line, ":\n");
		list += *list == ':';
		int n = (int)strcspn(list, ":\n");
		char dir[128];
		bool named = strncmp(list, "name=", 5) == 0;
		int len = n == 0 ? snprintf(dir, sizeof(dir), "%s", v2)
		                 : snprintf(dir, sizeof(dir), USUAL_ROOT "/%.*s", n, list);

		if (!named &&
		    (len < 0 || (size_t)len >= sizeof(dir) ||
		     !is_cgroup(dir, n == 0 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))) {
			return false;
		}
		if (!named) {
			buf_addf(out, "0 0 0:0 / %s rw - %s none rw,%.*s\n", dir,
			         n == 0 ? "cgroup2" : "cgroup", n, list);
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return !out->failed;
}

static bool place_exists(const struct cgroup_place *place)
{
	return !place->found || access(place->dir, F_OK) == 0;
}

/* To read the mount table costs as much as all the rest, and holds up the
 * child that mounts meanwhile: it is read only where the usual places are not
 * the right ones. */
static bool locate_usual(const char *self, struct cgroup_layout *ret)
{
	auto_buf mounts;

	buf_init(&mounts, MAX_MOUNTINFO);
	if (!usual_mounts(self, &mounts)) {
		return false;
	}
	cgroup_layout_parse(mounts.data != NULL ? mounts.data : "", self, ret);
	bool good = ret->v2.found || ret->v1[CGROUP_PIDS].found;
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
		good = good && place_exists(&ret->v1[i]);
	}
	return good && place_exists(&ret->v2);
}

static int locate(struct cgroup_layout *ret, struct reason *why)
{
	auto_buf mounts;
	auto_buf self;

	buf_init(&mounts, MAX_MOUNTINFO);
	buf_init(&self, MAX_MOUNTINFO);
	if (read_whole("/proc/self/cgroup", &self, why) < 0) {
		return -1;
	}
	const char *text = self.data != NULL ? self.data : "";
	if (locate_usual(text, ret)) {
		return 0;
	}
	if (read_whole("/proc/self/mountinfo", &mounts, why) < 0) {
		return -1;
	}
	cgroup_layout_parse(mounts.data != NULL ? mounts.data : "", text, ret);
	return 0;
}

static bool id_valid(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return n > 0 && n <= CGROUP_MAX_ID_BYTES && id[n] == '\0';
}

/* Another group may have the name: of a killed supervisor whose number we have now, or of one
 * in another pid namespace. It is left alone, since nobody can tell which. */
static int create_named(struct cgroup *cg, const char *id, const struct cgroup_layout *at,
                        const struct cgroup_limits *limits, struct ssb_error *err)
{
	for (unsigned i = 0;; i++) {
		struct reason why2 = { "", false };
		struct reason why1 = { "", false };
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
	struct reason why = { "", false };

	if (!id_valid(id)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "cgroup", "not a name for a group");
	}
	if (locate(&at, &why) < 0) {
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
	cgroup_sweep(cg);
	describe(cg);
	*ret = cg;
	return 0;
}
