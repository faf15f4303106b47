/* test_serve_skills.c - which skills the server offers, by name and by path, and which it
 * refuses. */
#include "serve_world.h"

#include "base/limits.h"

static struct skills *open_skills(const char *a, const char *b)
{
	auto_free char *one = world_path(a);
	auto_free char *two = world_path(b != NULL ? b : a);
	char *dirs[] = { one, two };
	struct skills *s = NULL;
	struct ssb_error err = { 0 };

	assert_int_equal(skills_new(dirs, b != NULL ? 2 : 1, &s, &err), 0);
	return s;
}

static void found(struct skills *s, const char *word, const char *name)
{
	const struct skill *k = NULL;
	struct ssb_error err = { 0 };

	if (skills_find(s, word, &k, &err) != 0) {
		fail_msg("%s: %s", word, err.text);
	}
	assert_string_equal(k->name, name);
}

static void refused(struct skills *s, const char *word, enum ssb_code code)
{
	const struct skill *k = NULL;
	struct ssb_error err = { 0 };

	assert_int_equal(skills_find(s, word, &k, &err), -1);
	assert_null(k);
	if (err.code != code) {
		fail_msg("%s: %d: %s", word, err.code, err.text);
	}
}

static void lists_one_level(void **state)
{
	const struct skill *v = NULL;
	struct ssb_error err = { 0 };
	size_t n = 0;

	world_skill("skills/b", "{}", "true");
	world_skill("skills/a", "{}", "true");
	world_mkdir("skills/empty");
	world_skill("skills/empty/deep", "{}", "true");
	world_skill("skills/.hidden", "{}", "true");
	struct skills *s = open_skills("skills", NULL);
	assert_int_equal(skills_list(s, &v, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(v[0].name, "a");
	assert_string_equal(v[1].name, "b");

	/* A new skill appears in the list, and a removed one disappears. */
	world_skill("skills/c", "{}", "true");
	auto_free char *gone = world_path("skills/a/skillsandbox.yaml");
	assert_int_equal(unlink(gone), 0);
	assert_int_equal(skills_list(s, &v, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(v[1].name, "c");
	skills_free(s);
}

static void finds_by_name_and_path(void **state)
{
	world_skill("skills/a", "{}", "true");
	struct skills *s = open_skills("skills", NULL);
	auto_free char *path = world_path("skills/a");
	auto_free char *slash = world_path("skills/a/");
	auto_free char *odd = world_path("skills/.//./a");
	auto_free char *file = world_path("skills/a/skillsandbox.yaml");

	found(s, "a", "a");
	found(s, path, "a");
	found(s, slash, "a");
	found(s, odd, "a");
	found(s, file, "a");
	refused(s, "b", SSB_E_NOT_FOUND);
	refused(s, "", SSB_E_NOT_FOUND);
	/* A skill is also found by a path through a symlink, if the server was started with that
	 * path. */
	auto_free char *alias = world_path("alias");
	auto_free char *by_alias = world_path("alias/a");
	auto_free char *skills = world_path("skills");
	assert_int_equal(symlink(skills, alias), 0);
	refused(s, by_alias, SSB_E_POLICY);
	skills_free(s);
	s = open_skills("alias", NULL);
	found(s, by_alias, "a");
	found(s, path, "a");
	skills_free(s);
	/* The server is started with the directory of a single skill. */
	s = open_skills("skills/a", NULL);
	found(s, "a", "a");
	found(s, path, "a");
	skills_free(s);
}

static void refuses_what_is_outside(void **state)
{
	world_skill("skills/a", "{}", "true");
	world_skill("outside", "{}", "true");
	world_skill("skills-too", "{}", "true");
	struct skills *s = open_skills("skills", NULL);
	auto_free char *outside = world_path("outside");
	auto_free char *dots = world_path("skills/../outside");
	auto_free char *prefix = world_path("skills-too");
	auto_free char *absent = world_path("nothing");
	auto_free char *link = world_path("skills/link");
	auto_free char *inner = world_path("skills/inner");
	auto_free char *a = world_path("skills/a");

	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(symlink(a, inner), 0);
	refused(s, outside, SSB_E_POLICY);
	refused(s, dots, SSB_E_POLICY);
	refused(s, prefix, SSB_E_POLICY);
	/* the same error as if it existed, so that the client cannot find out whether it does */
	refused(s, absent, SSB_E_POLICY);
	refused(s, link, SSB_E_POLICY);
	refused(s, "link", SSB_E_NOT_FOUND);
	refused(s, "/etc/passwd", SSB_E_POLICY);
	refused(s, "../outside", SSB_E_POLICY);
	found(s, inner, "a"); /* this symlink leads to a served skill */
	/* By their text, both paths lead to a served skill. The directory before ".." exists in
	 * only one of them. Both are refused, so that the client cannot find out which directory
	 * exists. */
	auto_free char *oracle = world_path("outside/../skills/a");
	auto_free char *no_oracle = world_path("nothing/../skills/a");
	refused(s, oracle, SSB_E_POLICY);
	refused(s, no_oracle, SSB_E_POLICY);
	refused(s, "/proc/self/root/../a", SSB_E_POLICY);
	/* The control: the same directory is found if it is served. */
	skills_free(s);
	s = open_skills("skills", "outside");
	found(s, outside, "outside");
	found(s, link, "outside");
	skills_free(s);
}

static void tells_apart_what_has_one_name(void **state)
{
	const struct skill *v = NULL;
	struct ssb_error err = { 0 };
	size_t n = 0;

	world_mkdir("more");
	world_skill("skills/a", "{}", "true");
	world_skill("more/a", "{}", "true");
	struct skills *s = open_skills("skills", "more");
	assert_int_equal(skills_list(s, &v, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(v[0].name, "more/a");
	assert_string_equal(v[1].name, "skills/a");
	found(s, "more/a", "more/a");
	refused(s, "a", SSB_E_NOT_FOUND);
	skills_free(s);
	/* If two skills have the same name, and so have their parent directories, the whole path is
	 * the skill's name. */
	auto_free char *whole = world_path("more/skills/a");
	world_mkdir("more/skills");
	world_skill("more/skills/a", "{}", "true");
	s = open_skills("skills", "more/skills");
	assert_int_equal(skills_list(s, &v, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(v[0].name, whole);
	found(s, whole, whole);
	skills_free(s);
	/* If a directory is given twice, its skills are offered only once. */
	s = open_skills("skills", "skills");
	found(s, "a", "a");
	skills_free(s);
}

static void roots_must_be_directories(void **state)
{
	auto_free char *file = world_path("file");
	auto_free char *none = world_path("none");
	struct skills *s = NULL;
	struct ssb_error err = { 0 };

	world_file("file", "x");
	assert_int_equal(skills_new(&file, 1, &s, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	err = (struct ssb_error){ 0 };
	assert_int_equal(skills_new(&none, 1, &s, &err), -1);
	assert_int_equal(err.code, SSB_E_NOT_FOUND);
	assert_null(s);
}

static void has_a_bound(void **state)
{
	const struct skill *v = NULL;
	struct ssb_error err = { 0 };
	size_t n = 0;
	char name[64];

	for (int i = 0; i < MAX_SKILLS; i++) {
		snprintf(name, sizeof(name), "skills/s%04d", i);
		world_skill(name, "{}", "true");
	}
	struct skills *s = open_skills("skills", NULL);
	assert_int_equal(skills_list(s, &v, &n, &err), 0);
	assert_int_equal(n, MAX_SKILLS);
	world_skill("skills/one-more", "{}", "true");
	assert_int_equal(skills_list(s, &v, &n, &err), -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
	skills_free(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(lists_one_level),           T(finds_by_name_and_path),
		T(refuses_what_is_outside),   T(tells_apart_what_has_one_name),
		T(roots_must_be_directories), T(has_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
