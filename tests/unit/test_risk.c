/* test_risk.c - the risk of a plan: each reason for a risk alone, and the text for combinations of
 * reasons. */
#include <stdio.h>

#include "unit.h"
#include "base/own.h"
#include "consent/risk.h"

#define WALL    "it runs although a layer of the sandbox cannot be applied"
#define FILES   "files of yours that it can read can leave by the network"
#define KEYS    "a credential of yours that it asks for can leave by the network"
#define CALLS   "it may make almost every system call"
#define PRIVATE "it can reach hosts of a private network"
#define HOSTS   "it can send data to the hosts that the plan names"
#define NAMES   "variables of yours that it gets (such as a key) can leave by the network"
#define CHANGES "it can change files, and the changes stay after it has ended"
#define UNSEEN  "nothing of what it does is recorded"
#define READS   "it can read files of yours, but it cannot send them"
#define LINE(s) "  " s "\n"
#define HIGH    "risk: high\n"
#define MEDIUM  "risk: medium\n"
#define LOW     "risk: low\n"

static struct grant own = { .origin = ORIGIN_SKILL };
static struct grant tools = { .origin = ORIGIN_TOOLCHAIN };
static struct grant asked = { .origin = ORIGIN_MANIFEST };
static struct grant flag = { .origin = ORIGIN_FLAG };
static struct grant policy = { .origin = ORIGIN_POLICY };
static struct grant written = { .origin = ORIGIN_MANIFEST, .access = ACCESS_WRITE };
static struct egress_rule host;

#define ONE(v)  .grants = &(v), .n_grants = 1
#define NET     .egress = &host, .n_egress = 1
#define LIST(s) ((struct string_list){ (char *[]){ (char[]){ s }, NULL }, 1 })
#define ENV(s)  .requested = LIST("environment " s)

static void expect(const struct ssb_plan *p, const char *text)
{
	auto_buf out = BUF(4096);

	risk_text(&out, p);
	assert_string_equal(out.data, text);
}

static void of_files(void **state)
{
	expect(&(struct ssb_plan){ 0 }, LOW);
	expect(&(struct ssb_plan){ ONE(own) }, LOW);
	expect(&(struct ssb_plan){ ONE(tools) }, LOW);
	expect(&(struct ssb_plan){ ONE(asked) }, MEDIUM LINE(READS));
	expect(&(struct ssb_plan){ ONE(flag) }, MEDIUM LINE(READS));
	expect(&(struct ssb_plan){ ONE(policy) }, MEDIUM LINE(READS));
	expect(&(struct ssb_plan){ ONE(written) }, MEDIUM LINE(CHANGES) LINE(READS));
}

/* If the skill can read files and send data, the reason is that the files "can leave by the
 * network" (FILES), not that "it can read files" (READS). */
static void of_hosts(void **state)
{
	expect(&(struct ssb_plan){ NET }, MEDIUM LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, ONE(own) }, MEDIUM LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, ONE(tools) }, MEDIUM LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, ONE(asked) }, HIGH LINE(FILES) LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, .allow_private = LIST("10.0.0.0/8") },
	       HIGH LINE(PRIVATE) LINE(HOSTS));
	expect(&(struct ssb_plan){ .allow_private = LIST("10.0.0.0/8") }, LOW);
}

static void of_walls(void **state)
{
	expect(&(struct ssb_plan){ .best_effort = 1U << LAYER_SECCOMP }, HIGH LINE(WALL));
	expect(&(struct ssb_plan){ .profile = PROFILE_PERMISSIVE }, HIGH LINE(CALLS));
	expect(&(struct ssb_plan){ .audit = AUDIT_OFF }, MEDIUM LINE(UNSEEN));
	expect(&(struct ssb_plan){ .profile = PROFILE_STRICT, .audit = AUDIT_VIOLATIONS }, LOW);
}

/* A variable is a reason if the skill requests and gets it. A credential is a reason even before
 * the owner allows it. */
static void of_variables(void **state)
{
	struct refusal waits = { .what = (char[]){ "environment GITHUB_TOKEN" },
		                 .value = (char[]){ "GITHUB_TOKEN" } };
	struct refusal out = { .what = waits.what };

	expect(&(struct ssb_plan){ ENV("MY_PLACE"), .env = LIST("MY_PLACE=x") }, LOW);
	expect(&(struct ssb_plan){ NET, ENV("MY_PLACE"), .env = LIST("MY_PLACE=x") },
	       MEDIUM LINE(HOSTS) LINE(NAMES));
	expect(&(struct ssb_plan){ NET, ENV("MY_PLACE"), .env = LIST("MY_PLACES=x") },
	       MEDIUM LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, ENV("MY_PLACE") }, MEDIUM LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, ENV("LANG"), .env = LIST("LANG=C") }, MEDIUM LINE(HOSTS));
	expect(&(struct ssb_plan){ ENV("GITHUB_TOKEN") }, LOW);
	expect(&(struct ssb_plan){ NET, ENV("GITHUB_TOKEN") }, HIGH LINE(KEYS) LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, ENV("GITHUB_TOKEN"), .withheld = &waits, .n_withheld = 1 },
	       HIGH LINE(KEYS) LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, ENV("GITHUB_TOKEN"), .withheld = &out, .n_withheld = 1 },
	       MEDIUM LINE(HOSTS));
	expect(&(struct ssb_plan){ NET, ENV("GITHUB_TOKEN"), .env = LIST("GITHUB_TOKEN=x") },
	       HIGH LINE(KEYS) LINE(HOSTS) LINE(NAMES));
}

static void as_json(void **state)
{
	const struct ssb_plan p = { NET, ONE(asked) };
	auto_buf out;

	buf_init(&out, 4096);
	struct json j = JSON_TO(&out, false);
	json_open(&j, '{');
	risk_json(&j, &p);
	json_close(&j, '}');
	assert_string_equal(out.data, "{\"risk\":{\"level\":\"high\",\"reasons\":[\"" FILES
	                              "\",\"" HOSTS "\"]}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_files), cmocka_unit_test(of_hosts),
		cmocka_unit_test(of_walls), cmocka_unit_test(of_variables),
		cmocka_unit_test(as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
