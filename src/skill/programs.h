/* programs.h - finds programs of the system, which every sandbox has. */
#ifndef SKILL_PROGRAMS_H
#define SKILL_PROGRAMS_H

#include <stdbool.h>

#include "manifest/manifest.h"
#include "skillsandbox.h"

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* True if the system has a program with this name or absolute path. */
bool programs_has(const char *name);
/* Adds a finding if the system does not have the program that the manifest starts. An image or the
 * owner's own PATH can have it, so this is no error. */
void programs_warn(const char *file, const struct mtext *command, enum ssb_severity severity,
                   struct ssb_diags *diags);

#endif
