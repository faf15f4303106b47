/* consent_world.h - the directory of a skill, and an owner with a store of approvals. */
#ifndef TESTS_CONSENT_WORLD_H
#define TESTS_CONSENT_WORLD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "consent/consent.h"
#include "os/file.h"
#include "os/tree.h"

static char top[64];
static char skill[80];
static struct owner owner;
static char *environment[] = { (char[]){ "HAVE=1" }, NULL };

static inline int setup(void **state)
{
	/* The tests make many files, so they use a file system in memory if there is one. */
	snprintf(top, sizeof(top), "%s/ssb-consent-XXXXXX",
	         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(top));
	snprintf(skill, sizeof(skill), "%s/skill", top);
	assert_int_equal(mkdir(skill, 0755), 0);
	owner = (struct owner){ .uid = getuid(),
		                .gid = getgid(),
		                .home = top,
		                .state_dir = top,
		                .environ = environment };
	return 0;
}

static inline int teardown(void **state)
{
	return tree_remove(AT_FDCWD, top);
}

static inline const char *in_skill(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", skill, name);
	return path;
}

static inline void put(const char *name, const char *text)
{
	auto_fd fd = open(in_skill(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

#endif
