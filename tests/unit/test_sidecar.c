/* test_sidecar.c - a sidecar is a manifest that the owner has written for a skill. If it names a
 * directory, it applies only to the skill there. Otherwise it applies to any skill of its name, and
 * grants nothing valuable by itself. */
#include <errno.h>

#include "plan_world.h"

#include "manifest/manifest.h"
#include "skill/skill.h"

#define ASKS                                                                                       \
	"permissions: {env_vars: {allow: [API_KEY]}, filesystem: {read: [~/notes], write: "        \
	"[~/proj]}}\nentrypoint: {command: sh}\n"

static char one[256];   /* DIR/weather */
static char other[256]; /* another directory with a skill of this name */

static int make(void **state)
{
	if (setup(state) != 0) {
		return -1;
	}
	assert_int_equal(mkdir(at("mine"), 0755), 0);
	assert_int_equal(mkdir(at("mine/weather"), 0755), 0);
	assert_int_equal(mkdir(at("other/weather"), 0755), 0);
	assert_int_equal(mkdir(at("cfg/skills"), 0755), 0);
	assert_int_equal(symlink("mine", at("by")), 0);
	snprintf(one, sizeof(one), "%s", at("mine/weather"));
	snprintf(other, sizeof(other), "%s", at("other/weather"));
	write_file(at("mine/weather/SKILL.md"), "---\nname: w\ndescription: d\n---\n", 0644);
	write_file(at("other/weather/SKILL.md"), "---\nname: w\ndescription: d\n---\n", 0644);
	return 0;
}

static void sidecar(const char *directory)
{
	char text[1024];

	snprintf(text, sizeof(text), "skill: {name: w, version: '1'%s%s}\n" ASKS,
	         directory != NULL ? ", directory: " : "", directory != NULL ? directory : "");
	write_file(at("cfg/skills/weather.yaml"), text, 0600);
}

static struct ssb_plan *plan_of(const char *dir, const struct flag *flags)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct ssb_options *o = options(flags);

	if (plan_decide(&(struct plan_request){ .owner = &owner, .options = o, .skill = dir }, &p,
	                NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	ssb_options_free(o);
	return p;
}

static bool has_grant(const struct ssb_plan *p, const char *path, enum access access)
{
	const struct grant *g = granted(p, path);

	return g != NULL && g->access == access;
}

static void test_it_counts_for_the_one_it_names(void **state)
{
	policy(NULL);
	sidecar(one);
	struct ssb_plan *p = plan_of(one, NULL);
	assert_int_equal(p->format, SKILL_SIDECAR);
	assert_int_equal(p->n_withheld, 0);
	assert_non_null(env(p, "API_KEY"));
	assert_true(has_grant(p, at("u/proj"), ACCESS_WRITE));
	ssb_plan_free(p);

	p = plan_of(other, NULL);
	assert_int_equal(p->format, SKILL_MARKDOWN);
	assert_int_equal(p->requested.n, 0);
	assert_null(env(p, "API_KEY"));
	assert_false(has_grant(p, at("u/proj"), ACCESS_WRITE));
	ssb_plan_free(p);

	sidecar(at("nowhere"));
	p = plan_of(one, NULL);
	assert_int_equal(p->format, SKILL_MARKDOWN);
	ssb_plan_free(p);

	/* If the directory in a sidecar is a path through a symlink, the sidecar does not apply.
	 * Otherwise a user who can replace the symlink could choose the skill. */
	sidecar(at("by/weather"));
	p = plan_of(one, NULL);
	assert_int_equal(p->format, SKILL_MARKDOWN);
	assert_true(warned(p, "a symlink leads from"));
	ssb_plan_free(p);
}

/* A sidecar without a directory applies to any skill of its name, but its valuable items are
 * withheld until the owner allows them. */
static void test_one_for_any(void **state)
{
	struct flag words[] = { { SSB_OPT_ENV, "API_KEY" },
		                { SSB_OPT_WRITE, "~/proj" },
		                { 0, NULL } };

	policy(NULL);
	sidecar(NULL);
	struct ssb_plan *p = plan_of(other, NULL);
	assert_int_equal(p->format, SKILL_SIDECAR);
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->n_withheld, 2);
	assert_string_equal(p->withheld[0].what, "write ~/proj");
	assert_string_equal(p->withheld[1].what, "environment API_KEY");
	for (size_t i = 0; i < ARRAY_LEN(words) - 1; i++) {
		/* an approval of the item would store this option */
		const struct refusal *w = &p->withheld[1 - i];
		assert_int_equal(w->option, words[i].what);
		assert_string_equal(w->value, words[i].value);
		assert_non_null(strstr(w->why, "does not name the skill's directory"));
	}
	assert_null(env(p, "API_KEY"));
	assert_false(has_grant(p, at("u/proj"), ACCESS_WRITE));
	assert_true(has_grant(p, at("u/notes"), ACCESS_READ));
	ssb_plan_free(p);

	p = plan_of(other, words);
	assert_int_equal(p->n_withheld, 0);
	assert_non_null(env(p, "API_KEY"));
	assert_true(has_grant(p, at("u/proj"), ACCESS_WRITE));
	ssb_plan_free(p);
}

/* skill.directory is allowed in a sidecar, but not in a skill's own manifest. */
static void test_not_in_a_skills_own(void **state)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct manifest *m = NULL;
	char text[1024];

	sidecar(NULL);
	snprintf(text, sizeof(text), "skill: {name: w, version: '1', directory: %s}\n" ASKS, one);
	write_file(at("mine/weather/skillsandbox.yaml"), text, 0644);
	assert_int_equal(plan_decide(&(struct plan_request){ .owner = &owner, .skill = one }, &p,
	                             NULL, &err),
	                 -1);
	assert_int_equal(err.code, SSB_E_MANIFEST);
	assert_non_null(strstr(err.text, "skill.directory"));
	assert_non_null(strstr(err.where, ":1:"));
	assert_int_equal(unlink(at("mine/weather/skillsandbox.yaml")), 0);
	write_file(at("cfg/skills/weather.yaml"), text, 0600);
	err = (struct ssb_error){ 0 };
	assert_int_equal(manifest_load(at("cfg/skills/weather.yaml"), &m, NULL, &err), 0);
	assert_string_equal(m->directory.s, one);
	manifest_free(m);
}

/* A sidecar exists but cannot be opened: the run stops with the reason. */
static void test_one_that_cannot_be_opened(void **state)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct ssb_options *o = options(NULL);

	policy(NULL);
	assert_int_equal(unlink(at("cfg/skills/weather.yaml")), 0);
	assert_int_equal(symlink("weather.yaml", at("cfg/skills/weather.yaml")), 0);
	assert_int_equal(
	        plan_decide(&(struct plan_request){ .owner = &owner, .options = o, .skill = one },
	                    &p, NULL, &err),
	        -1);
	assert_int_equal(err.sys_errno, ELOOP);
	assert_int_equal(unlink(at("cfg/skills/weather.yaml")), 0);
	ssb_options_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_counts_for_the_one_it_names),
		cmocka_unit_test(test_one_for_any),
		cmocka_unit_test(test_not_in_a_skills_own),
		cmocka_unit_test(test_one_that_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, make, teardown);
}
