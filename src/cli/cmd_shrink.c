/* cmd_shrink.c - finds what a skill declares but no recorded run used, and prints a patch that
 * removes it from the manifest. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/own.h"
#include "base/string_list.h"
#include "cli/cli.h"
#include "cli/needs_view.h"
#include "cli/say.h"
#include "learn/shrink.h"
#include "os/file.h"
#include "policy/owner.h"
#include "policy/path.h"

/* The manifest, and the text from which it was parsed. */
struct subject_file {
	struct manifest *manifest;
	char *file;
	struct buf text;
};

static void subject_file_done(struct subject_file *f)
{
	manifest_free(f->manifest);
	free(f->file);
	buf_done(&f->text);
}

static int load_manifest(const struct owner *o, const char *dir, struct subject_file *ret,
                         struct ssb_error *err)
{
	AUTO(skill_found_done) struct skill_found found = { 0 };

	buf_init(&ret->text, MAX_YAML_BYTES);
	if (needs_skill(o, dir, &found, err) != 0) {
		return -1;
	}
	ret->file = steal_ptr(&found.file);
	if (skill_format_derived(found.format)) {
		return ssb_fail(err, SSB_E_MANIFEST, 0, ret->file,
		                "the skill has no manifest to shrink; 'skillsandbox init' writes "
		                "one");
	}
	/* The file is read only once: the bytes that are parsed must be the bytes that are patched.
	 */
	auto_fd fd = open(ret->file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || file_read_all(fd, &ret->text) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, ret->file, "cannot read the manifest");
	}
	return manifest_parse_as(ENTRY_OPTIONAL, ret->file,
	                         ret->text.data != NULL ? ret->text.data : "", ret->text.len,
	                         &ret->manifest, NULL, err);
}

static int read_runs(const struct owner *o, const char *dir, struct needs *seen, size_t *ret_runs,
                     struct ssb_error *err)
{
	AUTO(string_list_done) struct string_list ids = { 0 };
	size_t part = 0;

	if (needs_runs_of(o, dir, true, &ids, &part, err) != 0) {
		return -1;
	}
	if (ids.n == 0) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, "shrink",
		                "no run of this skill is recorded%s; run it first",
		                part > 0 ? " in full" : "");
	}
	for (size_t i = 0; i < ids.n; i++) {
		if (needs_from_run(o, ids.v[i], seen, err) != 0) {
			return -1;
		}
	}
	if (part > 0) {
		say_notef("%zu more runs were not recorded in full, and are ignored", part);
	}
	*ret_runs = ids.n;
	return 0;
}

static void put_unused(struct buf *out, const struct unused *u)
{
	struct need n = { .kind = u->kind, .value = (char *)(uintptr_t)u->value };

	need_text(out, &n);
	if (u->port != 0) {
		buf_addf(out, ", port %u", (unsigned)u->port);
	}
}

static void put_json(struct buf *out, const struct shrink *s, const char *file,
                     const struct buf *patch, size_t runs)
{
	struct json j = JSON_TO(out, true);

	json_open(&j, '{');
	json_kuint(&j, "runs", runs);
	json_kstr(&j, "manifest", file);
	json_kopen(&j, "unused", '[');
	for (size_t i = 0; i < s->n; i++) {
		json_open(&j, '{');
		json_kstr(&j, "kind", need_kind_name(s->v[i].kind));
		json_kstr(&j, "value", s->v[i].value);
		if (s->v[i].port != 0) {
			json_kuint(&j, "port", s->v[i].port);
		}
		json_kuint(&j, "line", s->v[i].line);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_kstr(&j, "patch", s->n > 0 ? patch->data : "");
	json_close(&j, '}');
	buf_addc(out, '\n');
}

/* Writes to standard error, because standard output must contain only the patch. */
static void say_unused(const struct shrink *s, size_t runs)
{
	for (size_t i = 0; i < s->n; i++) {
		auto_buf text = BUF(SAY_MAX);

		put_unused(&text, &s->v[i]);
		say_notef("never used in %zu run%s: %s", runs, runs == 1 ? "" : "s",
		          text.data != NULL ? text.data : "");
	}
	if (s->n == 0) {
		say_notef("the skill used everything that its manifest declares, in %zu run%s",
		          runs, runs == 1 ? "" : "s");
	}
}

static int print_patch(const struct request *r, const struct subject_file *f,
                       const struct shrink *s, size_t runs)
{
	auto_buf patch = BUF(SAY_MAX), out = BUF(SAY_MAX);

	if (s->n > 0 && shrink_patch(f->manifest, s, path_base(f->file), f->text.data, f->text.len,
	                             &patch) != 0) {
		return say_fail(EXIT_SANDBOX, "out of memory");
	}
	if (request_has(r, FLAG_JSON)) {
		put_json(&out, s, f->file, &patch, runs);
		return say_out(STDOUT_FILENO, &out);
	}
	say_unused(s, runs);
	return s->n > 0 ? say_out(STDOUT_FILENO, &patch) : EXIT_FINE;
}

int cmd_shrink(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	AUTO(subject_file_done) struct subject_file file = { 0 };
	AUTO(needs_done) struct needs seen = { 0 };
	AUTO(shrink_done) struct shrink s = { 0 };
	struct ssb_error err = { 0 };
	size_t runs = 0;

	if (r->operands.n != 1) {
		return say_fail(EXIT_USAGE, "shrink needs one DIR");
	}
	auto_free char *dir = realpath(r->operands.v[0], NULL);
	if (dir == NULL) {
		return say_fail(EXIT_SANDBOX, "'%s': %s", r->operands.v[0], strerror(errno));
	}
	if (owner_load(&owner, &err) != 0 || load_manifest(&owner, dir, &file, &err) != 0 ||
	    read_runs(&owner, dir, &seen, &runs, &err) != 0) {
		return request_fail(r, &err, exit_status_of(&err, false));
	}
	if (seen.cut) {
		say_errorf(
		        "the records are incomplete, or contain too much to compare; so nothing is "
		        "reported as unused");
		return EXIT_SANDBOX;
	}
	if (shrink_find(file.manifest, &seen, &s) != 0) {
		return say_fail(EXIT_SANDBOX, "out of memory");
	}
	return print_patch(r, &file, &s, runs);
}
