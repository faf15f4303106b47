/* test_plan_toolchain.c - toolchains in a plan: the directories of programs (such as an interpreter
 * in the home) that a run needs. */
#include "plan_world.h"

static struct ssb_plan *skill_by(const char *entry, const struct flag *flags)
{
	char text[1024];

	snprintf(text, sizeof(text),
	         NOTHING "skill: {name: s, version: '1'}\nentrypoint: {command: %s}\n", entry);
	return skill_with(text, flags);
}

static size_t count_toolchain(const struct ssb_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_grants; i++) {
		n += p->grants[i].origin == ORIGIN_TOOLCHAIN ? 1 : 0;
	}
	return n;
}

/* If a skill names an unusual program as its entry point, the program's directory is not granted as
 * a toolchain. */
static void test_toolchain_of_a_skill(void **state)
{
	static const struct {
		const char *entry; /* the entry point; with a slash: a path beneath `top` */
		bool granted;
	} ROWS[] = {
		{ "tools/bin/snake", false }, { "tools/bin/python3", false }, { "snake", false },
		{ "python3x", false },        { "python.3", false },          { "python3", true },
		{ "python3.12", true },       { "u/proj/mycat", false },      { "node", true },
	};
	static const char *const PROGRAMS[] = { "snake",    "python3",    "python3x",
		                                "python.3", "python3.12", "node" };
	char path[256], item[160];
	char *own_env[] = { path, NULL };

	policy(NULL);
	snprintf(path, sizeof(path), "PATH=%s", at("tools/bin"));
	snprintf(item, sizeof(item), "use the programs in %s", at("tools"));
	owner.environ = own_env;
	for (size_t i = 0; i < ARRAY_LEN(PROGRAMS); i++) {
		char file[64];
		snprintf(file, sizeof(file), "tools/bin/%s", PROGRAMS[i]);
		write_file(at(file), "\177ELF", 0755);
	}
	write_file(at("u/proj/mycat"), "\177ELF", 0755);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		const char *entry = ROWS[i].entry;
		entry = strchr(entry, '/') != NULL ? at(entry) : entry;
		struct ssb_plan *p = skill_by(entry, FLAGS({ SSB_OPT_TOOLCHAIN, "default" }));
		assert_int_equal(count_toolchain(p), ROWS[i].granted ? 1 : 0);
		assert_int_equal(asked(p, item), ROWS[i].granted);
		assert_int_equal(warned(p, "--read"), !ROWS[i].granted);
		ssb_plan_free(p);
		/* If the owner runs the program as a command, without a skill, its directory is
		 * granted. */
		p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "default" }), entry);
		assert_int_equal(count_toolchain(p), 1);
		assert_false(asked(p, item));
		ssb_plan_free(p);
	}
	/* If the directory is not granted as a toolchain, it is a request of the skill, unless the
	 * owner's policy turns toolchains off. */
	struct ssb_plan *off = skill_by("python3", NULL);
	assert_int_equal(count_toolchain(off), 0);
	assert_true(asked(off, item) && warned(off, "--toolchain auto"));
	assert_null(strstr(env(off, "PATH"), at("tools")));
	ssb_plan_free(off);
	policy("toolchain: off\n");
	off = skill_by("python3", FLAGS({ SSB_OPT_TOOLCHAIN, "default" }));
	assert_int_equal(count_toolchain(off), 0);
	assert_false(asked(off, item));
	ssb_plan_free(off);
	policy(NULL);
	/* The owner can withhold the toolchain, or grant any directory with --read. */
	struct ssb_plan *p = skill_by(
	        "python3", FLAGS({ SSB_OPT_TOOLCHAIN, "default" }, { SSB_OPT_WITHHOLD, item }));
	assert_int_equal(count_toolchain(p), 0);
	assert_int_equal(p->n_withheld, 1);
	ssb_plan_free(p);
	p = skill_by("snake",
	             FLAGS({ SSB_OPT_TOOLCHAIN, "default" }, { SSB_OPT_READ, at("tools") }));
	assert_int_equal(count_toolchain(p), 0);
	assert_false(warned(p, "--read"));
	assert_non_null(strstr(env(p, "PATH"), at("tools/bin")));
	ssb_plan_free(p);
	owner.environ = environment;
}

static void test_toolchain(void **state)
{
	char path[256];
	char *own_env[] = { path, NULL };

	policy(NULL);
	snprintf(path, sizeof(path), "PATH=%s:/usr/bin", at("tools/bin"));
	write_file(at("tools/bin/snake"), "\177ELF", 0755);
	owner.environ = own_env;
	struct ssb_plan *p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "snake");
	assert_int_equal(p->n_grants, 1);
	assert_int_equal(granted(p, at("tools"))->origin, ORIGIN_TOOLCHAIN);
	assert_int_equal(
	        strncmp(env(p, "PATH"), at("tools/bin:/usr"), strlen(at("tools/bin:/usr"))), 0);
	ssb_plan_free(p);

	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "off" }), "snake");
	assert_int_equal(p->n_grants, 0);
	assert_true(warned(p, "--toolchain auto"));
	ssb_plan_free(p);

	policy("toolchain: off\n");
	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "default" }), "snake");
	assert_false(p->toolchain_auto);
	ssb_plan_free(p);
	policy("toolchain: auto\n");
	p = command(NULL, "snake");
	assert_true(p->toolchain_auto);
	ssb_plan_free(p);

	/* If a program lies directly in the home, its directory, the whole home, must not be
	 * granted. */
	policy(NULL);
	snprintf(path, sizeof(path), "PATH=%s", home);
	write_file(at("u/snake"), "\177ELF", 0755);
	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "snake");
	assert_int_equal(p->n_grants, 0);
	assert_true(warned(p, "--read"));
	ssb_plan_free(p);
	owner.environ = environment;
}

static void test_shims_and_links(void **state)
{
	static const char *const DIRS[] = { "pe",
		                            "pe/shims",
		                            "pe/versions",
		                            "pe/versions/3",
		                            "pe/versions/3/bin",
		                            "pe/versions/3/lib",
		                            "venv",
		                            "venv/bin" };
	char path[256];
	char *own_env[] = { path, NULL };

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		assert_int_equal(mkdir(at(DIRS[i]), 0755), 0);
	}
	write_file(at("pe/version"), "3\n", 0644);
	write_file(at("pe/shims/py"), "#!/bin/sh\n", 0755);
	write_file(at("pe/versions/3/bin/py"), "\177ELF", 0755);
	write_file(at("venv/pyvenv.cfg"), "", 0644);
	assert_int_equal(symlink(at("pe/versions/3/bin/py"), at("venv/bin/py")), 0);
	owner.environ = own_env;

	snprintf(path, sizeof(path), "PATH=%s", at("pe/shims"));
	struct ssb_plan *p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "py");
	assert_int_equal(p->n_grants, 1);
	assert_non_null(granted(p, at("pe/versions/3")));
	ssb_plan_free(p);

	/* A venv gets two grants: its own directory and that of its interpreter. */
	snprintf(path, sizeof(path), "PATH=%s", at("venv/bin"));
	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "py");
	assert_int_equal(p->n_grants, 2);
	assert_non_null(granted(p, at("pe/versions/3")));
	assert_non_null(granted(p, at("venv")));
	ssb_plan_free(p);

	/* A pyenv version file that leads out of pyenv's directory is ignored. */
	write_file(at("pe/version"), "../../../u\n", 0644);
	snprintf(path, sizeof(path), "PATH=%s", at("pe/shims"));
	p = command(FLAGS({ SSB_OPT_TOOLCHAIN, "auto" }), "py");
	assert_null(granted(p, at("u")));
	ssb_plan_free(p);
	owner.environ = environment;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_toolchain),
		cmocka_unit_test(test_toolchain_of_a_skill),
		cmocka_unit_test(test_shims_and_links),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
