/* stage.h - what the processes of one sandbox know, and the way from clone to
 * execve.
 *
 * The supervisor fills a `struct stage`, clones, and the child walks the
 * layer table. Everything here runs in a forked child of a single-threaded
 * process: it must not print, must not return to the caller's code, and
 * reports through `ctl` alone. */
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

/* A grant on its way into the view. */
struct source {
	struct grant grant; /* borrows the run's strings and fd, unless `submount` */
	bool submount;      /* a mount of the host beneath a read grant: owns path, target, fd */
	int tree;           /* a prepared (idmapped, snapshot) tree, or -1: clone it in the child */
	bool ready;         /* the tree is a private copy already: no overlay needed */
	bool mask;          /* the kernel's in a part of "/", or a cover: nothing is shown there */
	size_t nth;         /* of the plan's grants, unless `submount` or `mask` */
};

/* Where our command line lies, in every copy of our memory: /proc/1/cmdline would
 * show it to everybody. */
struct arguments {
	uintptr_t start;
	size_t len;
};

struct stage {
	const struct ssb_plan *plan;
	const struct prepared *of_run;
	uint64_t max_seconds;
	const struct egress_table *egress; /* NULL: none is declared */
	int empty;              /* a directory of the view in which nothing ever is, or -1 */
	int rootfs;             /* a tree of plan->rootfs, where there is one; else -1 */
	struct source *sources; /* what is mounted: the plan's grants and their submounts */
	size_t n_sources;
	size_t left_out;           /* of them: parts of "/" that cannot be shown */
	const struct repos *repos; /* in writable grants; NULL: none is writable */
	int ctl;                   /* our end of the socket to the supervisor */
	int stdio[3];              /* the skill's ends; unused with a pty */
	bool pty;
	bool namespaces;       /* false: --best-effort userns took effect */
	bool mapped_by_parent; /* started by root: wait for the id maps */
	uid_t uid;             /* inside */
	gid_t gid;
	uid_t outer_uid; /* the caller's, as the parent namespace knows it */
	gid_t outer_gid;
	bool observe;  /* the supervisor wants to see what the skill tries */
	bool watchdog; /* no cgroup: init sums the memory */
	bool governed; /* init may be told to stop every process */
	bool nice;     /* no cpu controller: the share becomes a nice value */
	bool unix_sockets;
	int scratch;                /* fd on the private tmpfs, for the watchdog */
	struct arguments arguments; /* found by the skill's process */
	bool unbound;               /* caps_unbound() is done */
	bool core_piped;            /* limits_core(): a program of the host may get core dumps */
	/* Without namespaces (fallback.h), instead of the plan's own: */
	char private_dir[32];
	char env_home[48];
	char env_tmp[48];
	char **env;
	char **argv; /* and each word of it */
	char *workdir;
	struct layer_report reports[LAYER_COUNT];
	sandbox_payload payload; /* NULL: execve the plan's argv */
	void *payload_arg;
	int payload_fd;
	int exec_fd; /* closed by execve: that is how the supervisor knows of it */
};

/* Messages on ctl. Child to supervisor: */
enum msg_kind {
	MSG_FAILED,    /* struct ssb_error: a layer or execve failed */
	MSG_PTY,       /* carries the master's fd */
	MSG_LISTENERS, /* carries ends of the sandbox's network, for the broker */
	MSG_LISTENER,  /* the number of the fd that tells of the sender's calls */
	MSG_STARTED,   /* the layer reports; execve is next */
	MSG_ENDED,     /* how the skill's first process ended */
	MSG_STANDS,    /* every process has stopped, as MSG_PAUSE asked */
	/* supervisor to child: */
	MSG_MAPPED, /* id maps are written */
	MSG_GO,     /* the run record is on disk: the skill may start; carries the
	             * fds by which the processes join the run's cgroup */
	MSG_SIGNAL, /* send `signal` to the skill's process group */
	MSG_TERM,   /* SIGTERM to every process */
	MSG_PAUSE,  /* the clock stands; `by_signals`: stop every process and say so */
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
			bool left;       /* without namespaces: some processes go on */
		} ended;
		int signal;
		struct {
			int number;
			bool unix_sockets; /* of the filter: init may have taken them away */
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

enum phase {
	BY_INIT,  /* while the skill's process makes its namespaces */
	BY_SKILL, /* while init makes the view */
	IN_VIEW,  /* by the skill's process, when the view stands */
	FILTERED, /* by it, when the other walls have been tried */
	AT_LAST,  /* by the skill's process, when all is said */
};

/* What init tells the skill's process when the view stands, */
struct view_ready {
	bool sealed; /* mounts_seal() is done */
	bool unix_sockets;
	struct layer_report userns;
	struct layer_report mounts;
};

/* and when it may start; the cgroup's fds come with it. */
struct start {
	bool watchdog;
	bool nice;
	struct layer_report limits;
};

/* Applies the layers of one phase; a failure that the owner did not accept
 * ends the process. */
void stage_layers(struct stage *s, enum phase phase);

/* Wipes what the skill might find in our memory: our arguments, the owner's
 * environment. */
void stage_forget(const struct arguments *args);

/* Each process joins by itself: moving another one is far slower. */
void stage_join_cgroup(const struct stage *s, const struct msg_fds *fds);

/* The child's whole life; never returns. */
_Noreturn void stage_main(struct stage *s);

/* The skill's process, up to execve; `meet` is its end of the socket to init
 * (skill.c). */
_Noreturn void skill_main(struct stage *s, int meet);

/* What init gives up before the skill starts: fds (all but its own and *meet,
 * which moves), capabilities, system calls. What the watchdog needs is kept
 * until init_unwatched says that there is none. */
int init_confine(struct stage *s, int *meet, struct ssb_error *err);
int init_unwatched(struct stage *s);
void init_keep_thaw(int fd); /* takes it: by which frozen processes are let die */

/* PID 1 once the skill runs: reap, forward, watch, report; never returns. */
_Noreturn void init_main(struct stage *s, pid_t skill);

/* Sends the error and ends this process. */
_Noreturn void stage_die(const struct stage *s, const struct ssb_error *err);

/* Waits for a message of `kind` and returns it with its fds (owned); the
 * supervisor's end closed: exits. */
struct msg stage_wait(const struct stage *s, enum msg_kind kind, struct msg_fds *ret_fds);

/* Takes the uid and gid inside, once the maps are written; each of the two
 * processes for itself (layer_ids.c). */
int userns_become(const struct stage *s, struct ssb_error *err);

/* Brings up the loopback of our network namespace, if nobody has: the skill's
 * process does, and before it init where it is to listen there (layer_ids.c). */
int netns_up(struct ssb_error *err);

/* The layers. Each applies itself fully or fails; the report says how. */
int layer_userns(struct stage *s, struct ssb_error *err);
int layer_net(struct stage *s, struct ssb_error *err);
int layer_mounts(struct stage *s, struct ssb_error *err);
/* The second half of it: the old root goes, the new one becomes read-only. The
 * skill's process brings up its walls meanwhile, and waits. */
int mounts_seal(struct ssb_error *err);
int layer_env(struct stage *s, struct ssb_error *err);
int layer_limits(struct stage *s, struct ssb_error *err);
/* Core dumps, which have to be off before the filter, by which they stay so: a limit of 1, at
 * which the kernel neither writes a file nor starts a program that takes them. A caller whose
 * hard limit is 0 cannot have it, and at 0 such a program is started. */
int limits_core(struct stage *s, struct ssb_error *err);
int layer_caps(struct stage *s, struct ssb_error *err);
int layer_landlock(struct stage *s, struct ssb_error *err);
int layer_seccomp(struct stage *s, struct ssb_error *err);
/* The filter by which calls are decided, observed or not. */
const struct seccomp_blob *stage_filter(const struct stage *s);

/* The plan's root file system (rootfs.c), nothing where there is none: taken by root
 * before the clone, or collected by the child; then attached, before the grants. */
int rootfs_take(struct stage *s, struct ssb_error *err);
int rootfs_collect(struct stage *s, struct ssb_error *err);
int rootfs_attach(struct stage *s, int root_fd, struct ssb_error *err);
/* It brings symlinks of its author's: the place of a grant would be made where they lead,
 * and until the old root is gone that can be on the host. Fails where one is on the way. */
int rootfs_way(const struct stage *s, const struct grant *g, int root_fd, struct ssb_error *err);

/* The grants of the plan as mounts (grants.c). grants_collect before the old
 * root is gone, grants_attach when the new one is in place. */
int grants_collect(struct stage *s, struct ssb_error *err);
int grants_attach(struct stage *s, int root_fd, struct ssb_error *err);
/* Of the source that is mounted by now (grants_hold.c): the names at the top of the grant, and
 * in each repository in it, are read-only; what they lead to stays. */
int grant_protect(const struct stage *s, size_t i, int root_fd, struct ssb_error *err);
int grant_hold(const struct stage *s, size_t i, struct ssb_error *err);

#endif
