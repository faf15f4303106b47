/* serve_world.h - a directory of skills for one test, and an owner without a policy file or
 * approvals. */
#ifndef TESTS_UNIT_SERVE_WORLD_H
#define TESTS_UNIT_SERVE_WORLD_H

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/own.h"
#include "os/tree.h"
#include "policy/owner.h"
#include "serve/serve.h"
#include "serve/skills.h"

/* The world of the current test. */
static struct world {
	char top[64]; /* a real path, without symlinks */
	struct serve_options opt;
	struct serve serve;
} * w;

static inline char *world_path(const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", w->top, name) > 0);
	return path;
}

/* The skill NAME of the world. */
static inline struct skill skill_at(const char *name)
{
	return (struct skill){ strdup(name), world_path(name) };
}

static inline void skill_done(struct skill *s)
{
	free(s->name);
	free(s->dir);
}

static inline void world_mkdir(const char *name)
{
	auto_free char *path = world_path(name);

	assert_int_equal(mkdir(path, 0755), 0);
}

static inline void world_file(const char *name, const char *text)
{
	auto_free char *path = world_path(name);
	auto_file f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
}

/* Makes a skill that runs `sh -c SCRIPT`. `permissions` is the value of the key "permissions" in
 * its manifest. */
static inline void world_skill(const char *name, const char *permissions, const char *script)
{
	auto_free char *file = NULL;
	auto_free char *text = NULL;

	assert_true(asprintf(&file, "%s/skillsandbox.yaml", name) > 0);
	assert_true(asprintf(&text,
	                     "skill: {name: t, version: '1'}\npermissions: %s\n"
	                     "entrypoint: {command: /bin/sh, args: ['-c', '%s', sh]}\n",
	                     permissions, script) > 0);
	auto_free char *dir = world_path(name);
	(void)mkdir(dir, 0755);
	world_file(file, text);
}

static inline int world_setup(void **state)
{
	struct ssb_error err = { 0 };

	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	snprintf(w->top, sizeof(w->top), "/tmp/ssb-serve-XXXXXX");
	assert_non_null(mkdtemp(w->top));
	world_mkdir("home");
	world_mkdir("skills");
	auto_free char *home = world_path("home");
	assert_int_equal(setenv("HOME", home, 1), 0);
	assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
	assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
	assert_int_equal(owner_load(&w->serve.owner, &err), 0);
	w->serve.opt = &w->opt;
	return 0;
}

static inline int world_teardown(void **state)
{
	owner_done(&w->serve.owner);
	assert_int_equal(tree_remove(AT_FDCWD, w->top), 0);
	free(w);
	return 0;
}

/* Returns the number of child processes of this test, including those that are not reaped. */
static inline int world_children(void)
{
	char path[64];
	int n = 0;
	int c;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	auto_file f = fopen(path, "re");
	while (f != NULL && (c = fgetc(f)) != EOF) {
		n += c == ' ';
	}
	return n;
}

#endif
