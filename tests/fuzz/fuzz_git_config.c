/* Reads settings of git from arbitrary bytes: no name that is found may be empty or longer than a
 * path, and each name must come from other bytes than the others. */
#include <limits.h>
#include <string.h>

#include "fuzz.h"
#include "wire/git_config.h"

static void count(void *arg, enum git_config_name name, const char *path)
{
	size_t len = strlen(path);

	must(len > 0 && len < PATH_MAX);
	must(name == GIT_CONFIG_HOOKS || name == GIT_CONFIG_INCLUDE);
	++*(size_t *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;
	char *exact = malloc(size > 0 ? size : 1);

	must(exact != NULL);
	memcpy(exact, data, size);
	git_config_read(exact, size, count, &n);
	free(exact);
	must(n <= size / 7); /* the shortest name needs "path=x" and a newline */
	return 0;
}
