/* setup_file.c - see setup_file.h. */
#include "cli/setup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/config_edit.h"
#include "cli/config_yaml.h"
#include "cli/screen.h"
#include "os/file.h"

void setup_file_done(struct setup_file *f)
{
	free(f->path);
	buf_done(&f->before);
	buf_done(&f->after);
	json_doc_done(&f->doc);
}

/* In a project, the directory of the file, such as .vscode, must be a real directory. Otherwise a
 * repository could choose which of your files is changed. A missing directory is made later. */
static int check_directory(const char *path, struct ssb_error *err)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = strndup(path, (size_t)(slash - path));
	struct stat st;

	if (dir == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	if (lstat(dir, &st) != 0) {
		return errno == ENOENT ? 0 : ssb_fail(err, SSB_E_SYS, errno, dir, "cannot be read");
	}
	return S_ISDIR(st.st_mode)
	               ? 0
	               : ssb_fail(err, SSB_E_POLICY, 0, dir,
	                          "it is not a directory; in a project, setup follows no symlink");
}

static int put_path(const struct setup_place *p, bool project, struct buf *path,
                    struct ssb_error *err)
{
	const char *set = p->variable != NULL ? getenv(p->variable) : NULL;
	const char *home = getenv("HOME");
	auto_free char *cwd = project ? getcwd(NULL, 0) : NULL;

	if (project && cwd != NULL) {
		buf_addf(path, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, p->project);
	} else if (!project && set != NULL && set[0] == '/') {
		buf_addf(path, "%s/%s", set, p->file);
	} else if (!project && home != NULL && home[0] == '/') {
		buf_addf(path, "%s/%s%s%s", home, p->otherwise, p->otherwise[0] != '\0' ? "/" : "",
		         p->file);
	} else {
		return ssb_fail(err, SSB_E_USAGE, 0, "",
		                project ? "the current directory has no path (was it removed?)"
		                        : "HOME is not set");
	}
	if (p->jsonc) {
		buf_addc(path, 'c');
	}
	if (p->jsonc && !path->failed && access(path->data, F_OK) != 0) {
		path->data[--path->len] = '\0';
	}
	return path->failed
	               ? ssb_fail(err, SSB_E_SYS, ENAMETOOLONG, "", "the path of the configuration")
	               : 0;
}

static int find_path(struct setup_file *f, const struct setup_place *p, bool project,
                     struct ssb_error *err)
{
	auto_buf path = BUF(PATH_MAX);

	if (put_path(p, project, &path, err) != 0 ||
	    (project && check_directory(path.data, err) != 0)) {
		return -1;
	}
	/* If the file is a symlink of yours, the symlink stays: the file to which it leads is
	 * read and changed. */
	f->path = project ? NULL : realpath(path.data, NULL);
	if (f->path == NULL && !project && errno != ENOENT) {
		return ssb_fail(err, SSB_E_SYS, errno, path.data, "cannot be reached");
	}
	f->path = f->path != NULL ? f->path : buf_steal(&path);
	return 0;
}

static int read_text(const char *path, struct buf *out, bool *ret_exists, mode_t *ret_mode,
                     struct ssb_error *err)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 && errno == ENOENT) {
		*ret_exists = false;
		*ret_mode = 0600;
		return 0;
	}
	if (fd < 0 && errno == ELOOP) {
		/* Other people may have written the project. A symlink in it could lead to a
		 * file of yours, which would then be changed, or copied into the project. */
		return ssb_fail(err, SSB_E_POLICY, 0, path,
		                "it is a symlink; in a project, setup changes only a regular file");
	}
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || file_read_all(fd, out) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, path, "cannot be read as a file");
	}
	*ret_exists = true;
	*ret_mode = st.st_mode & 07777;
	return 0;
}

/* Adds the name of the file to an error of the editors, which know only its text. Returns -1. */
static int name_file(const struct setup_file *f, struct ssb_error *err)
{
	if (err->where[0] == '\0') {
		snprintf(err->where, sizeof(err->where), "%s", f->path);
	}
	return -1;
}

/* Parses `before` into `doc`. */
static int parse_text(struct setup_file *f, struct ssb_error *err)
{
	auto_buf converted = BUF(2 * MAX_CONFIG_BYTES);
	const struct buf *text = f->yaml ? &converted : &f->before;
	const char *why = NULL;

	if (f->yaml && config_yaml_to_json(f->before.data, f->before.len, &converted, err) != 0) {
		return name_file(f, err);
	}
	if (json_read_del(&f->doc, text->data, text->len, &why) != 0 ||
	    !json_is(json_top(&f->doc), JSON_OBJECT)) {
		return ssb_fail(
		        err, SSB_E_POLICY, 0, f->path,
		        f->yaml ? "it is not a YAML mapping%s%s; change it by hand"
		                : "it is not plain JSON (comments?): %s%s; change it by hand",
		        why != NULL && !f->yaml ? why : "",
		        why == NULL && !f->yaml ? "it is not an object" : "");
	}
	return 0;
}

int setup_file_read(struct setup_file *f, const struct setup_place *place, bool project,
                    struct ssb_error *err)
{
	f->yaml = place->yaml;
	if (find_path(f, place, project, err) != 0 ||
	    read_text(f->path, &f->before, &f->existed, &f->mode, err) != 0) {
		return -1;
	}
	return f->before.len == 0 ? 0 : parse_text(f, err);
}

int setup_file_set(struct setup_file *f, const char *const names[], const char *value,
                   struct ssb_error *err)
{
	buf_reset(&f->after);
	int rc = f->yaml ? config_yaml_set(&f->before, names, value, &f->after, err)
	                 : config_edit_set(&f->doc, names, value, &f->after, err);

	return rc == 0 ? 0 : name_file(f, err);
}

void setup_file_show(const struct setup_file *f, struct buf *out)
{
	auto_buf diff = BUF(2 * MAX_CONFIG_BYTES);

	config_edit_diff(f->before.len > 0 ? f->before.data : "", f->after.data, &diff);
	visible_addf(out, "--- %s%s\n", f->existed ? "" : "(new) ", f->path);
	screen_diff(out, &diff);
}

int setup_file_replace(const struct setup_file *f, struct ssb_error *err)
{
	auto_buf now = BUF(MAX_CONFIG_BYTES);
	bool exists = false;
	mode_t mode = 0;
	const char *slash = strrchr(f->path, '/');
	auto_free char *dir = strndup(f->path, (size_t)(slash - f->path));

	if (read_text(f->path, &now, &exists, &mode, err) != 0) {
		return -1;
	}
	if (exists != f->existed || now.len != f->before.len ||
	    (now.len > 0 && memcmp(now.data, f->before.data, now.len) != 0)) {
		return ssb_fail(err, SSB_E_POLICY, 0, f->path,
		                "it was changed in the meantime; try again");
	}
	if (dir != NULL && dir[0] != '\0' && mkdir(dir, 0777) != 0 && errno != EEXIST) {
		return ssb_fail(err, SSB_E_SYS, errno, dir,
		                "the directory cannot be made (is the program installed?)");
	}
	return file_replace(f->path, f->after.data, f->after.len, f->mode) != 0
	               ? ssb_fail(err, SSB_E_SYS, errno, f->path, "cannot be replaced")
	               : 0;
}
