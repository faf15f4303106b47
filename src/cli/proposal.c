/* proposal.c - see proposal.h. */
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
#include "cli/screen.h"
#include "manifest/write.h"
#include "os/file.h"
#include "policy/path.h"

int proposal_place(const struct request *r, const struct owner *o, const char *dir, char **ret,
                   struct ssb_error *err)
{
	const char *word = request_value(r, FLAG_OUTPUT);
	char *path = NULL;
	int n = 0;

	if (word != NULL && request_has(r, FLAG_SIDECAR)) {
		return ssb_fail(err, SSB_E_USAGE, 0, r->command->name,
		                "give --output or --sidecar, not both");
	}
	if (word != NULL && strcmp(word, "-") == 0) {
		*ret = NULL;
		return 0;
	}
	if (word != NULL) {
		n = asprintf(&path, "%s", word);
	} else if (request_has(r, FLAG_SIDECAR)) {
		n = asprintf(&path, "%s/skills/%s.yaml", o->config_dir, path_base(dir));
	} else {
		n = asprintf(&path, "%s/%s", dir, MANIFEST_FILE);
	}
	if (n < 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, r->command->name, "out of memory");
	}
	*ret = path;
	return 0;
}

int proposal_name(const struct request *r, const char *dir, struct manifest *inout,
                  struct ssb_error *err)
{
	/* If the path has characters that a manifest cannot contain, the manifest has no
	 * `directory`. Its items that need a yes are then withheld until you approve the
	 * skill. */
	bool says = request_has(r, FLAG_SIDECAR) && manifest_can_say(dir);

	free(inout->directory.s);
	inout->directory = (struct mtext){ .s = says ? strdup(dir) : NULL };
	return says && inout->directory.s == NULL
	               ? ssb_fail(err, SSB_E_NOMEM, 0, r->command->name, "out of memory")
	               : 0;
}

/* Reads the existing manifest, to compare it. Must not follow a symlink: one in the skill's
 * directory could lead to any file. */
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

static int write_file(const char *file, const struct buf *text, bool sidecar, struct ssb_error *err)
{
	auto_free char *dir = sidecar ? path_parent(file) : NULL;
	auto_fd made = dir != NULL ? file_mkdirs(dir) : -1;

	if (sidecar && made < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, file, "its directory cannot be created");
	}
	return file_replace(file, text->data, text->len, sidecar ? 0600 : 0644) != 0
	               ? ssb_fail(err, SSB_E_SYS, errno, file, "cannot be written")
	               : 0;
}

static int show_diff(const char *file, const struct buf *before, const struct buf *text)
{
	auto_buf diff = BUF(SAY_MAX), out = BUF(SAY_MAX);

	config_edit_diff(before->data != NULL ? before->data : "", text->data, &diff);
	visible_addf(&out, "--- %s\n", file);
	screen_diff(&out, &diff);
	return say_out(STDOUT_FILENO, &out);
}

static void say_next(const char *dir)
{
	auto_buf out = BUF(SAY_MAX);

	buf_adds(&out, "next: skillsandbox approve ");
	say_word(&out, dir);
	buf_addc(&out, '\n');
	(void)say_out(STDERR_FILENO, &out);
}

/* Returns the length of a line without the comment behind it, which gives the reason. If the
 * whole line is a comment, returns its full length. */
static size_t length_without_reason(const char *line, size_t len)
{
	const char *reason = line[strspn(line, " ")] == '#' ? NULL : memmem(line, len, "  # ", 4);

	return reason != NULL && memchr(reason, '"', len - (size_t)(reason - line)) == NULL
	               ? (size_t)(reason - line)
	               : len;
}

/* Returns true if both texts declare the same. Their comments may differ. */
static bool says_the_same(const char *a, const char *b)
{
	while (*a != '\0' && *b != '\0') {
		size_t len_a = strcspn(a, "\n"), len_b = strcspn(b, "\n"),
		       n = length_without_reason(a, len_a);
		if (n != length_without_reason(b, len_b) || memcmp(a, b, n) != 0) {
			return false;
		}
		a += len_a + (a[len_a] == '\n');
		b += len_b + (b[len_b] == '\n');
	}
	return *a == *b;
}

int proposal_put(const struct request *r, const struct owner *o, const char *dir,
                 const struct buf *text, struct ssb_error *err)
{
	bool there = false;
	auto_free char *file = NULL;
	auto_buf before = BUF(MAX_YAML_BYTES);

	if (proposal_place(r, o, dir, &file, err) != 0) {
		return -1;
	}
	if (file == NULL) {
		return say_out(STDOUT_FILENO, text) == EXIT_FINE
		               ? 0
		               : ssb_fail(err, SSB_E_SYS, errno, "output", "cannot be written");
	}
	if (read_before(file, &before, &there, err) != 0) {
		return -1;
	}
	if (there && says_the_same(before.data != NULL ? before.data : "", text->data)) {
		say_notef("%s: nothing to change", file);
		return 0;
	}
	if (there && show_diff(file, &before, text) != EXIT_FINE) {
		return ssb_fail(err, SSB_E_SYS, errno, "output", "cannot be written");
	}
	if (there && !request_has(r, FLAG_WRITE_CONFIG)) {
		say_notef("nothing was written; to replace the manifest, give --write before the "
		          "directory");
		return 0;
	}
	if (write_file(file, text, request_has(r, FLAG_SIDECAR), err) != 0) {
		return -1;
	}
	say_notef("written: %s", file);
	say_next(dir);
	return 0;
}
