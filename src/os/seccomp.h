/* seccomp.h - the system call filters, compiled at build time.
 *
 * The tables, with a reason for each group, are in tools/seccomp_rules.c; tools/seccomp-gen.c turns
 * them into the programs that are loaded here. Calls that are not in the tables fail with ENOSYS,
 * so that programs fall back to other calls. Calls of another ABI (i386, x32), and calls that only
 * attacks use, end the process with SIGSYS. */
#ifndef OS_SECCOMP_H
#define OS_SECCOMP_H

#include <stdbool.h>
#include <stdint.h>

#include "skillsandbox.h"

enum seccomp_profile {
	SECCOMP_PROFILE_DEFAULT,
	SECCOMP_PROFILE_STRICT, /* no sockets, no child processes; threads and execve are allowed */
	SECCOMP_PROFILE_PERMISSIVE, /* for development: allows debuggers, but nothing that helps to
	                               escape */
	SECCOMP_N_PROFILES,
};

/* How far the skill's sockets can reach. */
enum seccomp_reach {
	SECCOMP_REACH_UNIX, /* the skill has its own namespaces; it may use internet and unix
	                       sockets */
	SECCOMP_REACH_INET, /* as SECCOMP_REACH_UNIX, but a writable grant may contain a unix socket
	                       of the host. So the only unix sockets are connected pairs, which
	                       reach no other process */
	SECCOMP_REACH_NONE, /* the skill is in the host's namespaces. So it may use no sockets
	                       except pairs, no SysV or POSIX message queues, no debugging, and no
	                       call that acts on other processes. Signals are not filtered here;
	                       Landlock's scope must block them. */
	SECCOMP_N_REACHES,
};

struct sock_filter;
struct seccomp_data;

struct seccomp_blob {
	const struct sock_filter *insns; /* static; `len` instructions of 8 bytes */
	uint16_t len;
};

/* Returns the filter that seccomp_load() would load, for tests and for a digest in the trace. If
 * `inet_sockets` is false, the skill is in the host's network namespace. The reach is then
 * SECCOMP_REACH_NONE even if `unix_sockets` is true, because an abstract Unix address in that
 * namespace belongs to the host. */
const struct seccomp_blob *seccomp_blob(enum seccomp_profile profile, bool unix_sockets,
                                        bool inet_sockets);

/* Returns the answer (SECCOMP_RET_*) that a filter gives to a call. The filter must be one that
 * tools/seccomp-gen.c made; the call may be hostile. */
uint32_t seccomp_eval(const struct seccomp_blob *blob, const struct seccomp_data *call);

/* Returns the name of the call (static), such as "openat"; "" if the number has no name or belongs
 * to another ABI. */
const char *seccomp_call_name(const struct seccomp_data *call);

/* Irreversibly confines the calling thread and everything it starts. no_new_privs must be set.
 * Async-signal-safe. Like all seccomp_load functions, returns 0, or -1 with `err`. */
int seccomp_load(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                 struct ssb_error *err);

/* Like seccomp_load(), but each observed call waits for an answer from the process that has the
 * listener. *ret_listener is a new fd of the listener, close-on-exec, in the calling process. Fails
 * with EBUSY if another process observes the calling process already. */
int seccomp_load_observed(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                          int *ret_listener, struct ssb_error *err);

/* Filter for the sandbox's PID 1: allows reap, poll, read /proc, report, exit. Any other call ends
 * PID 1 and so the sandbox. */
int seccomp_load_init(struct ssb_error *err);

/* Filter for the egress broker: allows accept, read, write, splice, poll. */
int seccomp_load_broker(struct ssb_error *err);

/* Filter for the dialler: allows connect, and the calls that the host's resolver needs with any of
 * its modules. Other calls fail as on an older kernel. */
int seccomp_load_dialler(struct ssb_error *err);

/* Filter for the maker of unix sockets (os/unix_maker.h). */
int seccomp_load_maker(struct ssb_error *err);

/* tools/seccomp-gen.c generates the objects below. */
extern const struct seccomp_blob seccomp_blobs[SECCOMP_N_PROFILES][SECCOMP_N_REACHES];
extern const struct seccomp_blob seccomp_observed_blobs[SECCOMP_N_PROFILES][SECCOMP_N_REACHES];
#define SECCOMP_N_NAMES 512
extern const char seccomp_call_names[]; /* one after another, each with its NUL */
extern const struct seccomp_blob seccomp_init_blob;
extern const struct seccomp_blob seccomp_broker_blob;
extern const struct seccomp_blob seccomp_dialler_blob;
extern const struct seccomp_blob seccomp_maker_blob;

#endif
