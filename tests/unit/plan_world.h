/* plan_world.h - a home, a skill and an owner, for which tests make plans. */
#ifndef TESTS_PLAN_WORLD_H
#define TESTS_PLAN_WORLD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/tree.h"
#include "policy/decide.h"
#include "policy/owner.h"
#include "policy/path.h"

static char top[64];
static char home[80];
static struct owner owner;
static char *environment[] = { (char[]){ "PATH=/usr/bin:/bin" },
	                       (char[]){ "LANG=de_DE.UTF-8" },
	                       (char[]){ "API_KEY=k" },
	                       (char[]){ "GITHUB_TOKEN=t" },
	                       (char[]){ "LD_PRELOAD=/x.so" },
	                       (char[]){ "SECRET=s" },
	                       NULL };

static inline char *at(const char *rest)
{
	static char path[8][512];
	static unsigned turn;
	char *p = path[turn++ % 8];

	snprintf(p, 512, "%s/%s", top, rest);
	return p;
}

static inline void write_file(const char *path, const char *text, mode_t mode)
{
	(void)unlink(path);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

static inline int setup(void **state)
{
	static const char *const DIRS[] = { "u",
		                            "u/.ssh",
		                            "u/notes",
		                            "u/notes/deep",
		                            "u/proj",
		                            "u/proj/.git",
		                            "u/proj/.git/hooks",
		                            "u/.config",
		                            "skill",
		                            "cfg",
		                            "tools",
		                            "tools/bin",
		                            "tools/lib",
		                            "other" };

	snprintf(top, sizeof(top), "/tmp/ssb-plan-XXXXXX");
	assert_non_null(mkdtemp(top));
	/* If root runs the test, a path that other users cannot read counts as dangerous: so they
	 * may read this one. */
	assert_int_equal(chmod(top, 0755), 0);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		assert_int_equal(mkdir(at(DIRS[i]), 0755), 0);
	}
	snprintf(home, sizeof(home), "%s/u", top);
	assert_int_equal(symlink("notes", at("u/link")), 0);
	owner = (struct owner){
		.uid = getuid(), .gid = getgid(), .home = home, .user = "u", .environ = environment
	};
	owner.config_dir = strdup(at("cfg"));
	owner.state_dir = strdup(at("state"));
	return 0;
}

static inline int teardown(void **state)
{
	free((void *)(uintptr_t)owner.config_dir);
	free((void *)(uintptr_t)owner.state_dir);
	return tree_remove(AT_FDCWD, top);
}

/* Writes the policy file. NULL: removes it. */
static inline void policy(const char *text)
{
	if (text == NULL) {
		(void)unlink(at("cfg/policy.yaml"));
	} else {
		write_file(at("cfg/policy.yaml"), text, 0600);
	}
}

#define HEAD    "skill: {name: s, version: '1'}\nentrypoint: {command: sh, args: [a]}\n"
#define NOTHING "permissions: {}\n"

struct flag {
	enum ssb_option what;
	const char *value;
};

static inline struct ssb_options *options(const struct flag *flags)
{
	struct ssb_options *o = ssb_options_new();
	struct ssb_error err = { 0 };

	for (; flags != NULL && flags->value != NULL; flags++) {
		if (ssb_options_set(o, flags->what, flags->value, &err) != 0) {
			fail_msg("%s: %s", err.where, err.text);
		}
	}
	return o;
}

static inline struct ssb_plan *skill_with(const char *manifest, const struct flag *flags)
{
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct ssb_options *o = options(flags);

	write_file(at("skill/skillsandbox.yaml"), manifest, 0644);
	if (plan_decide(
	            &(struct plan_request){ .owner = &owner, .options = o, .skill = at("skill") },
	            &p, NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	ssb_options_free(o);
	return p;
}

static inline struct ssb_plan *skill(const char *rest, const struct flag *flags)
{
	char text[32768];

	snprintf(text, sizeof(text), HEAD "%s", rest);
	return skill_with(text, flags);
}

static inline struct ssb_plan *command(const struct flag *flags, const char *name)
{
	char copy[128];
	char *argv[] = { copy, NULL };
	struct ssb_error err = { 0 };
	struct ssb_plan *p = NULL;
	struct ssb_options *o = options(flags);

	snprintf(copy, sizeof(copy), "%s", name);
	if (plan_decide(&(struct plan_request){ .owner = &owner, .options = o, .args = argv }, &p,
	                NULL, &err) != 0) {
		fail_msg("%s: %s", err.where, err.text);
	}
	ssb_options_free(o);
	return p;
}

#define FLAGS(...) ((const struct flag[]){ __VA_ARGS__, { 0, NULL } })

static inline const struct grant *granted(const struct ssb_plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_grants; i++) {
		if (strcmp(p->grants[i].path, path) == 0 && p->grants[i].origin != ORIGIN_SKILL) {
			return &p->grants[i];
		}
	}
	return NULL;
}

static inline const struct refusal *refused(const struct ssb_plan *p, const char *what)
{
	for (size_t i = 0; i < p->n_refusals; i++) {
		if (strcmp(p->refusals[i].what, what) == 0) {
			return &p->refusals[i];
		}
	}
	return NULL;
}

static inline bool warned(const struct ssb_plan *p, const char *part)
{
	for (size_t i = 0; i < p->warnings.n; i++) {
		if (strstr(p->warnings.v[i], part) != NULL) {
			return true;
		}
	}
	return false;
}

static inline bool asked(const struct ssb_plan *p, const char *item)
{
	for (size_t i = 0; i < p->requested.n; i++) {
		if (strcmp(p->requested.v[i], item) == 0) {
			return true;
		}
	}
	return false;
}

static inline const char *env(const struct ssb_plan *p, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < p->env.n; i++) {
		if (strncmp(p->env.v[i], name, len) == 0 && p->env.v[i][len] == '=') {
			return p->env.v[i] + len + 1;
		}
	}
	return NULL;
}

#define FILES(list) "permissions: {filesystem: {" list "}}\n"

#endif
