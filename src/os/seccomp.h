/* seccomp.h - the system call filters, compiled at build time.
 *
 * The tables are in tools/seccomp_rules.c, with the reason of each group;
 * tools/seccomp-gen.c turns them into the bytes that are loaded here. What is
 * not in the tables is ENOSYS, so that programs fall back. A foreign entry
 * (i386, x32) and calls that only attacks use end the process with SIGSYS. */
#ifndef OS_SECCOMP_H
#define OS_SECCOMP_H

#include <stdbool.h>
#include <stdint.h>

#include "skillsandbox.h"

/* The order is the one of the manifest's `enum profile`. */
enum seccomp_profile {
	SECCOMP_PROFILE_DEFAULT,
	SECCOMP_PROFILE_STRICT,     /* no sockets, no child processes; threads and execve stay */
	SECCOMP_PROFILE_PERMISSIVE, /* development: debuggers, but nothing that helps to escape */
	SECCOMP_N_PROFILES,
};

/* How far what the skill makes can reach. */
enum seccomp_reach {
	SECCOMP_REACH_UNIX, /* own namespaces; inet and unix sockets */
	SECCOMP_REACH_INET, /* own namespaces; a writable grant may hold a socket of the host's:
	                     * no unix socket but connected pairs, which reach nobody else */
	SECCOMP_REACH_NONE, /* the host's namespaces: no sockets but pairs, no SysV or POSIX
	                     * message IPC, no debugging, nothing done to foreign processes.
	                     * Signals are not covered: Landlock's scope has to hold them. */
	SECCOMP_N_REACHES,
};

struct sock_filter;
struct seccomp_data;

struct seccomp_blob {
	const struct sock_filter *insns; /* `len` instructions of 8 bytes; static */
	uint16_t len;
};

/* What seccomp_load() would load; for tests and for a digest in the trace.
 * Without inet sockets the reach is SECCOMP_REACH_NONE, whatever `unix_sockets`
 * says: without a network namespace an abstract address is the host's. */
const struct seccomp_blob *seccomp_blob(enum seccomp_profile profile, bool unix_sockets,
                                        bool inet_sockets);

/* What a filter answers to a call: SECCOMP_RET_*. The program is trusted (it is
 * one of ours), the call is not. */
uint32_t seccomp_eval(const struct seccomp_blob *blob, const struct seccomp_data *call);

/* "openat"; "" for a number that has no name, and for one of another ABI. */
const char *seccomp_call_name(const struct seccomp_data *call);

/* Confines the calling thread, and all that it starts, for good. Needs
 * no_new_privs. Async-signal-safe. */
int seccomp_load(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                 struct ssb_error *err);

/* The same decisions, told: each observed call waits for an answer of whoever
 * holds the listener, whose number here is *ret_listener (close-on-exec). EBUSY:
 * somebody observes already. */
int seccomp_load_observed(enum seccomp_profile profile, bool unix_sockets, bool inet_sockets,
                          int *ret_listener, struct ssb_error *err);

/* The same for our own PID 1: reap, poll, read /proc, report, exit. Any other
 * call ends it, and with it the sandbox. */
int seccomp_load_init(struct ssb_error *err);

/* The same for the egress broker: accept, read, write, splice, poll. */
int seccomp_load_broker(struct ssb_error *err);

/* The same for the dialler: what the host's resolver needs, whichever modules
 * it loads, and connecting. Other calls fail as on an older kernel. */
int seccomp_load_dialler(struct ssb_error *err);

/* The same for the maker of unix sockets (os/unix_maker.h). */
int seccomp_load_maker(struct ssb_error *err);

/* Written by tools/seccomp-gen.c. */
extern const struct seccomp_blob seccomp_blobs[SECCOMP_N_PROFILES][SECCOMP_N_REACHES];
extern const struct seccomp_blob seccomp_observed_blobs[SECCOMP_N_PROFILES][SECCOMP_N_REACHES];
#define SECCOMP_N_NAMES 512
extern const char seccomp_call_names[]; /* one after the other, each with its NUL */
extern const struct seccomp_blob seccomp_init_blob;
extern const struct seccomp_blob seccomp_broker_blob;
extern const struct seccomp_blob seccomp_dialler_blob;
extern const struct seccomp_blob seccomp_maker_blob;

#endif
