/* cli.h - what all commands use: the command table, the parsed command line, and the exit statuses.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/limits.h"
#include "cli/cli_options.h"
#include "policy/plan.h"
#include "skillsandbox.h"

/* Every exit status of the program itself. `run` ends with the exit status of the skill. */
enum exit_status {
	EXIT_FINE = 0,
	/* validate: a manifest is not valid; prove: an attack succeeded; audit verify: the record
	 * is bad; session: the policy of the session refused the request */
	EXIT_FINDINGS = 1,
	EXIT_USAGE = 2,        /* the command line is wrong */
	EXIT_INCOMPLETE = 3,   /* audit verify: every line is good, but the end is missing */
	EXIT_TIMED_OUT = 124,  /* chosen by the library: max_runtime_seconds was reached */
	EXIT_SANDBOX = 125,    /* the sandbox failed or refused */
	EXIT_NOT_EXEC = 126,   /* the entrypoint cannot be executed */
	EXIT_NOT_FOUND = 127,  /* the entrypoint does not exist */
	EXIT_OUT_OF_MEM = 137, /* chosen by the library: memory_mb was exceeded */
};

/* Returns the exit status for the error. `named_program` matters only for "not found": true means
 * that the program was not found, false that a directory or manifest was not found before the
 * program was known. */
int exit_status_of(const struct ssb_error *err, bool named_program);
/* Prints the error. Returns its exit status, without a named program. */
int exit_status_told(const struct ssb_error *err);

/* An option of the command line that is not in enum ssb_option. If it was given, its bit is
 * set in request.flags. In the option table, ids below FLAG_FIRST are values of enum
 * ssb_option. */
enum cli_flag {
	FLAG_FIRST = 1000,
	FLAG_DRY_RUN = FLAG_FIRST,
	FLAG_PROVE,
	FLAG_JSON,
	FLAG_VERBOSE,
	FLAG_QUIET,
	FLAG_HELP,
	FLAG_WATCH,
	FLAG_OTEL,
	FLAG_ALL,
	FLAG_REBUILD,
	FLAG_VIOLATIONS,
	FLAG_RELEASE,
	FLAG_LEDGER,
	FLAG_YES,
	FLAG_REVOKE,
	FLAG_WRITE_CONFIG,
	FLAG_REMOVE,
	FLAG_LOCAL,
	FLAG_NO_HOOK,
	FLAG_CONNECT,
	FLAG_INTERACTIVE,
	FLAG_SIDECAR,
	FLAG_SARIF,
	FLAG_LAST,
	FLAG_LIST,
	FLAG_CACHES,
	FLAG_PLAN,
	FLAG_SESSION, /* FLAG_SESSION and all flags after it have a value */
	FLAG_SKILL,
	FLAG_SINCE,
	FLAG_UNTIL,
	FLAG_SEVERITY,
	FLAG_LIMIT,
	FLAG_KEY,
	FLAG_OUTPUT,
	FLAG_OLDER_THAN,
	FLAG_KEEP,
	FLAG_SESSION_POLICY,
	FLAG_ALL_RUNS,
	FLAG_ID,
	FLAG_PARENT,
	FLAG_AGENT,
	FLAG_ACTION,
	FLAG_COST,
	FLAG_MODEL,
	FLAG_TOKENS_IN,
	FLAG_TOKENS_OUT,
	FLAG_TYPE,
	FLAG_DETAILS,
	FLAG_REASON,
	FLAG_GRACE,
	FLAG_SKILLS,  /* may be repeated: the values are in request.skills */
	FLAG_AGAINST, /* may be repeated: the values are in request.skills */
	FLAG_HTTP,
	FLAG_SOCKET,
	FLAG_MAX_RUNS,
	FLAG_IMAGE,
	FLAG_EXPIRES,
	FLAG_ONCE,
	FLAG_PATH,
	FLAG_HOST,
	FLAG_CLASS,
	FLAG_HTML,
	FLAG_END,
};

_Static_assert(FLAG_END - FLAG_FIRST <= 64, "each flag has a bit in request.flags");

#define MAX_BEST_EFFORT 8 /* most layers that a warning names; all are given to the library */

/* One command line, parsed. */
struct request {
	const struct command *command;
	uint64_t flags;
	unsigned given;              /* bits of the enum ssb_option values that were given */
	struct ssb_options *options; /* NULL if command->owner is false */
	struct operands operands;
	const char *values[FLAG_END - FLAG_FIRST]; /* values of the flags that have one; borrowed */
	const char *best_effort[MAX_BEST_EFFORT];
	size_t n_best_effort;
	char *skills[MAX_SERVED]; /* values of --skills and --against; borrowed */
	size_t n_skills;
	/* For `setup`: the options that the server will get. The values are borrowed. */
	struct passed_option {
		const struct option_row *row;
		const char *value;
	} passed[MAX_PASSED];
	size_t n_passed;
	struct owner owner; /* loaded by request_owner() */
};

static inline bool request_has(const struct request *r, enum cli_flag flag)
{
	return (r->flags >> (flag - FLAG_FIRST) & 1) != 0;
}

/* Returns the value of the flag, or NULL if the flag was not given. */
static inline const char *request_value(const struct request *r, enum cli_flag flag)
{
	return r->values[flag - FLAG_FIRST];
}

struct command {
	const char *name;     /* one word, or two: "audit show" */
	const char *operands; /* shown in the help text */
	const char *summary;
	uint64_t bit;
	bool mixed;                    /* options may follow operands */
	bool owner;                    /* takes the owner's flags, so request.options is filled */
	int (*run)(struct request *r); /* returns the exit status */
};

/* One bit for each command. There are more bits than an int has, so GNU C makes the enumeration 64
 * bits wide. */
enum command_bit {
	ON_RUN = 1,
	ON_VALIDATE = 2,
	ON_INSPECT = 4,
	ON_DOCTOR = 8,
	ON_PROVE = 16,
	ON_HELP = 32,
	ON_LIST = 64,
	ON_SHOW = 128,
	ON_VERIFY = 256,
	ON_EXPORT = 512,
	ON_PRUNE = 1024,
	ON_WATCH = 2048,
	ON_PS = 4096,
	ON_WHY = 8192,
	ON_S_START = 1 << 14,
	ON_S_LIST = 1 << 15,
	ON_S_SHOW = 1 << 16,
	ON_S_CHECK = 1 << 17,
	ON_S_SETTLE = 1 << 18,
	ON_S_VIOLATION = 1 << 19,
	ON_S_PAUSE = 1 << 20,
	ON_S_RESUME = 1 << 21,
	ON_S_KILL = 1 << 22,
	ON_S_COMPLETE = 1 << 23,
	ON_S_EXPIRE = 1 << 24,
	ON_APPROVE = 1 << 25,
	ON_APPROVALS = 1 << 26,
	ON_SETUP = 1 << 27,
	ON_HOOK = 1 << 28,
	ON_SERVE = 1 << 29,
	ON_INIT = 1 << 30,
	ON_LEARN = INT64_C(1) << 31,
	ON_SHRINK = INT64_C(1) << 32,
	ON_CHECK = INT64_C(1) << 33,
	ON_LINT = INT64_C(1) << 34,
	ON_DIFF = INT64_C(1) << 35,
	ON_SHELL = INT64_C(1) << 37,
	ON_SKILLS = INT64_C(1) << 38,
	ON_RUNS = ON_RUN | ON_SHELL, /* commands that run something now */
	ON_PLAN = ON_RUNS | ON_INSPECT | ON_PROVE,
	/* Commands with options that grant something; `setup` passes them on to the server. */
	ON_OWNER = ON_PLAN | ON_SERVE | ON_SETUP,
	ON_S_BECOME = ON_S_PAUSE | ON_S_RESUME | ON_S_KILL | ON_S_COMPLETE | ON_S_EXPIRE,
	ON_SESSION = ON_S_START | ON_S_LIST | ON_S_SHOW | ON_S_CHECK | ON_S_SETTLE |
	             ON_S_VIOLATION | ON_S_BECOME,
	ON_ALLOW = INT64_C(1) << 36,
	ON_ALL = (INT64_C(1) << 39) - 1,
};

extern const struct command COMMANDS[];
extern const size_t N_COMMANDS;
/* Finds the command whose name is at the beginning of `words` (NULL-terminated). Returns NULL if
 * there is none. *ret_n is the number of words in its name. */
const struct command *command_find(char *const words[], int *ret_n);

extern const struct option_row FLAGS[];
extern const size_t N_FLAGS;

/* Fills `r` from the words after the command's name. */
int request_parse(struct request *r, const struct command *c, char **argv, struct ssb_error *err);
void request_done(struct request *r);
/* Returns the caller's settings, which the first call loads. Returns NULL with *err on failure. */
const struct owner *request_owner(struct request *r, struct ssb_error *err);
/* Makes the plan for the operands and flags, and prints findings. On failure it prints the error,
 * too, and sets *ret_status to the exit status. `fallback` (may be NULL) is the command to plan if
 * there is no operand. */
int request_plan(struct request *r, char *const fallback[], struct ssb_plan **ret_plan,
                 int *ret_status);

/* Prints the error; `run --json` also prints it as the last JSON line. Returns `status`. */
int request_fail(const struct request *r, const struct ssb_error *err, int status);
/* Returns the session of new runs, from --session or SKILLSANDBOX_SESSION; NULL: none. */
const char *request_session(const struct request *r);

int cmd_run(struct request *r);
/* Like cmd_run(). `fallback` is as for request_plan(). */
int cmd_run_program(struct request *r, char *const fallback[]);
int cmd_shell(struct request *r);
int cmd_skills(struct request *r);
int cmd_validate(struct request *r);
int cmd_lint(struct request *r);
int cmd_inspect(struct request *r);
int cmd_doctor(struct request *r);
int cmd_prove(struct request *r);
int cmd_help(struct request *r);
int cmd_list(struct request *r);
int cmd_show(struct request *r);
int cmd_verify(struct request *r);
int cmd_export(struct request *r);
int cmd_prune(struct request *r);
int cmd_watch(struct request *r);
int cmd_ps(struct request *r);
int cmd_why(struct request *r);
int cmd_init(struct request *r);
int cmd_shrink(struct request *r);
int cmd_check(struct request *r);
int cmd_approve(struct request *r);
int cmd_approvals(struct request *r);
int cmd_allow(struct request *r);
int cmd_learn(struct request *r);
/* Removes an approval, and prints the result. Returns the exit status. */
struct owner;
int cmd_approvals_revoke(const struct owner *o, const char *dir);
/* Lists the approvals, or only that of `skill`; with `allowed`, only those with remembered grants.
 */
int cmd_approvals_list(const struct owner *o, const char *skill, bool allowed, bool as_json);
/* Approves the skill in `dir` (real, absolute) with the grants in fresh->allowed, which are added
 * to what it asks for. `fresh` may be NULL. */
struct lock;
int cmd_approve_with(struct request *r, const struct owner *o, const char *dir,
                     const struct lock *fresh);
int cmd_diff(struct request *r);
int cmd_serve(struct request *r);
int cmd_setup(struct request *r);
int cmd_hook(struct request *r);
int cmd_session_start(struct request *r);
int cmd_session_list(struct request *r);
int cmd_session_show(struct request *r);
int cmd_session_check(struct request *r);
int cmd_session_settle(struct request *r);
int cmd_session_violation(struct request *r);
int cmd_session_become(struct request *r); /* pause, resume, kill, complete, expire */
int cmd_help_command(const struct command *c);
int cmd_help_usage(void);
int cmd_help_short(void);              /* for a call without a command; returns EXIT_USAGE */
int cmd_help_group(const char *first); /* -1: no command begins with this word */
int cmd_help_version(void);

/* Prints the plan, as text or JSON. Returns the exit status. */
int cmd_inspect_print(const struct ssb_plan *plan, bool as_json);
/* Attacks the sandbox of the plan. If `only_leaks` is true, prints only the attacks that
 * succeeded. Returns the exit status. */
int cmd_prove_plan(const struct ssb_plan *plan, bool as_json, bool only_leaks);

#endif
