#include "cli/proposal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/config_edit.h"
#include "cli/say.h"
#include "manifest/manifest.h"
#include "os/file.h"
#include "policy/paths.h"

/* Returns new; NULL: no memory. */
static char *sidecar_file(const struct owner *o, const char *dir)
{
	char *file = NULL;

	return asprintf(&file, "%s/skills/%s.yaml", o->config_dir, path_base(dir)) < 0 ? NULL
	                                                                               : file;
}

static char *place_of(const struct request *r, const struct owner *o, const char *dir)
{
	const char *output = request_value(r, FLAG_OUTPUT);

	return output != NULL                 ? path_real(output)
	       : request_has(r, FLAG_SIDECAR) ? sidecar_file(o, dir)
	                                      : path_join(dir, MANIFEST_FILE);
}

/* What is there now, and is to be compared: never through a symlink, for a skill's
 * directory may hold one that leads anywhere. */
static int read_before(const char *file, struct buf *out, bool *ret_there, struct ssb_error *err)
{
	auto_fd fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	*ret_there = fd >= 0 || errno != ENOENT;
	if (fd < 0 && *ret_there) {
		return ssb_fail(err, SSB_E_SYS, errno, file, "cannot be read");
	}
	if (fd >= 0 && file_read_all(fd, out) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, file, "cannot be read");
	}
	return 0;
}

static int put(const char *file, const struct buf *text, bool sidecar, struct ssb_error *err)
{
	auto_free char *dir = path_parent(file);
	auto_fd made = sidecar && dir != NULL ? file_mkdirs(dir) : -1;

	return file_replace(file, text->data, text->len, sidecar ? 0600 : 0644) != 0
	               ? ssb_fail(err, SSB_E_SYS, errno, file, "cannot be written")
	               : 0;
}

static int show_diff(const char *file, const struct buf *before, const struct buf *text)
{
	auto_buf diff, out;

	buf_init(&diff, SAY_MAX);
	buf_init(&out, SAY_MAX);
	config_diff(before->data != NULL ? before->data : "", text->data, &diff);
	buf_adds(&out, "--- ");
	visible_text(&out, file, false);
	buf_addc(&out, '\n');
	if (diff.data != NULL) {
		visible_text(&out, diff.data, true);
	}
	return say_out(STDOUT_FILENO, &out);
}

static void say_next(const char *dir)
{
	auto_buf out;

	buf_init(&out, SAY_MAX);
	buf_adds(&out, "next: skillsandbox approve ");
	visible_text(&out, dir, false);
	buf_addc(&out, '\n');
	(void)say_out(STDERR_FILENO, &out);
}

int proposal_put(const struct request *r, const struct owner *o, const char *dir,
                 const struct buf *text, struct ssb_error *err)
{
	const char *output = request_value(r, FLAG_OUTPUT);
	bool there = false;
	auto_buf before;

	buf_init(&before, MAX_YAML_BYTES);
	if (output != NULL && strcmp(output, "-") == 0) {
		return say_out(STDOUT_FILENO, text) == EXIT_FINE
		               ? 0
		               : ssb_fail(err, SSB_E_SYS, errno, "output", "cannot be written");
	}
	auto_free char *file = place_of(r, o, dir);
	if (file == NULL) {
		return ssb_fail(err, SSB_E_SYS, errno, output != NULL ? output : dir,
		                "cannot be named");
	}
	if (read_before(file, &before, &there, err) != 0) {
		return -1;
	}
	if (there && before.len == text->len && memcmp(before.data, text->data, text->len) == 0) {
		say_notef("%s: nothing to change", file);
		return 0;
	}
	if (there && show_diff(file, &before, text) != EXIT_FINE) {
		return ssb_fail(err, SSB_E_SYS, errno, "output", "cannot be written");
	}
	if (there && !request_has(r, FLAG_WRITE_CONFIG)) {
		say_notef("nothing was written; --write puts the new manifest in its place");
		return 0;
	}
	if (put(file, text, output == NULL && request_has(r, FLAG_SIDECAR), err) != 0) {
		return -1;
	}
	say_notef("written: %s", file);
	say_next(dir);
	return 0;
}
