/* stage.h - builds a sandbox, from clone to execve.
 *
 * Three structs, one for each purpose:
 * - struct stage_config: the supervisor's decisions. It fills the struct before it clones; the two
 *   processes of the sandbox only read their copy.
 * - struct stage: the state of one of these two processes.
 * - struct layer_report: how each layer was applied; it goes back to the supervisor.
 *
 * All functions here run in a forked child of a single-threaded process, except those for the
 * config. They must not print or return to the caller's code; they report only through `ctl`. */
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

/* The supervisor clones init with the first set; the skill's process makes the second set. */
#define INIT_NAMESPACES  (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID)
#define SKILL_NAMESPACES (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* One thing to mount into the view: a grant, a host mount beneath a grant, or a cover. */
struct mount_source {
	/* borrows the strings and fd of the run's grant; if `submount`, it owns path, target and
	 * fd */
	struct grant grant;
	bool submount; /* a host mount beneath a read grant */
	int tree;      /* a prepared (idmapped, snapshot) tree, or -1: the child clones it */
	bool ready;    /* `tree` is a private copy already, and needs no overlay */
	bool mask;     /* the skill finds nothing there: a cover, or a kernel file system beneath a
	                  grant */
	size_t nth;    /* index of the plan's grant, unless `submount` or `mask` */
};

/* Filled by the supervisor; constant after the clone. */
struct stage_config {
	const struct ssb_plan *plan;
	const struct prepared *of_run;
	uint64_t max_seconds;
	const struct egress_table *egress; /* NULL: the plan declares no network */
	struct mount_source *sources;      /* a source comes before those that are mounted in it */
	size_t n_sources;
	size_t left_out;           /* how many parts of "/" cannot be shown */
	const struct repos *repos; /* the repositories in writable grants; NULL: no grant is
	                              writable */
	/* if the caller is uid 0: fd of the mount tree of plan->rootfs; -1: init opens the tree */
	int rootfs;
	int ctl;      /* the child's end of the socket to the supervisor */
	int stdio[3]; /* the skill's ends of the streams; unused with a pty */
	bool pty;
	bool namespaces;       /* false: the run uses the fallback of --best-effort userns */
	bool mapped_by_parent; /* root started the run: the child waits for its id maps */
	uid_t uid;             /* the skill's uid inside the sandbox */
	gid_t gid;
	uid_t outer_uid; /* the caller's uid in the parent user namespace */
	gid_t outer_gid;
	bool observe;      /* the skill's calls are reported to the supervisor's observer */
	bool governed;     /* a governor ends and meters the run */
	bool unix_sockets; /* the plan allows unix sockets; a layer may still withdraw them */
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

/* The address in memory of skillsandbox's own command line. Each process of the sandbox has a copy
 * of the command line, which must be wiped: the skill could read it in /proc/1/cmdline. */
struct arguments {
	uintptr_t start;
	size_t len;
};

/* The state of one process: init and the skill's process have one each. */
struct stage {
	const struct stage_config *config;
	int ctl;      /* the child's end of the socket to the supervisor */
	int meet;     /* this process's end of the socket between init and the skill's process */
	int stdio[3]; /* the streams of the skill's process */
	int skill_pidfd;
	int rootfs;      /* config->rootfs, or the tree that init has opened */
	int empty;       /* fd of a directory in the view that is always empty, or -1 */
	int scratch;     /* fd on the private tmpfs, which init examines: is it full? */
	size_t left_out; /* how many parts of "/" init could not show */
	bool unix_sockets;
	bool watchdog; /* there is no cgroup: init sums the memory */
	bool nice;     /* no cpu controller: the share becomes a nice value */
	bool unbound;  /* caps_unbound() was called */
	/* core dumps could not be turned off: a program of the host may get them */
	bool core_piped;
	struct arguments arguments; /* find_arguments() of the skill's process finds it */
	/* where to search for the program; set by skill_find_program() */
	const char *path;
	struct layer_report reports[LAYER_COUNT];
};

/* The kinds of messages on ctl. First those from the child to the supervisor: */
enum msg_kind {
	MSG_FAILED,    /* struct ssb_error: a layer or execve failed */
	MSG_PTY,       /* with the fd of the pty's master */
	MSG_LISTENERS, /* with listening sockets of the sandbox's network, which the broker uses */
	MSG_LISTENER,  /* the number of the sender's seccomp notification fd */
	MSG_STARTED,   /* the layer reports; execve is next */
	MSG_ENDED,     /* how the skill's first process ended */
	MSG_STANDS,    /* the answer to MSG_PAUSE: every process has stopped */
	MSG_STOPPED,   /* the skill's first process has stopped itself, as after Ctrl-Z */
	MSG_CONTINUED, /* the answer to MSG_SIGNAL with SIGCONT */
	/* Messages from the supervisor to the child: */
	MSG_MAPPED, /* id maps are written */
	MSG_GO,     /* the run record is on disk: the skill may start. With the fds by which the
	               processes join the run's cgroup */
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
			uint64_t memory; /* bytes that the watchdog measured */
			uint64_t tasks; /* most processes and threads that the watchdog has found */
			bool disk_full; /* the private tmpfs was full when init examined it */
			bool left;      /* without namespaces: some processes could not be ended */
		} ended;
		int signal;
		struct {
			int number;
			bool unix_sockets; /* whether the loaded filter allows unix sockets: init
			                      may have withdrawn them */
		} listener;
		struct {
			/* number of the pause; the answer, MSG_STANDS, repeats it */
			uint32_t number;
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

/* The first message from init to the skill's process: the file view is complete. */
struct view_ready {
	bool sealed; /* layer_seal_mounts() is done */
	bool unix_sockets;
	struct layer_report userns;
	struct layer_report mounts;
};

/* The second message: the skill may start. With it come the fds by which the process joins the
 * cgroup. */
struct start_order {
	bool watchdog;
	bool nice;
	struct layer_report limits;
};

/* The first process of the sandbox, from clone to exit. Never returns. */
_Noreturn void stage_main(const struct stage_config *config);

/* The process that takes a step (stage.c). */
enum stage_process { BY_INIT, BY_SKILL };

/* Takes all steps of one process in order. If a step fails and the owner did not accept that
 * (--best-effort), the process ends. */
void stage_take_steps(struct stage *s, enum stage_process process);

/* Sends the error and ends this process. */
_Noreturn void stage_die(const struct stage *s, const struct ssb_error *err);

/* Waits for a message of `kind` and returns it; *ret_fds owns its fds. Exits if the supervisor
 * closes its socket. */
struct msg stage_wait(const struct stage *s, enum msg_kind kind, struct msg_fds *ret_fds);

/* Wipes the arguments (`args`) and the owner's environment from the memory of this process, where
 * the skill might find them. */
void stage_wipe_memory(const struct arguments *args);

/* The following steps are layers. Each layer is applied completely or fails, and its report says
 * how it was applied. */
int layer_userns(struct stage *s, struct ssb_error *err);
int layer_net(struct stage *s, struct ssb_error *err);
int layer_mounts(struct stage *s, struct ssb_error *err);
int layer_env(struct stage *s, struct ssb_error *err);
int layer_caps(struct stage *s, struct ssb_error *err);
int layer_landlock(struct stage *s, struct ssb_error *err);
int layer_seccomp(struct stage *s, struct ssb_error *err);
int layer_limits(struct stage *s, struct ssb_error *err);

/* Parts of layers. Some are steps of their own, others are called by a step. */
/* Brings up the loopback of this process's network namespace, unless it is up. */
int layer_loopback(struct stage *s, struct ssb_error *err);
/* Takes the uid and gid inside the sandbox. The id maps must be written before. Each process must
 * call it for itself. */
int layer_take_ids(const struct stage *s, struct ssb_error *err);
/* Detaches the old root and makes the new one read-only. Only one of the two processes calls it,
 * the one that is first at MEET. */
int layer_seal_mounts(struct ssb_error *err);
/* Turns core dumps off by a limit of 1 byte: at this limit the kernel neither writes a file nor
 * starts a program that receives core dumps. It must come before the filter, which then keeps the
 * limit unchanged. If the caller's hard limit is 0, the limit cannot become 1, and at 0 the kernel
 * does start such a program; s->core_piped records this. */
int layer_limit_core(struct stage *s, struct ssb_error *err);

/* The other steps of init (init.c) and of the skill's process (skill_process.c). */
/* Closes all fds that init does not need, drops its capabilities and loads its filter. Init keeps
 * the capability and fds of the watchdog until init_end_watch(). */
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
int anchor_start(struct stage *s, struct ssb_error *err);
int skill_wait_start(struct stage *s, struct ssb_error *err);
int skill_try_filter(struct stage *s, struct ssb_error *err);
int skill_report(struct stage *s, struct ssb_error *err);

/* The skill's process, up to execve. */
_Noreturn void skill_main(struct stage *s);

/* Call it if the watchdog is not used: init closes the fds that only the watchdog needs and gives
 * up the capability to read the memory use of other processes. */
int init_end_watch(struct stage *s);
void init_keep_thaw(int fd);                 /* takes fd, with which init thaws processes */
void init_know_anchors(const pid_t pids[2]); /* see anchor.c */
/* The loop of PID 1 while the skill runs: reaps processes, forwards signals, watches memory and
 * reports to the supervisor. Never returns. */
_Noreturn void init_main(struct stage *s, pid_t skill);

/* Returns the filter that decides which system calls are allowed. It is the same whether the calls
 * are observed or not. */
const struct seccomp_blob *stage_filter(const struct stage_config *config, bool unix_sockets);

/* The plan's root file system (rootfs_mount.c). All three functions do nothing if the plan has
 * none. If root started the run, the supervisor opens it before the clone with rootfs_take(),
 * because the skill's own uid cannot reach it; otherwise the child opens it with rootfs_collect().
 * rootfs_attach() then mounts it, before the grants. */
int rootfs_take(struct stage_config *config, struct ssb_error *err);
int rootfs_collect(struct stage *s, struct ssb_error *err);
int rootfs_attach(struct stage *s, int root_fd, struct ssb_error *err);
/* Fails if the path at which a grant is to be mounted contains a symlink of the root file system:
 * the mount point would be made where the symlink leads, which can be on the host until the old
 * root is gone. */
int rootfs_way(const struct stage *s, const struct grant *g, int root_fd, struct ssb_error *err);

/* The grants of the plan as mounts (grants_mount.c). Call grants_collect() before the pivot to the
 * new root, and grants_attach() after it. */
int grants_collect(struct stage *s, struct ssb_error *err);
int grants_attach(struct stage *s, int root_fd, struct ssb_error *err);
/* Both functions work on source `i`, which must be mounted already (grants_hold.c).
 * grants_protect() makes the protected names at the top of the grant and in each of its
 * repositories read-only. grants_hold() holds the files in the grant that protected names lead
 * to. */
int grants_protect(const struct stage *s, size_t i, int root_fd, struct ssb_error *err);
int grants_hold(const struct stage *s, size_t i, struct ssb_error *err);

#endif
