/* hook_world.h - a project with skills, and a function that asks the hook about commands in it. */
#ifndef HOOK_WORLD_H
#define HOOK_WORLD_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/tree.h"

/* Included as source: the code of the command line is not in the library. */
#include "cli/hook_line.c"

#include "cli/hook_skill.c"

#include "cli/hook_reason.c"

#include "cli/hook_judge.c"

static const char MANIFEST[] =
        "skill:\n  name: x\n  version: 1.0.0\n"
        "permissions: {}\nentrypoint:\n  command: python3\n  args: [main.py]\n";
static const char FIXED[] =
        "skill:\n  name: f\n  version: 1.0.0\n"
        "permissions: {}\nentrypoint:\n  command: bash\n  args: [run.sh, --fast]\n";
static const char DIRECT[] = "skill:\n  name: d\n  version: 1.0.0\n"
                             "permissions: {}\nentrypoint:\n  command: ./run\n";

static const char *world_self = "/usr/bin/skillsandbox";
static const char *world_path = NULL;          /* the PATH that the hook sees */
static const char *world_project = ".";        /* the agent's directory, relative to `world` */
static const char *world_config, *world_state; /* the owner's directories */
static char world[PATH_MAX]; /* the project: skills/{x,f,d,m,w}, tools/, out -> skills/x/main.py */

static void put(const char *path, const char *text)
{
	auto_free char *full = path_from(world, path);
	auto_file f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static inline int make_world(void **state)
{
	static const char *const DIRS[] = {
		"skills", "skills/x", "skills/x/sub", "skills/f",         "skills/d", "skills/bad",
		"tools",  "a b",      "skills/m",     "skills/m/scripts", "skills/w"
	};

	char template[] = "/tmp/test-hook-XXXXXX";
	auto_free char *real = realpath(mkdtemp(template), NULL);
	snprintf(world, sizeof(world), "%s", real);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		auto_free char *d = path_from(world, DIRS[i]);
		assert_int_equal(mkdir(d, 0755), 0);
	}
	put("skills/x/skillsandbox.yaml", MANIFEST);
	put("skills/x/main.py", "");
	put("skills/x/other.py", "");
	put("skills/x/sub/deep.py", "");
	put("skills/f/skillsandbox.yaml", FIXED);
	put("skills/f/run.sh", "");
	put("skills/d/skillsandbox.yaml", DIRECT);
	put("skills/d/run", "");
	put("skills/bad/skillsandbox.yaml", ":");
	put("skills/bad/main.py", "");
	put("skills/m/SKILL.md", "---\nname: m\n---\n");
	put("skills/m/scripts/a.py", "");
	put("skills/m/scripts/b", "#!/usr/bin/perl\n");
	put("skills/m/scripts/c.sh", "#!/bin/bash\n");
	put("skills/m/scripts/d.js", "");
	put("skills/m/scripts/e.sh", "#!/bin/sh\n");
	put("skills/w/manifest.yaml", "name: w\n");
	put("skills/w/skill.py", "");
	put("SKILL.md", "---\nname: project\n---\n");
	put("tools/tool.py", "");
	auto_free char *out = path_from(world, "out"),
	               *in = path_from(world, "skills/x/outside.py");
	auto_free char *dir = path_from(world, "by");
	assert_int_equal(symlink("skills/x/main.py", out), 0);
	assert_int_equal(symlink("../../tools/tool.py", in), 0);
	return symlink("skills", dir);
}

static int drop_world(void **state)
{
	return tree_remove(AT_FDCWD, world);
}

/* Copies `s` to `out`, with the path of the world for each "@". */
static void expand(const char *s, struct buf *out)
{
	for (; *s != '\0'; s++) {
		if (*s == '@') {
			buf_adds(out, world);
		} else {
			buf_addc(out, *s);
		}
	}
}

static enum hook_answer ask(const char *command, const char *cwd, bool cdpath, struct buf *ret)
{
	auto_buf text;

	buf_init(&text, 1 << 20);
	buf_init(ret, 1 << 20);
	expand(command, &text);
	auto_free char *dir = path_from(world, cwd), *project = path_from(world, world_project);
	const struct hook_question q = { .command = text.data != NULL ? text.data : "",
		                         .cwd = dir,
		                         .home = world,
		                         .project = project,
		                         .cdpath = cdpath,
		                         .path = world_path,
		                         .config_dir = world_config,
		                         .state_dir = world_state,
		                         .self = world_self };
	return hook_judge(&q, ret);
}

#define RUN "/usr/bin/skillsandbox run "

#endif
