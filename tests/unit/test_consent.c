/* test_consent.c - approvals: declined items stay declined, a plan must be made from the approved
 * manifest, approvals for one run, and a store with a damaged file. */
#include "approval_world.h"

#include <fcntl.h>
#include <time.h>

#include "consent/consent.h"
#include "os/marks.h"

static int synced;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	synced++;
	return __real_fsync(fd);
}

/* ---- approving ------------------------------------------------------------------- */

static char *REQUESTED[] = { (char[]){ "read ~/.ssh" }, (char[]){ "read ~/notes" }, NULL };
static struct refusal REFUSALS[] = {
	{ .what = (char[]){ "read ~/.ssh" },
	  .option = SSB_OPT_READ,
	  .value = (char[]){ "~/.ssh" } },
	{ .what = (char[]){ "read ~/notes" },
	  .option = SSB_OPT_READ,
	  .value = (char[]){ "~/notes" } },
};

static struct ssb_plan plan_of(const char *manifest)
{
	static char name[] = "s";
	static char path[96];
	struct ssb_plan plan = { .name = name,
		                 .manifest = path,
		                 .skill_dir = skill,
		                 .format = SKILL_MARKDOWN,
		                 .refusals = REFUSALS,
		                 .n_refusals = 2,
		                 .requested = { .v = REQUESTED, .n = 2 } };

	snprintf(path, sizeof(path), "%s/SKILL.md", skill);
	sha256(manifest, strlen(manifest), plan.manifest_digest);
	return plan;
}

static void give(const struct consent_terms *terms, struct lock *ret)
{
	const struct ssb_plan plan = plan_of(MANIFEST);
	struct ssb_error err = { 0 };

	if (consent_give(&owner, skill, &plan, NULL, terms, &err) != 0 ||
	    (ret != NULL && lock_load(&owner, skill, ret, &err) != 0)) {
		fail_msg("%s", err.text);
	}
}

static const struct consent_terms FOR_GOOD = { .by = "a test", .uses = -1 };

/* A declined item stays declined until the approval is revoked: also after an approval of other
 * files or of single items, and after the approval has expired. */
static void declined_stays_out(void **state)
{
	char *list[] = { (char[]){ "read ~/.ssh" }, NULL };
	const struct string_list declined = { list, 1 };
	const struct given notes = { .option = SSB_OPT_READ, .value = (char[]){ "~/notes" } };
	const struct consent_terms TERMS[] = {
		FOR_GOOD,
		{ .by = "x", .uses = -1, .some = true, .grants = &notes, .n_grants = 1 },
		{ .by = "x", .uses = -1, .expires = 1 },
		FOR_GOOD,
	};
	struct consent_terms first = FOR_GOOD;
	struct ssb_error err = { 0 };
	bool any = false;

	first.declined = &declined;
	give(&first, NULL);
	for (size_t i = 0; i < ARRAY_LEN(TERMS); i++) {
		AUTO(lock_done) struct lock l = { 0 };
		AUTO(consent_found_done) struct consent_found f = { .state = CONSENT_CHANGED };
		AUTO(consent_input_done) struct consent_input w = { 0 };
		put("more", i % 2 == 0 ? "a" : "b");
		give(&TERMS[i], &l);
		assert_int_equal(l.declined.n, 1);
		assert_int_equal(l.n_grants, 1);
		assert_string_equal(l.grants[0].value, "~/notes");
		/* Planning gets the declined items, whether the approval is valid or not. */
		f.lock = l;
		l = (struct lock){ 0 };
		assert_int_equal(consent_by_approval(&owner, &f, false, &w, &err), 0);
		assert_string_equal(consent_input_plan(&w).declined[0]->v[0], "read ~/.ssh");
		assert_int_equal(consent_input_plan(&w).n_given[0], 0);
	}
	AUTO(lock_done) struct lock l = { 0 };
	assert_int_equal(consent_revoke(&owner, skill, &any, &err), 0);
	give(&FOR_GOOD, &l);
	assert_true(l.declined.n == 0 && l.n_grants == 2);
}

/* A plan that was made from another manifest than the skill's can neither be approved nor be run
 * with the skill's approval. */
static void of_the_pinned_manifest(void **state)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct ssb_plan other = plan_of("A skill");
	struct ssb_plan same = plan_of(MANIFEST);
	struct ssb_error err = { 0 };
	struct ssb_error fine = { 0 };

	assert_int_equal(consent_give(&owner, skill, &other, NULL, &FOR_GOOD, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	give(&FOR_GOOD, NULL);
	assert_int_equal(consent_look(&owner, skill, &f, &fine), 0);
	assert_true(consent_fits(&f.lock, &same));
	assert_false(consent_fits(&f.lock, &other));
	/* If a skill is a script without a manifest, each run names the script. So the script of
	 * the plan may be any approved file, and the digest of the manifest in the approval is not
	 * compared. */
	char *path = other.manifest;
	f.lock.format = SKILL_SCRIPT;
	same.format = other.format = SKILL_SCRIPT;
	/* The digest of the manifest in the approval is that of another script. */
	memset(f.lock.manifest, 0, sizeof(f.lock.manifest));
	assert_true(consent_fits(&f.lock, &same));
	assert_string_equal(path, same.manifest);
	assert_false(consent_fits(&f.lock, &other));
}

/* An approval for one run is for the files that were shown. The run uses a copy of them. If they
 * are too large for a copy, they are compared when the run starts. */
static void once_is_of_what_was_shown(void **state)
{
	for (int past = 0; past < 2; past++) {
		AUTO(skill_files_done) struct skill_files shown = { 0 };
		AUTO(consent_input_done) struct consent_input w = { 0 };
		struct ssb_plan plan = plan_of(MANIFEST);
		struct ssb_plan other = plan_of("A skill");
		struct ssb_error err = { 0 };
		struct ssb_error changed = { 0 };
		AUTO(marks_done) struct marks seen = { 0 };
		AUTO(marks_done) struct marks later = { 0 };
		auto_fd dir = open(skill, O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct grant own = { .origin = ORIGIN_SKILL, .is_dir = true, .fd = dir };
		plan.grants = &own;
		plan.n_grants = 1;
		if (past) {
			large("big", (off_t)SNAPSHOT_BYTES);
		}
		put("code", "one");
		read_files(&shown);
		assert_int_equal(consent_once(&owner, skill, &shown, false, "me, once", &w, &err),
		                 0);
		struct plan_consent c = consent_input_plan(&w);
		assert_int_equal(c.source == NULL, past);
		assert_string_equal(c.approval.by, "me, once");
		assert_int_equal(c.approval.snapshot, !past);
		plan.approved = &c.approval; /* as planning does */
		assert_true(consent_fits_files(&plan, &shown));
		assert_int_equal(consent_still(&plan, &seen, &err), 0);
		put("code", "two");
		assert_int_equal(consent_still(&plan, &later, &changed), past ? -1 : 0);
		/* The old bytes are put back: the change during the run is still noticed. */
		struct ssb_error meanwhile = { 0 };
		put("code", "one");
		assert_int_equal(consent_still(&plan, &later, &err), 0);
		assert_int_equal(consent_still(&plan, &seen, &meanwhile), past ? -1 : 0);
		assert_true(!past || strstr(meanwhile.text, "'code' changed during") != NULL);
		put("code", "two");
		assert_false(consent_fits_files(&other, &shown));
		/* Files that have changed since they were shown are not copied. */
		AUTO(skill_files_done) struct skill_files now = { 0 };
		AUTO(consent_input_done) struct consent_input w2 = { 0 };
		struct ssb_error late = { 0 };
		read_files(&now);
		put("code", "six");
		assert_int_equal(consent_once(&owner, skill, &now, false, "me", &w2, &late),
		                 past ? 0 : -1);
		assert_null(w2.source);
	}
}

/* ---- the store ------------------------------------------------------------------- */

/* The use of an approval with a limited number of runs is written to the disk before the run
 * starts. If the run does not start, the use is given back. */
static void uses_reach_the_disk(void **state)
{
	AUTO(lock_done) struct lock l = { 0 };
	AUTO(lock_done) struct lock after = { 0 };
	struct consent_terms terms = FOR_GOOD;
	struct ssb_error err = { 0 };
	struct ssb_error none = { 0 };
	char tree[DIGEST_TEXT];

	terms.uses = 1;
	give(&terms, &l);
	(void)digest_text(l.files.tree, tree);
	synced = 0;
	assert_int_equal(lock_use(&owner, skill, tree, &err), 0);
	assert_int_equal(synced, 2); /* syncs of the file and of its directory */
	assert_int_equal(lock_use(&owner, skill, tree, &none), -1);
	assert_int_equal(lock_unuse(&owner, skill, tree, &err), 0);
	assert_int_equal(lock_load(&owner, skill, &after, &err), 0);
	assert_int_equal(after.uses, 1);
}

static const char GOOD_NAME[] = "00000000000000000000000000000000000000000000000000000000000000aa";

static void spoil(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/approvals/%s.json", top, name);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(file_write_all(fd, "{", 1), 0);
}

/* A damaged file in the store: the other approvals are listed, the file can be removed by its name,
 * and the sweep still removes unused copies. */
static void damaged_hides_nothing(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	AUTO(lock_list_done) struct lock_list l = { 0 };
	AUTO(lock_list_done) struct lock_list after = { 0 };
	AUTO(skill_files_done) struct skill_files p = { 0 };
	struct ssb_error err = { 0 };
	struct stat st;
	bool was = false;

	put("code", "unapproved");
	read_files(&p);
	make_copy(&p);
	auto_free char *idle = snapshot_path(&owner, &p);
	assert_int_equal(utimensat(AT_FDCWD, idle, old, 0), 0);
	put("code", "approved");
	give(&FOR_GOOD, NULL);
	assert_int_equal(stat(idle, &st), -1);
	make_dir("other");
	put("code", "unapproved");
	assert_int_equal(rmdir(in_skill("other")), 0);
	make_copy(&p);
	assert_int_equal(utimensat(AT_FDCWD, idle, old, 0), 0);
	spoil(GOOD_NAME);
	assert_int_equal(lock_list(&owner, &l, &err), 0);
	assert_true(l.n == 1 && l.n_bad == 1);
	assert_string_equal(l.v[0].skill, skill);
	assert_memory_equal(l.bad[0].file, GOOD_NAME, 64);
	assert_int_equal(snapshot_sweep(&owner, &err), 0);
	assert_int_equal(stat(idle, &st), -1);
	assert_false(lock_is_name("a") || lock_is_name(skill));
	assert_true(lock_is_name(GOOD_NAME) && lock_is_name(l.bad[0].file));
	assert_int_equal(consent_revoke(&owner, GOOD_NAME, &was, &err), 0);
	assert_true(was);
	assert_int_equal(lock_list(&owner, &after, &err), 0);
	assert_true(after.n == 1 && after.n_bad == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(declined_stays_out),  T(of_the_pinned_manifest), T(once_is_of_what_was_shown),
		T(uses_reach_the_disk), T(damaged_hides_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
