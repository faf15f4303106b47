/* Plans that are kept: the same while nothing changed, another as soon as anything did;
 * narrowed, and never widened. */
#include "serve_world.h"

#include "base/limits.h"
#include "policy/options.h"
#include "serve/plans.h"

static struct ssb_plan *get(struct world *w, const struct plan_wish *wish)
{
	struct ssb_plan *p = NULL;
	struct ssb_error err = { 0 };

	if (plans_get(w->serve.plans, wish, &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	return p;
}

static int setup(void **state)
{
	struct ssb_error err = { 0 };

	world_setup(state);
	struct world *w = *state;
	w->opt.owner = ssb_options_new();
	assert_non_null(w->opt.owner);
	return plans_new(&w->serve, &w->serve.plans, &err);
}

static int teardown(void **state)
{
	struct world *w = *state;

	plans_free(w->serve.plans);
	ssb_options_free((struct ssb_options *)w->opt.owner);
	return world_teardown(state);
}

static struct skill skill_at(const struct world *w, const char *name)
{
	return (struct skill){ strdup(name), world_path(w, name) };
}

static void skill_done(struct skill *s)
{
	free(s->name);
	free(s->dir);
}

static void is_kept(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	char *args[] = { "x", NULL };

	world_skill(w, "s", "{}", "true");
	const struct plan_wish wish = { .skill = &skill };
	const struct plan_wish other = { .skill = &skill, .args = args };
	struct ssb_plan *first = get(w, &wish);
	assert_ptr_equal(get(w, &wish), first);
	struct ssb_plan *with = get(w, &other);
	assert_ptr_not_equal(with, first);
	assert_string_equal(with->argv.v[with->argv.n - 1], "x");
	assert_ptr_equal(get(w, &wish), first);
}

static void sees_a_change(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	const struct plan_wish wish = { .skill = &skill };

	world_skill(w, "s", "{}", "true");
	assert_int_equal(get(w, &wish)->n_egress, 0);
	world_skill(w, "s", "{network: {egress: [{domain: example.com}]}}", "true");
	assert_int_equal(get(w, &wish)->n_egress, 1);

	/* The owner's file. */
	uint64_t before = get(w, &wish)->res.memory_mb;
	world_mkdir(w, "home/.config");
	world_mkdir(w, "home/.config/skillsandbox");
	world_file(w, "home/.config/skillsandbox/policy.yaml", "limits: {memory_mb: 33}\n");
	assert_int_not_equal(before, 33);
	assert_int_equal(get(w, &wish)->res.memory_mb, 33);
}

/* What is derived comes from more than one file, and the owner may have a word for it. */
static void derives_anew(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "d");
	char *args[] = { "run", NULL };
	const struct plan_wish wish = { .skill = &skill, .args = args };

	world_mkdir(w, "d");
	world_file(w, "d/SKILL.md", "---\nname: d\n---\n");
	world_file(w, "d/run", "#!/bin/sh\n");
	assert_string_equal(get(w, &wish)->argv.v[0], "/bin/sh");
	world_file(w, "d/run", "#!/usr/bin/env python3\n");
	assert_string_equal(get(w, &wish)->argv.v[0], "python3");
	world_skill(w, "d", "{}", "true");
	assert_int_equal(get(w, &wish)->format, SKILL_DECLARED);
}

static void sees_another_object(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	const struct plan_wish wish = { .skill = &skill };
	auto_free char *notes = world_path(w, "home/notes");
	auto_free char *old = world_path(w, "home/old");
	struct stat st;

	world_mkdir(w, "home/notes");
	world_skill(w, "s", "{filesystem: {read: [~/notes]}}", "true");
	(void)get(w, &wish);
	assert_int_equal(rename(notes, old), 0);
	world_mkdir(w, "home/notes");
	assert_int_equal(stat(notes, &st), 0);
	struct ssb_plan *p = get(w, &wish);
	bool there = false;
	for (size_t i = 0; i < p->n_grants; i++) {
		there |= strcmp(p->grants[i].path, notes) == 0 && p->grants[i].ino == st.st_ino;
	}
	assert_true(there);
}

/* The flags that the server was started with stay its own, all of them. */
static void leaves_the_flags(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	const struct plan_wish wish = { .skill = &skill };
	struct ssb_options *owner = (struct ssb_options *)w->opt.owner;

	world_skill(w, "s", "{}", "true");
	owner->workdir = strdup("/tmp");
	(void)get(w, &wish);
	assert_string_equal(owner->workdir, "/tmp"); /* and is freed once */
}

/* What is granted for a run or a session is for the files that were shown. */
static void runs_what_was_shown(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	AUTO(pinned_done) struct pinned files = { 0 };
	struct ssb_error err = { 0 };
	char tree[DIGEST_TEXT];

	world_skill(w, "s", "{}", "true");
	world_file(w, "s/code", "good");
	assert_int_equal(pinned_read(skill.dir, &files, &err), 0);
	const struct plan_wish plain = { .skill = &skill };
	const struct plan_wish wish = { .skill = &skill, .shown = digest_text(files.tree, tree) };
	assert_null(get(w, &plain)->still);
	struct ssb_plan *p = get(w, &wish);
	assert_non_null(p->still);
	AUTO(marks_done) struct marks seen = { 0 };
	assert_int_equal(p->still(p, &seen, &err), 0);
	world_file(w, "s/code", "evil");
	struct marks none = { 0 };
	assert_int_equal(p->still(p, &none, &err), -1);
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

#define WIDE "{network: {egress: [{domain: example.com}]}, filesystem: {write: [~/out, ~/new]}}"

static void narrows(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	const struct plan_wish all = { .skill = &skill };
	const struct plan_wish less = {
		.skill = &skill, .narrow = { .offline = true, .read_only = true, .max_seconds = 7 }
	};

	world_mkdir(w, "home/out");
	world_skill(w, "s", WIDE, "true");
	struct ssb_plan *p = get(w, &all);
	assert_int_equal(p->n_egress, 1);
	assert_int_equal(writes_of(p), 2);
	assert_int_equal(p->res.max_runtime_seconds, 60);
	assert_false(plan_harmless(p));
	p = get(w, &less);
	assert_int_equal(p->n_egress, 0);
	assert_int_equal(writes_of(p), 0);
	assert_int_equal(p->res.max_runtime_seconds, 7);
	assert_true(plan_harmless(p));
	/* And the first is as it was. */
	assert_int_equal(writes_of(get(w, &all)), 2);
}

static void cannot_widen(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	const struct plan_wish more = { .skill = &skill, .narrow = { .max_seconds = 86400 } };

	world_skill(w, "s", "{}", "true");
	assert_int_equal(get(w, &more)->res.max_runtime_seconds, 60);
}

static void less_needs_no_approval(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	const struct plan_wish all = { .skill = &skill };
	const struct plan_wish less = { .skill = &skill,
		                        .narrow = { .offline = true, .read_only = true } };

	world_mkdir(w, "home/.ssh");
	world_skill(w, "s",
	            "{network: {egress: [{domain: 10.0.0.1}]}, filesystem: {write: [~/.ssh]}}",
	            "true");
	assert_int_equal(ssb_plan_refusals(get(w, &all)), 2);
	assert_int_equal(ssb_plan_refusals(get(w, &less)), 0);

	/* What is no less needed stays refused. */
	world_skill(w, "s",
	            "{network: {egress: [{domain: 10.0.0.1}]}, filesystem: {read: [~/.ssh], write: "
	            "[~/.ssh]}, env_vars: {allow: [LD_PRELOAD]}}",
	            "true");
	const struct ssb_plan *p = get(w, &less);
	assert_int_equal(p->n_refusals, 2);
	assert_int_equal(p->refusals[0].kind, REFUSAL_READ);
	assert_int_equal(p->refusals[1].kind, REFUSAL_OTHER);
}

static void has_what_the_owner_gave(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	auto_free char *ssh = world_path(w, "home/.ssh");
	const struct extra_grant extra = { SSB_OPT_READ, ssh };
	const struct plan_wish plain = { .skill = &skill };
	const struct plan_wish given = { .skill = &skill, .extra = &extra, .n_extra = 1 };
	struct ssb_error err = { 0 };

	world_mkdir(w, "home/.ssh");
	world_skill(w, "s", "{filesystem: {read: [~/.ssh]}}", "true");
	assert_int_equal(
	        ssb_options_set((struct ssb_options *)w->opt.owner, SSB_OPT_MEMORY, "77M", &err),
	        0);
	assert_int_equal(ssb_plan_refusals(get(w, &plain)), 1);
	assert_int_equal(ssb_plan_refusals(get(w, &given)), 0);
	assert_int_equal(get(w, &given)->res.memory_mb, 77);
	assert_int_equal(ssb_plan_refusals(get(w, &plain)), 1);
}

/* More wishes than are kept: each is right all the same. */
static void forgets(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "s");
	char number[16];
	char *args[] = { number, NULL };

	world_skill(w, "s", "{}", "true");
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MAX_PLANS + 3; i++) {
			const struct plan_wish wish = { .skill = &skill, .args = args };
			snprintf(number, sizeof(number), "%d", i);
			struct ssb_plan *p = get(w, &wish);
			assert_string_equal(p->argv.v[p->argv.n - 1], number);
		}
	}
}

static void a_moved_skill_is_refused(void **state)
{
	struct world *w = *state;
	AUTO(skill_done) struct skill skill = skill_at(w, "link");
	auto_free char *link = world_path(w, "link");
	auto_free char *real = world_path(w, "s");
	const struct plan_wish wish = { .skill = &skill };
	struct ssb_plan *p = NULL;
	struct ssb_error err = { 0 };

	world_skill(w, "s", "{}", "true");
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
		T(sees_a_change),
		T(derives_anew),
		T(sees_another_object),
		T(runs_what_was_shown),
		T(leaves_the_flags),
		T(narrows),
		T(cannot_widen),
		T(less_needs_no_approval),
		T(has_what_the_owner_gave),
		T(forgets),
		T(a_moved_skill_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
