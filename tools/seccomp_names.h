/* seccomp_names.h - system call numbers from libseccomp. They have their own file, because
 * libseccomp's header and src/os/seccomp.h use the same names. */
#ifndef SECCOMP_NAMES_H
#define SECCOMP_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Returns the number of a call; -1: not on this architecture, -2: unknown name. `audit` is
 * AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64. */
int seccomp_names_find(uint32_t audit, const char *name);

/* Writes the name of the call `nr`; "" if it is unknown. */
void seccomp_names_of(uint32_t audit, int nr, char *out, size_t size);

#endif
