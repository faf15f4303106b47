#include "seccomp_names.h"

#include <linux/audit.h>
#include <seccomp.h>

int seccomp_names_find(uint32_t audit, const char *name)
{
	uint32_t arch = audit == AUDIT_ARCH_X86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
	int nr = seccomp_syscall_resolve_name_arch(arch, name);

	if (nr == __NR_SCMP_ERROR) {
		return -2;
	}
	return nr < 0 ? -1 : nr; /* libseccomp's other negative numbers: elsewhere only */
}
