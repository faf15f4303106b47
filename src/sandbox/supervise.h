/* supervise.h - builds a sandbox and supervises it to its end. */
#ifndef SANDBOX_SUPERVISE_H
#define SANDBOX_SUPERVISE_H

#include "observe/observer.h"
#include "trace/trace.h"
#include "egress/egress.h"
#include "os/cgroup.h"
#include "sandbox/pause.h"
#include "sandbox/relay.h"
#include "sandbox/repo_links.h"
#include "sandbox/sources.h"
#include "sandbox/stage.h"
#include "sandbox/suspend.h"

struct governed;

/* One run. Call run_init() first, and run_done() in every case. */
struct run {
	const struct run_request *request;
	const struct ssb_plan *plan; /* request->plan */
	const struct owner *owner;   /* NULL: no trace is written */
	/* borrowed; the attempt with namespaces and the one without both use it */
	struct prepared *prepared;
	struct trace *trace;
	uint64_t start_us;
	struct stage_config config;
	struct layer_report reports[LAYER_COUNT]; /* filled from MSG_STARTED */
	bool unix_sockets; /* whether the filter that the skill's process loaded allows unix
	                      sockets */
	struct egress egress;
	struct observer *observer; /* NULL: nothing is observed */
	struct governed *govern;   /* borrowed; NULL: no session governs the run (governed.h) */
	struct pause pause;
	struct suspend suspend;
	int payload_spare;       /* a copy of config.payload_fd for the second attempt; -1: none */
	bool without_namespaces; /* the namespaces failed, and the owner accepts a run without
	                            them */
	struct repos *repos;
	struct string_list stores; /* filled by danger_stores() if plan->stores_known is false */
	struct placeholders *placeholders;
	struct repo_links *repo_links;
	struct cgroup *cgroup;
	pid_t pid; /* init's pid on the host */
	int pidfd;
	int ctl;       /* the supervisor's end of the socket to the child */
	int master;    /* the master of the pty, or -1 */
	int oom;       /* eventfd on which cgroup v1 reports an OOM kill, or -1 */
	int thaw;      /* cgroup_thaw_fd(), or -1 */
	int exec_pipe; /* end of file when the skill's execve succeeds or its process ends */
	int pipes[3];  /* the supervisor's ends of the streams */
	bool started;  /* all layers are applied; execve is next */
	bool ended;    /* the skill's first process has ended */
	bool dead;     /* every process has ended */
	bool killed;   /* run_kill() was called, or every process has ended: start nothing new */
	int wstatus;
	enum end_cause cause;
	uint64_t memory;
	uint64_t tasks; /* this and disk_full: see MSG_ENDED */
	bool disk_full;
	uint64_t share_at; /* when to set the session's CPU share; 0: never */
	int share_tries;
	uint64_t digest_at; /* when to compute the digests of the skill's files; 0: done, or not
	                       needed */
	uint64_t deadline;  /* the supervisor's own time limit, which is later than init's; it also
	                     * bounds the delivery of the output */
	bool gave_up;       /* some output was not delivered */
	int canceled;       /* the signal that asked the supervisor to stop; 0: none */
	struct marks seen;  /* request->still fills it */
	struct ssb_error failure;
	/* `failure` only follows from the end of another process, whose own error is still to be
	 * read */
	bool follows;
};

void run_init(struct run *r, const struct run_request *q, const struct owner *owner,
              struct prepared *prepared);
void run_done(struct run *r);

/* Ends every process of the sandbox. Returns at once. */
void run_kill(struct run *r);

/* Waits until init has ended, and with it every other process. */
void run_reap(struct run *r);

/* Prepares the run and clones the child, which then builds the sandbox. */
int run_start(struct run *r, struct ssb_error *err);

/* Records the limits that the finished run has reached, and counts them in res->limits_hit. */
void run_limits_record(const struct run *r, const struct pump pumps[3], struct ssb_result *res);

/* Supervises the run until the skill has ended and its output is delivered. `pumps` carry stdin,
 * stdout and stderr; sig_fd is a signalfd of the signals that the caller blocks. */
int run_watch(struct run *r, struct pump pumps[3], int sig_fd, struct ssb_error *err);

#endif
