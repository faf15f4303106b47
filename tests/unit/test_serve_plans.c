/* test_serve_plans.c - the cache of plans: a wish gets the same plan as long as nothing has
 * changed, and a new plan after any change. A client can narrow a plan, but never widen it. */
#include "serve_world.h"

#include <time.h>

#include "base/diag.h"
#include "base/limits.h"
#include "policy/options.h"
#include "serve/plans.h"

/* The clock stands still until the test moves it, so the age of a plan does not depend on the
 * machine. */
static time_t moved_s;

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (clock != CLOCK_MONOTONIC) {
		return __real_clock_gettime(clock, ret);
	}
	*ret = (struct timespec){ .tv_sec = 1000 + moved_s };
	return 0;
}

static const struct ssb_plan *get(const struct plan_wish *wish)
{
	const struct ssb_plan *p = NULL;
	struct ssb_error err = { 0 };

	if (plans_get(w->serve.plans, wish, &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	return p;
}

/* The skill of most tests. Each test writes the files of the skill that it needs. `bare` is a wish
 * for a plan of this skill, without any further wishes. */
static struct skill skill;
static const struct plan_wish bare = { .skill = &skill };

static int setup(void **state)
{
	struct ssb_error err = { 0 };

	world_setup(state);
	skill = skill_at("s");
	w->opt.owner = ssb_options_new();
	assert_non_null(w->opt.owner);
	return plans_new(&w->serve, &w->serve.plans, &err);
}

static int teardown(void **state)
{
	skill_done(&skill);
	plans_free(w->serve.plans);
	ssb_options_free((struct ssb_options *)w->opt.owner);
	return world_teardown(state);
}

static void is_kept(void **state)
{
	char *args[] = { "x", NULL };

	world_skill("s", "{}", "true");
	const struct plan_wish other = { .skill = &skill, .args = args };
	const struct ssb_plan *first = get(&bare);
	assert_ptr_equal(get(&bare), first);
	const struct ssb_plan *with = get(&other);
	assert_ptr_not_equal(with, first);
	assert_string_equal(with->argv.v[with->argv.n - 1], "x");
	assert_ptr_equal(get(&bare), first);
}

/* A plan in the cache is used for less than 2 s, because some changes would be too expensive to
 * detect. */
static void is_kept_so_long(void **state)
{
	world_skill("s", "{}", "true");
	const struct ssb_plan *first = get(&bare);
	moved_s += 1;
	assert_ptr_equal(get(&bare), first);
	moved_s += 1;
	assert_ptr_not_equal(get(&bare), first);
}

#define ONE "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define TWO "sha256:2222222222222222222222222222222222222222222222222222222222222222"

/* The wishes in this list are all different. Each must get its own plan, while the plans of the
 * others stay in the cache. */
static void each_wish_has_its_own(void **state)
{
	AUTO(skill_done) struct skill s = skill_at("s");
	AUTO(skill_done) struct skill other = skill_at("other");
	char *arg[] = { (char[]){ "a" }, NULL };
	char *arg_b[] = { (char[]){ "b" }, NULL };
	char *args[] = { (char[]){ "a" }, (char[]){ "b" }, NULL };
	char *digest[] = { (char[]){ ONE }, NULL };
	char *digest_two[] = { (char[]){ TWO }, NULL };
	struct given read = { .option = SSB_OPT_READ, .value = (char[]){ "/usr/a" } };
	struct given write = { .option = SSB_OPT_WRITE, .value = (char[]){ "/usr/a" } };
	struct given elsewhere = { .option = SSB_OPT_READ, .value = (char[]){ "/usr/b" } };
	const struct lock declines = { .declined = { arg, 1 } };
	const struct consent_input inputs[] = {
		{ .given = &read, .n_given = 1 },
		{ .given = &write, .n_given = 1 },
		{ .given = &elsewhere, .n_given = 1 },
		{ .by = "client", .tree = ONE },
		{ .by = "client", .tree = TWO },
		{ .by = "other", .tree = TWO },
		{ .declined = { arg, 1 } },
		{ .declined = { arg_b, 1 } },
		{ .lock = &declines },
		/* as in the rows above, but in other combinations */
		{ .by = "client", .tree = ONE, .declined = { digest_two, 1 } },
	};
	const struct plan_wish all[] = {
		{ .skill = &s },
		{ .skill = &other },
		{ .skill = &s, .args = arg },
		{ .skill = &s, .args = arg_b },
		{ .skill = &s, .args = args },
		{ .skill = &s, .narrow.offline = true },
		{ .skill = &s, .narrow.read_only = true },
		{ .skill = &s, .narrow.max_seconds = 1 },
		{ .skill = &s, .input = &inputs[0] },
		{ .skill = &s, .input = &inputs[1] },
		{ .skill = &s, .input = &inputs[2] },
		{ .skill = &s, .input = &inputs[3] },
		{ .skill = &s, .input = &inputs[4] },
		{ .skill = &s, .input = &inputs[5] },
		{ .skill = &s, .input = &inputs[6] },
		{ .skill = &s, .input = &inputs[7] },
		{ .skill = &s, .input = &inputs[8] },
		{ .skill = &s, .input = &inputs[9] },
		{ .skill = &s, .input = &inputs[4], .args = digest },
	};
	const struct ssb_plan *plans[ARRAY_LEN(all)];

	world_skill("s", "{}", "true");
	world_skill("other", "{}", "true");
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		plans[i] = get(&all[i]);
		for (size_t k = 0; k < i; k++) {
			if (plans[i] == plans[k]) {
				fail_msg("wishes %zu and %zu have one plan", k, i);
			}
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		assert_ptr_equal(get(&all[i]), plans[i]);
	}
}

/* The cache ignores the time consent_input.at: it is different at each use of an approval for one
 * run or for a session. */
static void is_kept_for_a_session(void **state)
{
	AUTO(skill_done) struct skill s = skill_at("s");
	const struct consent_input now = { .by = "client", .tree = ONE, .at = "now" };
	const struct consent_input then = { .by = "client", .tree = ONE, .at = "then" };
	const struct plan_wish first = { .skill = &s, .input = &now };
	const struct plan_wish second = { .skill = &s, .input = &then };

	world_skill("s", "{}", "true");
	const struct ssb_plan *p = get(&first);
	assert_ptr_equal(get(&second), p);
}

static void approve_by(const struct skill *s, const char *by, const struct string_list *declined,
                       struct consent_found *ret)
{
	const struct plan_wish plain = { .skill = s };
	const struct consent_terms terms = { .by = by, .uses = -1, .declined = declined };
	struct ssb_error err = { 0 };

	if (consent_give(&w->serve.owner, s->dir, get(&plain), NULL, &terms, &err) != 0 ||
	    consent_look(&w->serve.owner, s->dir, ret, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
}

static void word_by(const struct consent_found *f, bool copied, struct consent_input *ret)
{
	struct ssb_error err = { 0 };

	assert_int_equal(consent_by_approval(&w->serve.owner, f, copied, ret, &err), 0);
}

/* The files stay the same and a new approval declines an item: the plan must use the new
 * approval. */
static void is_by_this_approval(void **state)
{
	AUTO(consent_found_done) struct consent_found whole = { 0 };
	AUTO(consent_found_done) struct consent_found less = { 0 };
	char *item[] = { (char[]){ "read ~/notes" }, NULL };
	const struct string_list declined = { item, 1 };

	world_mkdir("home/notes");
	world_skill("s", "{filesystem: {read: [~/notes]}}", "true");
	for (int copied = 0; copied < 2; copied++) {
		AUTO(consent_input_done) struct consent_input one = { 0 };
		AUTO(consent_input_done) struct consent_input two = { 0 };
		const struct plan_wish before = { .skill = &skill, .input = &one };
		const struct plan_wish after = { .skill = &skill, .input = &two };

		approve_by(&skill, "one", NULL, &whole);
		word_by(&whole, copied != 0, &one);
		const struct ssb_plan *p = get(&before);
		size_t grants = p->n_grants;
		assert_string_equal(p->approved->by, "one");
		approve_by(&skill, "two", &declined, &less);
		word_by(&less, copied != 0, &two);
		p = get(&after);
		assert_string_equal(p->approved->by, "two");
		assert_int_equal(p->n_grants, grants - 1);

		bool was = false;
		struct ssb_error err = { 0 };
		assert_int_equal(consent_revoke(&w->serve.owner, skill.dir, &was, &err), 0);
		consent_found_done(&whole);
		consent_found_done(&less);
	}
}

/* A declined item that the skill no longer requests causes no message. */
static void is_quiet_of_what_nobody_asks(void **state)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	char *item[] = { (char[]){ "read ~/notes" }, NULL };
	const struct string_list declined = { item, 1 };

	world_skill("s", "{}", "true");
	approve_by(&skill, "one", &declined, &f);
	for (int copied = 0; copied < 2; copied++) {
		AUTO(consent_input_done) struct consent_input input = { 0 };
		const struct plan_wish wish = { .skill = &skill, .input = &input };
		AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
		struct ssb_error err = { 0 };
		const struct ssb_plan *p = NULL;
		word_by(&f, copied != 0, &input);
		assert_int_equal(plans_get(w->serve.plans, &wish, &p, diags, &err), 0);
		assert_int_equal(ssb_diags_count(diags), 0);
	}
}

/* A caller that wants the messages of a plan (passes a list) gets all of them, even if the plan is
 * cached. */
static void says_it_again(void **state)
{
	struct ssb_error err = { 0 };
	const struct ssb_plan *p = NULL;

	world_mkdir("home/.ssh");
	world_skill("s", "{filesystem: {read: [~/.ssh]}}", "true");
	(void)get(&bare);
	struct ssb_diags *diags = ssb_diags_new();
	assert_int_equal(plans_get(w->serve.plans, &bare, &p, diags, &err), 0);
	assert_true(ssb_diags_count(diags) > 0);
	ssb_diags_free(diags);
}

static void sees_a_change(void **state)
{
	world_skill("s", "{}", "true");
	assert_int_equal(get(&bare)->n_egress, 0);
	world_skill("s", "{network: {egress: [{domain: example.com}]}}", "true");
	assert_int_equal(get(&bare)->n_egress, 1);

	/* A change of the owner's policy file makes a new plan. */
	uint64_t before = get(&bare)->res.memory_mb;
	world_mkdir("home/.config");
	world_mkdir("home/.config/skillsandbox");
	world_file("home/.config/skillsandbox/policy.yaml", "limits: {memory_mb: 33}\n");
	assert_int_not_equal(before, 33);
	assert_int_equal(get(&bare)->res.memory_mb, 33);
}

/* The skill has no manifest, so one is derived from several files: a change of any of these files
 * makes a new plan. */
static void derives_anew(void **state)
{
	AUTO(skill_done) struct skill derived = skill_at("d");
	char *args[] = { "run", NULL };
	const struct plan_wish wish = { .skill = &derived, .args = args };

	world_mkdir("d");
	world_file("d/SKILL.md", "---\nname: d\n---\n");
	world_file("d/run", "#!/bin/sh\n");
	assert_string_equal(get(&wish)->argv.v[0], "/bin/sh");
	world_file("d/run", "#!/usr/bin/env python3\n");
	assert_string_equal(get(&wish)->argv.v[0], "python3");
	world_skill("d", "{}", "true");
	assert_int_equal(get(&wish)->format, SKILL_DECLARED);
}

static void sees_another_object(void **state)
{
	auto_free char *notes = world_path("home/notes");
	auto_free char *old = world_path("home/old");
	struct stat st;

	world_mkdir("home/notes");
	world_skill("s", "{filesystem: {read: [~/notes]}}", "true");
	(void)get(&bare);
	assert_int_equal(rename(notes, old), 0);
	world_mkdir("home/notes");
	assert_int_equal(stat(notes, &st), 0);
	const struct ssb_plan *p = get(&bare);
	bool there = false;
	for (size_t i = 0; i < p->n_grants; i++) {
		there |= strcmp(p->grants[i].path, notes) == 0 && p->grants[i].ino == st.st_ino;
	}
	assert_true(there);
}

/* The plan of a run uses the flags of the server's command line, except the server's trace output,
 * terminal and copy. The flags themselves must not be changed. */
static void leaves_the_flags(void **state)
{
	char *args[] = { (char[]){ "x" }, NULL };
	const struct plan_wish wishes[] = { { .skill = &skill },
		                            { .skill = &skill, .args = args } };
	struct ssb_options *owner = (struct ssb_options *)w->opt.owner;
	auto_free char *notes = world_path("home/notes");
	struct ssb_error err = { 0 };

	world_mkdir("home/notes");
	world_skill("s", "{}", "true");
	owner->workdir = strdup("/tmp");
	owner->trace_output = strdup("/record");
	owner->tty = TTY_YES;
	assert_int_equal(ssb_options_set(owner, SSB_OPT_READ, notes, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
		const struct ssb_plan *p = get(&wishes[i]);
		bool there = false;
		for (size_t k = 0; k < p->n_grants; k++) {
			there |= strcmp(p->grants[k].path, notes) == 0;
		}
		assert_true(there);
		assert_null(p->trace_output);
		assert_int_equal(p->tty, TTY_NO);
		assert_string_equal(owner->workdir, "/tmp"); /* the server's flags are unchanged */
		assert_string_equal(owner->trace_output, "/record");
		assert_int_equal(owner->tty, TTY_YES);
		assert_int_equal(owner->read.n, 1);
		assert_string_equal(owner->read.v[0], notes);
	}
}

/* An approval for one run or for a session is valid only for the files that were shown: if a file
 * has changed, the run is refused. */
static void runs_what_was_shown(void **state)
{
	AUTO(skill_files_done) struct skill_files files = { 0 };
	struct ssb_error err = { 0 };
	AUTO(consent_input_done) struct consent_input input = { 0 };
	const struct plan_wish wish = { .skill = &skill, .input = &input };

	world_skill("s", "{}", "true");
	world_file("s/code", "good");
	assert_int_equal(lock_files_read(skill.dir, &files, &err), 0);
	skill_files_done(&(struct skill_files){ .v = files.v, .n = files.n });
	files.v = NULL; /* the server stores only the digest */
	files.n = 0;
	assert_int_equal(
	        consent_once(&w->serve.owner, skill.dir, &files, false, "a test", &input, &err), 0);
	assert_null(get(&bare)->approved);
	const struct ssb_plan *p = get(&wish);
	assert_false(p->approved->snapshot);
	AUTO(marks_done) struct marks seen = { 0 };
	assert_int_equal(consent_still(p, &seen, &err), 0);
	world_file("s/code", "evil");
	struct marks none = { 0 };
	assert_int_equal(consent_still(p, &none, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
}

static size_t writes_of(const struct ssb_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_grants; i++) {
		n += p->grants[i].access == ACCESS_WRITE;
	}
	return n;
}

/* Returns the number of grants whose directory does not exist yet. */
static size_t made_by(const struct ssb_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_grants; i++) {
		n += p->grants[i].create;
	}
	return n;
}

#define WIDE "{network: {egress: [{domain: example.com}]}, filesystem: {write: [~/out, ~/new]}}"

static void narrows(void **state)
{
	const struct plan_wish less = {
		.skill = &skill, .narrow = { .offline = true, .read_only = true, .max_seconds = 7 }
	};

	world_mkdir("home/out");
	world_skill("s", WIDE, "true");
	const struct ssb_plan *p = get(&bare);
	assert_int_equal(p->n_egress, 1);
	assert_int_equal(writes_of(p), 2);
	assert_int_equal(made_by(p), 1);
	assert_int_equal(p->res.max_runtime_seconds, 60);
	assert_false(plans_harmless(p));
	p = get(&less);
	assert_int_equal(p->n_egress, 0);
	assert_int_equal(writes_of(p), 0);
	assert_int_equal(made_by(p), 0);
	assert_int_equal(p->res.max_runtime_seconds, 7);
	assert_true(plans_harmless(p));
	/* The plan for the wish without narrowing is still the same. */
	assert_int_equal(writes_of(get(&bare)), 2);
}

/* Network access, a writable directory and --best-effort each make a plan harmful. */
static void is_harmless(void **state)
{
	struct ssb_error err = { 0 };

	world_mkdir("home/out");
	world_skill("s", "{filesystem: {read: [~/out]}}", "true");
	assert_true(plans_harmless(get(&bare)));
	world_skill("s", "{network: {egress: [{domain: example.com}]}}", "true");
	assert_false(plans_harmless(get(&bare)));
	world_skill("s", "{filesystem: {write: [~/out]}}", "true");
	assert_false(plans_harmless(get(&bare)));
	world_skill("s", "{}", "true");
	assert_true(plans_harmless(get(&bare)));
	assert_int_equal(ssb_options_set((struct ssb_options *)w->opt.owner, SSB_OPT_BEST_EFFORT,
	                                 "landlock", &err),
	                 0);
	moved_s += 2;
	assert_false(plans_harmless(get(&bare)));
}

static void cannot_widen(void **state)
{
	const struct plan_wish more = { .skill = &skill, .narrow = { .max_seconds = 86400 } };

	world_skill("s", "{}", "true");
	assert_int_equal(get(&more)->res.max_runtime_seconds, 60);
}

static void less_needs_no_approval(void **state)
{
	const struct plan_wish less = { .skill = &skill,
		                        .narrow = { .offline = true, .read_only = true } };

	world_mkdir("home/.ssh");
	world_skill("s", "{network: {egress: [{domain: 10.0.0.1}]}, filesystem: {write: [~/.ssh]}}",
	            "true");
	assert_int_equal(ssb_plan_refusals(get(&bare)), 2);
	assert_int_equal(ssb_plan_refusals(get(&less)), 0);

	/* The read of ~/.ssh and LD_PRELOAD do not depend on network or write access, so both stay
	 * refused. */
	world_skill("s",
	            "{network: {egress: [{domain: 10.0.0.1}]}, filesystem: {read: [~/.ssh], write: "
	            "[~/.ssh]}, env_vars: {allow: [LD_PRELOAD]}}",
	            "true");
	const struct ssb_plan *p = get(&less);
	assert_int_equal(p->n_refusals, 2);
	assert_int_equal(p->refusals[0].kind, REFUSAL_READ);
	assert_int_equal(p->refusals[1].kind, REFUSAL_OTHER);
}

static void has_what_the_owner_gave(void **state)
{
	struct given extra = {
		.option = SSB_OPT_READ, .value = (char[]){ "~/.ssh" }
	}; /* as the server offers it to the client */
	const struct consent_input input = { .given = &extra, .n_given = 1 };
	const struct plan_wish given = { .skill = &skill, .input = &input };
	struct ssb_error err = { 0 };

	world_mkdir("home/.ssh");
	world_skill("s", "{filesystem: {read: [~/.ssh]}}", "true");
	assert_int_equal(
	        ssb_options_set((struct ssb_options *)w->opt.owner, SSB_OPT_MEMORY, "77M", &err),
	        0);
	assert_int_equal(ssb_plan_refusals(get(&bare)), 1);
	assert_int_equal(ssb_plan_refusals(get(&given)), 0);
	assert_int_equal(get(&given)->res.memory_mb, 77);
	assert_int_equal(ssb_plan_refusals(get(&bare)), 1);
}

/* More wishes than the cache can contain: each still gets the right plan. */
static void forgets(void **state)
{
	char number[16];
	char *args[] = { number, NULL };

	world_skill("s", "{}", "true");
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MAX_PLANS + 3; i++) {
			const struct plan_wish wish = { .skill = &skill, .args = args };
			snprintf(number, sizeof(number), "%d", i);
			const struct ssb_plan *p = get(&wish);
			assert_string_equal(p->argv.v[p->argv.n - 1], number);
		}
	}
}

static void a_moved_skill_is_refused(void **state)
{
	AUTO(skill_done) struct skill moved = skill_at("link");
	auto_free char *link = world_path("link");
	auto_free char *real = world_path("s");
	const struct plan_wish wish = { .skill = &moved };
	const struct ssb_plan *p = NULL;
	struct ssb_error err = { 0 };

	world_skill("s", "{}", "true");
	assert_int_equal(symlink(real, link), 0);
	assert_int_equal(plans_get(w->serve.plans, &wish, &p, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	assert_null(p);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(is_kept),
		T(is_kept_so_long),
		T(each_wish_has_its_own),
		T(is_by_this_approval),
		T(is_quiet_of_what_nobody_asks),
		T(is_kept_for_a_session),
		T(says_it_again),
		T(sees_a_change),
		T(derives_anew),
		T(sees_another_object),
		T(runs_what_was_shown),
		T(leaves_the_flags),
		T(narrows),
		T(is_harmless),
		T(cannot_widen),
		T(less_needs_no_approval),
		T(has_what_the_owner_gave),
		T(forgets),
		T(a_moved_skill_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
