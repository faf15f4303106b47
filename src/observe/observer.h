/* observer.h - records what a skill tries to do while it runs.
 *
 * The skill's seccomp filter sends us a notification for each call that we observe. If the plan
 * allows the call, we let it continue. The kernel then executes the call and enforces the plan
 * without us. The line in the record says "asked", because the memory that we read may have changed
 * since. If the plan does not allow the call, we answer it here and it never reaches the kernel, so
 * the line in the record is exact. Nothing is ever allowed because of what we read. */
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

/* What the observer asks about the sandbox's network. These are function pointers because this
 * folder must not include the egress folder. */
struct observer_net {
	/* Returns whether the broker answers at this address and port. If so, the broker records
	 * the connection, and the observer does not. */
	bool (*answered)(void *arg, const struct address *to, uint16_t port, bool udp);
	/* Returns whether the address belongs to the egress, whatever the port is. ret_name
	 * receives the host that the address stands for; "" if the host is not known. */
	bool (*known)(void *arg, const struct address *to, char ret_name[HOST_NAME_SIZE]);
	/* Returns whether the broker listens on this port at all addresses. */
	bool (*takes)(void *arg, const struct address *to, uint16_t port, bool udp);
	/* Returns whether the egress connects to this address only if the owner also grants a range
	 * that contains it. */
	bool (*guarded)(void *arg, const struct address *to);
	void *arg;
};

/* All pointers are borrowed until observer_free(). */
struct observer_setup {
	const struct ssb_plan *plan;
	struct trace *trace; /* NULL: calls are answered but not recorded */
	/* the skill's seccomp filter, as it is without notifications */
	const struct seccomp_blob *filter;
	/* paths in writable grants to which protected names or git's settings lead, and which are
	 * read-only, too; or NULL */
	const struct string_list *held;
	/* the owner's secret places, from danger_stores(); NULL: none */
	const struct string_list *stores;
	/* the runtime's state directory and settings directory; NULL: not known */
	const char *own_dirs[2];
	bool own_sockets; /* of unix sockets, the skill may use only its own (os/unix_maker.h) */
	uid_t uid;        /* the skill's ids in the sandbox */
	gid_t gid;
	const struct cgroup *cgroup; /* the skill's cgroup; NULL: none */
	struct observer_net net;     /* its functions are NULL if no network is declared */
	const int *exec_pipe; /* the first execve that works closes the other end of this pipe */
};

/* The sandbox puts a symlink with this target at a name that must seem not to exist. No process can
 * create the target. */
#define OBSERVER_NOTHING "/proc/held-by-skillsandbox"

/* Sets *ret to a new observer. Returns 0, or -1 with `err`. */
int observer_new(const struct observer_setup *setup, struct observer **ret, struct ssb_error *err);
void observer_free(struct observer *o); /* accepts NULL */

/* Fetches the seccomp listener, which is fd `number` of the skill's first process. That process
 * runs our own code until one of its execve calls works. Until then only the execve of a program
 * that exists is recorded. Returns 0, or -1 with `err`. */
int observer_attach(struct observer *o, pid_t first, int number, struct ssb_error *err);

/* Must be called when the first execve has worked. Accepts NULL. */
void observer_started(struct observer *o);

/* Returns the fd to poll for input, or -1 if there is nothing to wait for. Accepts NULL. */
int observer_fd(const struct observer *o);

/* Returns another fd to poll for input, or -1 if there is none. Input means that the process that
 * makes the skill's unix sockets (the maker) has ended, so that calls might wait for it forever.
 * Accepts NULL. */
int observer_maker(const struct observer *o);

/* Must be called when the skill is frozen. Interrupts the calls that wait for the maker; the skill
 * repeats them when it is resumed. Accepts NULL. */
void observer_release(struct observer *o);

/* Must be called when observer_fd() is ready. Without a thread, answers a call. If the observer has
 * its own thread, notes that this thread has queued events. `call` must be false if no process is
 * left that could make calls. */
void observer_turn(struct observer *o, bool call);

/* Returns when to call observer_tick(), in clock_ms(), or 0 if no event waits to be recorded. Both
 * functions accept NULL. */
uint64_t observer_due(const struct observer *o);
void observer_tick(struct observer *o);
/* Adds all queued events to the trace. Must be called before a later event is recorded by another
 * part of the run. Accepts NULL. */
void observer_write(struct observer *o);

/* Must be called when every process in the sandbox has ended. After this, nothing is added to the
 * trace. Accepts NULL. */
void observer_stop(struct observer *o);

/* Records the arguments of the skill's command that name hidden files of the owner, unless an
 * attempt on them is recorded. Call it after observer_stop(), if the skill failed. Accepts NULL. */
void observer_named(struct observer *o);

/* Moves the paths of the files that the skill made in its private home, and did not remove, to
 * `ret`. *ret_relative: the skill named the first one relative to its directory. Settings and
 * caches are left out. Call it after observer_stop(). Accepts NULL. */
void observer_lost(struct observer *o, struct string_list *ret, bool *ret_relative);

/* Returns whether the observer has killed the first process because of a call that only attacks
 * make. Accepts NULL. */
bool observer_killed_first(const struct observer *o);

/* Return whether a process of the skill was seen without a free fd, and the private disk without
 * room. Call them after observer_stop(). Accept NULL. */
bool observer_files_full(const struct observer *o);
bool observer_disk_full(const struct observer *o);

/* Records the skill's environment as one event: the variables that the skill got, the variables
 * that it asked for but that do not exist, and the number of variables that were withheld. */
void observer_environment(struct trace *t, const struct ssb_plan *plan);

#endif
