/* test_plan_led.c - places to which something of the owner leads: a symlink in the home, PATH, or
 * another variable. */
#include <sched.h>
#include <sys/mount.h>

#include "plan_world.h"

/* A request for a place to which something of the owner leads. */
struct led_case {
	const char *what; /* the request of the manifest: "read PATH" */
	const char *why;  /* a part of the reason for the refusal; NULL: granted */
};

static void check_led(const struct led_case *cases, size_t n)
{
	char text[256];

	policy(NULL);
	for (size_t i = 0; i < n; i++) {
		const char *path = strchr(cases[i].what, ' ') + 1;
		snprintf(text, sizeof(text), FILES("%.*s: ['%s']"), (int)(path - 1 - cases[i].what),
		         cases[i].what, path);
		struct ssb_plan *p = skill(text, NULL);
		const struct refusal *r = refused(p, cases[i].what);
		if ((r == NULL) != (cases[i].why == NULL) ||
		    (r != NULL && strstr(r->why, cases[i].why) == NULL)) {
			fail_msg("%s: %s", cases[i].what, r != NULL ? r->why : "granted");
		}
		ssb_plan_free(p);
		if (cases[i].why == NULL) {
			continue;
		}
		/* The owner's flag grants it. */
		p = skill(text, FLAGS({ SSB_OPT_WRITE, path }));
		assert_int_equal(p->n_refusals, 0);
		ssb_plan_free(p);
	}
}

/* If a hidden name of the home is a symlink, a request for its target is treated like a request for
 * the name. (Tools for dotfiles keep the files elsewhere, and make symlinks in the home.) */
static void test_led_to_by_hidden_names(void **state)
{
	static const struct led_case CASES[] = {
		{ "read ~/dots/config/foo", "~/dots/config (where ~/.config leads)" },
		{ "write ~/dots/config/new", "~/dots/config (where ~/.config leads)" },
		{ "read ~/dots/config", "it contains ~/.config/" },
		{ "read ~/dots", "it contains ~/dots/" },
		{ "read ~/dots/toolrc", "~/dots/toolrc (where ~/.toolrc leads) is where" },
		{ "write ~/dots/absent", "~/dots/absent (where ~/.absent leads) is where" },
		{ "read ~/dots/share/x/y", "~/dots/share/x (where ~/.local/share/x leads)" },
		{ "read ~/dots/state/x", "~/dots/state (where ~/.local/state leads)" },
		{ "read ~/dots/cached", "~/dots/cached (where ~/.cache/c leads)" },
		{ "write ~/dots/config/s", NULL }, /* the name of the skill itself */
		{ "read ~/dots/plain", NULL },
		{ "read ~/notes", NULL }, /* ~/.all leads to the whole home, and does not count */
		{ "write ~/notes/deep", NULL },
	};
	static const char *const DIRS[] = { "u/dots",       "u/dots/config", "u/dots/config/foo",
		                            "u/dots/share", "u/dots/plain",  "u/dots/share/x",
		                            "u/dots/state", "u/dots/cached", "u/dots/state/x",
		                            "u/.local",     "u/.cache",      "u/.local/share" };
	static const char *const LINKS[][2] = {
		{ "dots/config", "u/.config" },
		{ "dots/toolrc", "u/.toolrc" },
		{ "dots/absent", "u/.absent" },
		{ "../../dots/share/x", "u/.local/share/x" },
		{ "../dots/state", "u/.local/state" },
		{ "../dots/cached", "u/.cache/c" },
		{ ".", "u/.all" },
		{ "/", "u/.root" },
		{ "nowhere/at/all", "u/.nowhere" },
		{ ".loop", "u/.loop" },
	};

	assert_int_equal(rmdir(at("u/.config")), 0);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		assert_int_equal(mkdir(at(DIRS[i]), 0755), 0);
	}
	write_file(at("u/dots/toolrc"), "", 0644);
	for (size_t i = 0; i < ARRAY_LEN(LINKS); i++) {
		assert_int_equal(symlink(LINKS[i][0], at(LINKS[i][1])), 0);
	}
	check_led(CASES, ARRAY_LEN(CASES));
	/* The owner may also name the symlink. */
	struct ssb_plan *p =
	        skill(NOTHING, FLAGS({ SSB_OPT_READ, "~/.config/foo" },
	                             { SSB_OPT_READ, "~/.toolrc" }, { SSB_OPT_READ, "~/dots" }));
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	for (size_t i = 0; i < ARRAY_LEN(LINKS); i++) {
		assert_int_equal(unlink(at(LINKS[i][1])), 0);
	}
	/* The control: without the symlinks, ~/dots is an ordinary directory. */
	p = skill(FILES("read: [~/dots], write: [~/dots/config/new]"), NULL);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/dots")), 0);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/.local")), 0);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/.cache")), 0);
	assert_int_equal(mkdir(at("u/.config"), 0755), 0);
}

/* If a hidden name is also mounted at another path, a request for that path is treated like a
 * request for the name. The test mounts in a child process. */
static void test_led_to_by_mounts(void **state)
{
	static const struct led_case CASES[] = {
		{ "read ~/notes/deep", "~/notes/deep (where ~/.tool/keys leads) is where" },
		{ "write ~/notes/deep/new", "it lies in ~/notes/deep (where ~/.tool/keys leads)" },
		{ "read ~/notes", "it contains ~/notes/deep (where ~/.tool/keys leads)" },
		{ "read ~/proj", NULL },
	};
	int status = 0;

	assert_int_equal(mkdir(at("u/.tool"), 0755), 0);
	assert_int_equal(mkdir(at("u/.tool/keys"), 0755), 0);
	pid_t child = fork();
	if (child == 0) {
		if (unshare(getuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount(at("u/.tool/keys"), at("u/notes/deep"), NULL, MS_BIND, NULL) < 0) {
			_exit(2);
		}
		check_led(CASES, ARRAY_LEN(CASES));
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* The control: without the mount, ~/notes is granted. */
	struct ssb_plan *p = skill(FILES("read: [~/notes]"), NULL);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/.tool")), 0);
}

/* With more than MAX_HIDDEN_LINKS symlinks, every request for the home is refused. */
static void test_too_many_hidden_links(void **state)
{
	char name[64];

	policy(NULL);
	for (int more = 0; more < 2; more++) {
		for (int i = more * MAX_HIDDEN_LINKS; i < MAX_HIDDEN_LINKS + more; i++) {
			snprintf(name, sizeof(name), "u/.l%d", i);
			assert_int_equal(symlink("nowhere", at(name)), 0);
		}
		struct ssb_plan *p = skill(FILES("read: [~/notes]"), NULL);
		const struct refusal *r = refused(p, "read ~/notes");
		assert_int_equal(r != NULL, more);
		assert_true(r == NULL || strstr(r->why, "too many hidden names") != NULL);
		ssb_plan_free(p);
	}
	for (int i = 0; i <= MAX_HIDDEN_LINKS; i++) {
		snprintf(name, sizeof(name), "u/.l%d", i);
		assert_int_equal(unlink(at(name)), 0);
	}
}

/* Programs of the owner execute files in PATH and apply files in XDG_CONFIG_HOME. So a request for
 * a directory that such a variable names is dangerous. */
static void test_led_to_by_variables(void **state)
{
	static const struct led_case CASES[] = {
		{ "write ~/mybin", "is in your PATH" },
		{ "write ~/mybin/sub", "it lies in ~/mybin, which is in your PATH" },
		{ "write ~/mybin/new", "it lies in ~/mybin, which is in your PATH" },
		{ "write ~/tools", "it contains ~/tools/bin, which is in your PATH" },
		{ "write ~/tools/bin", "is in your PATH" },
		{ "write ~/later", "is in your PATH" },
		{ "write ~/real", "~/real (where ~/lead leads) is in your PATH" },
		{ "write ~/cfg/tool", "it lies in ~/cfg, which is where a program" },
		{ "read ~/cfg/tool", "it lies in ~/cfg, which is where a program" },
		{ "read ~/mybin", NULL },
		{ "write ~/tools/lib", NULL },
		{ "write ~/notes", NULL },
		{ "write ~/perl5/lib", "holds code that" },
		{ "write ~/node_modules", "holds code that" },
	};
	static const char *const DIRS[] = { "u/mybin", "u/mybin/sub", "u/tools",   "u/tools/bin",
		                            "u/real",  "u/cfg",       "u/cfg/tool" };
	char path[512], config[128];
	char *env[] = { path, config, NULL };

	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		assert_int_equal(mkdir(at(DIRS[i]), 0755), 0);
	}
	assert_int_equal(symlink("real", at("u/lead")), 0);
	snprintf(path, sizeof(path),
	         "PATH=/usr/bin::%s//mybin/:%s/tools/bin:.:bin:%s/later:%s/lead:"
	         "%s:/",
	         home, home, home, home, home);
	snprintf(config, sizeof(config), "XDG_CONFIG_HOME=%s/cfg/", home);
	owner.environ = env;
	check_led(CASES, ARRAY_LEN(CASES));
	struct ssb_plan *p = skill(NOTHING, FLAGS({ SSB_OPT_WRITE, "~/mybin" }));
	assert_true(warned(p, "is in your PATH"));
	ssb_plan_free(p);
	/* The control: without these variables, the same requests are granted. */
	owner.environ = environment;
	p = skill(FILES("write: [~/mybin, ~/tools, ~/real, ~/cfg/tool]"), NULL);
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
	assert_int_equal(unlink(at("u/lead")), 0);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/mybin")), 0);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/tools")), 0);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/real")), 0);
	assert_int_equal(tree_remove(AT_FDCWD, at("u/cfg")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_led_to_by_hidden_names),
		cmocka_unit_test(test_led_to_by_mounts),
		cmocka_unit_test(test_too_many_hidden_links),
		cmocka_unit_test(test_led_to_by_variables),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
