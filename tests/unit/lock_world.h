/* lock_world.h - a plan with requests that were refused (paths) or withheld (variables), and
 * approvals of this plan. */
#ifndef TESTS_LOCK_WORLD_H
#define TESTS_LOCK_WORLD_H

#include "consent_world.h"

static char *REQUESTED[] = { (char[]){ "read ~/.ssh" }, (char[]){ "environment HAVE" },
	                     (char[]){ "environment NOT" }, NULL };
static struct refusal REFUSALS[] = {
	{ .what = (char[]){ "read ~/.ssh" },
	  .option = SSB_OPT_READ,
	  .value = (char[]){ "~/.ssh" } },
	{ .what = (char[]){ "read /proc" }, .option = SSB_OPT_READ }, /* no grant possible */
};
static struct refusal WITHHELD[] = {
	{ .what = (char[]){ "environment HAVE" },
	  .option = SSB_OPT_ENV,
	  .value = (char[]){ "HAVE" } },
	{ .what = (char[]){ "environment NOT" },
	  .option = SSB_OPT_ENV,
	  .value = (char[]){ "NOT" } },
};

static char NAME[] = "s\x1b[1m\"x";

/* Returns a plan that is made from the skill's present manifest. */
static inline struct ssb_plan plan_of(void)
{
	static char manifest[96];
	struct ssb_plan plan = { .name = NAME,
		                 .manifest = manifest,
		                 .skill_dir = skill,
		                 .format = SKILL_MARKDOWN,
		                 .refusals = REFUSALS,
		                 .n_refusals = 2,
		                 .withheld = WITHHELD,
		                 .n_withheld = 2,
		                 .requested = { .v = REQUESTED, .n = 3 } };
	auto_buf text;

	snprintf(manifest, sizeof(manifest), "%s/SKILL.md", skill);
	auto_fd fd = open(manifest, O_RDONLY | O_CLOEXEC);
	buf_init(&text, 1024);
	assert_int_equal(file_read_all(fd, &text), 0);
	sha256(text.data, text.len, plan.manifest_digest);
	return plan;
}

static inline void give(const struct consent_terms *terms)
{
	struct ssb_plan plan = plan_of();
	struct ssb_error err = { 0 };

	if (consent_give(&owner, skill, &plan, NULL, terms, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

static inline enum consent_state look(void)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct ssb_error err = { 0 };

	if (consent_look(&owner, skill, &f, &err) != 0) {
		fail_msg("%s", err.text);
	}
	return f.state;
}

static const struct consent_terms FOR_GOOD = { .by = "a test", .uses = -1 };

static inline int with_skill(void **state)
{
	(void)setup(state);
	put("SKILL.md", "a skill");
	return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, with_skill, teardown)

#endif
