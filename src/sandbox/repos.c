/* repos.c - searches all grants: first for the working trees in them (repos_search.c), then for the
 * git directories of these trees (repos_gitdirs.c). */
#include "sandbox/repos.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/string_list.h"
#include "os/budget.h"
#include "os/kept_rows.h"
#include "policy/path.h"
#include "policy/protect.h"
#include "sandbox/repos_priv.h"

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 || errno != ENOENT;
}

/* The repositories that earlier runs found, for kept_rows.h. A search examines a limited number of
 * names. A skill can make so many names in one run that the search of the next run would not reach
 * the owner's repositories. So repositories that were found once are visited first. The list is a
 * file in the owner's state directory, which no grant shows. */
static const struct kept_rows KNOWN = { "repositories", "list of known repositories", "mounts",
	                                is_there };

bool repos_is_known(const struct repos_search *s, size_t grant, const char *path, bool gitdir)
{
	for (size_t i = 0; i < s->found->n; i++) {
		const struct repo *r = &s->found->v[i];
		if (r->grant == grant && r->gitdir == gitdir && strcmp(r->path, path) == 0) {
			return true;
		}
	}
	return false;
}

const char **repos_cut_of(struct repos_search *s)
{
	return s->in_packages ? &s->package_cut : &s->cut;
}

void repos_cut(struct repos_search *s, const char *why)
{
	*repos_cut_of(s) = *repos_cut_of(s) != NULL ? *repos_cut_of(s) : why;
}

void repos_note_unread(struct repos_search *s, size_t grant, const char *path)
{
	if (errno == EXDEV) {
		repos_cut(s, "a part of it is another mount");
	} else if (errno == ENAMETOOLONG) {
		repos_cut(s, REPOS_TOO_DEEP);
	} else if (errno != ELOOP && errno != ENXIO &&
	           links_is_unread(repos_grant_fd(s, grant), *path != '\0' ? path : ".")) {
		auto_free char *whole = path_join(s->plan->grants[grant].path, path);
		(void)(whole != NULL ? links_unread(whole, s->err) : 0);
		s->failed = true;
	}
}

void repos_add(struct repos_search *s, size_t grant, const char *path, bool gitdir)
{
	if (repos_is_known(s, grant, path, gitdir)) {
		return;
	}
	if (s->found->n >= s->most) {
		s->cut = "there are too many repositories";
		return;
	}
	char *copy = strdup(path);
	if (copy == NULL) {
		s->failed = true;
		return;
	}
	s->found->v[s->found->n++] =
	        (struct repo){ .grant = grant, .path = copy, .gitdir = gitdir };
}

mode_t repos_type_of(struct repos_search *s, const char *path)
{
	struct stat st;

	if (fstatat(repos_grant_fd(s, s->grant), path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		return st.st_mode & S_IFMT;
	}
	repos_note_unread(s, s->grant, path);
	return 0;
}

void repos_hold_whole(struct repos_search *s, const char *path)
{
	if (path == NULL || links_add(&s->found->links, s->plan, path, true) != 0) {
		s->full |= path != NULL && errno == E2BIG;
		s->failed |= !s->full;
	}
}

static int warn_cut(struct string_list *to, const struct grant *g, const char *what,
                    const char *cut)
{
	auto_free char *text = NULL;

	if (cut == NULL) {
		return 0;
	}
	if (asprintf(&text,
	             "write %s: not all of %s was searched for repositories, because %s; the skill "
	             "can write hooks and settings of repositories that were not found",
	             g->path, what, cut) < 0) {
		text = NULL;
		return -1;
	}
	/* Add the text only once: if the sandbox is built a second time, without namespaces, the
	 * search gives the same warnings again. */
	return string_list_add_once(to, text, 8UL * MAX_GRANTS);
}

/* Returns how many repositories the limit of open files allows. Each repository and each grant
 * needs one fd for each held name and three for its directories. */
static size_t most_repos(const struct ssb_plan *plan)
{
	struct rlimit files = { .rlim_cur = 0 };
	size_t each = protect_count_held() + 3;
	size_t beside = 2 * MIN_RUN_FILES + plan->n_grants;

	for (size_t i = 0; i < plan->n_grants; i++) {
		beside += grant_is_work(&plan->grants[i]) ? each : 0;
	}
	(void)getrlimit(RLIMIT_NOFILE, &files);
	size_t most = files.rlim_cur > beside ? (files.rlim_cur - beside) / each : 0;
	return most < MAX_REPOS ? most : MAX_REPOS;
}

static void search_all(const struct ssb_plan *plan, const struct prepared *of_run,
                       const struct string_list *known, struct repos_search *all,
                       struct repos *found, struct ssb_error *err)
{
	struct budget budget = budget_new(MAX_REPO_CPU_MS, MAX_REPO_WALL_MS);
	size_t most = most_repos(plan);

	for (size_t i = 0; i < plan->n_grants; i++) {
		all[i] = (struct repos_search){ .plan = plan,
			                        .of_run = of_run,
			                        .found = found,
			                        .most = most,
			                        .grant = i,
			                        .budget = &budget,
			                        .err = err };
		if (grant_is_work(&plan->grants[i])) {
			repos_search_grant(&all[i], known);
		}
	}
	size_t n_trees = found->n;
	for (size_t i = 0; i < plan->n_grants; i++) {
		if (grant_is_work(&plan->grants[i])) {
			repos_gitdirs_follow(&all[i], n_trees);
		}
	}
	repos_gitdirs_around(&all[0]);
}

static bool any_written(const struct ssb_plan *plan)
{
	size_t i = 0;

	while (i < plan->n_grants && !grant_is_written(&plan->grants[i])) {
		i++;
	}
	return i < plan->n_grants;
}

/* Stores the working trees that were found, for the next run. */
static void keep_found(const struct ssb_plan *plan, const struct repos *found,
                       const char *state_dir)
{
	AUTO(string_list_done) struct string_list paths = { 0 };

	for (size_t i = 0; i < found->n; i++) {
		const struct repo *r = &found->v[i];
		auto_free char *path =
		        r->gitdir ? NULL : path_join(plan->grants[r->grant].path, r->path);
		if (path != NULL) {
			(void)string_list_add(&paths, path, MAX_REPOS);
		}
	}
	if (paths.n > 0) {
		kept_rows_add(&KNOWN, state_dir, &paths);
	}
}

int repos_find(const struct ssb_plan *plan, struct prepared *of_run, const char *state_dir,
               struct repos **ret, struct ssb_error *err)
{
	AUTO(string_list_done) struct string_list known = { 0 };

	assert(plan != NULL && of_run != NULL && ret != NULL);
	if (!any_written(plan)) {
		*ret = NULL;
		return 0;
	}
	auto_free struct repos_search *all = calloc(plan->n_grants, sizeof(*all));
	struct repos *found = calloc(1, sizeof(*found));
	bool failed = all == NULL || found == NULL ||
	              (state_dir != NULL && kept_rows_load(&KNOWN, state_dir, &known, err) != 0);

	if (!failed) {
		search_all(plan, of_run, &known, all, found, err);
	}
	for (size_t i = 0; i < plan->n_grants && !failed; i++) {
		if (all[i].full) {
			const struct grant *g = &plan->grants[i];
			repos_free(found);
			return ssb_fail(
			        err, SSB_E_LAYER, 0, "mounts",
			        "too many directories in '%.150s' (%.40s) are not readable for "
			        "you, and may contain files that the skill must not write; make "
			        "them readable (chmod u+rx), or grant another directory",
			        g->path, g->where);
		}
		failed = all[i].failed ||
		         warn_cut(&of_run->warnings, &plan->grants[i], "it", all[i].cut) != 0 ||
		         warn_cut(&of_run->quiet, &plan->grants[i], "the packages in it",
		                  all[i].package_cut) != 0;
	}
	if (failed) {
		repos_free(found);
		return ssb_fail(err, SSB_E_NOMEM, 0, "mounts", "out of memory");
	}
	if (state_dir != NULL) {
		keep_found(plan, found, state_dir);
	}
	*ret = found;
	return 0;
}

void repos_free(struct repos *r)
{
	for (size_t i = 0; r != NULL && i < r->n; i++) {
		free(r->v[i].path);
		free(r->v[i].shared);
	}
	for (size_t i = 0; r != NULL && i < r->n_named; i++) {
		free(r->named[i].path);
	}
	if (r != NULL) {
		string_list_done(&r->hooks);
		string_list_done(&r->around);
		string_list_done(&r->gitdirs);
		links_done(&r->links);
	}
	free(r);
}
