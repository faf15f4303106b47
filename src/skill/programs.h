/* programs.h - the programs that every sandbox has: those of the system. */
#ifndef SKILL_PROGRAMS_H
#define SKILL_PROGRAMS_H

#include <stdbool.h>

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* True if there is a program with this name or absolute path. */
bool programs_has(const char *name);

#endif
