#include "os/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

const struct seccomp_blob *seccomp_blob(enum seccomp_profile profile, bool unix_sockets,
                                        bool inet_sockets)
{
	enum seccomp_reach reach = !inet_sockets  ? SECCOMP_REACH_NONE
	                           : unix_sockets ? SECCOMP_REACH_UNIX
	                                          : SECCOMP_REACH_INET;

	return &seccomp_blobs[profile][reach];
}

const struct seccomp_blob *seccomp_blob_init(void)
{
	return &seccomp_init_blob;
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

static int load(const struct seccomp_blob *blob, struct ssb_error *err)
{
	struct sock_fprog prog = {
		.len = blob->len,
		.filter = (struct sock_filter *)(uintptr_t)blob->insns, /* only read */
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "seccomp", "%s", load_remedy(errno));
	}
	return 0;
}

int seccomp_load(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                 struct ssb_error *err)
{
	return load(seccomp_blob(profile, unix_sockets, inet_sockets), err);
}

int seccomp_load_init(struct ssb_error *err)
{
	return load(&seccomp_init_blob, err);
}

int seccomp_load_broker(struct ssb_error *err)
{
	return load(&seccomp_broker_blob, err);
}

int seccomp_load_dialler(struct ssb_error *err)
{
	return load(&seccomp_dialler_blob, err);
}
