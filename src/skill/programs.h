/* programs.h - finds programs of the system, which every sandbox has. */
#ifndef SKILL_PROGRAMS_H
#define SKILL_PROGRAMS_H

#include <stdbool.h>

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* True if the system has a program with this name or absolute path. */
bool programs_has(const char *name);

#endif
