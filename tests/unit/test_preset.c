/* test_preset.c - presets and sets of hosts: every built-in one is valid, the owner's files replace
 * them, and each wrong one is refused with its place. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/diag.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/options.h"
#include "policy/preset.h"

static char dir[] = "/tmp/preset-XXXXXX";
static char file[96];

static int make_dir(void **state)
{
	if (mkdtemp(dir) == NULL) {
		return -1;
	}
	snprintf(file, sizeof(file), "%s/presets", dir);
	if (mkdir(file, 0700) != 0) {
		return -1;
	}
	snprintf(file, sizeof(file), "%s/presets/node.yaml", dir);
	return 0;
}

static int remove_dir(void **state)
{
	char presets[64];

	unlink(file);
	snprintf(presets, sizeof(presets), "%s/presets", dir);
	return rmdir(presets) != 0 ? -1 : rmdir(dir);
}

static int load(const char *text, struct preset *p, struct ssb_error *err)
{
	struct owner o = { .uid = getuid(), .config_dir = dir };

	assert_int_equal(file_replace(file, text, strlen(text), 0600), 0);
	return preset_load(&o, "node", p, NULL, err);
}

/* Every host of a preset is a set or a host, every variable of `cache` leads to the cache, and
 * every preset gives something. */
static void test_built_in(void **state)
{
	for (size_t i = 0; i < N_PRESET_NAMES; i++) {
		AUTO(preset_done) struct preset p = { 0 };
		AUTO(string_list_done) struct string_list hosts = { 0 };
		struct ssb_error err = { 0 };

		if (preset_load(NULL, PRESET_NAMES[i], &p, NULL, &err) != 0) {
			fail_msg("%s: %s", err.where, err.text);
		}
		assert_string_equal(p.name, PRESET_NAMES[i]);
		assert_true(p.limits.memory_mb != OPTION_UNSET && p.limits.memory_mb > 256);
		for (size_t k = 0; k < p.net.n; k++) {
			assert_int_equal(preset_expand_net(p.net.v[k].s, &hosts, &err), 0);
		}
		for (size_t k = 0; k < p.cache.n; k++) {
			assert_non_null(
			        strstr(p.cache.v[k], "=" CACHE_WORD "/") != NULL
			                ? p.cache.v[k]
			                : strstr(p.cache.v[k], "=-Dmaven.repo.local=" CACHE_WORD));
		}
	}
}

static void test_sets(void **state)
{
	static const char *const SETS[] = {
		"@npm",    "@pypi",   "@crates", "@go",          "@rubygems",  "@maven",  "@debian",
		"@github", "@gitlab", "@openai", "@huggingface", "@anthropic", "@gemini",
	};
	struct ssb_error err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(SETS); i++) {
		AUTO(string_list_done) struct string_list hosts = { 0 };
		assert_int_equal(preset_expand_net(SETS[i], &hosts, &err), 0);
		assert_true(hosts.n > 0);
		for (size_t k = 0; k < hosts.n; k++) {
			struct egress_rule rule = { 0 };
			assert_null(options_net(hosts.v[k], &rule));
			assert_int_equal(rule.kind, HOST_EXACT);
			free(rule.domain.s);
			free(rule.ports);
		}
	}
	AUTO(string_list_done) struct string_list none = { 0 };
	assert_int_equal(preset_expand_net("@nmp", &none, &err), -1);
	assert_non_null(strstr(err.text, "did you mean @npm?"));
	err = (struct ssb_error){ 0 };
	assert_int_equal(preset_expand_net("@", &none, &err), -1);
	assert_int_equal(none.n, 0);
}

static void test_own_file(void **state)
{
	AUTO(preset_done) struct preset p = { 0 };
	struct ssb_error err = { 0 };

	assert_int_equal(load("net: [a.example]\nenv: {A: '1', B: x=y}\n", &p, &err), 0);
	assert_int_equal(p.net.n, 1);
	assert_string_equal(p.env.v[1], "B=x=y");
	assert_int_equal(p.limits.memory_mb, OPTION_UNSET);
	assert_int_equal(chmod(file, 0622), 0);
	struct owner o = { .uid = getuid(), .config_dir = dir };
	struct preset other;
	assert_int_equal(preset_load(&o, "node", &other, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_POLICY);
	err = (struct ssb_error){ 0 };
	assert_int_equal(preset_load(&o, "nodes", &other, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *text;
		const char *place;
	} CASES[] = {
		{ "nets: []", ":1:1" },
		{ "net: [a b]", ":1:7" },
		{ "net: ['@nope']", ":1:7" },
		{ "net: ['a.example:0']", ":1:7" },
		{ "read: [notes]", ":1:8" },
		{ "env: [A]", ":1:6" },
		{ "env:\n  A: [1]", ":2:6" },
		{ "env:\n  A*: '1'", ":2:3" },
		{ "limits: {memory_mb: 0}", ":1:21" },
		{ "limits: {memory_mb: '1'}", ":1:21" },
		{ "limits: {memory: 1}", ":1:10" },
		{ "cache: {A: yes}", ":1:12" },
		{ "[]", ":1:1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_error err = { 0 };
		struct preset p;
		assert_int_equal(load(CASES[i].text, &p, &err), -1);
		assert_int_equal(err.code, SSB_E_POLICY);
		if (strstr(err.where, CASES[i].place) == NULL) {
			fail_msg("%s: %s: %s", CASES[i].text, err.where, err.text);
		}
	}
}

/* One variable fewer than the limit, the limit, and one more. */
static void test_most_variables(void **state)
{
	for (int n = MAX_ENV_VARS - 1; n <= MAX_ENV_VARS + 1; n++) {
		AUTO(preset_done) struct preset p = { 0 };
		auto_buf text = BUF(65536);
		struct ssb_error err = { 0 };

		buf_adds(&text, "env:\n");
		for (int i = 0; i < n; i++) {
			buf_addf(&text, "  V%d: v\n", i);
		}
		assert_int_equal(load(text.data, &p, &err), n > MAX_ENV_VARS ? -1 : 0);
	}
}

/* The example of the manual is a valid preset. */
static void test_manual(void **state)
{
	AUTO(preset_done) struct preset p = { 0 };
	struct ssb_error err = { 0 };
	auto_buf all = BUF(1 << 20);
	char path[512];

	snprintf(path, sizeof(path), "%s/man/skillsandbox-policy.5", getenv("SSB_SOURCE"));
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && file_read_all(fd, &all) == 0);
	char *text = strstr(all.data, "# ~/.config/skillsandbox/presets/");
	assert_non_null(text);
	*strstr(text, "\n.Ed") = '\0';
	if (load(text, &p, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	assert_true(p.net.n > 0 && p.read.n > 0 && p.env.n > 0 && p.cache.n > 0);
}

static void test_names(void **state)
{
	assert_null(preset_name_problem("a-1"));
	assert_null(preset_name_problem("a123456789012345678901234567890"));
	assert_non_null(preset_name_problem("a1234567890123456789012345678901"));
	assert_non_null(preset_name_problem(""));
	assert_non_null(preset_name_problem("../x"));
	assert_non_null(preset_name_problem("A"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_built_in),       cmocka_unit_test(test_sets),
		cmocka_unit_test(test_own_file),       cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_most_variables), cmocka_unit_test(test_names),
		cmocka_unit_test(test_manual),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
