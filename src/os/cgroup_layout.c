/* cgroup_layout.c - parses /proc/self/cgroup and mountinfo. */
#include "os/cgroup_layout.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "os/file.h"

#define MAX_MOUNTINFO (4U << 20)
#define USUAL_ROOT    "/sys/fs/cgroup" /* where distributions mount the hierarchies */

const char *const CGROUP_NAMES[CGROUP_PLACES] = {
	[CGROUP_PIDS] = "pids",       [CGROUP_MEMORY] = "memory",   [CGROUP_CPU] = "cpu",
	[CGROUP_FREEZER] = "freezer", [CGROUP_CPUACCT] = "cpuacct",
};

/* Part of a text, not NUL-terminated. */
struct piece {
	const char *p;
	size_t n;
};

static bool piece_is(struct piece s, const char *word)
{
	return s.n == strlen(word) && memcmp(s.p, word, s.n) == 0;
}

/* Cuts the text before the first `sep`, and this `sep`, off the front of *rest. Returns the text.
 * If nothing was left in *rest, the result has p == NULL. */
static struct piece piece_cut(struct piece *rest, char sep)
{
	struct piece out = { NULL, 0 };

	if (rest->p == NULL) {
		return out;
	}
	const char *end = memchr(rest->p, sep, rest->n);
	out.p = rest->p;
	if (end == NULL) {
		out.n = rest->n;
		*rest = (struct piece){ NULL, 0 };
	} else {
		out.n = (size_t)(end - rest->p);
		rest->p = end + 1;
		rest->n -= out.n + 1;
	}
	return out;
}

static bool piece_list_has(struct piece list, char sep, const char *name)
{
	while (list.p != NULL) {
		if (piece_is(piece_cut(&list, sep), name)) {
			return true;
		}
	}
	return false;
}

bool cgroup_list_has(const char *list, const char *name)
{
	return piece_list_has((struct piece){ list, strcspn(list, "\n") }, ' ', name);
}

/* Decodes a path: mountinfo writes blanks, tabs, newlines and backslashes as \ooo. Returns false if
 * it does not fit. */
static bool unescape_path(struct piece in, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < in.n; i++) {
		char c = in.p[i];
		if (c == '\\' && in.n - i > 3) {
			unsigned v = 0;
			for (size_t k = 1; k <= 3; k++) {
				v = v * 8 + (unsigned)(in.p[i + k] - '0');
			}
			c = (char)v;
			i += 3;
		}
		if (n + 1 >= size) {
			return false;
		}
		out[n++] = c;
	}
	out[n] = '\0';
	return true;
}

struct mount_line {
	struct piece root; /* still escaped */
	struct piece point;
	struct piece options; /* options of the super block, which name the controllers of v1 */
	bool v2;
};

static bool mount_line_parse(struct piece line, struct mount_line *ret)
{
	struct mount_line m = { 0 };

	for (int i = 0; i < 3; i++) {
		(void)piece_cut(&line, ' '); /* id, parent, device */
	}
	m.root = piece_cut(&line, ' ');
	m.point = piece_cut(&line, ' ');
	struct piece field;
	do { /* mount options, then any number of optional fields, then "-" */
		field = piece_cut(&line, ' ');
	} while (field.p != NULL && !piece_is(field, "-"));
	struct piece type = piece_cut(&line, ' ');
	m.v2 = piece_is(type, "cgroup2");
	if (!m.v2 && !piece_is(type, "cgroup")) {
		return false;
	}
	(void)piece_cut(&line, ' '); /* source */
	m.options = piece_cut(&line, ' ');
	*ret = m;
	return m.options.p != NULL;
}

/* Returns the path in the line "ID:controllers:path" of the hierarchy that has the controller
 * `name`. If `name` is NULL, returns the path of v2, whose list of controllers is empty. */
static struct piece self_path(const char *self, const char *name)
{
	struct piece text = { self, strlen(self) };

	while (text.p != NULL) {
		struct piece line = piece_cut(&text, '\n');
		struct piece id = piece_cut(&line, ':');
		struct piece list = piece_cut(&line, ':');
		if (line.p == NULL) {
			continue;
		}
		if (name == NULL ? (piece_is(id, "0") && list.n == 0)
		                 : piece_list_has(list, ',', name)) {
			return line;
		}
	}
	return (struct piece){ NULL, 0 };
}

static void place_set(struct cgroup_place *place, const struct mount_line *m, struct piece path)
{
	char root[MAX_PATH_BYTES];
	char point[MAX_PATH_BYTES];

	if (place->found || path.p == NULL || !unescape_path(m->root, root, sizeof(root)) ||
	    !unescape_path(m->point, point, sizeof(point))) {
		return;
	}
	size_t cut = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (path.n < cut || memcmp(path.p, root, cut) != 0 ||
	    (path.n > cut && path.p[cut] != '/')) {
		return; /* this mount shows a part of the hierarchy without the path */
	}
	path.p += cut;
	path.n -= cut;
	/* In a cgroup namespace, a path that begins with "/.." lies above the namespace's root. */
	if (path.n >= 3 && memcmp(path.p, "/..", 3) == 0 && (path.n == 3 || path.p[3] == '/')) {
		return;
	}
	bool top = path.n <= 1;
	int n = snprintf(place->dir, sizeof(place->dir), "%s%.*s", point, top ? 0 : (int)path.n,
	                 path.p);
	if (n < 0 || (size_t)n >= sizeof(place->dir)) {
		return;
	}
	place->top = top;
	place->found = true;
}

void cgroup_layout_parse(const char *mountinfo, const char *self, struct cgroup_layout *ret)
{
	struct piece text = { mountinfo, strlen(mountinfo) };

	ret->v2.found = false;
	for (size_t i = 0; i < ARRAY_LEN(ret->v1); i++) {
		ret->v1[i].found = false;
	}
	while (text.p != NULL) {
		struct mount_line m;
		if (!mount_line_parse(piece_cut(&text, '\n'), &m)) {
			continue;
		}
		if (m.v2) {
			place_set(&ret->v2, &m, self_path(self, NULL));
			continue;
		}
		for (size_t i = 0; i < ARRAY_LEN(ret->v1); i++) {
			if (piece_list_has(m.options, ',', CGROUP_NAMES[i])) {
				place_set(&ret->v1[i], &m, self_path(self, CGROUP_NAMES[i]));
			}
		}
	}
}

/* ---- the files of this machine --------------------------------------------- */

static bool is_cgroup(const char *dir, long magic)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 && (long)fs.f_type == magic;
}

/* True if a run can use one of the controllers in `list` ("cpu,cpuacct"), or if `list` is empty,
 * which means v2. */
static bool list_has_place(struct piece list)
{
	bool found = list.n == 0;

	for (size_t i = 0; i < CGROUP_PLACES; i++) {
		found = found || piece_list_has(list, ',', CGROUP_NAMES[i]);
	}
	return found;
}

/* Writes the mount table that distributions usually have, but only those hierarchies of `self` that
 * a run can use. Returns false if one of them is not mounted at its usual place. */
static bool guess_mounts(const char *self, struct buf *out)
{
	const char *v2 =
	        is_cgroup(USUAL_ROOT, CGROUP2_SUPER_MAGIC) ? USUAL_ROOT : USUAL_ROOT "/unified";

	for (const char *line = self; *line != '\0';) {
		const char *list = line + strcspn(line, ":\n");
		list += *list == ':';
		int n = (int)strcspn(list, ":\n");
		char dir[128];
		bool used = list_has_place((struct piece){ list, (size_t)n });
		int len = n == 0 ? snprintf(dir, sizeof(dir), "%s", v2)
		                 : snprintf(dir, sizeof(dir), USUAL_ROOT "/%.*s", n, list);

		if (used && (len < 0 || (size_t)len >= sizeof(dir) ||
		             !is_cgroup(dir, n == 0 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC))) {
			return false;
		}
		if (used) {
			buf_addf(out, "0 0 0:0 / %s rw - %s none rw,%.*s\n", dir,
			         n == 0 ? "cgroup2" : "cgroup", n, list);
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return !out->failed;
}

/* True if the directory exists, or is not needed. guess_mounts() has checked the mount points. */
static bool place_exists(const struct cgroup_place *place)
{
	return !place->found || place->top || access(place->dir, F_OK) == 0;
}

/* Tries the usual mount points. Returns false if they are wrong; only then the real mount table is
 * read. Reading the real table takes as long as everything else in this file. It also blocks the
 * child of the supervisor, which makes its mounts at that time. */
static bool locate_usual(const char *self, struct cgroup_layout *ret)
{
	auto_buf mounts = BUF(MAX_MOUNTINFO);

	if (!guess_mounts(self, &mounts)) {
		return false;
	}
	cgroup_layout_parse(mounts.data != NULL ? mounts.data : "", self, ret);
	bool exists = ret->v2.found || ret->v1[CGROUP_PIDS].found;
	for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
		exists = exists && place_exists(&ret->v1[i]);
	}
	return exists && place_exists(&ret->v2);
}

static int read_whole(const char *path, struct buf *out, const char **ret_unread)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || file_read_all(fd, out) < 0) {
		*ret_unread = path;
		return -1;
	}
	return 0;
}

int cgroup_locate(struct cgroup_layout *ret, const char **ret_unread)
{
	auto_buf mounts = BUF(MAX_MOUNTINFO);
	auto_buf self = BUF(MAX_MOUNTINFO);

	if (read_whole("/proc/self/cgroup", &self, ret_unread) < 0) {
		return -1;
	}
	const char *text = self.data != NULL ? self.data : "";
	if (locate_usual(text, ret)) {
		return 0;
	}
	if (read_whole("/proc/self/mountinfo", &mounts, ret_unread) < 0) {
		return -1;
	}
	cgroup_layout_parse(mounts.data != NULL ? mounts.data : "", text, ret);
	return 0;
}
