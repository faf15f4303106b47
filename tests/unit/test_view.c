/* test_view.c - compares what a sandbox shows with the table VIEW: each path of the table is there
 * as the table says, and there are no other paths. */
#include "unit.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "os/landlock.h"
#include "os/tree.h"
#include "policy/path.h"
#include "policy/view.h"
#include "sandbox/sandbox.h"
#include "skillsandbox.h"

#define OTHER_UID 65534

/* The entries of VIEW as they are outside of the sandbox. The function that runs inside has a copy
 * of this memory, and compares with it. */
struct outside {
	const char *home;
	struct stat st[VIEW_ROWS]; /* mode 0: absent */
	char link[VIEW_ROWS][256];
};

static struct outside outside;

static void look_outside(void)
{
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		ssize_t n = 0;
		if (lstat(VIEW[i].path, &outside.st[i]) != 0) {
			outside.st[i] = (struct stat){ 0 };
		} else if (S_ISLNK(outside.st[i].st_mode)) {
			n = readlink(VIEW[i].path, outside.link[i], sizeof(outside.link[i]) - 1);
		}
		outside.link[i][n > 0 ? n : 0] = '\0';
	}
}

/* ---- inside ---------------------------------------------------------------------- */

/* True if a directory can be created in `dir`; it is removed again. */
static bool can_make(const char *dir)
{
	auto_free char *path = path_join(dir, "test-view-made");

	return path != NULL && mkdir(path, 0700) == 0 && rmdir(path) == 0;
}

static bool can_write(const char *file)
{
	auto_fd fd = open(file, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd >= 0;
}

static ssize_t read_some(const char *file)
{
	auto_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char byte;

	return fd >= 0 ? read(fd, &byte, 1) : -1;
}

static bool is_link_to(const char *path, const char *to)
{
	char text[256];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return n > 0 && strcmp(text, to) == 0;
}

/* True if the mount itself is read-only (and not only Landlock or file modes prevent writing). */
static bool is_read_only(const char *path)
{
	struct statvfs fs;

	return statvfs(path, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0;
}

static const char *check_host(size_t row, const struct stat *st)
{
	const struct stat *host = &outside.st[row];
	const char *path = VIEW[row].path;

	if (st->st_mode == 0 || host->st_mode == 0) {
		return st->st_mode == host->st_mode ? NULL : "is there on one side alone";
	}
	if (S_ISLNK(host->st_mode)) {
		return is_link_to(path, outside.link[row]) ? NULL : "is another symlink";
	}
	if (st->st_ino != host->st_ino || (st->st_mode & S_IFMT) != (host->st_mode & S_IFMT)) {
		return "is not the host's";
	}
	if (!is_read_only(path)) {
		return "is on a mount that can be written";
	}
	return S_ISDIR(st->st_mode) ? can_make(path) ? "can be changed" : NULL
	       : can_write(path)    ? "can be written"
	                            : NULL;
}

static const char *check_kernel(const char *path)
{
	struct statfs fs;
	long type = strcmp(path, "/proc") == 0 ? PROC_SUPER_MAGIC : DEVPTS_SUPER_MAGIC;

	return statfs(path, &fs) == 0 && fs.f_type == type ? NULL : "is another file system";
}

static const char *check_row(size_t i)
{
	const struct view_row *r = &VIEW[i];
	struct stat st = { 0 };
	bool there = lstat(r->path, &st) == 0;

	if (!there) {
		st = (struct stat){ 0 };
		return r->shown == VIEW_NOTHING || r->shown == VIEW_MASKED ? NULL
		       : r->shown == VIEW_HOST                             ? check_host(i, &st)
		                                                           : "is missing";
	}
	switch (r->shown) {
	case VIEW_NOTHING:
		return "is there";
	case VIEW_DIR:
		return S_ISDIR(st.st_mode) && !can_make(r->path) && is_read_only(r->path)
		               ? NULL
		               : "is not a sealed directory";
	case VIEW_PRIVATE:
		return can_make(r->path) ? NULL : "cannot be changed";
	case VIEW_KERNEL:
		return check_kernel(r->path);
	case VIEW_HOST:
		return check_host(i, &st);
	case VIEW_DEVICE:
		return S_ISCHR(st.st_mode) && st.st_rdev == outside.st[i].st_rdev &&
		                       is_read_only(r->path)
		               ? NULL
		               : "is not the host's device";
	case VIEW_FILE:
		return S_ISREG(st.st_mode) && read_some(r->path) == 1 && !can_write(r->path)
		               ? NULL
		               : "is not a read-only file";
	case VIEW_LINK:
		return is_link_to(r->path, r->to) ? NULL : "leads elsewhere";
	case VIEW_MASKED:
		return read_some(r->path) <= 0 ? NULL : "can be read";
	}
	return "has an unknown kind";
}

/* True if the path is an entry of VIEW, or a directory above one, or above the home. */
static bool is_known(const char *path)
{
	bool known = path_beneath(outside.home, path) != NULL;

	for (size_t i = 0; i < VIEW_ROWS && !known; i++) {
		known = path_beneath(VIEW[i].path, path) != NULL;
	}
	return known;
}

/* Must not allocate memory: without a control group, RLIMIT_DATA limits the memory of the sandbox,
 * and the memory of a sanitizer counts for it, too. */
static void check_names(int out, const char *dir)
{
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char entries[4096], path[PATH_MAX];
	ssize_t n = -1;

	while (fd >= 0 && (n = getdents64(fd, entries, sizeof(entries))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const void *)(entries + at);
			bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
			(void)snprintf(path, sizeof(path), "%s/%s", dir[1] == '\0' ? "" : dir,
			               e->d_name);
			if (!dots && !is_known(path)) {
				dprintf(out, "%s: is not in the table\n", path);
			}
			at += e->d_reclen;
		}
	}
	if (n < 0) {
		dprintf(out, "%s: cannot be listed\n", dir);
	}
}

static int compare(int out, void *arg)
{
	static const char *const SEALED[] = { "/", "/etc", "/dev", "/run", "/var", "/skill" };

	for (size_t i = 0; i < VIEW_ROWS; i++) {
		const char *wrong = check_row(i);
		if (wrong != NULL) {
			dprintf(out, "%s: %s\n", VIEW[i].path, wrong);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(SEALED); i++) {
		check_names(out, SEALED[i]);
	}
	dprintf(out, "compared\n");
	return 0;
}

/* ---- outside --------------------------------------------------------------------- */

/* Runs the function in the sandbox and returns its output as a new text. If the sandbox could not
 * be built, prints the error and returns "". */
static char *run_in_sandbox(void)
{
	char *argv[] = { (char[]){ "true" }, NULL };
	struct ssb_options *o = ssb_options_new();
	struct ssb_error err = { 0 };
	struct ssb_plan *plan = NULL;
	auto_buf out = BUF(1 << 20);

	if (ssb_options_set(o, SSB_OPT_POLICY_FILE, "", &err) != 0 ||
	    ssb_plan_command(o, argv, &plan, NULL, &err) != 0) {
		print_error("%s: %s\n", err.where, err.text);
	} else {
		const struct run_request q = run_request_of(plan, (const int[3]){ -1, -1, -1 });
		outside.home = plan->home;
		look_outside();
		if (sandbox_run_payload(&q, compare, NULL, &out, &err) != 0) {
			print_error("%s: %s\n", err.where, err.text);
		}
	}
	ssb_plan_free(plan);
	ssb_options_free(o);
	return strdup(out.data != NULL && !out.failed ? out.data : "");
}

static int compare_as(uid_t uid)
{
	/* After a change of uid the process is not dumpable, and could not write its own id
	 * maps. */
	if (uid != geteuid() && (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0 ||
	                         prctl(PR_SET_DUMPABLE, 1) != 0)) {
		return 2;
	}
	auto_free char *said = run_in_sandbox();
	if (strcmp(said, "compared\n") != 0) {
		print_error("as uid %u:\n%s", (unsigned)uid, said);
		return 1;
	}
	return 0;
}

/* If the test runs as root, it also compares as an unprivileged user. */
static void is_what_the_table_says(void **state)
{
	char home[] = "/tmp/ssb-view-XXXXXX";
	int status = -1;

	assert_non_null(mkdtemp(home));
	assert_int_equal(chmod(home, 0755), 0);
	assert_int_equal(setenv("HOME", home, 1), 0);
	assert_int_equal(compare_as(geteuid()), 0);
	if (geteuid() == 0) {
		pid_t child = fork();
		if (child == 0) {
			_exit(compare_as(OTHER_UID));
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_int_equal(tree_remove(AT_FDCWD, home), 0);
}

/* In VIEW, each entry must come before the entries below it, because the observer relies on this
 * order. */
static void is_in_order(void **state)
{
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		assert_non_null(VIEW[i].path);
		assert_true((VIEW[i].zone != ZONE_AROUND) == (i < VIEW_ZONES));
		assert_true((VIEW[i].shown == VIEW_LINK) == (VIEW[i].to != NULL));
		for (size_t k = 0; k < i; k++) {
			assert_true(strcmp(VIEW[k].path, VIEW[i].path) != 0);
			assert_null(path_beneath(VIEW[k].path, VIEW[i].path));
		}
	}
}

/* The functions view_*() give the right answers for paths in, above and beside the entries of
 * VIEW. */
static void tells_of_places(void **state)
{
	static const struct {
		const char *path;
		bool ours, always, in_private;
	} PLACES[] = {
		{ "/", true, false, false },         { "/usr/lib/x", true, true, false },
		{ "/usrx", false, false, false },    { "/etc/alternatives/x", true, true, false },
		{ "/etc", true, false, false },      { "/etc/ssl/certs", true, false, false },
		{ "/tmp", true, false, false },      { "/tmp/x", false, false, true },
		{ "/var", true, false, false },      { "/var/lib", false, false, false },
		{ "/dev/shm/x", true, false, true }, { "/home", true, false, false },
		{ "/home/u", false, false, false },  { "/home/u/x", false, false, true },
		{ "/srv", false, false, false },     { "/skill/x", true, false, false },
	};
	const struct ssb_plan plan = { .home = (char[]){ "/home/u" } };

	for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
		const char *path = PLACES[i].path;
		bool right = view_claimed(path, VIEW_OURS | VIEW_ITSELF) == PLACES[i].ours &&
		             view_is_system(path) == PLACES[i].always &&
		             view_in_private(&plan, path) == PLACES[i].in_private;
		if (!right) {
			fail_msg("%s", path);
		}
	}
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		const char *path = VIEW[i].path;
		unsigned may = view_may(&VIEW[i]);
		if (strcmp(path, "/etc/ssl/certs") == 0) {
			assert_int_equal(may, LL_READ);
		} else if (strcmp(path, "/usr") == 0) {
			assert_int_equal(may, LL_READ | LL_EXEC);
		} else if (strcmp(path, "/dev/null") == 0) {
			assert_int_equal(may, LL_READ | LL_WRITE);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_in_order),
		cmocka_unit_test(tells_of_places),
		cmocka_unit_test(is_what_the_table_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
