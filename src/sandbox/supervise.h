/* supervise.h - building a sandbox and watching over it to its end. */
#ifndef SANDBOX_SUPERVISE_H
#define SANDBOX_SUPERVISE_H

#include "observe/observer.h"
#include "trace/trace.h"
#include "egress/egress.h"
#include "os/cgroup.h"
#include "sandbox/relay.h"
#include "sandbox/repo_links.h"
#include "sandbox/sources.h"
#include "sandbox/stage.h"

struct governed;

/* One run. Zeroed, then run_init; run_done in every case. */
struct run {
	const struct run_request *request;
	const struct ssb_plan *plan; /* the request's */
	const struct owner *owner;   /* NULL: no trace is kept */
	struct prepared *prepared;   /* of all attempts */
	struct trace *trace;
	uint64_t start_us;
	struct stage_config config;
	struct layer_report reports[LAYER_COUNT]; /* from MSG_STARTED on */
	bool unix_sockets; /* of the filter that the skill's process has loaded */
	struct egress egress;
	struct observer *observer; /* NULL: nothing is observed */
	struct governed *govern;   /* borrowed; NULL: nobody governs (governed.h) */
	int payload_spare;         /* for a second attempt; -1: none */
	bool without_namespaces;   /* what --best-effort allows, when nothing else works */
	struct repos *repos;
	struct string_list stores; /* of the owner's, see observe/observer.h */
	struct placeholders *placeholders;
	struct repo_links *repo_links;
	struct cgroup *cgroup;
	pid_t pid; /* init, as the host sees it */
	int pidfd;
	int ctl;       /* our end */
	int master;    /* of the pty, or -1 */
	int oom;       /* eventfd of cgroup v1, or -1 */
	int thaw;      /* cgroup_thaw_fd(), or -1 */
	int exec_pipe; /* at its end when the skill has reached execve */
	int pipes[3];  /* our ends */
	bool started;  /* all layers on, execve was next */
	bool ended;    /* the skill's first process is gone */
	bool dead;     /* so is everything */
	bool killed;   /* or will be: nothing more is begun */
	int wstatus;
	enum end_cause cause;
	uint64_t memory;
	uint64_t share_at; /* when to set the CPU share of the session; 0: not */
	int share_tries;
	uint64_t
	        digest_at; /* when the skill's files are to be digested; 0: they are, or must not */
	uint64_t deadline; /* ours, behind init's: also for the delivery of the output */
	bool gave_up;      /* output was left undelivered */
	int canceled;      /* the signal that told us to stop */
	struct marks seen; /* request->still */
	struct ssb_error failure;
	bool follows; /* the failure is of one that was gone: why is still to be heard */
};

void run_init(struct run *r, const struct run_request *q, const struct owner *owner,
              struct prepared *prepared);
void run_done(struct run *r);

/* Ends everything in it; returns at once. */
void run_kill(struct run *r);

/* Waits for its first process, with which everything is gone. */
void run_reap(struct run *r);

/* Everything up to the cloned child. */
int run_start(struct run *r, struct ssb_error *err);

/* Until the skill has ended and every byte is delivered. `pumps` are the
 * caller's three; sig_fd reads the signals that the caller holds back. */
int run_watch(struct run *r, struct pump pumps[3], int sig_fd, struct ssb_error *err);

#endif
