/* repos_world.h - a writable grant in which a test makes repositories and searches for them. */
#ifndef TESTS_REPOS_WORLD_H
#define TESTS_REPOS_WORLD_H

#include <sys/resource.h>

#include "plan_world.h"

#include "base/string_list.h"
#include "policy/path.h"
#include "sandbox/repos.h"
#include "sandbox/sandbox.h"

static char root[64];
static struct grant grant;
static struct ssb_plan plan;
static struct prepared prepared;
static struct repos *found;
static const char *state_dir; /* NULL: the search finds no record of earlier ones */

static inline char *in(const char *path)
{
	static char out[4][4600];
	static unsigned turn;
	char *p = out[turn++ % 4];

	snprintf(p, sizeof(out[0]), "%s/%s", root, path);
	return p;
}

static inline int world(void **state)
{
	snprintf(root, sizeof(root), "/tmp/ssb-repos-XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(mkdir(in("w"), 0755), 0);
	grant = (struct grant){ .path = strdup(in("w")),
		                .access = ACCESS_WRITE,
		                .is_dir = true,
		                .fd = open(in("w"), O_PATH | O_CLOEXEC) };
	grant.target = grant.path;
	plan = (struct ssb_plan){ .grants = &grant, .n_grants = 1, .home = root };
	found = NULL;
	state_dir = NULL;
	return 0;
}

static inline int world_end(void **state)
{
	repos_free(found);
	prepared_done(&prepared);
	free(grant.path);
	own_close(&grant.fd);
	return tree_remove(AT_FDCWD, root);
}

/* Makes the directories "a", "a/b" and "a/b/c" for "a/b/c". */
static inline void dirs(const char *path)
{
	char part[4500];

	for (size_t i = 1; path[i - 1] != '\0'; i++) {
		if (path[i] == '/' || path[i] == '\0') {
			snprintf(part, sizeof(part), "w/%.*s", (int)i, path);
			(void)mkdir(in(part), 0755);
		}
	}
}

static inline void file(const char *path, const char *text)
{
	char whole[600];

	snprintf(whole, sizeof(whole), "w/%s", path);
	write_file(in(whole), text, 0644);
}

static inline void search(void)
{
	struct ssb_error err = { 0 };

	repos_free(found);
	found = NULL;
	prepared_done(&prepared);
	assert_int_equal(repos_find(&plan, &prepared, state_dir, &found, &err), 0);
}

static inline void let_open(rlim_t files)
{
	struct rlimit now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	now.rlim_cur = files;
	now.rlim_max = now.rlim_max > files ? now.rlim_max : files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

#endif
