/* cmd_diff.c - shows what changed in a skill since it was approved: its files, their lines, and
 * what it asks for. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/diff_lines.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "consent/consent.h"
#include "policy/owner.h"

#define MAX_FILES_SHOWN 8 /* most files whose lines are shown */

/* Returns true if the manifest changed since the approval. A manifest in the owner's settings
 * needs this check, because the comparison of the skill's files does not include it. */
static bool has_other_manifest(const struct lock *l, const struct ssb_plan *p)
{
	return p != NULL && (l->format != p->format ||
	                     (p->format == SKILL_SIDECAR &&
	                      memcmp(l->manifest, p->manifest_digest, sizeof(l->manifest)) != 0));
}

static void put_lines(struct buf *out, const struct owner *o, const struct consent_found *f,
                      const struct diff *d, bool all)
{
	auto_free char *kept = snapshot_path(o, &f->lock.files);
	size_t shown = 0, i = 0;

	if (kept == NULL || !f->lock.snapshot) {
		buf_adds(out, d->n_files > 0
		                      ? "Lines cannot be shown: no copy of the approved files was "
		                        "kept.\n"
		                      : "");
		return;
	}
	for (; i < d->n_files && (all || shown < MAX_FILES_SHOWN); i++) {
		if (diff_has_lines(&d->files[i], all)) {
			buf_adds(out, shown++ == 0 ? "Lines:\n" : "");
			diff_lines(out, kept, f->lock.skill, &d->files[i], all);
		}
	}
	if (i < d->n_files) {
		buf_addf(out, "  Lines of %zu more files are not shown (", d->n_files - i);
		diff_kinds(out, d, i);
		buf_adds(out, "); --all shows them\n");
	}
}

static int print_text(const struct owner *o, const struct consent_found *f, const struct diff *d,
                      bool manifest, bool all)
{
	auto_buf out = BUF(2 * SAY_MAX);

	if (manifest) {
		buf_adds(&out, "The skill has another manifest than when you approved it.\n");
	}
	if (!manifest || !d->same) {
		diff_text(&out, d, say_coloured(STDOUT_FILENO), all ? 0 : MAX_SHOWN_FILES);
	}
	put_lines(&out, o, f, d, all);
	if (f->state == CONSENT_OVER) {
		buf_adds(&out, "The approval is no longer valid: it has expired, or all its runs "
		               "are used up.\n");
	}
	return screen_text(STDOUT_FILENO, &out);
}

static int print_json(const struct diff *d)
{
	auto_buf out = BUF(SAY_MAX);
	struct json j = JSON_TO(&out, true);

	diff_json(&j, d);
	buf_addc(&out, '\n');
	return say_out(STDOUT_FILENO, &out);
}

static int compare_files(const struct request *r, const struct owner *o,
                         const struct consent_found *f)
{
	AUTO(plan_freep) struct ssb_plan *plan = NULL;
	AUTO(diff_done) struct diff d = { 0 };
	struct ssb_error err = { 0 };

	if (ssb_plan_skill(r->options, f->lock.skill, NULL, &plan, NULL, &err) != 0) {
		/* No plan is not an end: the files can be compared without it. */
		say_error(&err);
	}
	if (diff_make(&f->lock, &f->now, plan, &d) != 0) {
		return say_fail(EXIT_SANDBOX, "out of memory");
	}
	bool manifest = has_other_manifest(&f->lock, plan);
	d.same = d.same && !manifest;
	int status = request_has(r, FLAG_JSON)
	                     ? print_json(&d)
	                     : print_text(o, f, &d, manifest, request_has(r, FLAG_ALL));
	return status != EXIT_FINE ? status : d.same ? EXIT_FINE : EXIT_FINDINGS;
}

int cmd_diff(struct request *r)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	AUTO(owner_done) struct owner owner = { 0 };
	struct ssb_error err = { 0 };

	if (r->operands.n != 1 || r->operands.dashes) {
		return say_fail(EXIT_USAGE, "diff needs one DIR");
	}
	auto_free char *dir = realpath(r->operands.v[0], NULL);
	if (dir == NULL) {
		return say_fail(EXIT_SANDBOX, "%s: directory not found", r->operands.v[0]);
	}
	if (owner_load(&owner, &err) != 0 || consent_look(&owner, dir, &f, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	if (f.state == CONSENT_NONE) {
		return say_fail(EXIT_SANDBOX,
		                "this skill was not approved: 'skillsandbox approve' shows what it "
		                "could do");
	}
	return compare_files(r, &owner, &f);
}
