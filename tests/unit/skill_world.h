/* skill_world.h - directories of skills for which tests make plans, in addition to plan_world.h. */
#ifndef TESTS_SKILL_WORLD_H
#define TESTS_SKILL_WORLD_H

#include "plan_world.h"

#include "skill/skill.h"

#define NO_ARGS      ((char *const[]){ NULL })
#define FRONT(lines) "---\nname: own\ndescription: d\n" lines "---\n"
#define ASKS                                                                                       \
	FRONT("metadata: {openclaw: {requires: {env: [API_KEY, GITHUB_TOKEN, LD_PRELOAD, "         \
	      "UNSET]}}}\n")

/* Makes a new, empty directory for a skill, because other tests write a manifest to the skill of
 * plan_world.h. */
static const char *fresh(void)
{
	static unsigned turn;
	static char name[32];

	snprintf(name, sizeof(name), "s%u", turn++);
	assert_int_equal(mkdir(at(name), 0755), 0);
	return name;
}

static inline void put(const char *dir, const char *name, const char *text, mode_t mode)
{
	char rest[256];

	snprintf(rest, sizeof(rest), "%s/%s", dir, name);
	write_file(at(rest), text, mode);
}

static inline struct ssb_plan *plan_of(const char *dir, char *const args[],
                                       const struct flag *flags)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct ssb_options *o = options(flags);

	if (plan_decide(
	            &(struct plan_request){
	                    .owner = &owner, .options = o, .skill = at(dir), .args = args },
	            &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	ssb_options_free(o);
	return p;
}

static inline void refused_with(const char *dir, char *const args[], enum ssb_code code,
                                const char *part)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;

	assert_int_equal(
	        plan_decide(
	                &(struct plan_request){ .owner = &owner, .skill = at(dir), .args = args },
	                &p, NULL, &err),
	        -1);
	if (err.code != code || strstr(err.text, part) == NULL) {
		fail_msg("%d %s: %s", err.code, err.where, err.text);
	}
}

#endif
