#include "seccomp_names.h"

#include <linux/audit.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t arch_of(uint32_t audit)
{
	return audit == AUDIT_ARCH_X86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
}

int seccomp_names_find(uint32_t audit, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch_of(audit), name);

	if (nr == __NR_SCMP_ERROR) {
		return -2;
	}
	/* If another negative number is returned, the call exists only on other architectures. */
	return nr < 0 ? -1 : nr;
}

void seccomp_names_of(uint32_t audit, int nr, char *out, size_t size)
{
	char *name = seccomp_syscall_resolve_num_arch(arch_of(audit), nr);

	snprintf(out, size, "%s", name != NULL ? name : "");
	free(name);
}
