/* layer_privs.c - the layers that change only the calling process: environment, capabilities,
 * Landlock, seccomp. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "os/seccomp.h"
#include "sandbox/fallback.h"
#include "sandbox/stage.h"
#include "sandbox/root.h"

static void report_detail(struct stage *s, enum layer_id id, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void report_detail(struct stage *s, enum layer_id id, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(s->reports[id].detail, sizeof(s->reports[id].detail), fmt, ap);
	va_end(ap);
}

int layer_env(struct stage *s, struct ssb_error *err)
{
	(void)err;
	report_detail(s, LAYER_ENV, "%zu variables passed, %zu withheld", s->config->plan->env.n,
	              s->config->plan->env_withheld);
	return 0;
}

int layer_caps(struct stage *s, struct ssb_error *err)
{
	/* Without a user namespace only root has capabilities, and this process is no
	 * longer root. */
	if (s->config->namespaces && (s->unbound ? caps_lock(0) : caps_drop(0)) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "caps", "cannot drop the capabilities");
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "caps", "cannot set no_new_privs");
	}
	report_detail(s, LAYER_CAPS, "no capabilities in any set, no_new_privs, securebits locked");
	return 0;
}

static int landlock_path(int rules, int abi, const char *path, unsigned may)
{
	auto_fd fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);

	/* A path that does not exist in the view needs no rule. */
	return fd < 0 ? 0 : landlock_allow(rules, abi, fd, may);
}

/* Removes the right to make sockets and FIFOs if a writable grant lies beneath the private place
 * `path`. Landlock's rights also apply to mounts beneath a path, so the skill could otherwise leave
 * a socket or FIFO behind on the host. */
static unsigned private_rights(const struct ssb_plan *plan, const char *path, unsigned may)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct grant *g = &plan->grants[i];
		if (g->access == ACCESS_WRITE && strncmp(g->target, path, len) == 0 &&
		    (g->target[len] == '/' || g->target[len] == '\0')) {
			may &= ~(unsigned)LL_SPECIAL;
		}
	}
	return may;
}

/* Allows the sandbox's own devices one by one. It is used if a granted device appears in /dev: a
 * rule for all of /dev would allow writing to the granted device, too. */
static int landlock_devices(int rules, int abi)
{
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		if (VIEW[i].shown == VIEW_DEVICE &&
		    landlock_path(rules, abi, VIEW[i].path, view_may(&VIEW[i])) != 0) {
			return -1;
		}
	}
	return landlock_path(rules, abi, "/dev", LL_READ) != 0
	               ? -1
	               : landlock_path(rules, abi, "/dev/pts", LL_READ | LL_WRITE);
}

static bool grants_devices(const struct ssb_plan *plan)
{
	return ARRAY_HAS(e, plan->grants, plan->n_grants, e->kind == GRANT_DEVICES);
}

/* Returns the rights for a row of the view. If an image's root file system is shown, "/" must be
 * readable, too: its top directories are not in the table, and get no rule of their own. */
static unsigned view_rights(const struct ssb_plan *plan, const struct view_row *v)
{
	bool top = plan->rootfs.path != NULL && v->path[1] == '\0';

	return private_rights(plan, v->path, v->may) | (top ? LL_READ | LL_EXEC : 0);
}

static int landlock_rules(const struct stage *s, int rules, int abi)
{
	bool devices = grants_devices(s->config->plan);

	for (size_t i = 0; i < VIEW_ROWS; i++) {
		const struct view_row *v = &VIEW[i];
		int failed = v->may == 0 ? 0
		             : devices && strcmp(v->path, "/dev") == 0
		                     ? landlock_devices(rules, abi)
		                     : landlock_path(rules, abi, v->path,
		                                     view_rights(s->config->plan, v));
		if (failed != 0) {
			return -1;
		}
	}
	if (landlock_path(rules, abi, s->config->plan->home,
	                  private_rights(s->config->plan, s->config->plan->home, LL_ALL)) != 0) {
		return -1;
	}
	for (size_t i = 0; i < s->config->plan->n_grants; i++) {
		const struct grant *g = &s->config->plan->grants[i];
		if (landlock_path(rules, abi, g->target, grants_rights(g)) != 0) {
			return -1;
		}
	}
	return 0;
}

static int rules_of(const struct stage *s, int rules, int abi)
{
	return s->config->namespaces ? landlock_rules(s, rules, abi)
	                             : fallback_rules(s->config, rules, abi);
}

int layer_landlock(struct stage *s, struct ssb_error *err)
{
	int abi = landlock_abi();
	if (abi == 0) {
		return ssb_fail(
		        err, SSB_E_LAYER, 0, "landlock",
		        "this kernel has no Landlock (needs Linux 5.13 with "
		        "CONFIG_SECURITY_LANDLOCK and 'landlock' in the lsm= list); --best-effort "
		        "landlock runs without this second protection of files");
	}
	auto_fd rules = landlock_new(abi);
	if (rules < 0 || rules_of(s, rules, abi) != 0 || landlock_enforce(rules) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "landlock", "cannot apply the rules");
	}
	report_detail(s, LAYER_LANDLOCK, "ABI %d%s", abi,
	              abi >= 6 ? ", abstract sockets and signals scoped" : "");
	return 0;
}

const struct seccomp_blob *stage_filter(const struct stage_config *config, bool unix_sockets)
{
	return seccomp_blob(plan_filter(config->plan), unix_sockets, config->namespaces);
}

/* Loads the filter that asks the supervisor about calls. The supervisor fetches the listener by its
 * number. The fd is not sent, because the filter is active already: the sendmsg() would itself wait
 * for the supervisor's answer. */
static int load_observed(struct stage *s, struct ssb_error *err)
{
	struct msg m = { .kind = MSG_LISTENER, .listener.unix_sockets = s->unix_sockets };

	if (seccomp_load_observed(plan_filter(s->config->plan), s->unix_sockets,
	                          s->config->namespaces, &m.listener.number, err) != 0) {
		return -1;
	}
	if (write(s->ctl, &m, sizeof(m)) != (ssize_t)sizeof(m)) {
		return ssb_fail(err, SSB_E_LAYER, errno, "audit", "the supervisor ended early");
	}
	s->reports[LAYER_AUDIT].state = LAYER_ON;
	report_detail(s, LAYER_AUDIT, "%s: files, network, programs, signals, refused calls",
	              audit_level_name(s->config->plan->audit));
	return 0;
}

static void report_unobserved(struct stage *s, const struct ssb_error *why)
{
	bool lost = why->code != SSB_OK || s->config->plan->audit != AUDIT_OFF;

	s->reports[LAYER_AUDIT].state = lost ? LAYER_OFF_BEST_EFFORT : LAYER_NOT_APPLIED;
	report_detail(s, LAYER_AUDIT, "%.110s",
	              why->code != SSB_OK ? why->text
	              : lost              ? "no namespaces; accepted with --best-effort"
	                                  : "turned off with --audit off");
}

int layer_seccomp(struct stage *s, struct ssb_error *err)
{
	struct ssb_error why = { 0 };
	bool observed = s->config->observe && load_observed(s, &why) == 0;

	if (s->config->observe && !observed &&
	    (s->config->plan->best_effort >> LAYER_AUDIT & 1) == 0) {
		*err = why;
		return -1;
	}
	if (!observed) {
		report_unobserved(s, &why);
		if (seccomp_load(plan_filter(s->config->plan), s->unix_sockets,
		                 s->config->namespaces, err) != 0) {
			return -1;
		}
	}
	report_detail(s, LAYER_SECCOMP, "profile %s, unix sockets %s",
	              profile_name(s->config->plan->profile),
	              s->unix_sockets ? "allowed" : "restricted");
	return 0;
}
