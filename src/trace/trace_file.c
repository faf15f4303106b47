/* trace_file.c - creates, names and places the two files of a run. */
#include "trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/tail.h"
#include "os/file.h"

#define REMEDY "set XDG_STATE_HOME to a directory that you can write"

#define PART "trace.json.part"

/* The supervisor keeps the record locked as long as it runs, so that other processes can see that
 * it runs. A process that checks this locks the record itself for a moment, perhaps just after we
 * created the file. So we wait for the lock. We do not wait forever, because some network file
 * systems have no locks. */
#define LOCK_WAIT_MS 500

/* Puts the record directly into the directory of the runs; later the run gets a directory of its
 * own. */
static int trace_file_state(struct trace_file *f, const struct owner *owner, const char *id,
                            struct ssb_error *err)
{
	char dir[PATH_MAX];
	int n = snprintf(dir, sizeof(dir), "%s/runs", owner->state_dir);

	if (n < 0 || (size_t)n + strlen(id) >= sizeof(dir) - sizeof("//" RECORD_NAME)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "trace",
		                "the path of the state directory is too long; " REMEDY);
	}
	f->dir_fd = file_mkdirs(dir);
	if (f->dir_fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "trace", "cannot create '%s' (" REMEDY ")",
		                dir);
	}
	snprintf(f->run, sizeof(f->run), "%s", id);
	snprintf(f->path, sizeof(f->path), "%s/%s/trace.json", dir, id);
	snprintf(f->record_path, sizeof(f->record_path), "%s/%s/" RECORD_NAME, dir, id);
	snprintf(f->name, sizeof(f->name), "trace.json");
	snprintf(f->record_name, sizeof(f->record_name), RECORD_NAME);
	snprintf(f->record, sizeof(f->record), "%s." RECORD_NAME, id);
	snprintf(f->part, sizeof(f->part), PART);
	return 0;
}

/* Makes the run's own directory and moves the record into it. */
static int trace_file_own_dir(struct trace_file *f)
{
	if (mkdirat(f->dir_fd, f->run, 0700) != 0) {
		return -1;
	}
	auto_fd dir = openat(f->dir_fd, f->run, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || renameat(f->dir_fd, f->record, dir, f->record_name) != 0) {
		return -1;
	}
	own_close(&f->dir_fd);
	f->dir_fd = steal_fd(&dir);
	return 0;
}

int trace_file_settle(struct trace_file *f, struct ssb_error *err)
{
	if (f->settled) {
		return 0;
	}
	f->settled = true;
	if (!f->locked) {
		(void)file_lock(f->record_fd,
		                0); /* the lock could not be taken at the beginning: try again */
	}
	if (f->run[0] != '\0' ? trace_file_own_dir(f) != 0
	                      : renameat(f->dir_fd, f->record, f->dir_fd, f->record_name) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "trace",
		                "cannot rename the finished file to '%.200s'", f->record_path);
	}
	f->fd = openat(f->dir_fd, f->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	               0600);
	return f->fd < 0
	               ? ssb_fail(err, SSB_E_SYS, errno, "trace", "cannot create '%.200s'", f->path)
	               : 0;
}

const char *trace_file_more(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;

	/* A name that ends in ".json" gets an "l" appended. The name ".json" itself has nothing
	 * before the extension, so it gets ".jsonl", like every other name. */
	return name[0] != '\0' && tail_is(name + 1, ".json") ? "l" : ".jsonl";
}

/* Splits the path that the owner gave, opens its directory, and sets the names of both files. */
static int trace_file_parent(struct trace_file *f, const char *path, struct ssb_error *err)
{
	char dir[PATH_MAX] = ".";
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;

	/* The record's name is longer than the document's. */
	if (strlen(path) + 6 >= sizeof(f->path) || strlen(name) + 6 >= sizeof(f->name)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "--trace-output", "the path is too long");
	}
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		return ssb_fail(err, SSB_E_USAGE, 0, "--trace-output",
		                "'%s' is not the name of a file; write DIR/trace.json", path);
	}
	if (slash != NULL) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path + 1), path);
	}
	f->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (f->dir_fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "--trace-output",
		                "cannot open the directory '%s'", dir);
	}
	snprintf(f->path, sizeof(f->path), "%s", path);
	snprintf(f->name, sizeof(f->name), "%s", name);
	const char *more = trace_file_more(path);
	snprintf(f->record_path, sizeof(f->record_path), "%s%s", path, more);
	snprintf(f->record_name, sizeof(f->record_name), "%s%s", name, more);
	return 0;
}

/* Checks that no file has this name, or a regular file, which a rename may replace. The owner
 * cannot have meant to replace a symlink, device or FIFO. */
static int trace_file_vacant(const struct trace_file *f, const char *name, const char *path,
                             struct ssb_error *err)
{
	struct stat st;

	if (fstatat(f->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		return errno == ENOENT
		               ? 0
		               : ssb_fail(err, SSB_E_SYS, errno, "--trace-output", "'%s'", path);
	}
	if (S_ISREG(st.st_mode)) {
		return 0;
	}
	return ssb_fail(err, SSB_E_USAGE, 0, "--trace-output",
	                "'%s' is %s, not a regular file; remove it or name another file", path,
	                S_ISLNK(st.st_mode)   ? "a symlink"
	                : S_ISDIR(st.st_mode) ? "a directory"
	                                      : "a device, FIFO or socket");
}

static bool is_write_grant(const struct ssb_plan *plan, const struct prepared *of_run,
                           const struct stat *st)
{
	return ARRAY_HAS(g, prepared_grants(of_run, plan), plan->n_grants,
	                 g->access == ACCESS_WRITE && g->is_dir && g->dev == st->st_dev &&
	                         g->ino == st->st_ino);
}

/* Returns whether the directory of both files is a writable grant or is beneath one. Compares the
 * device and inode of each directory up to the root. Returns true if a directory on that way cannot
 * be examined. */
static bool trace_file_exposed(const struct trace_file *f, const struct ssb_plan *plan,
                               const struct prepared *of_run)
{
	struct stat st, up;
	auto_fd fd = fcntl(f->dir_fd, F_DUPFD_CLOEXEC, 3);

	for (int depth = 0; fd >= 0 && depth < PATH_MAX / 2; depth++) {
		if (fstat(fd, &st) != 0 || is_write_grant(plan, of_run, &st)) {
			return true;
		}
		int parent = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		own_close(&fd);
		fd = parent;
		if (fd >= 0 && fstat(fd, &up) == 0 && up.st_dev == st.st_dev &&
		    up.st_ino == st.st_ino) {
			return false;
		}
	}
	return true;
}

static int trace_file_create(struct trace_file *f, struct ssb_error *err)
{
	f->record_fd = openat(f->dir_fd, f->record,
	                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->record_fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "trace", "cannot create '%.200s' (%s)",
		                f->record_path,
		                f->run[0] != '\0'
		                        ? REMEDY
		                        : "use --trace-output to name a file that you can write");
	}
	f->locked = file_lock(f->record_fd, LOCK_WAIT_MS) == 0;
	return 0;
}

int trace_file_open(struct trace_file *f, const struct ssb_plan *plan,
                    const struct prepared *of_run, const struct owner *owner, const char *id,
                    struct ssb_error *err)
{
	if (plan->trace_output == NULL) {
		if (trace_file_state(f, owner, id, err) != 0) {
			return -1;
		}
	} else {
		if (trace_file_parent(f, plan->trace_output, err) != 0 ||
		    trace_file_vacant(f, f->name, f->path, err) != 0 ||
		    trace_file_vacant(f, f->record_name, f->record_path, err) != 0) {
			return -1;
		}
		if (trace_file_exposed(f, plan, of_run)) {
			return ssb_fail(
			        err, SSB_E_USAGE, 0, "--trace-output",
			        "the skill may write to the directory of '%s', and could replace "
			        "the trace; name a file in another directory",
			        f->path);
		}
		snprintf(f->record, sizeof(f->record), ".trace-%s.jsonl", id);
		snprintf(f->part, sizeof(f->part), ".trace-%s.part", id);
	}
	return trace_file_create(f, err);
}

int trace_file_publish(struct trace_file *f, struct ssb_error *err)
{
	if (renameat(f->dir_fd, f->part, f->dir_fd, f->name) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "trace",
		                "cannot rename the finished file to '%.200s'", f->path);
	}
	return 0;
}

void trace_file_discard(struct trace_file *f)
{
	if (f->fd >= 0) {
		(void)unlinkat(f->dir_fd, f->part, 0);
	}
}

void trace_file_done(struct trace_file *f)
{
	own_close(&f->fd);
	own_close(&f->record_fd);
	own_close(&f->dir_fd);
}
