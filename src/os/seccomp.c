/* seccomp.c - loads the filters that tools/seccomp-gen.c made. */
#include "os/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

static enum seccomp_reach reach_of(bool unix_sockets, bool inet_sockets)
{
	return !inet_sockets  ? SECCOMP_REACH_NONE
	       : unix_sockets ? SECCOMP_REACH_UNIX
	                      : SECCOMP_REACH_INET;
}

const struct seccomp_blob *seccomp_blob(enum seccomp_profile profile, bool unix_sockets,
                                        bool inet_sockets)
{
	return &seccomp_blobs[profile][reach_of(unix_sockets, inet_sockets)];
}

static const char *load_remedy(int e)
{
	switch (e) {
	case EACCES:
		return "no_new_privs is not set";
	case ENOSYS:
	case EINVAL:
		return "this kernel has no seccomp filters (CONFIG_SECCOMP_FILTER), or a container "
		       "denies seccomp(2)";
	case EPERM:
		return "a filter that is already in place, such as a container's, denies "
		       "seccomp(2)";
	default:
		return "the kernel refused the filter";
	}
}

/* Returns the new fd of the listener if `flags` ask for one, otherwise 0; -1 with errno on
 * failure. */
static int set_filter(const struct seccomp_blob *blob, unsigned flags)
{
	struct sock_fprog prog = {
		.len = blob->len,
		.filter =
		        (struct sock_filter *)(uintptr_t)blob->insns, /* only read by the kernel */
	};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

static int load_blob(const struct seccomp_blob *blob, struct ssb_error *err)
{
	if (set_filter(blob, 0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "seccomp", "%s", load_remedy(errno));
	}
	return 0;
}

int seccomp_load(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                 struct ssb_error *err)
{
	return load_blob(seccomp_blob(profile, unix_sockets, inet_sockets), err);
}

int seccomp_load_observed(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                          int *ret_listener, struct ssb_error *err)
{
	const struct seccomp_blob *blob =
	        &seccomp_observed_blobs[profile][reach_of(unix_sockets, inet_sockets)];
	/* WAIT_KILLABLE_RECV (Linux 5.19): while a call is examined, a signal does not restart it.
	 * On older kernels the same call may be observed twice. */
	int fd = set_filter(blob, SECCOMP_FILTER_FLAG_NEW_LISTENER |
	                                  SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	if (fd < 0 && errno == EINVAL) {
		fd = set_filter(blob, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	}
	if (fd < 0 && errno == EBUSY) {
		return ssb_fail(
		        err, SSB_E_LAYER, EBUSY, "audit",
		        "another observer (an outer sandbox or container manager) uses seccomp "
		        "notification, and the kernel allows only one; --audit off runs "
		        "without observation");
	}
	if (fd < 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "seccomp", "%s", load_remedy(errno));
	}
	*ret_listener = fd;
	return 0;
}

int seccomp_load_init(struct ssb_error *err)
{
	return load_blob(&seccomp_init_blob, err);
}

int seccomp_load_broker(struct ssb_error *err)
{
	return load_blob(&seccomp_broker_blob, err);
}

int seccomp_load_dialler(struct ssb_error *err)
{
	return load_blob(&seccomp_dialler_blob, err);
}

int seccomp_load_maker(struct ssb_error *err)
{
	return load_blob(&seccomp_maker_blob, err);
}

/* ---- what a filter would answer, without the kernel ------------------------- */

/* Evaluates the few instructions that tools/seccomp-gen.c emits. A filter with any other
 * instruction cannot be trusted, so the result is then the strictest answer. */
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
