/* consent.c - compares a skill with its approval, and makes the consent of a plan. */
#include "consent/consent.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/stamp.h"
#include "skill/skill.h"

#define SHORT_RUN (12 * 3600) /* seconds */
#define WHERE     "approval"

const char *consent_state_name(enum consent_state c)
{
	static const char *const NAMES[] = { "none", "holds", "changed", "over" };

	return (size_t)c < ARRAY_LEN(NAMES) ? NAMES[c] : "?";
}

void consent_found_done(struct consent_found *f)
{
	lock_done(&f->lock);
	skill_files_done(&f->now);
	*f = (struct consent_found){ 0 };
}

/* Fails if `dir` has an approval under another path. A skill that was moved and replaced by a
 * symlink has no approval at its new path, but it must not run as if the owner had never
 * decided: the approval may decline some of its requests. */
static int check_moved(const struct owner *o, const char *dir, struct ssb_error *err)
{
	auto_free char *path = NULL;

	if (lock_find_moved(o, dir, &path, err) != 0) {
		return -1;
	}
	if (path == NULL) {
		return 0;
	}
	auto_free char *real = realpath(path, NULL);
	bool led = real != NULL && strcmp(real, path) != 0;
	return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
	                "the skill was approved as '%.150s', which %s '%.150s': approve it again "
	                "(skillsandbox approve DIR), or remove the approval (skillsandbox "
	                "approvals --revoke DIR)",
	                path, led ? "is now a symlink to" : "a mount shows at", dir);
}

/* Compares the skill with its approval. `tree` is the digest of the skill's files; if it is NULL,
 * the files are read here. */
static int find_lock(const struct owner *o, const char *dir, const uint8_t *tree,
                     struct consent_found *ret, struct ssb_error *err)
{
	struct consent_found f = { 0 };
	struct ssb_error why = { 0 };

	assert(dir[0] == '/');
	if (tree != NULL) {
		memcpy(f.now.tree, tree, sizeof(f.now.tree));
	}
	if (lock_load(o, dir, &f.lock, &why) != 0) {
		if (why.code != SSB_E_NOT_FOUND) {
			*err = why;
		}
		if (why.code != SSB_E_NOT_FOUND || check_moved(o, dir, err) != 0) {
			return -1;
		}
	} else if (tree == NULL && lock_files_look(o, dir, &f.now, err) != 0) {
		lock_done(&f.lock);
		return -1;
	} else {
		f.state = !lock_same_files(&f.lock.files, &f.now) ? CONSENT_CHANGED
		          : lock_is_over(&f.lock)                 ? CONSENT_OVER
		                                                  : CONSENT_HOLDS;
	}
	*ret = f;
	return 0;
}

int consent_look(const struct owner *o, const char *dir, struct consent_found *ret,
                 struct ssb_error *err)
{
	return find_lock(o, dir, NULL, ret, err);
}

int consent_look_known(const struct owner *o, const char *dir, const uint8_t tree[SHA256_BYTES],
                       struct consent_found *ret, struct ssb_error *err)
{
	return find_lock(o, dir, tree, ret, err);
}

/* ---- the input of planning ----------------------------------------------------------- */

void consent_input_done(struct consent_input *in)
{
	free(in->source);
	given_free(in->given, in->n_given);
	string_list_done(&in->declined);
	*in = (struct consent_input){ 0 };
}

int consent_input_give(struct consent_input *in, enum ssb_option option, const char *value)
{
	return given_add(&in->given, &in->n_given, option, value);
}

int consent_input_decline(struct consent_input *in, const char *item)
{
	return string_list_add_once(&in->declined, item, MAX_REQUESTS);
}

struct plan_consent consent_input_plan(const struct consent_input *in)
{
	const struct lock *l = in->lock;
	struct plan_consent c = { .source = in->source };

	c.declined[0] = l != NULL ? &l->declined : NULL;
	c.declined[1] = &in->declined;
	if (l != NULL && in->holds) {
		c.given[0] = l->grants;
		c.n_given[0] = l->n_grants;
	}
	c.given[1] = in->given;
	c.n_given[1] = in->n_given;
	if (l != NULL) {
		c.asked = l->allowed;
		c.n_asked = l->n_allowed;
		c.given[2] = in->holds ? l->allowed : NULL;
		c.n_given[2] = in->holds ? l->n_allowed : 0;
	}
	if (in->by[0] != '\0') {
		c.approval = (struct plan_approval){ .by = (char *)(uintptr_t)in->by,
			                             .at = (char *)(uintptr_t)in->at,
			                             .tree = (char *)(uintptr_t)in->tree,
			                             .snapshot = in->source != NULL,
			                             .counted = in->counted };
	}
	return c;
}

/* Finds the copy to run from. If it was removed or damaged, it is made again, because the files
 * are the same. */
static int find_copy(const struct owner *o, const char *dir, const struct skill_files *p,
                     bool copied, struct consent_input *in, struct ssb_error *err)
{
	bool kept = true;

	if (!copied && !snapshot_there(o, p) && snapshot_make(o, dir, p, &kept, err) != 0) {
		return -1;
	}
	in->source = kept ? snapshot_path(o, p) : NULL;
	return kept && in->source == NULL ? ssb_fail(err, SSB_E_NOMEM, 0, WHERE, "out of memory")
	                                  : 0;
}

/* Fills the fields of `in` for the record: who approved (by), when (at), and which files

 * (tree). */
static void sign_input(struct consent_input *in, const struct skill_files *files, const char *by,
                       const char *at)
{
	struct stamp stamp = STAMP_NONE;
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	snprintf(in->by, sizeof(in->by), "%s", by);
	snprintf(in->at, sizeof(in->at), "%s", at != NULL ? at : stamp_text(&stamp, &now));
	(void)digest_text(files->tree, in->tree);
}

/* Resets everything except `given` and `declined`, which the owner chose in addition to an
 * approval. */
static void reset_input(struct consent_input *in)
{
	free(steal_ptr(&in->source));
	in->lock = NULL;
	in->holds = in->counted = false;
	in->by[0] = in->at[0] = in->tree[0] = '\0';
}

int consent_by_approval(const struct owner *o, const struct consent_found *f, bool copied,
                        struct consent_input *inout, struct ssb_error *err)
{
	const struct lock *l = &f->lock;

	assert(f->state != CONSENT_HOLDS || l->skill != NULL);
	reset_input(inout);
	inout->lock = l;
	inout->holds = f->state == CONSENT_HOLDS;
	if (!inout->holds) {
		return 0;
	}
	if (l->snapshot && find_copy(o, l->skill, &l->files, copied, inout, err) != 0) {
		return -1;
	}
	inout->counted = l->uses >= 0;
	sign_input(inout, &l->files, l->by, l->at);
	return 0;
}

int consent_once(const struct owner *o, const char *dir, const struct skill_files *shown,
                 bool copied, const char *by, struct consent_input *inout, struct ssb_error *err)
{
	const bool has_copy = copied || shown->v != NULL;

	assert(by[0] != '\0');
	reset_input(inout);
	if (has_copy && find_copy(o, dir, shown, copied, inout, err) != 0) {
		return -1;
	}
	sign_input(inout, shown, by, NULL);
	return 0;
}

/* Reads every byte, because the result decides which files run. */
int consent_still(const struct ssb_plan *plan, struct marks *seen, struct ssb_error *err)
{
	AUTO(skill_files_done) struct skill_files now = { 0 };
	AUTO(marks_done) struct marks marks = { 0 };
	char text[DIGEST_TEXT];

	if (plan->approved == NULL || plan->approved->snapshot) {
		return 0;
	}
	if (lock_files_mark(plan_skill_fd(plan), &now, &marks, err) != 0) {
		return -1;
	}
	const char *changed = seen->n > 0 ? marks_differ(seen, &marks) : NULL;
	if (changed != NULL) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE, "'%.200s' changed during the run",
		                changed);
	}
	if (strcmp(digest_text(now.tree, text), plan->approved->tree) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, WHERE,
		                "the skill's files are not those that were approved");
	}
	if (seen->n == 0) {
		*seen = marks;
		marks = (struct marks){ 0 };
	}
	return 0;
}

/* Finds the plan's manifest among the skill's files. Returns NULL if it is not one of them. */
static const struct skill_file *manifest_in(const struct skill_files *p,
                                            const struct ssb_plan *plan)
{
	size_t n = strlen(plan->skill_dir);
	const char *path = plan->manifest != NULL ? plan->manifest : "";

	if (strncmp(path, plan->skill_dir, n) != 0 || path[n] != '/') {
		return NULL;
	}
	return ARRAY_FIND(e, p->v, p->n, strcmp(e->path, path + n + 1) == 0);
}

/* Compares the plan's manifest with the pinned file: another process could have put a
 * different manifest there while the plan was made, and removed it afterwards. A long manifest
 * is accepted without a comparison, because only its head was read. So is a symlink, because
 * its target was read; the lock has the digest of the target. */
bool consent_fits_files(const struct ssb_plan *plan, const struct skill_files *p)
{
	if (plan->format == SKILL_SIDECAR) {
		return true;
	}
	const struct skill_file *f = manifest_in(p, plan);
	return f != NULL && !f->dir &&
	       (f->link != NULL || f->size >= MAX_YAML_BYTES ||
	        memcmp(f->sha256, plan->manifest_digest, sizeof(f->sha256)) == 0);
}

/* If the caller named a script, the plan was made from this script (SKILL_SCRIPT), which may be
 * any of the pinned files. So the digest of the approved manifest does not apply. */
bool consent_fits(const struct lock *l, const struct ssb_plan *plan)
{
	return l->format == plan->format &&
	       (plan->format == SKILL_SCRIPT ||
	        memcmp(l->manifest, plan->manifest_digest, sizeof(l->manifest)) == 0) &&
	       consent_fits_files(plan, &l->files);
}

/* Makes sure that no sweep removes the copy during a long run. Without this, a sweep removes a copy
 * one day after its last use. */
static void hold_copy(const struct owner *o, const struct ssb_plan *plan)
{
	struct skill_files files = { 0 };

	if (plan->approved != NULL && plan->approved->snapshot &&
	    plan->res.max_runtime_seconds > SHORT_RUN &&
	    digest_parse(plan->approved->tree, files.tree)) {
		snapshot_hold(o, &files, plan->res.max_runtime_seconds);
	}
}

int consent_use(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err)
{
	hold_copy(o, plan);
	return plan->approved == NULL || !plan->approved->counted
	               ? 0
	               : lock_use(o, plan->skill_dir, plan->approved->tree, err);
}

int consent_unuse(const struct owner *o, const struct ssb_plan *plan, struct ssb_error *err)
{
	return plan->approved == NULL || !plan->approved->counted
	               ? 0
	               : lock_unuse(o, plan->skill_dir, plan->approved->tree, err);
}
