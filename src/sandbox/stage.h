/* stage.h - the way of a sandbox from clone to execve.
 *
 * Three structs, one for each purpose:
 * - struct stage_config: what the supervisor has decided. It fills it before it clones; the two
 *   processes of the sandbox only read their copy.
 * - struct stage: where one of these two processes has got to.
 * - struct layer_report: how each layer was applied; it goes back to the supervisor.
 *
 * Everything here but the config runs in a forked child of a single-threaded process: it must not
 * print, must not return to the caller's code, and reports through `ctl` alone. */
#ifndef SANDBOX_STAGE_H
#define SANDBOX_STAGE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/trace.h"
#include "egress/listen.h"
#include "os/clone.h"
#include "os/seccomp.h"
#include "policy/plan.h"
#include "sandbox/repos.h"
#include "sandbox/sandbox.h"

/* The supervisor clones with these, and the skill's process adds its own. */
#define INIT_NAMESPACES  (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID)
#define SKILL_NAMESPACES (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* One thing to mount into the view: a grant, a host mount beneath a grant, or a cover. */
struct mount_source {
	struct grant grant; /* borrows the run's strings and fd, unless `submount` */
	bool submount;      /* index of the plan's grant, unless `submount` or `mask` */
	int tree;           /* a prepared (idmapped, snapshot) tree, or -1: the child clones it */
	bool ready;         /* the tree is already a private copy and needs no overlay */
	bool mask;  /* shows nothing: a cover, or a kernel file system within a part of "/" */
	size_t nth; /* index of the plan's grant, unless `submount` or `mask` */
};

/* Filled by the supervisor, constant after the clone. */
/* Filled by the supervisor; constant after the clone. */
struct stage_config {
	const struct ssb_plan *plan;
	const struct prepared *of_run;
	uint64_t max_seconds;
	const struct egress_table *egress; /* NULL: the plan declares no network */
	struct mount_source *sources;      /* parents before what is mounted in them */
	size_t n_sources;
	size_t left_out;           /* how many parts of "/" cannot be shown */
	const struct repos *repos; /* found in writable grants; NULL: no grant is writable */
	int rootfs;                /* a tree of plan->rootfs that root has opened, or -1 */
	int ctl;                   /* the child's end of the socket to the supervisor */
	int stdio[3];              /* the skill's ends; unused with a pty */
	bool pty;
	bool namespaces;       /* false: --best-effort userns took effect */
	bool mapped_by_parent; /* started by root: the child waits for its id maps */
	uid_t uid;             /* inside */
	gid_t gid;
	uid_t outer_uid; /* the caller's, as the parent namespace numbers it */
	gid_t outer_gid;
	bool observe;      /* the supervisor wants to see the skill's calls */
	bool governed;     /* init may be told to stop every process */
	bool unix_sockets; /* granted; a layer may still withdraw them */
	/* Without namespaces (fallback.h), these replace the plan's own values: */
	char private_dir[32];
	char env_home[48];
	char env_tmp[48];
	char **env;
	char **argv; /* owns the array and each word */
	char *workdir;
	sandbox_payload payload; /* NULL: execve the plan's argv */
	void *payload_arg;
	int payload_fd;
	int exec_fd; /* execve closes it, and so tells the supervisor */
};

/* Where our command line lies in memory. Each process of the sandbox has a copy of it,
 * which the skill could read in /proc/1/cmdline. */
struct arguments {
	uintptr_t start;
	size_t len;
};

/* The state of one process: init and the skill's process have one each. */
struct stage {
	const struct stage_config *config;
	int ctl;      /* our end of the socket to the supervisor */
	int meet;     /* our end of the socket between init and the skill's process */
	int stdio[3]; /* the streams of the skill's process */
	int skill_pidfd;
	int rootfs;      /* config->rootfs, or the tree that init has taken */
	int empty;       /* a directory of the view that is always empty, or -1 */
	int scratch;     /* the private tmpfs; the watchdog measures it */
	size_t left_out; /* parts of "/" that cannot be shown */
	bool unix_sockets;
	bool watchdog;              /* there is no cgroup: init sums the memory */
	bool nice;                  /* no cpu controller: the share becomes a nice value */
	bool unbound;               /* caps_unbound() is done */
	bool core_piped;            /* a program of the host may get core dumps */
	struct arguments arguments; /* found by the skill's process */
	const char *path;           /* PATH for the program, see skill_find_program() */
	struct layer_report reports[LAYER_COUNT];
};

/* Messages on ctl. Child to supervisor: */
enum msg_kind {
	MSG_FAILED,    /* struct ssb_error: a layer or execve failed */
	MSG_PTY,       /* carries the master's fd */
	MSG_LISTENERS, /* carries ends of the sandbox's network, for the broker */
	MSG_LISTENER,  /* the number of the sender's seccomp notification fd */
	MSG_STARTED,   /* the layer reports; execve is next */
	MSG_ENDED,     /* how the skill's first process ended */
	MSG_STANDS,    /* every process has stopped, as MSG_PAUSE asked */
	/* supervisor to child: */
	MSG_MAPPED, /* id maps are written */
	MSG_GO,     /* the run record is on disk: the skill may start; carries the
	             * fds by which the processes join the run's cgroup */
	MSG_SIGNAL, /* send `signal` to the skill's process group */
	MSG_TERM,   /* SIGTERM to every process */
	MSG_PAUSE,  /* stop the clock; `by_signals`: stop every process and report it */
	MSG_RESUME,
};

enum end_cause { CAUSE_EXIT, CAUSE_TIME, CAUSE_MEMORY, CAUSE_RESTLESS };

struct msg {
	enum msg_kind kind;
	union {
		struct ssb_error error;
		struct layer_report reports[LAYER_COUNT];
		struct {
			int wstatus;
			enum end_cause cause;
			uint64_t memory; /* bytes seen by the watchdog */
			bool left;       /* without namespaces: some processes survive */
		} ended;
		int signal;
		struct {
			int number;
			bool unix_sockets; /* those of the loaded filter: init may have withdrawn
			                      them */
		} listener;
		struct {
			uint32_t number; /* comes back with MSG_STANDS */
			bool by_signals;
		} pause;
		struct {
			enum listener_kind kinds[MSG_MAX_FDS];
			bool last;
		} listeners;
		struct {
			bool watchdog;
			bool nice;
			bool thaw; /* the last fd is cgroup_thaw_fd(), for init */
			char limits[sizeof(((struct layer_report *)0)->detail)];
		} go;
	};
};

/* Messages from init to the skill's process. First: the view is complete. */
struct view_ready {
	bool sealed; /* layer_seal_mounts() is done */
	bool unix_sockets;
	struct layer_report userns;
	struct layer_report mounts;
};

/* Second: the skill may start. The cgroup's fds come with it. */
struct start_order {
	bool watchdog;
	bool nice;
	struct layer_report limits;
};

/* The first process of the sandbox, from clone to exit. Never returns. */
_Noreturn void stage_main(const struct stage_config *config);

/* The two processes of the sandbox, and the steps of each in the order of its life. */
enum stage_process { BY_INIT, BY_SKILL };

/* Takes every step of one process. A failure that the owner did not accept ends the process. */
void stage_take_steps(struct stage *s, enum stage_process process);

/* Sends the error and ends this process. */
_Noreturn void stage_die(const struct stage *s, const struct ssb_error *err);

/* Waits for a message of `kind` and returns it with its fds (owned). Exits at the end of the
 * supervisor's socket. */
struct msg stage_wait(const struct stage *s, enum msg_kind kind, struct msg_fds *ret_fds);

/* Wipes what the skill might find in our memory: our arguments, the owner's environment. */
void stage_wipe_memory(const struct arguments *args);

/* These steps are layers: each applies itself fully or fails, and its report says how. */
int layer_userns(struct stage *s, struct ssb_error *err);
int layer_net(struct stage *s, struct ssb_error *err);
int layer_mounts(struct stage *s, struct ssb_error *err);
int layer_env(struct stage *s, struct ssb_error *err);
int layer_caps(struct stage *s, struct ssb_error *err);
int layer_landlock(struct stage *s, struct ssb_error *err);
int layer_seccomp(struct stage *s, struct ssb_error *err);
int layer_limits(struct stage *s, struct ssb_error *err);

/* Parts of layers that are steps of their own, or belong to a step. */
/* Brings up the loopback of our network namespace, if it is not up. */
int layer_loopback(struct stage *s, struct ssb_error *err);
/* Takes the uid and gid inside, once the maps are written. Each process does it for itself. */
int layer_take_ids(const struct stage *s, struct ssb_error *err);
/* Detaches the old root and makes the new one read-only. One of the two processes calls it. */
int layer_seal_mounts(struct ssb_error *err);
/* Turns core dumps off. It must come before the filter, which keeps them off: a limit of 1, at
 * which the kernel neither writes a file nor starts a program that takes them. A caller whose
 * hard limit is 0 cannot have 1, and at 0 such a program is started. */
int layer_limit_core(struct stage *s, struct ssb_error *err);

/* The other steps of init (init.c) and of the skill's process (skill.c). */
/* Closes all fds that init does not need and drops capabilities and system calls. Init
 * keeps what the watchdog needs until init_end_watch(). */
int init_confine(struct stage *s, struct ssb_error *err);
int skill_tell_init(struct stage *s, struct ssb_error *err);
int skill_unbind_caps(struct stage *s, struct ssb_error *err);
int skill_leave_caller(struct stage *s, struct ssb_error *err);
int skill_take_view(struct stage *s, struct ssb_error *err);
int skill_open_pty(struct stage *s, struct ssb_error *err);
int skill_enter_workdir(struct stage *s, struct ssb_error *err);
int skill_try_walls(struct stage *s, struct ssb_error *err);
int skill_close_others(struct stage *s, struct ssb_error *err);
int skill_find_program(struct stage *s, struct ssb_error *err);
int skill_wait_start(struct stage *s, struct ssb_error *err);
int skill_try_filter(struct stage *s, struct ssb_error *err);
int skill_report(struct stage *s, struct ssb_error *err);

/* The skill's process, up to execve. */
_Noreturn void skill_main(struct stage *s);

/* Without a watchdog: init gives up the capability to read other processes' memory use. */
int init_end_watch(struct stage *s);
void init_keep_thaw(int fd); /* takes fd: init thaws frozen processes with it, because a frozen
                                process cannot die */
/* PID 1 while the skill runs: reaps, forwards signals, watches memory and reports. Never
 * returns. */
_Noreturn void init_main(struct stage *s, pid_t skill);

/* The filter that decides system calls, whether they are observed or not. */
const struct seccomp_blob *stage_filter(const struct stage_config *config, bool unix_sockets);

/* The plan's root file system (rootfs.c). All three functions do nothing if the plan has
 * none. If root started us, the supervisor opens it before the clone, because the skill's
 * own uid cannot reach it; otherwise the child collects it. rootfs_attach() then mounts it,
 * before the grants. */
int rootfs_take(struct stage_config *config, struct ssb_error *err);
int rootfs_collect(struct stage *s, struct ssb_error *err);
int rootfs_attach(struct stage *s, int root_fd, struct ssb_error *err);
/* Fails if a symlink of the root file system is on the way to the place of a grant: the
 * place would be made where the symlink leads, which can be on the host until the old root
 * is gone. */
int rootfs_way(const struct stage *s, const struct grant *g, int root_fd, struct ssb_error *err);

/* The grants of the plan as mounts (grants.c). Call grants_collect() before the old root is
 * gone, and grants_attach() when the new one is in place. */
int grants_collect(struct stage *s, struct ssb_error *err);
int grants_attach(struct stage *s, int root_fd, struct ssb_error *err);
/* For a source that is mounted already (grants_hold.c): makes the protected names at the
 * top of the grant, and in each repository in it, read-only, and holds in place what they
 * lead to. */
int grants_protect(const struct stage *s, size_t i, int root_fd, struct ssb_error *err);
int grants_hold(const struct stage *s, size_t i, struct ssb_error *err);

#endif
