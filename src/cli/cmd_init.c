/* cmd_init.c - writes a first manifest from the skill's own description and from what its files
 * mention. It executes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/proposal.h"
#include "cli/say.h"
#include "learn/propose.h"
#include "learn/start.h"
#include "os/file.h"
#include "policy/owner.h"
#include "policy/path.h"

static const char HEAD[] =
        "A first manifest, made from what the files of this skill mention; nothing was run.\n"
        "The reason for each line follows it. Remove the lines that are not needed. A line\n"
        "that is only a comment asks for something dangerous, or for something that the\n"
        "files only mention. See skillsandbox-manifest(5).\n"
        "\n"
        "skillsandbox validate DIR   checks it\n"
        "skillsandbox inspect DIR    shows the resulting plan\n"
        "skillsandbox learn DIR      adds what a run needs\n";

static int fail_exists(const char *path, struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_USAGE, 0, "init",
	                "'%.200s' exists already, and is never replaced; to see what would be "
	                "written: -o -",
	                path);
}

/* Creates a new file. O_EXCL fails if the file exists, even as a symlink that the skill put
 * there. */
static int write_new(const char *path, bool sidecar, const struct buf *text, struct ssb_error *err)
{
	auto_free char *parent = path_parent(path);

	if (sidecar && parent != NULL) {
		auto_fd made = file_mkdirs(parent);
		if (made < 0) {
			return ssb_fail(err, SSB_E_SYS, errno, "init", "cannot make '%.200s'",
			                parent);
		}
	}
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, sidecar ? 0600 : 0644);
	if (fd < 0) {
		return errno == EEXIST ? fail_exists(path, err)
		                       : ssb_fail(err, SSB_E_SYS, errno, "init",
		                                  "cannot create '%.200s'", path);
	}
	if (file_write_all(fd, text->data, text->len) != 0 || fsync(fd) != 0) {
		(void)ssb_fail(err, SSB_E_SYS, errno, "init", "cannot write '%.200s'", path);
		(void)unlink(path);
		return -1;
	}
	return 0;
}

/* Writes the text of the manifest to `out`. Sets `found` and *ret_cut, which later messages
 * need. */
static int make_text(const struct request *r, const struct owner *o, const char *dir,
                     struct buf *out, struct skill_found *found, bool *ret_cut,
                     struct ssb_error *err)
{
	AUTO(needs_done) struct needs needs = { 0 };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(manifest_freep) struct manifest *again = NULL;

	int rc = start_find(dir, o->config_dir, r->operands.v + 1, &needs, found, diags, err);
	if (diags != NULL) {
		say_diags(diags, SSB_WARNING);
	}
	if (rc != 0 || hints_scan(dir, &needs, err) != 0 || needs_judge(o, dir, &needs, err) != 0 ||
	    proposal_name(r, dir, found->manifest, err) != 0) {
		return -1;
	}
	*ret_cut = needs.cut;
	if (propose_manifest(found->manifest, &needs, HEAD, out) != 0) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "init",
		                "the files mention more than a manifest can contain");
	}
	/* The manifest that was written must be valid. */
	return manifest_parse_as(ENTRY_OPTIONAL, MANIFEST_FILE, out->data, out->len, &again, NULL,
	                         err);
}

static void say_notes(const char *target, bool cut)
{
	if (cut) {
		say_notef("the skill exceeds a limit of init (such as %d files or %lu MiB), so "
		          "init may have missed something; add what is missing to the manifest",
		          MAX_HINT_FILES, MAX_HINT_TOTAL >> 20);
	}
	if (target != NULL) {
		say_notef("wrote %s", target);
	}
}

int cmd_init(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	AUTO(skill_found_done) struct skill_found found = { 0 };
	struct ssb_error err = { 0 };
	auto_free char *dir = NULL;
	auto_free char *target = NULL;
	bool cut = false;
	auto_buf text = BUF(MAX_YAML_BYTES);

	if (r->operands.n < 1 || r->operands.n > 2) {
		return say_fail(EXIT_USAGE,
		                "init needs a DIR, and optionally the SCRIPT in it that is to run");
	}
	dir = realpath(r->operands.v[0], NULL);
	if (dir == NULL) {
		return say_fail(EXIT_SANDBOX, "'%s': %s", r->operands.v[0], strerror(errno));
	}
	if (owner_load(&owner, &err) != 0 || proposal_place(r, &owner, dir, &target, &err) != 0 ||
	    (target != NULL && access(target, F_OK) == 0 && fail_exists(target, &err) != 0) ||
	    make_text(r, &owner, dir, &text, &found, &cut, &err) != 0 ||
	    (target != NULL && write_new(target, request_has(r, FLAG_SIDECAR), &text, &err) != 0)) {
		return request_fail(r, &err, exit_status_of(&err, false));
	}
	say_notes(target, cut);
	return target != NULL ? EXIT_FINE : say_out(STDOUT_FILENO, &text);
}
