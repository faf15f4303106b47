/* fallback.c - sets up a run without namespaces: its private directory, host paths and Landlock
 * rules. */
#include "sandbox/fallback.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/landlock.h"
#include "os/tree.h"
#include "sandbox/root.h"

#define WORKER_NAME "worker.py"
#define END_MS      10000 /* how long killed processes may take to end */
/* after so many rounds in which no process ended, each round begins with a pause */
#define PAUSE_AFTER 100

static int private_dir(struct stage_config *config, struct ssb_error *err)
{
	static const char *const parts[] = { "", "/home", "/tmp" };
	char path[64];

	snprintf(config->private_dir, sizeof(config->private_dir), "/tmp/skillsandbox-XXXXXX");
	if (mkdtemp(config->private_dir) == NULL) {
		config->private_dir[0] = '\0';
		return ssb_fail(err, SSB_E_SYS, errno, "userns",
		                "cannot make a private directory in /tmp");
	}
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", config->private_dir, parts[i]);
		if ((i > 0 && mkdir(path, 0700) != 0) ||
		    (config->uid != geteuid() && chown(path, config->uid, config->gid) != 0)) {
			return ssb_fail(err, SSB_E_SYS, errno, "userns", "cannot make '%s'", path);
		}
	}
	return 0;
}

/* Sets config->env to the plan's variables, but with HOME and TMPDIR in the private directory. */
static int private_env(struct stage_config *config, struct ssb_error *err)
{
	const struct string_list *env = &config->plan->env;

	config->env = calloc(env->n + 1, sizeof(*config->env));
	if (config->env == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "userns", "out of memory");
	}
	memcpy(config->env, env->v, env->n * sizeof(*config->env));
	snprintf(config->env_home, sizeof(config->env_home), "HOME=%s/home", config->private_dir);
	snprintf(config->env_tmp, sizeof(config->env_tmp), "TMPDIR=%s/tmp", config->private_dir);
	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(config->env[i], "HOME=", 5) == 0) {
			config->env[i] = config->env_home;
		} else if (strncmp(config->env[i], "TMPDIR=", 7) == 0) {
			config->env[i] = config->env_tmp;
		}
	}
	return 0;
}

static int no_memory(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOMEM, 0, "userns", "out of memory");
}

/* Converts a path of the view to the path on the host: "/skill", for example, does not exist there.
 * If no grant shows the path, returns a copy of `otherwise`. The result is new; NULL: there is no
 * memory. */
static char *host_path(const struct stage_config *config, const char *path, const char *otherwise)
{
	char *real = NULL;

	for (size_t i = 0; i < config->plan->n_grants; i++) {
		const struct grant *g = &config->plan->grants[i];
		size_t len = strlen(g->target);
		if (strncmp(path, g->target, len) == 0 && (path[len] == '/' || path[len] == '\0')) {
			return asprintf(&real, "%s%s", g->path, path + len) < 0 ? NULL : real;
		}
	}
	return strdup(otherwise);
}

static int host_workdir(struct stage_config *config, struct ssb_error *err)
{
	config->workdir =
	        host_path(config, config->plan->workdir, config->env_home + strlen("HOME="));
	return config->workdir == NULL ? no_memory(err) : 0;
}

/* The worker (root.h) is usually a file of the view. Here there is no view, so it is written into
 * the private directory. */
static int host_worker(struct stage_config *config, struct ssb_error *err)
{
	auto_fd dir = open(config->private_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (worker_named(config->plan) && root_make_file(dir, WORKER_NAME, WORKER_TEXT) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "userns", "cannot write " WORKER_NAME);
	}
	return 0;
}

static int host_argv(struct stage_config *config, struct ssb_error *err)
{
	const struct string_list *argv = &config->plan->argv;
	char worker[64];

	snprintf(worker, sizeof(worker), "%s/" WORKER_NAME, config->private_dir);
	config->argv = calloc(argv->n + 1, sizeof(*config->argv));
	for (size_t i = 0; config->argv != NULL && i < argv->n; i++) {
		const char *word = argv->v[i];
		bool is_worker = strcmp(word, SKILL_WORKER) == 0;
		config->argv[i] = is_worker ? strdup(worker) : host_path(config, word, word);
		if (config->argv[i] == NULL) {
			return no_memory(err);
		}
	}
	return config->argv == NULL ? no_memory(err) : host_worker(config, err);
}

int fallback_enter(struct stage_config *config, struct ssb_error *err)
{
	if (config->plan->n_egress > 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, "userns",
		                "network egress is declared, and cannot be limited to the declared "
		                "hosts without user namespaces; remove the egress, or make user "
		                "namespaces available "
		                "(see 'skillsandbox doctor')");
	}
	if (config->plan->rootfs.path != NULL) {
		return ssb_fail(err, SSB_E_POLICY, 0, "userns",
		                "--rootfs replaces the host's files, which needs user namespaces; "
		                "make them available (see 'skillsandbox doctor')");
	}
	if (config->plan->n_covers > 0) {
		const struct cover *c = &config->plan->covers[0];
		return ssb_fail(err, SSB_E_POLICY, 0, "userns",
		                "'%.60s' grants a directory that contains '%.100s', which belongs "
		                "to the runtime and cannot be hidden without user namespaces; name "
		                "the directories that are needed",
		                c->where, c->path);
	}
	if (landlock_abi() == 0) {
		return ssb_fail(err, SSB_E_LAYER, 0, "landlock",
		                "without user namespaces Landlock is the only protection of files, "
		                "and this kernel does not have it: there would be no sandbox");
	}
	config->namespaces = false;
	config->unix_sockets = false;
	return private_dir(config, err) != 0 || private_env(config, err) != 0 ||
	                       host_workdir(config, err) != 0 || host_argv(config, err) != 0
	               ? -1
	               : 0;
}

void fallback_leave(struct stage_config *config)
{
	if (config->private_dir[0] != '\0') {
		(void)tree_remove(AT_FDCWD, config->private_dir);
		config->private_dir[0] = '\0';
	}
	for (size_t i = 0; config->argv != NULL && config->argv[i] != NULL; i++) {
		free(config->argv[i]);
	}
	free(config->argv);
	free(config->env);
	free(config->workdir);
	config->argv = NULL;
	config->env = NULL;
	config->workdir = NULL;
}

static int allow_path(int rules, int abi, const char *path, unsigned may)
{
	auto_fd fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? 0 : landlock_allow(rules, abi, fd, may);
}

int fallback_rules(const struct stage_config *config, int rules, int abi)
{
	for (size_t i = 0; i < VIEW_ROWS; i++) {
		bool host = VIEW[i].shown == VIEW_HOST || VIEW[i].shown == VIEW_DEVICE;
		if (host && allow_path(rules, abi, VIEW[i].path, view_may(&VIEW[i])) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < config->plan->n_grants; i++) {
		const struct grant *g = &prepared_grants(config->of_run, config->plan)[i];
		/* Use the fd of the object that planning judged: the name may refer to another
		 * object by now. */
		if (landlock_allow(rules, abi, g->fd, grants_rights(g)) != 0) {
			return -1;
		}
	}
	/* All of /proc may be read: for processes outside its domain, Landlock itself denies access
	 * to their secrets in /proc. */
	return allow_path(rules, abi, "/proc", LL_READ) != 0 ||
	                       allow_path(rules, abi, config->private_dir, LL_ALL) != 0
	               ? -1
	               : 0;
}

/* Kills the children of this process, but only as many as fit into `list`. */
static void kill_children(void)
{
	char path[64], list[4096];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, list, sizeof(list) - 1);
	list[n > 0 ? n : 0] = '\0';
	for (char *p = list, *end; *p != '\0'; p = end) {
		long pid = strtol(p, &end, 10);
		if (end == p || *end == '\0') {
			break; /* the list is cut here, so its last number may be incomplete */
		}
		(void)kill((pid_t)pid, SIGKILL);
	}
}

bool fallback_end_all(void)
{
	static const struct timespec instant = { .tv_nsec = 1000000 };
	int in_vain = 0;
	pid_t pid;

	/* The children of a killed process become children of this one, so repeat until there are
	 * none. Do not pause at first: that would give a process time to fork again and again. */
	for (uint64_t deadline = clock_ms() + END_MS; clock_ms() <= deadline; in_vain++) {
		kill_children();
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
			in_vain = 0;
		}
		if (pid < 0) {
			return true;
		}
		if (in_vain > PAUSE_AFTER) {
			(void)nanosleep(&instant, NULL);
		}
	}
	return false;
}
