/* programs.c - looks for programs in the directories of the system. */
#include "skill/programs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/own.h"
#include "base/string_list.h"
#include "base/suggest.h"
#include "manifest/report.h"
#include "os/entries.h"

#define NAMES_MAX 20000 /* names that are compared */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

bool programs_has(const char *name)
{
	char path[4096];

	if (strchr(name, '/') != NULL) {
		return name[0] == '/' && is_program(name);
	}
	for (const char *p = SYSTEM_PATH; *name != '\0' && *p != '\0';) {
		size_t n = strcspn(p, ":");
		int len = snprintf(path, sizeof(path), "%.*s/%s", (int)n, p, name);
		if (len > 0 && (size_t)len < sizeof(path) && is_program(path)) {
			return true;
		}
		p += n + (p[n] == ':');
	}
	return false;
}

/* Adds the names in the directory, of which the path has `len` bytes. */
static void add_names(const char *path, size_t len, struct string_list *names)
{
	char dir[64];
	struct entries e;
	const struct dirent64 *found;

	snprintf(dir, sizeof(dir), "%.*s", (int)len, path);
	auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	entries_init(&e, fd);
	while (fd >= 0 && (found = entries_next(&e)) != NULL) {
		(void)string_list_add(names, found->d_name, NAMES_MAX);
	}
}

/* Returns the program of the system with the most similar name; it is new. NULL: none is similar
 * enough. */
static char *near_program(const char *name)
{
	AUTO(string_list_done) struct string_list names = { 0 };

	for (const char *p = SYSTEM_PATH; *p != '\0';) {
		size_t n = strcspn(p, ":");
		add_names(p, n, &names);
		p += n + (p[n] == ':');
	}
	const char *near = suggest(name, strlen(name), (const char *const *)names.v, names.n,
	                           sizeof(names.v[0]));
	return near != NULL && programs_has(near) ? strdup(near) : NULL;
}

void programs_warn(const char *file, const struct mtext *command, enum ssb_severity severity,
                   struct ssb_diags *diags)
{
	char where[WHERE_SIZE], quoted[QUOTE_SIZE],
	        remedy[300] = "check its spelling, or install it";
	const char *name = command->s;

	if (diags == NULL || name == NULL || strchr(name, '/') != NULL || programs_has(name)) {
		return;
	}
	auto_free char *near = near_program(name);
	if (near != NULL) {
		snprintf(remedy, sizeof(remedy), "did you mean %s?", near);
	}
	report_where(where, sizeof(where), file, command->line, command->col);
	diag_add(diags, severity, where, remedy,
	         "no directory of the usual PATH of this machine has the program %s",
	         report_quote(quoted, name));
}
