/* repos_around.c - lists the directories above writable grants. */
#include "sandbox/repos_around.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "policy/path.h"

static int add_above(const struct ssb_plan *plan, const char *path, struct string_list *ret)
{
	auto_free char *dir = strdup(path);

	while (dir != NULL && strcmp(dir, "/") != 0 && strcmp(dir, plan->home) != 0) {
		char *above = path_parent(dir);
		free(dir);
		dir = above;
		const struct grant *in = dir != NULL ? plan_shown_by(plan, dir) : NULL;
		if (in != NULL && grant_is_work(in)) {
			return 0;
		}
		if (dir != NULL && string_list_add_once(ret, dir, MAX_AROUND) != 0) {
			return -1;
		}
	}
	return dir != NULL ? 0 : -1;
}

int repos_around(const struct ssb_plan *plan, struct string_list *ret, struct ssb_error *err)
{
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		if (grant_is_written(g) && add_above(plan, g->path, ret) != 0) {
			return ssb_fail(err, SSB_E_LAYER, errno, "mounts",
			                "too many directories lie above what the skill may write "
			                "(%d); grant fewer of them",
			                MAX_AROUND);
		}
	}
	return 0;
}
