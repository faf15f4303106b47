/* test_learn.c - a learning run before it starts: its plan, and the files and variables that the
 * skill will see. */
#include "plan_world.h"

#include <dirent.h>

#include "base/buf.h"
#include "egress/table.h"
#include "learn/decoy.h"
#include "os/file.h"

static struct decoys decoys;

static int begin(void **state)
{
	struct ssb_error err = { 0 };

	if (decoys_begin(&owner, &decoys, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return 0;
}

static int end(void **state)
{
	decoys_end(&decoys);
	return 0;
}

static bool add(const char *path, enum access access)
{
	struct ssb_error err = { 0 };
	bool fresh = false;

	if (decoys_add(&decoys, &owner, path, access, &fresh, &err) != 0) {
		fail_msg("%s: %s", path, err.text);
	}
	return fresh;
}

/* Returns the content of a file as new text. */
static char *content(const char *path)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_buf text;

	buf_init(&text, 65536);
	assert_true(fd >= 0);
	assert_int_equal(file_read_all(fd, &text), 0);
	return text.data != NULL ? buf_steal(&text) : strdup("");
}

static const struct stand_in *last(void)
{
	return decoys.n > 0 ? &decoys.v[decoys.n - 1] : NULL;
}

/* ---- decoys --------------------------------------------------------------------- */

static void test_secrets_are_made_up(void **state)
{
	write_file(at("u/.ssh/id_rsa"), "the real key", 0600);
	assert_true(add(at("u/.ssh/id_rsa"), ACCESS_READ));
	auto_free char *text = content(last()->path);
	assert_non_null(strstr(text, "PRIVATE KEY"));
	assert_non_null(strstr(text, decoys.canary));
	assert_null(strstr(text, "the real key"));
	assert_string_equal(last()->target, at("u/.ssh/id_rsa"));
	assert_false(add(at("u/.ssh/id_rsa"), ACCESS_READ)); /* the file already has a decoy */
	/* A credential file gets a decoy even if the owner does not have such a file. */
	assert_true(add(at("u/.aws/credentials"), ACCESS_READ));
	auto_free char *aws = content(last()->path);
	assert_non_null(strstr(aws, decoys.canary));
	assert_true(add(at("u/.aws"), ACCESS_READ));
	auto_free char *in_it = path_join(last()->path, "credentials");
	assert_int_equal(access(in_it, R_OK), 0);
}

static void test_other_files_show_nothing(void **state)
{
	struct stat st;

	write_file(at("u/notes/diary.txt"), "dear diary", 0600);
	assert_true(add(at("u/notes/diary.txt"), ACCESS_READ));
	auto_free char *text = content(last()->path);
	assert_string_equal(text, "decoy\n");
	write_file(at("u/notes/list.dat"), "private", 0600);
	assert_true(add(at("u/notes/list.dat"), ACCESS_READ));
	auto_free char *empty = content(last()->path);
	assert_string_equal(empty, "");
	assert_true(add(at("u/proj"), ACCESS_READ));
	assert_int_equal(stat(last()->path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	auto_free char *git = path_join(last()->path, ".git");
	assert_int_equal(access(git, F_OK), -1);
	/* A missing file in an ordinary place gets no decoy: without learning, it would not exist,
	 * either. */
	assert_false(add(at("u/notes/absent.txt"), ACCESS_READ));
}

/* The decoy of a directory has one file for each ending, so that patterns find something. Names of
 * the owner's files are not shown. */
static void test_a_directory_has_samples(void **state)
{
	assert_int_equal(mkdir(at("u/letters"), 0700), 0);
	write_file(at("u/letters/to-bank.md"), "secret", 0600);
	write_file(at("u/letters/to-lawyer.md"), "secret", 0600);
	write_file(at("u/letters/sums.json"), "{1}", 0600);
	assert_true(add(at("u/letters"), ACCESS_READ));
	auto_free char *sample = path_join(last()->path, "decoy.md");
	auto_free char *json = path_join(last()->path, "decoy.json");
	auto_free char *real = path_join(last()->path, "to-bank.md");
	assert_int_equal(access(sample, R_OK), 0);
	assert_int_equal(access(json, R_OK), 0);
	assert_int_equal(access(real, F_OK), -1);
	assert_true(decoys_is_sample(&decoys, at("u/letters/decoy.md")));
	assert_false(decoys_is_sample(&decoys, at("u/letters/to-bank.md")));
	assert_false(decoys_is_sample(&decoys, at("u/letters/decoy.xyz")));
	write_file(at("u/letters/decoy.md"), "real", 0600); /* a file of this name that exists */
	assert_false(decoys_is_sample(&decoys, at("u/letters/decoy.md")));
}

/* The value of a variable in the output does not count as a secret that was read. */
static void test_what_is_shown(void **state)
{
	auto_buf text = BUF(4096);

	assert_true(decoy_variable(&decoys, "SOME_TOKEN", &text));
	assert_false(decoys_shown(&decoys, text.data, text.len));
	assert_false(decoys_shown(&decoys, "", 0));
	decoy_text(&text, "/x/.netrc", decoys.canary);
	assert_true(decoys_shown(&decoys, text.data, text.len));
	assert_true(decoys_shown(&decoys, decoys.canary, strlen(decoys.canary)));
}

static void test_writes_stay_with_us(void **state)
{
	assert_true(add(at("other"), ACCESS_WRITE));
	assert_string_equal(last()->target, at("other"));
	assert_true(add(at("new/out.txt"), ACCESS_WRITE));
	assert_string_equal(last()->target, at("new"));
	assert_non_null(path_beneath(last()->path, owner.state_dir));
	assert_int_equal(access(at("new"), F_OK), -1);
	assert_int_equal(last()->access, ACCESS_WRITE);
}

static void test_what_the_sandbox_has(void **state)
{
	static const char *const PLACES[] = { "/etc/shadow", "/usr/lib/x", "/proc/1/mem", "/",
		                              "/dev/sda",    "/tmp",       "/skill/x" };

	for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
		assert_false(add(PLACES[i], ACCESS_READ));
		assert_false(add(PLACES[i], ACCESS_WRITE));
	}
	assert_false(add("/new", ACCESS_READ));
	assert_false(add(home, ACCESS_READ));
}

static void test_no_more_than_so_many(void **state)
{
	char path[600];

	for (size_t i = 0; i < MAX_DECOYS; i++) {
		snprintf(path, sizeof(path), "%s/.ssh/key-%zu", home, i);
		assert_true(add(path, ACCESS_READ));
	}
	assert_int_equal(decoys.n, MAX_DECOYS);
	snprintf(path, sizeof(path), "%s/.ssh/one-more", home);
	assert_false(add(path, ACCESS_READ));
}

/* decoys_end() removes everything, also directories without permissions and symlinks that the skill
 * has made. */
static void test_nothing_is_left(void **state)
{
	assert_true(add(at("other"), ACCESS_WRITE));
	auto_free char *top_dir = strdup(decoys.top);
	auto_free char *shut = path_join(last()->path, "shut");
	auto_free char *in_it = path_join(shut, "file");
	assert_int_equal(mkdir(shut, 0755), 0);
	write_file(in_it, "x", 0400);
	assert_int_equal(symlink(home, at("to-home")), 0);
	auto_free char *link = path_join(last()->path, "home");
	assert_int_equal(symlink(home, link), 0);
	assert_int_equal(chmod(shut, 0), 0);
	decoys_end(&decoys);
	assert_int_equal(access(top_dir, F_OK), -1);
	assert_int_equal(access(home, F_OK), 0); /* no symlink was followed */
	assert_int_equal(unlink(at("to-home")), 0);
	decoys_end(&decoys); /* a second call does nothing */
}

/* decoys_begin() removes the decoys of a process that has ended, and keeps those of running
 * ones. */
static void test_what_others_left(void **state)
{
	struct decoys other = { 0 };
	struct ssb_error err = { 0 };
	int status = -1;

	pid_t pid = fork();
	if (pid == 0) {
		_exit(decoys_begin(&owner, &other, &err) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	auto_free char *all = path_join(owner.state_dir, "learn");
	struct dirent **names = NULL;
	/* this process's directory, the child's, "." and ".." */
	assert_int_equal(scandir(all, &names, NULL, NULL), 4);
	for (int i = 0; i < 4; i++) {
		free(names[i]);
	}
	free(names);
	assert_int_equal(decoys_begin(&owner, &other, &err), 0);
	decoys_end(&other);
	assert_int_equal(scandir(all, &names, NULL, NULL), 3);
	for (int i = 0; i < 3; i++) {
		free(names[i]);
	}
	free(names);
	assert_int_equal(access(decoys.top, F_OK), 0);
}

static void test_texts(void **state)
{
	static const char *const FILES[] = { "/h/.ssh/id_rsa",
		                             "/h/.ssh/x.pub",
		                             "/h/.aws/credentials",
		                             "/h/.netrc",
		                             "/h/p/.env",
		                             "/h/p/.env.local",
		                             "/h/.npmrc",
		                             "/h/.kube/config",
		                             "/h/.config/gh/hosts.yml",
		                             "/h/.bash_history",
		                             "/h/key.json",
		                             "/h/.mozilla/x/cookies.sqlite",
		                             "/h/.docker/config.json" };

	for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
		auto_buf text;
		buf_init(&text, 4096);
		decoy_text(&text, FILES[i], "CANARY");
		assert_non_null(strstr(text.data, "CANARY"));
		assert_null(strchr(text.data, '%'));
	}
}

static void test_variables(void **state)
{
	static const struct {
		const char *name;
		const char *value; /* the beginning of the decoy value; NULL: there is none */
	} ROWS[] = {
		{ "PATH", NULL },
		{ "LD_PRELOAD", NULL },
		{ "PYTHONSTARTUP", NULL },
		{ "https_proxy", NULL },
		{ "HTTPS_PROXY", NULL },
		{ "SSL_CERT_FILE", NULL },
		{ "DEBUG", NULL },
		{ "GITHUB_TOKEN", "ghp_ssbcanary" },
		{ "OPENWEATHER_API_KEY", "ssbcanary" },
		{ "SECRET", "ssbcanary" },
		{ "AWS_ACCESS_KEY_ID", "AKIA" },
		{ "SERVICE_URL", "https://decoy.invalid/" },
		{ "DATABASE_URL", "postgres://" },
		{ "SMTP_PORT", "443" },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		auto_buf text;
		buf_init(&text, 4096);
		assert_int_equal(decoy_variable(&decoys, ROWS[i].name, &text),
		                 ROWS[i].value != NULL);
		if (ROWS[i].value != NULL) {
			assert_ptr_equal(strstr(text.data, ROWS[i].value), text.data);
		} else {
			assert_int_equal(text.len, 0);
		}
	}
}

/* Each learning run has its own canary (a word in its decoys, by which a leak is recognized). */
static void test_canaries(void **state)
{
	struct decoys other = { 0 };
	struct ssb_error err = { 0 };

	assert_int_equal(decoys_begin(&owner, &other, &err), 0);
	assert_int_equal(strlen(other.canary), CANARY_BYTES - 1);
	assert_string_not_equal(other.canary, decoys.canary);
	assert_int_equal(other.canary[strspn(other.canary, "abcdefghijklmnopqrstuvwxyz0123456789")],
	                 '\0');
	decoys_end(&other);
}

/* ---- the plan ------------------------------------------------------------------------ */

static struct ssb_plan *learning_plan(const char *rest, const struct flag *flags)
{
	struct ssb_options *o = options(flags);
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	char text[4096];

	snprintf(text, sizeof(text), HEAD "%s", rest);
	write_file(at("skill/skillsandbox.yaml"), text, 0644);
	o->learn.mode = LEARNING_CLOSED;
	o->learn.ports[0] = 443;
	o->learn.n_ports = 1;
	memcpy(o->learn.canary, decoys.canary, sizeof(o->learn.canary));
	o->learn.stand_ins = decoys.v;
	o->learn.n_stand_ins = decoys.n;
	if (plan_decide(
	            &(struct plan_request){ .owner = &owner, .options = o, .skill = at("skill") },
	            &p, NULL, &err) != 0) {
		fail_msg("%s", err.text);
	}
	ssb_options_free(o);
	return p;
}

/* A learning plan ignores the requests of the manifest: it neither grants nor refuses them. The
 * control: an ordinary plan grants some and refuses some. */
static void test_a_plan_without_its_wishes(void **state)
{
	static const char ASKS[] = "permissions:\n"
	                           "  network: {egress: [{domain: api.example.com}]}\n"
	                           "  filesystem: {read: ['~/.ssh', '~/notes'], write: "
	                           "['~/proj']}\n";

	policy("network: {allow_private: [10.0.0.0/8]}\n");
	struct ssb_plan *p = skill(ASKS, NULL);
	assert_int_equal(p->n_refusals, 1);
	assert_int_equal(p->allow_private.n, 1);
	assert_string_equal(p->egress[0].domain.s, "api.example.com");
	ssb_plan_free(p);
	assert_true(add(at("u/.ssh/id_rsa"), ACCESS_READ));
	p = learning_plan(ASKS, FLAGS({ SSB_OPT_NET, "own.example.com:443" }));
	assert_int_equal(p->n_refusals, 0);
	assert_int_equal(p->allow_private.n, 0);
	assert_int_equal(p->n_egress, 2);
	assert_string_equal(p->egress[0].domain.s, "own.example.com");
	assert_string_equal(p->egress[1].domain.s, LEARNING_ANY);
	assert_true(p->egress[1].any);
	assert_false(p->egress[0].any);
	assert_int_equal(p->learning, LEARNING_CLOSED);
	for (size_t i = 0; i < p->n_grants; i++) {
		assert_true(p->grants[i].origin == ORIGIN_SKILL ||
		            path_beneath(p->grants[i].path, owner.state_dir) != NULL);
	}
	assert_int_equal(p->n_grants, 2);
	ssb_plan_free(p);
	policy(NULL);
}

#define REAL "the-real-value"

/* Variables whose real value a learning run must not pass on: one name for each row of the
 * product's table without a decoy value, some names that are in no row, and a known credential.
 * Language, time zone and terminal are passed on: see PASSED. */
static const char *const NOT_PASSED[] = {
	"PATH",
	"HOME",
	"TMPDIR",
	"TMP",
	"TEMP",
	"LANGUAGE",
	"LANG_TOKEN",
	"LC_TOKEN",
	"PYTHONPATH",
	"PYTHON_TOKEN",
	"NODE_OPTIONS",
	"NODE_AUTH_TOKEN",
	"PERL5LIB",
	"RUBYLIB",
	"JAVA_HOME",
	"BASH_ENV",
	"ENV",
	"IFS",
	"SHELL",
	"USER",
	"LOGNAME",
	"PWD",
	"OLDPWD",
	"TERM_SESSION_ID",
	"COLUMNS",
	"LINES",
	"EDITOR",
	"VISUAL",
	"PAGER",
	"CI",
	"DEBUG",
	"APP_DEBUG_TOKEN",
	"VERBOSE",
	"MY_VERBOSE_KEY",
	"APP_LOG_LEVEL",
	"NO_COLOR",
	"SSH_KEY",
	"DBUS_KEY",
	"XDG_TOKEN",
	"SSL_CERT_FILE",
	"CURL_CA_BUNDLE",
	"MY_Proxy",
	"TOWN_API_KEY",
	"GITHUB_TOKEN",
};
/* These name a display, sockets or a directory that the sandbox does not have, so every plan drops
 * them. */
static const char *const DROPPED[] = { "DISPLAY", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
	                               "XDG_RUNTIME_DIR" };
static const struct {
	const char *name;
	const char *value;
	const char *passed;
} PASSED[] = {
	{ "LANG", "de_DE.UTF-8", "de_DE.UTF-8" },
	{ "LC_ALL", "C", "C" },
	{ "TZ", "Europe/Berlin", "Europe/Berlin" },
	{ "TERM", "xterm-256color", "xterm-256color" },
	{ "LC_TIME", "a b", NULL },
};

static const char *value_in(const struct ssb_plan *p, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < p->env.n; i++) {
		if (strncmp(p->env.v[i], name, n) == 0 && p->env.v[i][n] == '=') {
			return p->env.v[i] + n + 1;
		}
	}
	return NULL;
}

/* Writes a manifest that requests all these variables, and an environment that has all of them. */
static void put_all(struct buf *asks, struct string_list *has)
{
	char pair[256];

	buf_adds(asks, "permissions: {env_vars: {allow: [");
	for (size_t i = 0; i < ARRAY_LEN(NOT_PASSED) + ARRAY_LEN(DROPPED); i++) {
		const char *name = i < ARRAY_LEN(NOT_PASSED) ? NOT_PASSED[i]
		                                             : DROPPED[i - ARRAY_LEN(NOT_PASSED)];
		snprintf(pair, sizeof(pair), "%s=" REAL, name);
		assert_int_equal(string_list_add(has, pair, SIZE_MAX), 0);
		buf_addf(asks, "%s, ", name);
	}
	for (size_t i = 0; i < ARRAY_LEN(PASSED); i++) {
		snprintf(pair, sizeof(pair), "%s=%s", PASSED[i].name, PASSED[i].value);
		assert_int_equal(string_list_add(has, pair, SIZE_MAX), 0);
		buf_addf(asks, "%s%s", i > 0 ? ", " : "", PASSED[i].name);
	}
	buf_adds(asks, "]}}\n");
	assert_false(asks->failed);
}

static void test_nothing_of_the_callers_environment(void **state)
{
	struct string_list has = { 0 };
	auto_buf asks;
	size_t real = 0;

	buf_init(&asks, 16384);
	put_all(&asks, &has);
	char **v = calloc(has.n + 1, sizeof(*v));
	assert_non_null(v);
	memcpy(v, has.v, has.n * sizeof(*v));
	owner.environ = v;
	policy("grants: {env: [GITHUB_TOKEN, TOWN_API_KEY, APP_DEBUG_TOKEN, LANG_TOKEN, "
	       "PYTHON_TOKEN, MY_VERBOSE_KEY, DBUS_KEY, XDG_TOKEN]}\n");
	struct ssb_plan *p = skill(asks.data, NULL); /* the control */
	for (size_t i = 0; i < p->env.n; i++) {
		real += strstr(p->env.v[i], REAL) != NULL;
	}
	/* NODE_AUTH_TOKEN and SSH_KEY are not granted. HOME and TMPDIR are the sandbox's own. */
	assert_int_equal(real, ARRAY_LEN(NOT_PASSED) - 4);
	ssb_plan_free(p);

	p = learning_plan(asks.data, FLAGS({ SSB_OPT_ENV, "TOWN_API_KEY=decoy" }));
	assert_int_equal(p->n_refusals, 0);
	for (size_t i = 0; i < p->env.n; i++) {
		if (strstr(p->env.v[i], REAL) != NULL) {
			fail_msg("%s", p->env.v[i]);
		}
	}
	assert_string_equal(value_in(p, "TOWN_API_KEY"), "decoy");
	for (size_t i = 0; i < ARRAY_LEN(PASSED); i++) {
		const char *value = value_in(p, PASSED[i].name);
		assert_true(PASSED[i].passed == NULL ? value == NULL
		                                     : strcmp(value, PASSED[i].passed) == 0);
	}
	ssb_plan_free(p);
	policy(NULL);
	owner.environ = environment;
	free(v);
	string_list_done(&has);
}

/* ---- names ----------------------------------------------------------------------------- */

static void test_every_name_has_an_address(void **state)
{
	uint16_t ports[] = { 443 };
	struct egress_rule rule = { .domain = { .s = (char[]){ LEARNING_ANY } },
		                    .kind = HOST_WILDCARD,
		                    .protocol = PROTO_TCP,
		                    .ports = ports,
		                    .n_ports = 1 };
	struct ssb_plan plan = { .egress = &rule, .n_egress = 1, .learning = LEARNING_CLOSED };
	struct egress_table *t = NULL;
	struct ssb_error err = { 0 };
	char name[64];
	bool full = false;

	assert_int_equal(egress_table_new(&plan, &t, &err), 0);
	for (size_t i = 0; i < LEARN_POOL; i++) {
		snprintf(name, sizeof(name), "n%zu.example.com", i);
		const struct slot *s = egress_by_name(t, name, &full);
		assert_non_null(s);
		assert_string_equal(s->name, name);
		assert_ptr_equal(egress_by_name(t, name, &full), s);
		assert_int_equal(egress_rule_for(t, s, 443, false), 0);
		assert_int_equal(egress_rule_for(t, s, 444, false), -1);
	}
	assert_null(egress_by_name(t, "one.more.example.com", &full));
	assert_true(full);
	assert_null(egress_by_name(t, "not a name", &full));
	egress_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_secrets_are_made_up, begin, end),
		cmocka_unit_test_setup_teardown(test_other_files_show_nothing, begin, end),
		cmocka_unit_test_setup_teardown(test_a_directory_has_samples, begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_shown, begin, end),
		cmocka_unit_test_setup_teardown(test_writes_stay_with_us, begin, end),
		cmocka_unit_test_setup_teardown(test_what_the_sandbox_has, begin, end),
		cmocka_unit_test_setup_teardown(test_no_more_than_so_many, begin, end),
		cmocka_unit_test_setup_teardown(test_nothing_is_left, begin, end),
		cmocka_unit_test_setup_teardown(test_what_others_left, begin, end),
		cmocka_unit_test(test_texts),
		cmocka_unit_test_setup_teardown(test_variables, begin, end),
		cmocka_unit_test_setup_teardown(test_canaries, begin, end),
		cmocka_unit_test_setup_teardown(test_a_plan_without_its_wishes, begin, end),
		cmocka_unit_test_setup_teardown(test_nothing_of_the_callers_environment, begin,
		                                end),
		cmocka_unit_test(test_every_name_has_an_address),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
