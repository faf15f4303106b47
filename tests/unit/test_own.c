/* test_own.c - grants that contain the runtime's own directories: these are covered, or granted if
 * they are named, and secrets are never shown. */
#include <sched.h>
#include <sys/mount.h>

#include "plan_world.h"

#include "sandbox/prepared.h"

#define READ(path)  FLAGS({ SSB_OPT_READ, path })
#define WRITE(path) FLAGS({ SSB_OPT_WRITE, path })

static const struct cover *covered(const struct ssb_plan *p, const char *target)
{
	for (size_t i = 0; i < p->n_covers; i++) {
		if (strcmp(p->covers[i].target, target) == 0) {
			return &p->covers[i];
		}
	}
	return NULL;
}

static void make_state(void)
{
	static const char *const FILES_IN[] = {
		"trace.key",       "trace.pub",        "sessions.db",         "sessions.db-wal",
		"sessions.db-shm", "sessions.db-lock", ".trace.key.00112233", "otel.log",
	};
	static const char *const DIRS_IN[] = { "state", "state/runs", "state/live" };

	for (size_t i = 0; i < ARRAY_LEN(DIRS_IN); i++) {
		(void)mkdir(at(DIRS_IN[i]), 0700);
	}
	for (size_t i = 0; i < ARRAY_LEN(FILES_IN); i++) {
		char name[64];
		snprintf(name, sizeof(name), "state/%s", FILES_IN[i]);
		write_file(at(name), "secret", 0600);
	}
}

/* A grant that contains the runtime's directories covers them. This test must run first, because
 * the state directory must not exist yet. */
static void test_covered(void **state)
{
	struct ssb_error err = { 0 };
	struct stat st;

	struct ssb_plan *p = command(READ(top), "true");
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->n_grants, 1);
	assert_int_equal(p->n_covers, 2);
	assert_non_null(covered(p, at("cfg")));
	assert_false(covered(p, at("cfg"))->create);
	assert_non_null(covered(p, at("state")));
	assert_true(covered(p, at("state"))->create);
	assert_false(warned(p, at("cfg"))); /* the cover shows nothing of it */
	assert_int_equal(stat(at("state"), &st), -1);
	AUTO(prepared_done) struct prepared made = { 0 };
	assert_int_equal(prepared_make(p, &made, &err), 0);
	assert_int_equal(stat(at("state"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	char *json = plan_json(p, NULL, false);
	assert_non_null(strstr(json, "\"covered\":[{\"path\":\""));
	free(json);
	char *text = ssb_plan_text(p);
	assert_non_null(strstr(text, "covered   "));
	free(text);
	ssb_plan_free(p);
	/* The control: another grant covers nothing. */
	p = command(READ(at("u/notes")), "true");
	assert_int_equal(p->n_covers, 0);
	ssb_plan_free(p);
	/* A grant of the policy file is treated like a flag. */
	char always[128];
	snprintf(always, sizeof(always), "always: {read: [%s]}\n", top);
	policy(always);
	p = command(NULL, "true");
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->n_covers, 2);
	ssb_plan_free(p);
	policy(NULL);
}

static void test_named(void **state)
{
	make_state();
	struct ssb_plan *p = command(READ(at("cfg")), "true");
	assert_int_equal(p->n_covers, 0);
	assert_non_null(granted(p, at("cfg")));
	assert_true(warned(p, at("cfg")));
	ssb_plan_free(p);
	p = command(READ(at("state/runs")), "true");
	assert_int_equal(p->n_covers, 0);
	assert_non_null(granted(p, at("state/runs")));
	assert_true(warned(p, "runtime's records"));
	ssb_plan_free(p);
	/* Both directories are also granted if another grant contains them, in either order. */
	for (int turn = 0; turn < 2; turn++) {
		const char *two[] = { top, at("state/runs") };
		p = command(FLAGS({ SSB_OPT_READ, two[turn] }, { SSB_OPT_READ, two[1 - turn] },
		                  { SSB_OPT_READ, at("cfg") }),
		            "true");
		assert_non_null(granted(p, top));
		assert_non_null(granted(p, at("state/runs")));
		assert_non_null(granted(p, at("cfg")));
		assert_non_null(covered(p, at("state")));
		assert_int_equal(p->n_covers, 1);
		ssb_plan_free(p);
	}
}

/* A grant of the state directory itself grants the files that it has now, but not the secrets. */
static void test_state_directory(void **state)
{
	make_state();
	struct ssb_plan *p = command(READ(at("state")), "true");
	assert_int_equal(p->n_refusals, 0);
	assert_null(granted(p, at("state")));
	assert_non_null(granted(p, at("state/runs")));
	assert_non_null(granted(p, at("state/trace.pub")));
	assert_non_null(granted(p, at("state/otel.log")));
	assert_int_equal(p->n_grants, 3);
	ssb_plan_free(p);
}

static void test_secrets(void **state)
{
	static const char *const SECRETS[] = {
		"state/trace.key",       "state/sessions.db", "state/sessions.db-wal",
		"state/sessions.db-shm", "state/live",        "u/notes/linked"
	};

	make_state();
	assert_int_equal(link(at("state/trace.key"), at("u/notes/linked")), 0);
	for (size_t i = 0; i < ARRAY_LEN(SECRETS); i++) {
		struct ssb_plan *p = command(READ(at(SECRETS[i])), "true");
		if (p->n_refusals != 1 || strstr(p->refusals[0].remedy, "never") == NULL) {
			fail_msg("%s: %zu refusals", SECRETS[i], p->n_refusals);
		}
		ssb_plan_free(p);
	}
	assert_int_equal(unlink(at("u/notes/linked")), 0);
	write_file(at("u/notes/linked"), "mine", 0600); /* the control */
	struct ssb_plan *p = command(READ(at("u/notes/linked")), "true");
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
}

static void test_writing(void **state)
{
	make_state();
	static const char *const NEVER[] = { "", "state", "state/runs" };
	for (size_t i = 0; i < ARRAY_LEN(NEVER); i++) {
		struct ssb_plan *p = command(WRITE(*NEVER[i] != '\0' ? at(NEVER[i]) : top), "true");
		assert_int_equal(p->n_refusals, 1);
		ssb_plan_free(p);
	}
	struct ssb_plan *p = command(WRITE(at("other")), "true");
	assert_int_equal(p->n_refusals, 0);
	ssb_plan_free(p);
}

/* Returns 0 if all checks pass, 1 if not, and 77 if no namespace can be made. */
static int bind_child(void)
{
	if (unshare(getuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(top, at("other"), NULL, MS_BIND, NULL) < 0 ||
	    mount(at("state/runs"), at("u/notes/deep"), NULL, MS_BIND, NULL) < 0 ||
	    mount(at("state/otel.log"), at("u/notes/linked"), NULL, MS_BIND, NULL) < 0) {
		return 77;
	}
	struct ssb_plan *p = command(READ(at("other")), "true");
	int bad = covered(p, at("other/cfg")) == NULL || covered(p, at("other/state")) == NULL;
	ssb_plan_free(p);
	/* Only a part of the state is mounted at another place: a directory, and a file. */
	p = command(READ(at("u/notes")), "true");
	bad |= covered(p, at("u/notes/deep")) == NULL || covered(p, at("u/notes/linked")) == NULL ||
	       covered(p, at("u/notes/linked"))->is_dir;
	ssb_plan_free(p);
	/* A bind mount of a secret is refused, whether it is named itself or inside of a grant. */
	if (mount(at("state/live"), at("u/notes/deep"), NULL, MS_BIND, NULL) < 0) {
		return 77;
	}
	p = command(FLAGS({ SSB_OPT_READ, at("u/notes/deep") }, { SSB_OPT_READ, at("u/notes") }),
	            "true");
	bad |= p->n_refusals != 2;
	ssb_plan_free(p);
	p = command(WRITE(at("other")), "true");
	bad |= p->n_refusals != 1;
	ssb_plan_free(p);
	return bad;
}

static void test_bind_mounts(void **state)
{
	int status = -1;

	make_state();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(bind_child());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The path in XDG_STATE_HOME has two symlinks. A skill that could replace one of them would choose
 * where the key is. So the directories of the symlinks cannot be granted for writing. */
static void test_symlinks(void **state)
{
	const char *before = owner.state_dir;

	assert_int_equal(mkdir(at("u/proj/first"), 0755), 0);
	assert_int_equal(mkdir(at("u/second"), 0755), 0);
	assert_int_equal(mkdir(at("tools/real"), 0755), 0);
	assert_int_equal(symlink("../../second/link", at("u/proj/first/link")), 0);
	assert_int_equal(symlink(at("tools/real"), at("u/second/link")), 0);
	owner.state_dir = strdup(at("u/proj/first/link/skillsandbox"));
	static const char *const NEVER[] = { "u/proj", "u/second", "tools" };
	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < ARRAY_LEN(NEVER); i++) {
			struct ssb_plan *p = command(WRITE(at(NEVER[i])), "true");
			if (p->n_refusals != 1) {
				fail_msg("%s %d: %zu refusals", NEVER[i], turn, p->n_refusals);
			}
			ssb_plan_free(p);
		}
		struct ssb_plan *p = command(READ(at("tools")), "true");
		assert_non_null(covered(p, at("tools/real/skillsandbox")));
		assert_int_equal(covered(p, at("tools/real/skillsandbox"))->create, turn == 0);
		ssb_plan_free(p);
		(void)mkdir(at("tools/real/skillsandbox"), 0700);
	}
	free((void *)(uintptr_t)owner.state_dir);
	owner.state_dir = before;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_covered),         cmocka_unit_test(test_named),
		cmocka_unit_test(test_state_directory), cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_writing),         cmocka_unit_test(test_bind_mounts),
		cmocka_unit_test(test_symlinks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
