/* observer.h - sees what a skill tries, as it happens.
 *
 * The skill's filter asks us about the calls that matter, by seccomp notification. A call that
 * the plan allows is continued, and the kernel, which enforces the plan without us, answers it.
 * Such a line says "asked", because the memory that we read may have changed since. A call that
 * the plan does not allow is answered here and never reaches the kernel: such a line is exact.
 * Nothing is ever allowed because of what we read. */
#ifndef OBSERVE_OBSERVER_H
#define OBSERVE_OBSERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "trace/trace.h"
#include "base/address.h"
#include "base/limits.h"
#include "os/seccomp.h"
#include "policy/plan.h"

struct cgroup;
struct observer;

/* What the run knows about the sandbox's network: this folder must not include the egress. */
struct observer_net {
	/* Does the broker answer there? It keeps its own record. */
	bool (*answered)(void *arg, const struct address *to, uint16_t port, bool udp);
	/* Is the address one of the egress's, whatever the port? ret_name is the host that it
	 * stands for; "": not known. */
	bool (*known)(void *arg, const struct address *to, char ret_name[HOST_NAME_SIZE]);
	/* Does the broker listen on this port at all addresses? */
	bool (*takes)(void *arg, const struct address *to, uint16_t port, bool udp);
	/* Is the address dialled only if the owner grants its range, too? */
	bool (*guarded)(void *arg, const struct address *to);
	void *arg;
};

/* Everything is borrowed for the observer's life. */
struct observer_setup {
	const struct ssb_plan *plan;
	struct trace *trace;               /* NULL: calls are answered but not recorded */
	const struct seccomp_blob *filter; /* the same decisions without notification */
	const struct string_list *held;    /* further read-only names in writable grants; or NULL */
	const struct string_list *stores;  /* the owner's, see observer_stores(); NULL: none */
	bool own_sockets; /* the skill may use only unix sockets of its own (os/unix_maker.h) */
	uid_t uid;        /* the skill's, in the sandbox */
	gid_t gid;
	const struct cgroup *cgroup; /* the skill's; NULL: none */
	struct observer_net net;     /* functions are NULL if no network is declared */
	const int *exec_pipe;        /* the first execve that works closes its other end */
};

/* The target of the symlink by which the sandbox holds a name that must not seem to exist. No
 * process can create this target. */
#define OBSERVER_NOTHING "/proc/held-by-skillsandbox"

/* Adds the paths of the secret places that exist in the owner's home. Call it before a run.
 * Returns -1 without memory. */
int observer_stores(const char *home, struct string_list *ret);

/* Returns a new observer. */
int observer_new(const struct observer_setup *setup, struct observer **ret, struct ssb_error *err);
void observer_free(struct observer *o); /* accepts NULL */

/* Takes the listener that the skill's first process has as fd `number`. Until an execve of that
 * process works it runs our own code: only the programs that were found are recorded. */
int observer_attach(struct observer *o, pid_t first, int number, struct ssb_error *err);

/* Call it when the first execve has worked. Accepts NULL. */
void observer_started(struct observer *o);

/* The fd to poll for input; -1: there is nothing to wait for. */
int observer_fd(const struct observer *o);

/* Another fd to poll for input. Input means that the process that makes the skill's unix sockets
 * has ended, so that calls might wait for it forever. -1: there is none. Accepts NULL. */
int observer_maker(const struct observer *o);

/* Call it when the skill is frozen: ends the calls that wait for that process; the skill makes
 * them again when it is resumed. Accepts NULL. */
void observer_release(struct observer *o);

/* Call it when observer_fd() is ready. Answers a call, or notes that the thread has seen
 * something. With `call` false, no process is left that could make calls. */
void observer_turn(struct observer *o, bool call);

/* When to call observer_tick(), in clock_ms(); 0: nothing waits. Both accept NULL. */
uint64_t observer_due(const struct observer *o);
void observer_tick(struct observer *o);
/* Records what was seen so far. Call it before something is recorded that happened later. */
void observer_write(struct observer *o);

/* Call it when every process in the sandbox is gone: nothing is added to the trace after this.
 * Accepts NULL. */
void observer_stop(struct observer *o);

/* Was the first process ended for a call that only attacks make? */
bool observer_killed_first(const struct observer *o);

/* Records the skill's environment as one event: which variables it got, which it asked for that
 * do not exist, and how many were withheld. */
void observer_environment(struct trace *t, const struct ssb_plan *plan);

#endif
