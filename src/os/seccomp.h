/* seccomp.h - the system call filters, compiled at build time.
 *
 * The tables, with a reason for each group, are in tools/seccomp_rules.c; tools/seccomp-gen.c turns
 * them into the programs that are loaded here. Calls that are not in the tables fail with ENOSYS,
 * so that programs fall back to others. Calls of another ABI (i386, x32), and calls that only
 * attacks use, end the process with SIGSYS. */
#ifndef OS_SECCOMP_H
#define OS_SECCOMP_H

#include <stdbool.h>
#include <stdint.h>

#include "skillsandbox.h"

/* In the order of `enum profile` of the manifest. */
enum seccomp_profile {
	SECCOMP_PROFILE_DEFAULT,
	SECCOMP_PROFILE_STRICT, /* no sockets, no child processes; threads and execve are allowed */
	SECCOMP_PROFILE_PERMISSIVE, /* for development: allows debuggers, but nothing that helps to
	                               escape */
	SECCOMP_N_PROFILES,
};

/* How far the skill's sockets can reach. */
enum seccomp_reach {
	SECCOMP_REACH_UNIX, /* own namespaces: internet and unix sockets */
	SECCOMP_REACH_INET, /* own namespaces, but a writable grant may contain a unix socket of the
	                       host: no unix sockets except connected pairs, which reach no other
	                       process */
	SECCOMP_REACH_NONE, /* the namespaces of the host: no sockets except pairs, no SysV or POSIX
	                       message queues, no debugging, nothing that acts on other processes.
	                       Signals are not filtered here; Landlock's scope must block them. */
	SECCOMP_N_REACHES,
};

struct sock_filter;
struct seccomp_data;

struct seccomp_blob {
	const struct sock_filter *insns; /* static; `len` instructions of 8 bytes */
	uint16_t len;
};

/* The filter that seccomp_load() would load, for tests and for a digest in the trace. Without
 * internet sockets the reach is SECCOMP_REACH_NONE, whatever `unix_sockets` says: without a network
 * namespace, an abstract address belongs to the host. */
const struct seccomp_blob *seccomp_blob(enum seccomp_profile profile, bool unix_sockets,
                                        bool inet_sockets);

/* The answer of a filter to a call: SECCOMP_RET_*. The filter is trusted (it is ours), the call is
 * not. */
uint32_t seccomp_eval(const struct seccomp_blob *blob, const struct seccomp_data *call);

/* The name of the call, such as "openat"; "" if the number has no name or belongs to another
 * ABI. */
const char *seccomp_call_name(const struct seccomp_data *call);

/* Irreversibly confines the calling thread and everything it starts. Needs no_new_privs.
 * Async-signal-safe. */
int seccomp_load(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                 struct ssb_error *err);

/* Like seccomp_load(), but each observed call waits for an answer from the holder of the listener,
 * which is *ret_listener in this process (close-on-exec). EBUSY: another process observes
 * already. */
int seccomp_load_observed(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                          int *ret_listener, struct ssb_error *err);

/* For our own PID 1: reap, poll, read /proc, report, exit. Any other call ends it and the
 * sandbox. */
int seccomp_load_init(struct ssb_error *err);

/* For the egress broker: accept, read, write, splice, poll. */
int seccomp_load_broker(struct ssb_error *err);

/* For the dialler: connect, and what the host's resolver needs with any of its modules. Other calls
 * fail as on an older kernel. */
int seccomp_load_dialler(struct ssb_error *err);

/* For the maker of unix sockets (os/unix_maker.h). */
int seccomp_load_maker(struct ssb_error *err);

/* Written by tools/seccomp-gen.c. */
extern const struct seccomp_blob seccomp_blobs[SECCOMP_N_PROFILES][SECCOMP_N_REACHES];
extern const struct seccomp_blob seccomp_observed_blobs[SECCOMP_N_PROFILES][SECCOMP_N_REACHES];
#define SECCOMP_N_NAMES 512
extern const char seccomp_call_names[]; /* one after another, each with its NUL */
extern const struct seccomp_blob seccomp_init_blob;
extern const struct seccomp_blob seccomp_broker_blob;
extern const struct seccomp_blob seccomp_dialler_blob;
extern const struct seccomp_blob seccomp_maker_blob;

#endif
