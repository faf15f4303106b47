/* event.h - describes one event of a run, before it is written.
 *
 * A member that is not known stays zero and is left out of the record. An event borrows its texts;
 * trace_add() reads them before it returns. A copy (event_copy) owns all of them. */
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

	/* The lines of a record that are not events. */
	EV_RUN = EV_COUNT,
	EV_LAYERS,
	EV_FILES,
	EV_END,
	EV_SIGNATURE, /* also in the ledger of a session */
	/* not a kind: the NULL in RECORD_KINDS after the kinds of a run's record */
	EV_END_OF_RUN_KINDS,

	/* The other lines of a session's ledger. */
	EV_SESSION_CREATED,
	EV_SESSION_RESUMED,
	EV_SESSION_PAUSED,
	EV_SESSION_KILLED,
	EV_SESSION_EXPIRED,
	EV_SESSION_COMPLETED,
	EV_BUDGET_ALERT,
	EV_VIOLATION,
	EV_ACTION_ALLOWED,
	EV_ACTION_BLOCKED,
	EV_ACTION_SETTLED,
	EV_CHILD,
	EV_RUN_BEGUN,
	EV_RUN_ENDED,
	EV_USAGE,
	EV_NOTIFICATION,
	EV_OTHER, /* a kind of line that this version does not know */
};

/* Bytes from the skill. They may be any bytes, including NUL and invalid UTF-8. */
struct bytes {
	const char *p; /* NULL: none */
	size_t n;
};

/* Most texts of struct event are in two arrays: bytes[EVENT_BYTES], from `message` to `attribute`,
 * and strings[EVENT_STRINGS], from `call` to `remedy`. event_copy() copies both arrays. */
#define EVENT_BYTES   7
#define EVENT_STRINGS 5

struct event {
	enum event_kind kind;
	enum event_status status;
	bool violation;
	bool args_cut;
	bool tallied; /* trace_again() has already counted these attempts */
	enum op op;
	enum mode mode;
	enum reason reason;
	enum event_protocol protocol;
	enum event_rule rule;
	pid_t pid; /* in the sandbox's pid namespace */
	pid_t ppid;
	int error; /* the errno that we returned to the program; 0: none */
	uint16_t port;
	union {
		struct {
			struct bytes message; /* for people; NULL: made from the other members */
			struct bytes program;
			struct bytes path;
			struct bytes path2;
			struct bytes raw; /* the path as the program gave it, if it differs from
			                     `path` */
			struct bytes leads_to;  /* the target that a new symlink gets */
			struct bytes attribute; /* name of the attribute that is set or removed */
		};
		struct bytes bytes[EVENT_BYTES];
	};
	union {
		struct {
			const char *call; /* name of a refused system call; NULL: see `op` */
			const char *name; /* the host that the skill wanted to reach, if it has a
			                     name */
			const char *address;
			const char *entry; /* the text of the rule, with RULE_ENTRY */
			const char *remedy;
		};
		const char *strings[EVENT_STRINGS];
	};
	const struct bytes *args; /* the arguments of an exec */
	size_t n_args;
	/* Writes further members of `data`; NULL: there are none. */
	void (*more)(struct json *j, void *arg);
	void *more_arg;
	size_t more_size; /* bytes at more_arg; event_copy() needs it */
	uint64_t apart;   /* a number by which attempts differ that are otherwise equal (fold.h) */
	uint64_t times;   /* how many attempts this event stands for; 0 means one */
	uint64_t at_us;   /* when it happened, by clock_us(); 0: now */
};

/* Returns how many bytes event_copy() needs: a multiple of EVENT_ALIGN. */
#define EVENT_ALIGN 16
size_t event_size(const struct event *e);
/* Copies the event and everything that it points to into `to`, which must have event_size() bytes
 * (`size`), be aligned to EVENT_ALIGN, and not move. The function `more` is not copied. Returns
 * the copy. */
struct event *event_copy(void *to, size_t size, const struct event *e);

/* The name of each kind of line, by enum event_kind. One NULL is after the kinds of a run's record,
 * and one after those of a session's ledger. */
extern const char *const RECORD_KINDS[];
const char *event_kind_name(enum event_kind kind); /* NULL: not an event */
/* Converts the text of a line that was read. Returns EV_OTHER for an unknown kind. */
enum event_kind event_kind_from(const char *name, size_t len);

#endif
