/* repos_known.c - loads and extends the list of repositories that earlier runs found. */
#include "sandbox/repos_known.h"

#include <errno.h>
#include <sys/stat.h>

#include "os/kept_rows.h"

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 || errno != ENOENT;
}

static const struct kept_rows KNOWN = { "repositories", "list of known repositories", "mounts",
	                                is_there };

int repos_known_load(const char *state_dir, struct string_list *ret, struct ssb_error *err)
{
	return kept_rows_load(&KNOWN, state_dir, ret, err);
}

void repos_known_add(const char *state_dir, const struct string_list *paths)
{
	kept_rows_add(&KNOWN, state_dir, paths);
}
