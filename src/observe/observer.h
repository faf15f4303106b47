/* observer.h - what a skill tries, seen as it happens.
 *
 * The skill's filter asks us about the calls that matter, by seccomp
 * notification. What the plan allows is let go on, and the kernel, which
 * enforces it without us, gives the answer: such a line says "asked", for the
 * memory that we read may have changed since. What lies outside of the plan is
 * answered here and never reaches the kernel: such a line is exact. Nothing is
 * ever allowed because of what we read. */
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

/* Where the sandbox's network ends. Below us nobody knows of brokers. */
struct observer_net {
	/* Does somebody of ours answer there, who keeps his own record? */
	bool (*answered)(void *arg, const struct address *to, uint16_t port, bool udp);
	/* Is the address one of ours, whatever the port? ret_name is the host that it
	 * stands for; "": nobody here can tell. */
	bool (*known)(void *arg, const struct address *to, char ret_name[HOST_NAME_SIZE]);
	/* Does somebody of ours listen on this port of all addresses? */
	bool (*takes)(void *arg, const struct address *to, uint16_t port, bool udp);
	/* Is it dialled only where the owner grants its range, too? */
	bool (*guarded)(void *arg, const struct address *to);
	void *arg;
};

/* Everything is borrowed for the observer's life. */
struct observer_setup {
	const struct ssb_plan *plan;
	struct trace *trace;               /* NULL: answered, not written down */
	const struct seccomp_blob *filter; /* the same decisions, unobserved */
	const struct string_list *held;    /* read-only in writable grants, beside what is known
	                                    * by its name; NULL: nothing */
	const struct string_list *stores;  /* the owner's, see observer_stores(); NULL: none */
	bool own_sockets; /* unix sockets are off, but for those of its own (os/unix_maker.h) */
	uid_t uid;        /* the skill's, inside */
	gid_t gid;
	const struct cgroup *cgroup; /* the skill's; NULL: none */
	struct observer_net net;     /* without functions: no way out is declared */
	const int *exec_pipe;        /* its other end is closed by the first execve that works;
	                              * -1 since then */
};

/* Where the symlink leads by which the sandbox holds a name that must not seem to be there. Nobody
 * can make it. */
#define OBSERVER_NOTHING "/proc/held-by-skillsandbox"

/* Adds the paths of those secret places in the owner's home that are there, before a run. -1
 * without memory. */
int observer_stores(const char *home, struct string_list *ret);

/* Returns new. */
int observer_new(const struct observer_setup *setup, struct observer **ret, struct ssb_error *err);
void observer_free(struct observer *o); /* accepts NULL */

/* Takes the listener that the skill's first process has as fd `number`. Until an
 * execve of that process works it is still us: nothing is written down but the programs
 * that were found. */
int observer_attach(struct observer *o, pid_t first, int number, struct ssb_error *err);

/* The first execve has worked. Accepts NULL. */
void observer_started(struct observer *o);

/* To poll for input; -1 where there is nothing to wait for. */
int observer_fd(const struct observer *o);

/* To poll for input as well: when it has some, the process that makes the skill's unix sockets has
 * ended, and calls may wait for it for ever. -1: there is none. Accepts NULL. */
int observer_maker(const struct observer *o);

/* The skill is being frozen: calls that wait for that process are ended, to be made again when the
 * skill goes on. Accepts NULL. */
void observer_release(struct observer *o);

/* Its fd is ready. Answers a call; or, without a call in it, nobody is left who
 * could make any; or its thread has seen something. */
void observer_turn(struct observer *o, bool call);

/* When to call observer_tick(), in clock_ms(); 0: nothing waits. Both accept
 * NULL. */
uint64_t observer_due(const struct observer *o);
void observer_tick(struct observer *o);
/* Writes down what was seen so far: something else is about to be, that came later. */
void observer_write(struct observer *o);

/* Everything in the sandbox is gone: nothing is added to the trace after this.
 * Accepts NULL. */
void observer_stop(struct observer *o);

/* The first process was ended for a call that only attacks make. */
bool observer_killed_first(const struct observer *o);

/* Environment of the skill, as one event: what it got, what it asked for
 * and nobody has, how much stays outside. */
void observer_environment(struct trace *t, const struct ssb_plan *plan);

#endif
