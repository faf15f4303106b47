/* test_lock.c - approvals: what a run gets from them, and for how long and for how many runs they
 * are valid. */
#include "lock_world.h"

#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "consent/lock_json.h"

/* ---- what a run gets from an approval -------------------------------------------- */

static void comes_back(void **state)
{
	AUTO(lock_done) struct lock l = { 0 };
	AUTO(lock_done) struct lock again = { 0 };
	struct ssb_error err = { 0 };
	char *declined[] = { (char[]){ "environment NOT" }, NULL };
	const struct string_list list = { declined, 1 };
	const struct consent_terms terms = {
		.by = "a \"test\"\n", .uses = 3, .expires = 4000000000, .declined = &list
	};
	auto_buf text, twice;

	give(&terms);
	assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
	assert_string_equal(l.skill, skill);
	assert_string_equal(l.name, "s\x1b[1m\"x");
	assert_string_equal(l.by, "a \"test\"\n");
	assert_int_equal(l.uses, 3);
	assert_true(l.expires == 4000000000 && l.snapshot);
	/* the grants have neither the declined request nor the one that cannot be granted */
	assert_int_equal(l.n_grants, 2);
	assert_string_equal(l.grants[0].value, "~/.ssh");
	assert_string_equal(l.grants[1].value, "HAVE");
	assert_int_equal(l.asked.n, 3);
	assert_int_equal(l.files.n, 1);
	buf_init(&text, MAX_LOCK_BYTES);
	buf_init(&twice, MAX_LOCK_BYTES);
	lock_write(&text, &l);
	assert_null(lock_parse(text.data, text.len, &again));
	lock_write(&twice, &again);
	assert_string_equal(text.data, twice.data);
}

static void states(void **state)
{
	struct consent_terms past = FOR_GOOD;
	bool was = false;
	struct ssb_error err = { 0 };

	assert_int_equal(look(), CONSENT_NONE);
	give(&FOR_GOOD);
	assert_int_equal(look(), CONSENT_HOLDS);
	put("SKILL.md", "a Skill");
	assert_int_equal(look(), CONSENT_CHANGED);
	put("SKILL.md", "a skill");
	assert_int_equal(look(), CONSENT_HOLDS);
	past.expires = (int64_t)time(NULL) - 1;
	give(&past);
	assert_int_equal(look(), CONSENT_OVER);
	past.expires = (int64_t)time(NULL) + 100;
	give(&past);
	assert_int_equal(look(), CONSENT_HOLDS);
	assert_int_equal(consent_revoke(&owner, skill, &was, &err), 0);
	assert_true(was);
	assert_int_equal(look(), CONSENT_NONE);
	assert_int_equal(consent_revoke(&owner, skill, &was, &err), 0);
	assert_false(was);
}

/* An approval expires after the time in the policy file, unless the owner gives another time. */
static void expires_by_policy(void **state)
{
	struct ssb_plan plan = plan_of();
	struct consent_terms terms = FOR_GOOD;
	struct ssb_error err = { 0 };

	plan.consent.expires = 1000;
	for (int said = 0; said < 2; said++) {
		AUTO(lock_done) struct lock l = { 0 };
		int64_t now = (int64_t)time(NULL);
		terms.expires = said ? 4000000000 : 0;
		assert_int_equal(consent_give(&owner, skill, &plan, NULL, &terms, &err), 0);
		assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
		assert_true(said ? l.expires == 4000000000
		                 : l.expires >= now + 1000 && l.expires < now + 1100);
	}
}

/* Planning gets the grants of an approval only if the approval is valid. It gets the declined items
 * in any case. */
static void is_told(void **state)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };
	struct stat st;

	give(&FOR_GOOD);
	assert_int_equal(consent_look(&owner, skill, &f, &err), 0);
	assert_true(consent_fits(&f.lock, &plan));
	for (int holds = 0; holds < 2; holds++) {
		AUTO(consent_input_done) struct consent_input w = { 0 };
		f.state = holds ? CONSENT_HOLDS : CONSENT_CHANGED;
		assert_int_equal(consent_by_approval(&owner, &f, false, &w, &err), 0);
		struct plan_consent c = consent_input_plan(&w);
		assert_ptr_equal(c.declined[0], &f.lock.declined);
		assert_int_equal(c.n_given[0], holds ? 3 : 0);
		assert_int_equal(c.n_given[1], 0);
		assert_true((c.source != NULL) == holds && (c.approval.by != NULL) == holds);
		if (holds) {
			assert_int_equal(stat(c.source, &st), 0);
			assert_string_equal(c.approval.by, "a test");
			assert_true(c.approval.snapshot && !c.approval.counted);
		}
	}
	plan.format = SKILL_SIDECAR; /* since then, the owner has written a manifest */
	assert_false(consent_fits(&f.lock, &plan));
}

/* A sidecar is a manifest that the owner has written. It is not one of the skill's files, so its
 * digest is compared, too. */
static void of_the_owners_manifest(void **state)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };

	plan.format = SKILL_SIDECAR;
	assert_int_equal(consent_give(&owner, skill, &plan, NULL, &FOR_GOOD, &err), 0);
	assert_int_equal(consent_look(&owner, skill, &f, &err), 0);
	assert_true(consent_fits(&f.lock, &plan));
	plan.manifest_digest[0] ^= 1;
	assert_false(consent_fits(&f.lock, &plan));
}

/* An approval is for the files that the owner saw, not for the files as they are now. */
static void of_what_was_shown(void **state)
{
	AUTO(skill_files_done) struct skill_files shown = { 0 };
	AUTO(lock_done) struct lock l = { 0 };
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };
	struct ssb_error fine = { 0 };

	put("data", "old");
	assert_int_equal(lock_files_read(skill, &shown, &err), 0);
	put("data", "new");
	assert_int_equal(consent_give(&owner, skill, &plan, &shown, &FOR_GOOD, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	assert_int_equal(look(), CONSENT_NONE);
	/* If the caller has only the digest of the shown files, consent_give() reads all files.
	 * Here their digest is different. */
	struct skill_files digest = { 0 };
	memcpy(digest.tree, shown.tree, sizeof(digest.tree));
	err = (struct ssb_error){ 0 };
	assert_int_equal(consent_give(&owner, skill, &plan, &digest, &FOR_GOOD, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	put("data", "old");
	assert_int_equal(consent_give(&owner, skill, &plan, &digest, &FOR_GOOD, &fine), 0);
	/* A file that was added later is not approved: the skill does not run. */
	put("new", "");
	assert_int_equal(consent_give(&owner, skill, &plan, &shown, &FOR_GOOD, &fine), 0);
	assert_int_equal(lock_load(&owner, skill, &l, &fine), 0);
	assert_memory_equal(l.files.tree, shown.tree, sizeof(shown.tree));
	assert_int_equal(look(), CONSENT_CHANGED);
	assert_int_equal(unlink(in_skill("new")), 0);
	assert_int_equal(look(), CONSENT_HOLDS);
	/* The manifest has changed since the plan was made: the approval is refused. */
	struct ssb_error other = { 0 };
	char manifest[112];
	snprintf(manifest, sizeof(manifest), "%s/skillsandbox.yaml", skill);
	plan.manifest = manifest;
	plan.format = SKILL_DECLARED;
	put("skillsandbox.yaml", "x");
	assert_int_equal(consent_give(&owner, skill, &plan, NULL, &FOR_GOOD, &other), -1);
	sha256("x", 1, plan.manifest_digest);
	assert_int_equal(consent_give(&owner, skill, &plan, NULL, &FOR_GOOD, &fine), 0);
}

/* If the owner approves one more item for the same files, the approval keeps its other items. If
 * the files have changed or the approval has expired, a new approval replaces it, without these
 * items. */
static void some_at_a_time(void **state)
{
	static const struct {
		const char *value;
		size_t after;
		int64_t expires;
	} STEPS[] = {
		{ "/a", 1, 0 }, { "/b", 2, 0 }, { "/b", 2, 0 }, { NULL, 0, 0 },
		{ "/c", 1, 0 }, { "/d", 2, 1 }, { "/e", 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
		AUTO(lock_done) struct lock l = { 0 };
		struct ssb_error err = { 0 };
		struct given g = { .option = SSB_OPT_READ,
			           .value = (char *)(uintptr_t)STEPS[i].value };
		const struct consent_terms terms = {
			.by = "x",
			.uses = -1,
			.expires = STEPS[i].expires,
			.some = true,
			.grants = &g,
			.n_grants = 1,
		};
		if (STEPS[i].value == NULL) {
			put("SKILL.md", "other");
			continue;
		}
		give(&terms);
		assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
		assert_int_equal(l.n_grants, STEPS[i].after);
	}
}

/* ---- a limited number of runs ---------------------------------------------------- */

#define PROCESSES 8

static void used_up(void **state)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	AUTO(consent_input_done) struct consent_input w = { 0 };
	struct consent_terms terms = FOR_GOOD;
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };
	struct ssb_error none = { 0 };

	terms.uses = 2;
	give(&terms);
	assert_int_equal(consent_look(&owner, skill, &f, &err), 0);
	assert_int_equal(consent_by_approval(&owner, &f, false, &w, &err), 0);
	struct plan_consent told = consent_input_plan(&w);
	plan.approved = &told.approval; /* planning does the same */
	assert_int_equal(consent_use(&owner, &plan, &err), 0);
	assert_int_equal(look(), CONSENT_HOLDS);
	assert_int_equal(consent_use(&owner, &plan, &err), 0);
	assert_int_equal(look(), CONSENT_OVER);
	assert_int_equal(consent_use(&owner, &plan, &none), -1);
	assert_int_equal(none.code, SSB_E_POLICY);
	/* An approval without a limit is not used up. */
	terms.uses = -1;
	give(&terms);
	assert_int_equal(lock_use(&owner, skill, plan.approved->tree, &err), 0);
	assert_int_equal(look(), CONSENT_HOLDS);
	/* The plan was made before the approval of other files, so that approval is not valid for
	 * it. */
	struct ssb_error other = { 0 };
	put("new", "");
	give(&terms);
	assert_int_equal(consent_use(&owner, &plan, &other), -1);
}

/* Several processes use the approval at the same moment. Returns how many of them could. */
static int use_together(const char *tree)
{
	struct ssb_error err = { 0 };
	int won = 0;
	int gate[2];
	char none;

	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < PROCESSES; i++) {
		if (fork() == 0) {
			(void)close(gate[1]);
			_exit(read(gate[0], &none, 1) == 0 &&
			                      lock_use(&owner, skill, tree, &err) == 0
			              ? 0
			              : 1);
		}
	}
	(void)close(gate[0]);
	(void)close(gate[1]);
	for (int i = 0; i < PROCESSES; i++) {
		int status = 0;
		assert_true(wait(&status) > 0);
		won += status == 0;
	}
	return won;
}

static void once_among_many(void **state)
{
	struct consent_terms terms = FOR_GOOD;
	struct ssb_error err = { 0 };
	char tree[DIGEST_TEXT];

	terms.uses = 1;
	for (int i = 0; i < 10; i++) {
		AUTO(lock_done) struct lock l = { 0 };
		give(&terms);
		assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
		assert_int_equal(use_together(digest_text(l.files.tree, tree)), 1);
	}
}

/* Only one process at a time can change the store: another one fails. */
static void one_at_a_time(void **state)
{
	AUTO(lock_done) struct lock l = { 0 };
	struct consent_terms terms = FOR_GOOD;
	struct ssb_error err = { 0 };
	struct ssb_error held = { 0 };
	struct ssb_error fine = { 0 };
	char path[96];
	char tree[DIGEST_TEXT];

	terms.uses = 1;
	give(&terms);
	assert_int_equal(lock_load(&owner, skill, &l, &err), 0);
	(void)digest_text(l.files.tree, tree);
	snprintf(path, sizeof(path), "%s/approvals.lock", top);
	auto_fd fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(lock_use(&owner, skill, tree, &held), -1);
	assert_non_null(strstr(held.text, "approvals.lock"));
	own_close(&fd);
	assert_int_equal(lock_use(&owner, skill, tree, &fine), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(comes_back),
		T(states),
		T(expires_by_policy),
		T(is_told),
		T(of_the_owners_manifest),
		T(of_what_was_shown),
		T(used_up),
		T(some_at_a_time),
		T(once_among_many),
		T(one_at_a_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
