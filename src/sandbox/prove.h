/* prove.h - the attacks that `prove` makes, and their decoys.
 *
 * Each attack is one function that runs twice: inside the finished sandbox, and outside as its
 * control. Both runs see the same decoys (struct prove_world), which the supervisor planted and
 * owns. An attack returns its result and a few words; it must have no lasting effect, wherever it
 * runs. */
#ifndef SANDBOX_PROVE_H
#define SANDBOX_PROVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/plan.h"
#include "skillsandbox.h"

#define PROVE_CANARY "SSB_PROVE_CANARY"

enum attack_result {
	ATTACK_FAILED = 0,
	ATTACK_WORKED = 1,
	ATTACK_VOID = 2, /* the attack could not be made, so it proves nothing */
};

struct finding {
	char text[112];
};

/* The decoys and their addresses. The supervisor owns the struct; each attack gets a copy by
 * fork. */
struct prove_world {
	const struct ssb_plan *plan;
	bool outside; /* this is the control */
	int out_fd;   /* the pipe for findings: the only fd that an attack may find open */

	char secret[33]; /* the bytes that every decoy contains */
	/* the address of `secret` in the memory of the supervisor and of the helper */
	const char *secret_at;
	/* a variable of the caller that the skill does not get, as NAME=VALUE; or "" */
	char env_token[256];
	char dir[PATH_MAX];        /* a new directory that belongs to the owner */
	char decoy[PATH_MAX + 16]; /* a file in `dir` with mode 0600 */
	dev_t decoy_dev;
	ino_t decoy_ino;
	_Alignas(8) unsigned char handle[256]; /* struct file_handle of the decoy */
	bool have_handle;
	const char *scratch; /* where the skill can make files */
	int low_fd;          /* an open fd of the decoy, which every process inherits */
	/* another fd of the decoy, with a number of 1024 or more; -1: none */
	int high_fd;
	char unix_path[PATH_MAX + 16]; /* path of a listening socket in `dir` */
	int unix_fd;
	char abstract[64]; /* listening abstract address, without the NUL */
	int abstract_fd;
	int tcp_fd; /* listens on 127.0.0.1:tcp_port */
	uint16_t tcp_port;
	int shm_id;        /* SysV */
	char shm_path[64]; /* in /dev/shm */
	pid_t helper;      /* a sleeping process of the owner */
	char helper_comm[16];
	volatile unsigned *helper_hits; /* in shared memory: how many signals reached the helper */
	pid_t session;                  /* session id of the supervisor */
	ino_t user_ns;                  /* its namespaces */
	ino_t pid_ns;
};

struct probe_call;

struct attack {
	const char *name;
	const char *what; /* one line for people */
	enum attack_result (*run)(const struct attack *a, const struct prove_world *w,
	                          struct finding *f);
	const char *arg;
	/* only for the attacks of probes_syscalls.c; otherwise NULL */
	const struct probe_call *call;
	/* Bits: */
	unsigned as_ns_root : 1; /* the control runs as root of a new user namespace */
	unsigned may_end : 1;    /* if SIGKILL ends the attack, the sandbox has defended itself */
	unsigned not_permissive : 1; /* the permissive profile allows the attack on the skill's own
	                                processes */
};

/* ATTACK begins the definition of an attack function; ROW and ROW_ARG are rows of a table. */
#define ATTACK(fn)                                                                                 \
	static enum attack_result fn(const struct attack *a __attribute__((unused)),               \
	                             const struct prove_world *w __attribute__((unused)),          \
	                             struct finding *f)
#define ROW(name, what, fn)                                                                        \
	{                                                                                          \
		name, what, fn, NULL, NULL, 0, 0, 0                                                \
	}
#define ROW_ARG(name, what, fn, arg)                                                               \
	{                                                                                          \
		name, what, fn, arg, NULL, 0, 0, 0                                                 \
	}

struct attack_group {
	const struct attack *attacks;
	size_t n;
};

extern const struct attack_group ATTACKS_FILES;
extern const struct attack_group ATTACKS_PROCESS;
extern const struct attack_group ATTACKS_SYSCALLS;
extern const struct attack_group ATTACKS_NETWORK;
extern const struct attack_group ATTACKS_LIMITS;

/* The following functions report a result: each fills `f` and returns the result in its name. */
enum attack_result attack_worked(struct finding *f, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
enum attack_result attack_failed(struct finding *f, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
enum attack_result attack_void(struct finding *f, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* Reports "WHAT: " and the name of errno. Returns ATTACK_FAILED. */
enum attack_result attack_errno(struct finding *f, const char *what);

/* True if the plan shows `path`, or something beneath it, to the skill. */
bool prove_granted(const struct ssb_plan *plan, const char *path);
/* The same for write access. */
bool prove_granted_write(const struct ssb_plan *plan, const char *path);

/* Returns true if the bytes that it reads from fd are the secret. */
bool prove_reads_secret(const struct prove_world *w, int fd);

/* Inode of the caller's own namespace of that kind; 0 if it is unknown. */
ino_t prove_own_ns(const char *name);

/* Plants the decoys. On failure all of them are removed. */
int prove_world_init(struct prove_world *w, const struct ssb_plan *plan, struct ssb_error *err);
void prove_world_done(struct prove_world *w);

#endif
