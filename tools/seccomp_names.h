/* seccomp_names.h - system call numbers from libseccomp, apart from all else:
 * its header and src/os/seccomp.h use the same names. */
#ifndef SECCOMP_NAMES_H
#define SECCOMP_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* `audit` is AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64. -1: this architecture
 * has no such call, -2: nobody knows the name. */
int seccomp_names_find(uint32_t audit, const char *name);

/* The other way round; "" where nobody knows the number. */
void seccomp_names_of(uint32_t audit, int nr, char *out, size_t size);

#endif
