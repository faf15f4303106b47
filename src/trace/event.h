/* event.h - something that happened in a run, before it is written down.
 *
 * What is not known is left zero, and left out of the record. Nothing is
 * owned: every pointer is the caller's and is read before trace_add returns. */
#ifndef TRACE_EVENT_H
#define TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/codes.h"
#include "base/json.h"

enum event_kind {
	EV_SKILL_STARTED,
	EV_SKILL_COMPLETED,
	EV_SKILL_FAILED,
	EV_DNS_RESOLUTION,
	EV_NETWORK_POLICY_APPLIED,
	EV_NETWORK_POLICY_REMOVED,
	EV_NETWORK_EGRESS_ALLOWED,
	EV_NETWORK_EGRESS_BLOCKED,
	EV_NETWORK_EGRESS_TOTAL,
	EV_FILE_READ,
	EV_FILE_WRITE,
	EV_FILE_BLOCKED,
	EV_ENV_VAR_ACCESS,
	EV_SYSCALL_FILTERED,
	EV_SYSCALL_BLOCKED,
	EV_PROCESS_SPAWNED,
	EV_STDOUT,
	EV_STDERR,
	EV_EXIT_CODE,
	EV_POLICY_VIOLATION,
	EV_RESOURCE_LIMIT_HIT,
	EV_COUNT,
};

/* Bytes of the skill: any, also NUL and what is not UTF-8. */
struct bytes {
	const char *p; /* NULL: none */
	size_t n;
};

struct event {
	enum event_kind kind;
	enum event_status status;
	bool violation;
	struct bytes message; /* for people; made from the rest where it is none */
	enum op op;
	const char *call; /* the name of a system call that was refused; NULL: that of `op` */
	pid_t pid;        /* inside of the sandbox */
	pid_t ppid;
	struct bytes program;
	struct bytes path;
	struct bytes path2;
	struct bytes raw;       /* what the program wrote, where it differs from `path` */
	struct bytes leads_to;  /* what a symlink is to say */
	struct bytes attribute; /* the name of one that is set or removed */
	enum mode mode;
	const char *name; /* of the host that was meant, where one was named */
	const char *address;
	uint16_t port;
	const char *protocol;
	const char *rule;
	enum reason reason;
	const char *remedy;
	int error;                /* errno that the program got; 0: none of ours */
	const struct bytes *args; /* of exec */
	size_t n_args;
	bool args_cut;
	/* Further members of `data`, by their writer; NULL: none. */
	void (*more)(struct json *j, void *arg);
	void *more_arg;
	size_t more_size; /* bytes behind more_arg, where the event may have to be kept */
	uint64_t apart;   /* tells attempts apart that are alike in all else */
	uint64_t times;   /* how many of them this stands for; 0: one */
	bool tallied;     /* trace_again() was told of them as they happened */
	uint64_t at_us;   /* when it happened, by clock_us(); 0: now */
};

/* Every kind of line in a record, NULL at the end: those of events by their number, then
 * those of its frame. */
extern const char *const RECORD_KINDS[];
const char *event_kind_name(enum event_kind kind);

#endif
