/* programs.c - looks for programs in the directories of the system. */
#include "skill/programs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
