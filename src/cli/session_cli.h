/* session_cli.h - what the commands of sessions share: the store, the cost on
 * the command line, what follows from a decision, and how it is told. */
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
	const char *id; /* of the session, or number of the reservation: the operand */
	bool told;      /* what is wrong with a file: the error is the first of it */
};

/* The operand and the owner. Where the command has no operand `id` is NULL. On
 * failure the error is said, and the exit status returned; 0 is success. */
int session_cli_begin(struct session_cli *c, const struct request *r);
/* The store; after all words were understood. */
int session_cli_open(struct session_cli *c, struct ssb_error *err);
void session_cli_done(struct session_cli *c);

/* Says the error, with --json as an object too; the exit status: 1 what a
 * session refuses, 2 what was asked wrongly, else 125. */
int session_cli_fail(const struct session_cli *c, const struct ssb_error *err);
/* What is wrong with a file, all of it, in place of the error that follows. */
void session_cli_findings(struct session_cli *c, const struct ssb_diags *found);

/* --cost, or --model with its tokens. *ret is untouched where neither is given,
 * and *ret_given false. */
int session_cli_cost(struct session_cli *c, micros *ret, bool *ret_given, struct ssb_error *err);

/* Reports what went wrong when the decision was enforced: EXIT_SANDBOX if a run may still be
 * running. A message that cannot be sent, and a ledger that cannot be copied or signed, are
 * warnings. */
int session_cli_done_status(const struct decision *d);
/* Starts a herald if messages wait that an earlier one did not send. */
void session_cli_mail(const struct session_cli *c);

/* The decision as JSON on standard output. `action` and `type` (NULL: none) are
 * the words of the command line. */
struct session_told {
	const char *action;
	const char *type;
};
int session_cli_json(const struct decision *d, const struct session_told *told);
/* JSON on standard output; to a terminal with deceptive characters as escapes. */
int session_cli_out(const struct buf *json);
/* "2 runs ended in 12.3 ms": on standard error, after everything but the owner's
 * own commands. */
void session_cli_runs(struct buf *out, const struct decision *d);

#endif
