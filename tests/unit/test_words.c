/* test_words.c - a plan in words for people. No text of a skill may look like a line of the
 * product. */
#include "plan_world.h"

#include "consent/lint.h"
#include "consent/risk.h"
#include "consent/words.h"
#include "policy/secrets.h"

static char *render(const struct abilities *a, const struct words_look *look)
{
	struct buf out = BUF(1UL << 20);

	abilities_lines(&out, a, look);
	return buf_steal(&out);
}

static const struct ability *about(const struct abilities *a, const char *asked)
{
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->v[i].asked, asked) == 0) {
			return &a->v[i];
		}
	}
	fail_msg("nothing is said of '%s'", asked);
	return NULL;
}

#define EGRESS(rules)  "permissions: {network: {egress: [" rules "]}}\n"
#define ENV_VARS(list) "permissions: {env_vars: {allow: [" list "]}}\n"

static const struct {
	const char *manifest;
	const char *asked;
	const char *text;
	const char *why; /* a part of the reason; NULL: none */
	bool dangerous, secret;
} ROWS[] = {
	{ EGRESS("{domain: api.weather.example}"), "connect to api.weather.example",
	  "connect to api.weather.example, port 443 (TLS)", NULL, false, false },
	{ EGRESS("{domain: a.example, ports: [80, 8080]}"), "connect to a.example:80,8080",
	  "connect to a.example, ports 80, 8080", NULL, false, false },
	{ EGRESS("{domain: a.example, ports: [53], protocol: udp}"), "connect to a.example:53/udp",
	  "connect to a.example, port 53 (UDP)", NULL, false, false },
	{ EGRESS("{domain: a.example, ports: [22], protocol: tls}"), "connect to a.example:22/tls",
	  "connect to a.example, port 22 (TLS)", NULL, false, false },
	{ EGRESS("{domain: a.example, protocol: http}"), "connect to a.example:443/http",
	  "connect to a.example, port 443 (HTTP)", NULL, false, false },
	{ EGRESS("{domain: '*.a.example'}"), "connect to *.a.example",
	  "connect to every host beneath a.example, port 443 (TLS)", NULL, false, false },
	{ EGRESS("{domain: '2001:db8::1', ports: [22]}"), "connect to [2001:db8::1]:22",
	  "connect to 2001:db8::1, port 22 (SSH)", "owner's permission", true, false },
	{ EGRESS("{domain: '2001:db8::1'}"), "connect to 2001:db8::1",
	  "connect to 2001:db8::1, port 443 (TLS)", "owner's permission", true, false },
	{ EGRESS("{domain: 192.0.2.0/28, ports: [80]}"), "connect to 192.0.2.0/28:80",
	  "connect to every address in 192.0.2.0/28, port 80 (HTTP)", "owner's permission", true,
	  false },
	{ FILES("read: [~/notes]"), "read ~/notes", "read every file in ~/notes", NULL, false,
	  false },
	{ FILES("write: [~/notes]"), "write ~/notes",
	  "read, change and delete every file in ~/notes", NULL, false, false },
	{ FILES("read: [~/.ssh]"), "read ~/.ssh", "read your SSH keys (~/.ssh)",
	  "whoever has them can log in as you", true, true },
	{ FILES("read: [~/.pgpass]"), "read ~/.pgpass", "read what is in ~/.pgpass",
	  "database passwords", true, true },
	{ FILES("read: [~/]"), "read ~", "read what is in your whole home directory", "home", true,
	  false },
	{ FILES("read: ['~/a b']"), "read ~/a b", "read what is in \"~/a b\"", NULL, false, false },
	{ ENV_VARS("LANG"), "environment LANG", "see the variable LANG", NULL, false, false },
	{ ENV_VARS("GITHUB_TOKEN"), "environment GITHUB_TOKEN", "see the variable GITHUB_TOKEN",
	  "a key to GitHub", true, true },
	{ ENV_VARS("MY_API_KEY"), "environment MY_API_KEY", "see the variable MY_API_KEY",
	  "by its name", false, true },
	{ ENV_VARS("LD_PRELOAD"), "environment LD_PRELOAD", "see the variable LD_PRELOAD", "loader",
	  true, false },
	{ NOTHING "resources: {memory_mb: 1048576}\n", "limit memory_mb 1048576",
	  "use up to 1 TiB of memory", NULL, false, false },
	{ NOTHING "resources: {max_disk_mb: 1000}\n", "limit max_disk_mb 1000",
	  "fill up to 1000 MiB of private disk space, which is kept in memory", NULL, false,
	  false },
	{ NOTHING "resources: {max_runtime_seconds: 86400}\n", "limit max_runtime_seconds 86400",
	  "run for up to 24 h", NULL, false, false },
	{ NOTHING "resources: {max_processes: 1000}\n", "limit max_processes 1000",
	  "start up to 1000 processes", NULL, false, false },
	{ "permissions: {syscalls: {profile: permissive}}\n", "profile permissive",
	  "make almost every system call", "kernel", true, false },
};

static void test_rows(void **state)
{
	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		struct ssb_plan *p = skill(ROWS[i].manifest, NULL);
		AUTO(abilities_done) struct abilities a = { 0 };
		assert_int_equal(abilities_of(p, &a), 0);
		const struct ability *v = about(&a, ROWS[i].asked);
		assert_string_equal(v->text, ROWS[i].text);
		assert_int_equal(v->dangerous, ROWS[i].dangerous);
		assert_int_equal(v->secret, ROWS[i].secret);
		if (ROWS[i].why == NULL) {
			assert_null(v->why);
		} else {
			assert_non_null(v->why);
			assert_non_null(strstr(v->why, ROWS[i].why));
		}
		ssb_plan_free(p);
	}
}

static const struct {
	const char *manifest;
	const char *worst; /* expected sentence; NULL: none */
} WORST[] = {
	{ NOTHING, NULL },
	{ "permissions: {network: {egress: [{domain: api.example}]}, filesystem: {read: "
	  "[~/notes]}}\n",
	  "it can read ~/notes and send what it reads to api.example" },
	{ "permissions: {network: {egress: [{domain: api.example}, {domain: b.example}]}, "
	  "filesystem: {read: [~/notes, ~/.ssh]}, env_vars: {allow: [GITHUB_TOKEN]}}\n",
	  "it can read your SSH keys (~/.ssh) and send them, with what is in the variable "
	  "GITHUB_TOKEN, to api.example and b.example" },
	{ "permissions: {network: {egress: [{domain: a.example}, {domain: b.example}, {domain: "
	  "c.example}, {domain: d.example}]}, env_vars: {allow: [A_TOKEN, LANG, B_TOKEN, "
	  "C_TOKEN, D_TOKEN, E_TOKEN]}}\n",
	  "it can send what is in the variable A_TOKEN, the variable B_TOKEN and the variable "
	  "C_TOKEN (and 2 more) to a.example, b.example and c.example (and 1 more)" },
	{ NOTHING "resources: {memory_mb: 2048}\n",
	  "it can use 2 GiB of memory; it cannot send anything anywhere" },
	{ "permissions: {network: {egress: [{domain: api.example}]}, filesystem: {read: "
	  "[~/notes]}, env_vars: {allow: [GITHUB_TOKEN]}}\n",
	  "it can send what is in the variable GITHUB_TOKEN, and what it reads in ~/notes, to "
	  "api.example" },
	{ "permissions: {network: {egress: [{domain: api.example}]}, env_vars: {allow: "
	  "[GITHUB_TOKEN]}}\n",
	  "it can send what is in the variable GITHUB_TOKEN to api.example" },
	{ "permissions: {network: {egress: [{domain: api.example}]}, filesystem: {read: "
	  "[~/notes, ~/.pgpass]}}\n",
	  "it can read the secrets in ~/.pgpass and send them to api.example" },
	{ EGRESS("{domain: api.example}"),
	  "it can send its arguments and its input to api.example" },
	{ "permissions: {network: {egress: [{domain: api.example}]}, filesystem: {write: "
	  "[~/notes]}}\n",
	  "it can read ~/notes and send what it reads to api.example, and store what it receives "
	  "from "
	  "there in ~/notes" },
	{ FILES("write: [~/notes]"),
	  "it can change or delete ~/notes; it cannot send anything anywhere" },
	{ FILES("read: [~/notes]"), "it can read ~/notes; it cannot send anything anywhere" },
};

static void test_worst(void **state)
{
	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(WORST); i++) {
		struct ssb_plan *p = skill(WORST[i].manifest, NULL);
		AUTO(abilities_done) struct abilities a = { 0 };
		assert_int_equal(abilities_of(p, &a), 0);
		if (WORST[i].worst == NULL) {
			assert_null(a.worst);
		} else {
			assert_string_equal(a.worst, WORST[i].worst);
		}
		ssb_plan_free(p);
	}
}

#define ASKS(host, name)                                                                           \
	"permissions: {network: {egress: [" host "]}, env_vars: {allow: [" name "]}}\n"

static void test_risk(void **state)
{
	static const char OUT[] = "environment GITHUB_TOKEN";
	const struct {
		const char *manifest;
		const struct flag *flags;
		const char *level;
	} RISKS[] = {
		{ NOTHING, NULL, "low" },
		{ ASKS("", "GITHUB_TOKEN"), NULL, "low" },
		{ FILES("read: [~/notes]"), NULL, "medium" },
		{ "permissions: {network: {egress: [{domain: a.example}]}, filesystem: {read: "
		  "[~/notes]}}\n",
		  NULL, "high" },
		{ ASKS("{domain: a.example}", "LANG"), NULL, "medium" },
		{ ASKS("{domain: a.example}", "API_KEY"), NULL, "medium" },
		{ ASKS("{domain: a.example}", "MY_PASSWORD"), NULL, "high" },
		{ ASKS("{domain: a.example}", "GITHUB_TOKEN"), NULL, "high" },
		{ ASKS("{domain: a.example}", "GITHUB_TOKEN"),
		  FLAGS({ SSB_OPT_ENV, "GITHUB_TOKEN" }), "high" },
		{ ASKS("{domain: a.example}", "GITHUB_TOKEN"), FLAGS({ SSB_OPT_WITHHOLD, OUT }),
		  "medium" },
	};

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(RISKS); i++) {
		struct ssb_plan *p = skill(RISKS[i].manifest, RISKS[i].flags);
		assert_string_equal(risk_level(p), RISKS[i].level);
		if (RISKS[i].flags == NULL) { /* lint must judge this skill in the same way */
			AUTO(lint_done) struct lint l = { 0 };
			struct ssb_error err = { 0 };
			assert_int_equal(lint_skill(at("skill"), &l, &err), 0);
			assert_int_equal(l.grade >= 'C', strcmp(RISKS[i].level, "high") == 0);
		}
		ssb_plan_free(p);
	}
}

/* If the owner drops an item, it is no longer a part of the sentence about the worst
 * combination. */
static void test_drop(void **state)
{
	struct ssb_plan *p = skill("permissions: {network: {egress: [{domain: api.example}]}, "
	                           "filesystem: {read: [~/notes, ~/.ssh]}}\n",
	                           NULL);
	AUTO(abilities_done) struct abilities a = { 0 };

	assert_int_equal(abilities_of(p, &a), 0);
	assert_int_equal(a.n, 3);
	assert_int_equal(abilities_dangerous(&a), 1);
	assert_string_equal(a.v[0].asked, "read ~/.ssh"); /* the dangerous item is first */
	assert_int_equal(abilities_drop(&a, 0), 0);
	assert_int_equal(abilities_dangerous(&a), 0);
	assert_string_equal(a.worst, "it can read ~/notes and send what it reads to api.example");
	while (a.n > 0) {
		assert_int_equal(abilities_drop(&a, a.n - 1), 0);
	}
	assert_null(a.worst);
	ssb_plan_free(p);
}

/* Important items come first, whatever their order and number in the manifest. Only items that
 * neither read the home nor send data may be counted without being shown. */
static void test_order(void **state)
{
	static const char *const ORDER[] = { "read ~/.ssh",
		                             "environment A_TOKEN",
		                             "environment LANG",
		                             "connect to a.example",
		                             "write ~/notes",
		                             "read ~/proj",
		                             "use the programs in ~/.pyenv",
		                             "limit memory_mb 4096" };
	struct ssb_plan *p = skill(NOTHING, NULL);
	struct refusal ssh = { .what = (char[]){ "read ~/.ssh" },
		               .why = (char[]){ "w" },
		               .value = (char[]){ "~/.ssh" } };
	AUTO(abilities_done) struct abilities a = { 0 };

	for (size_t i = 0; i < 60; i++) {
		char text[64];
		snprintf(text, sizeof(text), "read /usr/share/p%zu", i);
		assert_int_equal(string_list_add(&p->requested, text, 200), 0);
		snprintf(text, sizeof(text), "read /srv/p%zu", i);
		assert_int_equal(string_list_add(&p->requested, text, 200), 0);
	}
	for (size_t i = ARRAY_LEN(ORDER); i > 0; i--) {
		assert_int_equal(string_list_add(&p->requested, ORDER[i - 1], 200), 0);
	}
	p->refusals = &ssh;
	p->n_refusals = 1;
	assert_int_equal(abilities_of(p, &a), 0);
	p->refusals = NULL;
	p->n_refusals = 0;
	for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
		assert_string_equal(a.v[i].asked, ORDER[i]);
	}
	assert_string_equal(a.v[ARRAY_LEN(ORDER)].asked, "read /srv/p0");
	assert_string_equal(a.v[a.n - 1].asked, "read /usr/share/p59");
	auto_free char *text = render(&a, &(struct words_look){ .most = 2 });
	for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
		assert_non_null(strstr(text, a.v[i].text));
	}
	assert_null(strstr(text, "/srv/p0"));
	assert_non_null(strstr(text, "  - and read 120 more places, none of them in your home\n"));
	ssb_plan_free(p);
}

static void test_programs(void **state)
{
	struct ssb_plan *p = skill(NOTHING, NULL);
	AUTO(abilities_done) struct abilities a = { 0 };

	assert_int_equal(string_list_add(&p->requested, "use the programs in ~/a b", 9), 0);
	assert_int_equal(abilities_of(p, &a), 0);
	assert_string_equal(a.v[0].text,
	                    "use the programs in \"~/a b\", and read every file there");
	assert_string_equal(
	        a.worst, "it can use the programs in \"~/a b\"; it cannot send anything anywhere");
	ssb_plan_free(p);
}

/* An item that can never be granted is shown as such, and is not a part of the sentence about the
 * worst combination. */
static void test_never(void **state)
{
	struct ssb_plan *p = skill(FILES("read: [/proc]"), NULL);
	AUTO(abilities_done) struct abilities a = { 0 };

	assert_int_equal(abilities_of(p, &a), 0);
	assert_true(about(&a, "read /proc")->never);
	assert_null(a.worst);
	auto_free char *text = render(&a, &(struct words_look){ 0 });
	assert_non_null(strstr(text, "this cannot be approved"));
	ssb_plan_free(p);

	/* LD_PRELOAD can never be granted: with it, other code than the approved code would run. */
	AUTO(abilities_done) struct abilities env = { 0 };
	p = skill(ENV_VARS("LD_PRELOAD"), NULL);
	assert_int_equal(abilities_of(p, &env), 0);
	assert_true(about(&env, "environment LD_PRELOAD")->never);
	ssb_plan_free(p);
}

/* An item that the owner has declined is not shown as something that the skill can do. An item that
 * waits for an approval is shown. */
static void test_withheld(void **state)
{
	struct ssb_plan *p = skill(FILES("read: [~/notes]"), NULL);
	struct refusal v[] = {
		{ .what = (char[]){ "read ~/notes" }, .why = (char[]){ "taken out" } },
		{ .what = (char[]){ "environment X" },
		  .why = (char[]){ "waits" },
		  .option = SSB_OPT_ENV,
		  .value = (char[]){ "X" } },
	};
	AUTO(abilities_done) struct abilities a = { 0 };

	p->withheld = v;
	p->n_withheld = 2;
	assert_int_equal(abilities_of(p, &a), 0);
	p->withheld = NULL;
	p->n_withheld = 0;
	assert_int_equal(a.n, 1);
	assert_string_equal(a.v[0].asked, "environment X");
	assert_true(a.v[0].dangerous && !a.v[0].never);
	ssb_plan_free(p);
}

/* ---- text from other people ------------------------------------------------ */

static const struct {
	const char *text;
	const char *quoted;
} QUOTED[] = {
	{ "~/notes-1.txt", "~/notes-1.txt" },
	{ "", "\"\"" },
	{ "a b", "\"a b\"" },
	{ "x\n[a]lways", "\"x\\n[a]lways\"" },
	{ "\033[2Jx", "\"\\x1b[2Jx\"" },
	{ "\"): done", "\"\\\"): done\"" },
	{ "a\\n", "\"a\\\\n\"" },
	{ "\u202eevil", "\"\\u{202e}evil\"" },
	{ "a\u200bb", "\"a\\u{200b}b\"" },
	{ "gr\u00fcn", "\"gr\u00fcn\"" },
	{ "\xff", "\"\\xff\"" },
};

static void test_quote(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(QUOTED); i++) {
		auto_buf out = BUF(4096);

		words_quote(&out, QUOTED[i].text);
		assert_string_equal(out.data, QUOTED[i].quoted);
	}
}

/* A text at the limit is whole. A longer one shows its beginning, its end, and the number of bytes
 * left out. */
static void test_quote_cap(void **state)
{
	char text[MAX_WORD_BYTES + 2];
	auto_buf out;

	memset(text, 'a', sizeof(text));
	text[MAX_WORD_BYTES] = '\0';
	buf_init(&out, 4096);
	words_quote(&out, text);
	assert_string_equal(out.data, text);
	text[MAX_WORD_BYTES] = 'z';
	text[MAX_WORD_BYTES + 1] = '\0';
	buf_reset(&out);
	words_quote(&out, text);
	assert_non_null(strstr(out.data, "\" (1 bytes are left out) \""));
	assert_string_equal(out.data + out.len - 2, "z\"");
}

/* No line is wider than the terminal, and each line begins with the product's head or with a
 * bar. */
static void test_fold(void **state)
{
	static const char *const TEXTS[] = {
		"short",
		"a name with                                                                      "
		"skillsandbox: approved",
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"x",
		"\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d"
		"\u4e2d"
		"\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d"
		"\u4e2d",
	};

	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		for (size_t columns = 24; columns < 90; columns += 13) {
			auto_buf out = BUF(4096), joined = BUF(4096);

			words_fold(&out, "  - ", TEXTS[i], columns);
			bool first = true;
			for (char *l = strtok(out.data, "\n"); l != NULL; l = strtok(NULL, "\n")) {
				const char *head = first ? "  - " : "    | ";
				assert_int_equal(strncmp(l, head, strlen(head)), 0);
				/* each of these characters has three bytes and is two columns
				 * wide */
				size_t wide = 0;
				for (const char *c = l; *c != '\0'; c++) {
					wide += (unsigned char)*c < 0x80             ? 1
					        : ((unsigned char)*c & 0xc0) != 0x80 ? 2
					                                             : 0;
				}
				assert_true(wide < columns);
				buf_adds(&joined, l + strlen(head));
				first = false;
			}
			assert_string_equal(joined.data, TEXTS[i]); /* no text is lost */
		}
	}
}

/* If the head is as wide as the terminal, its line has no room for text: the whole text follows in
 * lines that begin with a bar. */
static void test_fold_head(void **state)
{
	static const char BEGIN[] = "skillsandbox: the skill ";
	auto_buf out;

	for (size_t columns = 1; columns < 27; columns++) {
		buf_init(&out, 4096);
		words_fold(&out, BEGIN, "\"a                     skillsandbox: approved\"",
		           columns);
		assert_int_equal(strncmp(out.data, BEGIN, strlen(BEGIN)), 0);
		const char *l = strchr(out.data, '\n') + 1;
		assert_true(l - out.data <= 27);
		for (; *l != '\0'; l = strchr(l, '\n') + 1) {
			assert_int_equal(strncmp(l, "    | ", 6), 0);
			assert_true(strcspn(l, "\n") < 27);
		}
		buf_done(&out);
	}
}

/* All dangerous items are shown, but only a limited number of the other items. */
static void test_many(void **state)
{
	struct ssb_plan *p = skill(NOTHING, NULL);
	static struct refusal v[40];
	static char why[] = "w", value[] = "V";
	AUTO(abilities_done) struct abilities a = { 0 };
	size_t marked = 0, dull = 0;

	for (size_t i = 0; i < 40; i++) {
		char text[32];
		snprintf(text, sizeof(text), "environment V%zu", i);
		v[i] = (struct refusal){
			.what = strdup(text), .why = why, .option = SSB_OPT_ENV, .value = value
		};
		snprintf(text, sizeof(text), "read /srv/h%zu", i);
		assert_int_equal(string_list_add(&p->requested, text, 100), 0);
	}
	p->withheld = v;
	p->n_withheld = 40;
	assert_int_equal(abilities_of(p, &a), 0);
	p->withheld = NULL;
	p->n_withheld = 0;
	auto_free char *text = render(&a, &(struct words_look){ .most = 5 });
	assert_non_null(strstr(text, "  - and read 35 more"));
	for (char *l = strtok(text, "\n"); l != NULL; l = strtok(NULL, "\n")) {
		marked += strncmp(l, "  ! ", 4) == 0;
		dull += strncmp(l, "  - ", 4) == 0;
	}
	assert_int_equal(marked, 40);
	assert_int_equal(dull, 6);
	for (size_t i = 0; i < 40; i++) {
		free(v[i].what);
	}
	ssb_plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),     cmocka_unit_test(test_worst),
		cmocka_unit_test(test_risk),     cmocka_unit_test(test_drop),
		cmocka_unit_test(test_never),    cmocka_unit_test(test_withheld),
		cmocka_unit_test(test_quote),    cmocka_unit_test(test_quote_cap),
		cmocka_unit_test(test_fold),     cmocka_unit_test(test_fold_head),
		cmocka_unit_test(test_many),     cmocka_unit_test(test_order),
		cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
