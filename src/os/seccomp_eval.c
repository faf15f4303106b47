/* seccomp_eval.c - what a filter would answer, without the kernel. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "os/seccomp.h"

/* The few instructions that our compiler emits; anything else is a filter that
 * cannot be trusted, and answers as the strictest one would. */
uint32_t seccomp_eval(const struct seccomp_blob *blob, const struct seccomp_data *call)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < blob->len; pc++) {
		const struct sock_filter *i = &blob->insns[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (i->k % 4 != 0 || i->k > sizeof(*call) - 4) {
				return SECCOMP_RET_KILL_PROCESS;
			}
			memcpy(&a, (const char *)call + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			return SECCOMP_RET_KILL_PROCESS;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

const char *seccomp_call_name(const struct seccomp_data *call)
{
#if defined(__x86_64__)
	const uint32_t native = AUDIT_ARCH_X86_64;
#else
	const uint32_t native = AUDIT_ARCH_AARCH64;
#endif
	const char *name = seccomp_call_names;

	if (call->arch != native || call->nr < 0 || call->nr >= SECCOMP_N_NAMES) {
		return "";
	}
	for (int nr = call->nr; nr > 0; nr--) {
		name += strlen(name) + 1;
	}
	return name;
}
