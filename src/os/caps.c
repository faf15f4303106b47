/* caps.c - sets, drops and locks the capabilities of this process. */
#include "os/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECUREBITS                                                                                 \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |   \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

int caps_set(uint64_t keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		data[i].permitted = (uint32_t)(keep >> (32 * i));
		data[i].effective = data[i].permitted;
	}
	return (int)syscall(SYS_capset, &head, data);
}

int caps_keep(uint64_t keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) != 0) {
		return -1;
	}
	return caps_set(keep & (data[0].permitted | (uint64_t)data[1].permitted << 32));
}

int caps_unbound(void)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
		return -1;
	}
	for (unsigned long cap = 0;; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0) {
			continue;
		}
		/* The kernel does not let this process clear the capability. This is an error only
		 * if the capability is set. */
		int bound = errno == EINVAL ? -1 : prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (bound < 0) {
			return 0; /* the kernel has no more capabilities */
		}
		if (bound > 0) {
			return -1;
		}
	}
}

int caps_lock(uint64_t keep)
{
	return prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) != 0 ? -1 : caps_set(keep);
}

int caps_drop(uint64_t keep)
{
	return caps_unbound() != 0 ? -1 : caps_lock(keep);
}

bool caps_none(bool bounding)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) != 0) {
		return false;
	}
	uint32_t any = 0;
	for (int i = 0; i < 2; i++) {
		any |= data[i].permitted | data[i].effective | data[i].inheritable;
	}
	for (unsigned long cap = 0; bounding && any == 0; cap++) {
		int in_bound = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (in_bound < 0) {
			return true;
		}
		any |= (uint32_t)in_bound;
	}
	return any == 0;
}
