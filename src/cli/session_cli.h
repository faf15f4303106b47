/* session_cli.h - what all session commands use: the store, the cost on the command line, and the
 * report of a decision. */
#ifndef CLI_SESSION_CLI_H
#define CLI_SESSION_CLI_H

#include "base/json.h"
#include "cli/cli.h"
#include "policy/owner.h"
#include "session/act.h"

struct session_cli {
	const struct request *r;
	struct owner owner;
	struct session_store *store;
	const char *id; /* the argument: a session's id or a reservation's number; may be NULL */
	bool told; /* findings were printed; the error repeats the first, so it is not printed */
};

/* Reads the argument and the owner's settings. `id` is NULL if there is no argument. Returns 0, or
 * prints the error and returns the exit status. `c` must be released with session_cli_done(), also
 * after a failure. */
int session_cli_begin(struct session_cli *c, const struct request *r);
/* Opens the store. Must be called after all arguments were checked. */
int session_cli_open(struct session_cli *c, struct ssb_error *err);
void session_cli_done(struct session_cli *c);

/* Prints the error; with --json also as an object. Returns the exit status: 1 if the session
 * refuses the request, 2 if the request is wrong, else 125. */
int session_cli_fail(const struct session_cli *c, const struct ssb_error *err);
/* Prints all findings of a file. Afterwards session_cli_fail() does not print the error, which
 * repeats one of them. */
void session_cli_findings(struct session_cli *c, const struct ssb_diags *found);

/* Reads --cost, or computes the cost from --model and its tokens. If neither is given, *ret is
 * untouched and *ret_given is false. */
int session_cli_cost(struct session_cli *c, micros *ret, bool *ret_given, struct ssb_error *err);

/* Prints what went wrong when the decision was enforced. Returns EXIT_SANDBOX if a run may still be
 * running. A message that cannot be sent, or a ledger that cannot be copied or signed, causes only
 * a warning. */
int session_cli_done_status(const struct decision *d);
/* Starts a herald if messages wait that an earlier herald did not deliver. */
void session_cli_mail(const struct session_cli *c);

/* Members that session_cli_json() adds to the decision. `action` and `type` (may be NULL) come from
 * the command line. */
struct session_told {
	const char *action;
	const char *type;
};
int session_cli_json(const struct decision *d, const struct session_told *told);
/* Prints JSON on standard output. For a terminal, deceptive characters become escapes. */
int session_cli_out(const struct buf *json);
/* Appends "; 2 runs ended in 12.3 ms" if the decision concerns runs. */
void session_cli_runs(struct buf *out, const struct decision *d);

#endif
