/* test_plan_arguments.c - files that the caller names in the arguments: which words count, which
 * files are granted, and what only the owner can add. */
#include "plan_world.h"

#define NAMED(access) "permissions: {filesystem: {arguments: " access "}}\n"

struct call {
	const char *manifest;
	const char *word;
	bool served;
	bool asks;
	const char *given; /* a path that the owner agreed to, to read */
	const struct string_list *look;
};

/* Plans a call with one argument; the caller is in the home. */
static struct ssb_plan *call(struct call c)
{
	const struct given given = { .option = SSB_OPT_READ, .value = (char *)(uintptr_t)c.given };
	char *args[] = { (char *)(uintptr_t)c.word, NULL };
	struct plan_request q = { .owner = &owner,
		                  .skill = at("skill"),
		                  .args = args,
		                  .served = c.served,
		                  .asks = c.asks,
		                  .look = c.look };
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	char text[4096];

	q.consent.given[1] = &given;
	q.consent.n_given[1] = c.given != NULL ? 1 : 0;
	snprintf(text, sizeof(text), HEAD "%s", c.manifest);
	write_file(at("skill/skillsandbox.yaml"), text, 0644);
	assert_int_equal(chdir(home), 0);
	if (plan_decide(&q, &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	assert_int_equal(chdir("/"), 0);
	return p;
}

/* The last word of the command: the argument as the program gets it. */
static const char *inside(const struct ssb_plan *p)
{
	return p->argv.v[p->argv.n - 1];
}

static int with_files(void **state)
{
	policy(NULL);
	if (setup(state) != 0) {
		return -1;
	}
	write_file(at("u/proj/a.csv"), "a", 0644);
	write_file(at("u/proj/b.csv"), "b", 0644);
	write_file(at("u/.ssh/id"), "k", 0600);
	write_file(at("skill/own.csv"), "o", 0644);
	assert_int_equal(symlink("a.csv", at("u/proj/link")), 0);
	assert_int_equal(symlink("../.ssh/id", at("u/proj/key")), 0);
	assert_int_equal(link(at("u/proj/b.csv"), at("u/proj/twice")), 0);
	assert_int_equal(mkfifo(at("u/proj/fifo"), 0644), 0);
	return 0;
}

static void which_words_count(void **state)
{
	static const struct {
		const char *word;
		const char *prefix; /* of the word inside; NULL: it does not count */
		const char *file;
	} CASES[] = {
		{ "proj/a.csv", "", "u/proj/a.csv" },
		{ "./proj//a.csv", "", "u/proj/a.csv" },
		{ "~/proj/a.csv", "", "u/proj/a.csv" },
		{ "proj/../proj/a.csv", "", "u/proj/a.csv" },
		{ "proj/link", "", "u/proj/a.csv" },
		{ "--file=proj/a.csv", "--file=", "u/proj/a.csv" },
		{ "-f=~/proj/a.csv", "-f=", "u/proj/a.csv" },
		{ "proj", "", "u/proj" },
		{ "-proj/a.csv", NULL, NULL },
		{ "file=proj/a.csv", NULL, NULL },
		{ "--", NULL, NULL },
		{ "--file=", NULL, NULL },
		{ "", NULL, NULL },
		{ "proj/none", NULL, NULL },
		{ "none.csv", NULL, NULL },
		{ "proj/fifo", NULL, NULL },
		{ "proj/none/../a.csv", NULL, NULL },
		{ "/", NULL, NULL },
		{ "/tmp", NULL, NULL },
		{ "/dev/null", NULL, NULL },
		{ "/proc/self/environ", NULL, NULL },
		{ "/usr/bin", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_plan *p =
		        call((struct call){ .manifest = NAMED("read"), .word = CASES[i].word });
		char want[600];
		if (CASES[i].prefix == NULL) {
			if (p->n_grants != 1 || p->n_withheld != 0 ||
			    strcmp(inside(p), CASES[i].word) != 0) {
				fail_msg("'%s' counts: %s", CASES[i].word, inside(p));
			}
			ssb_plan_free(p);
			continue;
		}
		const struct grant *g = granted(p, at(CASES[i].file));
		snprintf(want, sizeof(want), "%s%s", CASES[i].prefix, at(CASES[i].file));
		if (g == NULL || strcmp(inside(p), want) != 0) {
			fail_msg("'%s': %s", CASES[i].word, inside(p));
		}
		assert_true(g->origin == ORIGIN_CALLER && g->access == ACCESS_READ && !g->unasked);
		assert_int_equal(p->n_grants, 2); /* with the skill */
		assert_true(asked(p, "files named in arguments: read"));
		ssb_plan_free(p);
	}
}

/* What no argument reaches is withheld, with the option that grants it. */
static void dangerous_places(void **state)
{
	static const char *const WORDS[] = { ".ssh/id", "proj/key",   "--k=proj/key", ".ssh",
		                             ".",       "proj/twice", "/etc/shadow",  "~/.config" };

	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
		struct ssb_plan *p =
		        call((struct call){ .manifest = NAMED("write"), .word = WORDS[i] });
		if (p->n_grants != 1 || p->n_refusals != 0 || p->n_withheld != 1) {
			fail_msg("'%s': %zu grants", WORDS[i], p->n_grants);
		}
		assert_true(p->withheld[0].named && p->withheld[0].value == NULL);
		assert_non_null(strstr(p->withheld[0].remedy, "--write /"));
		assert_string_equal(inside(p), WORDS[i]);
		ssb_plan_free(p);
	}
	struct ssb_plan *p =
	        call((struct call){ .manifest = NAMED("read"), .word = at("skill/own.csv") });
	assert_int_equal(p->n_grants, 1);
	assert_string_equal(inside(p), "/skill/own.csv");
	ssb_plan_free(p);
	p = call((struct call){ .manifest = NAMED("write"), .word = at("skill/own.csv") });
	assert_non_null(strstr(p->withheld[0].why, "the skill's own code"));
	ssb_plan_free(p);
	policy("deny: {read: [~/proj/a.csv]}\ngrants: {read: [~/.ssh]}\n");
	p = call((struct call){ .manifest = NAMED("read"), .word = "proj/a.csv" });
	assert_true(p->n_grants == 1 && p->n_withheld == 1);
	ssb_plan_free(p);
	/* The policy file lets a manifest claim ~/.ssh, but no argument. */
	p = call((struct call){ .manifest = NAMED("read"), .word = ".ssh/id" });
	assert_true(p->n_grants == 1 && p->n_withheld == 1);
	ssb_plan_free(p);
	policy(NULL);
}

static void files_to_make(void **state)
{
	static const struct {
		const char *word;
		const char *made;
	} CASES[] = {
		{ "proj/out.csv", "u/proj/out.csv" },
		{ "out.csv", "u/out.csv" },
		{ "./out", "u/out" },
		{ "--out=proj/x", "u/proj/x" },
		{ "word", NULL },
		{ "1.5", NULL },
		{ "a b.csv", NULL },
		{ "none/out.csv", NULL },
		{ "proj/", NULL },
		{ "https://a/b.csv", NULL },
		{ ".hidden", NULL },
		{ "end.", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_plan *p =
		        call((struct call){ .manifest = NAMED("write"), .word = CASES[i].word });
		const struct grant *g =
		        CASES[i].made != NULL ? granted(p, at(CASES[i].made)) : NULL;
		bool made = g != NULL && g->create && !g->is_dir && g->fd < 0 && g->parent_fd >= 0;
		if (made != (CASES[i].made != NULL)) {
			fail_msg("'%s'", CASES[i].word);
		}
		ssb_plan_free(p);
		p = call((struct call){ .manifest = NAMED("read"), .word = CASES[i].word });
		assert_true(g == NULL || p->n_grants == 1);
		ssb_plan_free(p);
	}
	struct ssb_plan *p =
	        call((struct call){ .manifest = NAMED("write"), .word = "proj/.envrc" });
	assert_true(p->n_grants == 1 && p->n_withheld == 1);
	ssb_plan_free(p);
}

/* A manifest without the key, and a client of the server. */
static void who_has_a_say(void **state)
{
	const struct string_list none = { 0 };
	char file[512];

	snprintf(file, sizeof(file), "%s", at("u/proj/a.csv"));
	struct ssb_plan *p = call((struct call){ .manifest = NOTHING, .word = "proj/a.csv" });
	assert_true(p->n_grants == 1 && p->n_withheld == 0 && p->named.n == 1);
	assert_string_equal(p->named.v[0], file);
	assert_string_equal(inside(p), "proj/a.csv");
	ssb_plan_free(p);
	p = call((struct call){ .manifest = NOTHING, .word = ".ssh/id" });
	assert_int_equal(p->named.n, 0); /* the owner is not asked about it */
	ssb_plan_free(p);
	p = call((struct call){ .manifest = NOTHING, .word = "proj/a.csv", .given = file });
	assert_non_null(granted(p, file));
	assert_string_equal(inside(p), file);
	ssb_plan_free(p);
	p = call((struct call){ .manifest = NAMED("read"), .word = file, .served = true });
	assert_true(p->n_grants == 1 && p->n_withheld == 1 && p->named.n == 0);
	ssb_plan_free(p);
	p = call((struct call){
	        .manifest = NAMED("read"), .word = file, .served = true, .asks = true });
	assert_true(p->n_grants == 1 && p->n_refusals == 1);
	assert_true(p->refusals[0].option == SSB_OPT_READ);
	assert_string_equal(p->refusals[0].value, file);
	ssb_plan_free(p);
	p = call((struct call){ .manifest = NAMED("read"),
	                        .word = file,
	                        .served = true,
	                        .asks = true,
	                        .look = &none });
	assert_true(p->n_grants == 1 && p->n_refusals == 0 && p->naming.n == 0);
	ssb_plan_free(p);
	p = call((struct call){ .manifest = NOTHING, .word = file, .served = true, .given = file });
	assert_non_null(granted(p, file));
	ssb_plan_free(p);
	p = call((struct call){ .manifest = NOTHING,
	                        .word = "~/.ssh/id",
	                        .served = true,
	                        .asks = true,
	                        .given = at("u/.ssh/id") });
	assert_true(p->n_grants == 1 && p->n_withheld == 1 && p->n_refusals == 0);
	ssb_plan_free(p);
	p = call((struct call){
	        .manifest = NAMED("read"), .word = "proj", .served = true, .asks = true });
	assert_true(p->n_refusals == 0 && p->naming.n == 0); /* only a word */
	ssb_plan_free(p);
}

static void the_policy_file(void **state)
{
	static const struct {
		const char *policy;
		const char *manifest;
		bool granted;
	} CASES[] = {
		{ NULL, NAMED("write"), true },
		{ "deny: {arguments: write}\n", NAMED("write"), false },
		{ "deny: {arguments: write}\n", NAMED("read"), true },
		{ "deny: {arguments: read}\n", NAMED("read"), false },
		{ "deny: {arguments: read}\n", NAMED("write"), false },
		{ "always: {read: [~/proj]}\ndeny: {arguments: read}\n", NAMED("read"), false },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		policy(CASES[i].policy);
		struct ssb_plan *p =
		        call((struct call){ .manifest = CASES[i].manifest, .word = "proj/a.csv" });
		if ((granted(p, at("u/proj/a.csv")) != NULL) != CASES[i].granted ||
		    p->n_withheld != (CASES[i].granted ? 0U : 1U)) {
			fail_msg("%s", CASES[i].policy);
		}
		ssb_plan_free(p);
		p = call((struct call){ .manifest = NOTHING, .word = "proj/a.csv" });
		assert_true(p->n_grants >= 1 && p->n_withheld == 0);
		assert_true(p->named.n == 0 || CASES[i].policy == NULL ||
		            strstr(CASES[i].policy, "write") != NULL);
		ssb_plan_free(p);
	}
	policy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_words_count), cmocka_unit_test(dangerous_places),
		cmocka_unit_test(files_to_make),     cmocka_unit_test(who_has_a_say),
		cmocka_unit_test(the_policy_file),
	};

	return cmocka_run_group_tests(tests, with_files, teardown);
}
