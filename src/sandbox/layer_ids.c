/* layer_ids.c - the user and network namespaces. Writes the id maps and limits of the user
 * namespace, makes the network namespace, and takes the ids. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clone.h"
#include "os/net.h"
#include "sandbox/stage.h"

#define HOST_NAME "sandbox"

/* Writes the id maps without root: an unprivileged caller may map only its own uid and gid. */
static int userns_map_self(const struct stage *s, struct ssb_error *err)
{
	char uid[48], gid[48];

	snprintf(uid, sizeof(uid), "%u %u 1\n", s->config->uid, s->config->outer_uid);
	snprintf(gid, sizeof(gid), "%u %u 1\n", s->config->gid, s->config->outer_gid);
	if (clone_proc_write(-1, "/proc/self/setgroups", "deny") != 0 ||
	    clone_proc_write(-1, "/proc/self/uid_map", uid) != 0 ||
	    clone_proc_write(-1, "/proc/self/gid_map", gid) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "userns",
		                "cannot write the id maps; a security module may forbid it "
		                "(Ubuntu: see 'skillsandbox doctor')");
	}
	return 0;
}

/* Limits the inotify instances and watches of one run, because the kernel counts them for the
 * caller's uid on the whole machine, and the caller's editors need them, too. Once the capabilities
 * are gone, no process of the sandbox can raise the limit. */
static int userns_limit(struct stage *s, struct ssb_error *err)
{
	static const struct {
		const char *path;
		unsigned most;
	} COUNTS[] = {
		{ "/proc/sys/user/max_inotify_instances", MAX_INOTIFY_INSTANCES },
		{ "/proc/sys/user/max_inotify_watches", MAX_INOTIFY_WATCHES },
	};

	for (size_t i = 0; i < ARRAY_LEN(COUNTS); i++) {
		char text[16];
		snprintf(text, sizeof(text), "%u", COUNTS[i].most);
		if (clone_proc_write(AT_FDCWD, COUNTS[i].path, text) == 0 || errno == ENOENT) {
			continue; /* ENOENT: this kernel has no such limit */
		}
		if (errno != EROFS && errno != EACCES && errno != EPERM) {
			return ssb_fail(err, SSB_E_LAYER, errno, "userns", "cannot limit inotify");
		}
		/* In a container /proc/sys may be read-only, or closed by a security
		 * module. */
		snprintf(s->reports[LAYER_USERNS].detail, sizeof(s->reports[LAYER_USERNS].detail),
		         "user, mount and pid namespaces; uid %u inside; inotify is not limited",
		         s->config->uid);
	}
	return 0;
}

int layer_take_ids(const struct stage *s, struct ssb_error *err)
{
	/* A new session keyring: the skill must not have the keys of the caller's login. Ignore a
	 * failure: a kernel without keyrings has no keys. */
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	if (s->config->mapped_by_parent &&
	    (setgroups(0, NULL) != 0 ||
	     setresgid(s->config->gid, s->config->gid, s->config->gid) != 0 ||
	     setresuid(s->config->uid, s->config->uid, s->config->uid) != 0)) {
		return ssb_fail(err, SSB_E_LAYER, errno, "userns", "cannot become uid %u",
		                s->config->uid);
	}
	return 0;
}

int layer_userns(struct stage *s, struct ssb_error *err)
{
	if (!s->config->mapped_by_parent) {
		if (userns_map_self(s, err) != 0) {
			return -1;
		}
	} else {
		struct msg_fds none;
		(void)stage_wait(s, MSG_MAPPED, &none);
	}
	snprintf(s->reports[LAYER_USERNS].detail, sizeof(s->reports[LAYER_USERNS].detail),
	         "user, mount and pid namespaces; uid %u inside", s->config->uid);
	return userns_limit(s, err) != 0 ? -1 : layer_take_ids(s, err);
}

int layer_net(struct stage *s, struct ssb_error *err)
{
	if (unshare(SKILL_NAMESPACES) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "net",
		                "this machine does not allow network, ipc, uts and cgroup "
		                "namespaces");
	}
	if (sethostname(HOST_NAME, sizeof(HOST_NAME) - 1) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "net", "cannot set the host name");
	}
	snprintf(s->reports[LAYER_NET].detail, sizeof(s->reports[LAYER_NET].detail),
	         "network (%s), ipc, uts and cgroup namespaces",
	         s->config->plan->n_egress > 0 ? "loopback and the broker" : "loopback only");
	return 0;
}

int layer_loopback(struct stage *s, struct ssb_error *err)
{
	(void)s;
	return net_loopback_up() != 0
	               ? ssb_fail(err, SSB_E_LAYER, errno, "net", "cannot bring up the loopback")
	               : 0;
}
