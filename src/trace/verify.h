/* verify.h - is a record what was written, all of it, and by whom.
 *
 * The chain alone shows accidents; only the signature shows that nobody has
 * written the record anew, and only against a key that is known from
 * elsewhere. So there are three answers: complete (to the signed end),
 * incomplete (a good beginning: crash, truncation, or still running) and bad
 * at record N.
 *
 * The ledger of a session is a record too. It is complete where it ends with a
 * signature; what was added later is signed again, so there may be several, and
 * one that is cut back to an earlier signature is complete as well. The signed line
 * says how many reservations were open, which may have brought more. */
#ifndef TRACE_VERIFY_H
#define TRACE_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/runs.h"
#include "skillsandbox.h"

#define VERIFY_KEY_BYTES 32
#define VERIFY_ID        65 /* a run's id, or a session's */

enum verify_state { VERIFY_COMPLETE, VERIFY_INCOMPLETE, VERIFY_BAD };

struct verify_ask {
	const uint8_t
	        *key; /* the owner's public key; NULL: none is known, so nothing is complete */
	const char *run_id; /* the record must be this run's; "": any */
};

struct verify_result {
	enum verify_state state;
	uint64_t records; /* that are good */
	uint64_t bytes;   /* of them */
	uint64_t bad_at;  /* seq; also the seq of the first missing one */
	char why[160];    /* what is wrong or missing */
	bool signed_end;  /* there is a valid signature, by `key` */
	uint8_t key[VERIFY_KEY_BYTES];
	char run_id[VERIFY_ID]; /* as the record says; of a ledger the session's */
	char version[64];       /* of the program that wrote it, as the record says */
	bool bundle;            /* an export: a header line came first */
	bool ledger;            /* of a session */
	uint64_t open;          /* its reservations that were not settled at the signed end */
	uint8_t head[32];       /* hash of the last good line */
};

const char *verify_state_name(enum verify_state s); /* "complete", "incomplete", "bad" */

/* Reads the whole file. -1 only where it cannot be read. */
int verify_record(int fd, const struct verify_ask *ask, struct verify_result *ret,
                  struct ssb_error *err);

/* The line before the record in an export. `key` may be NULL. Ends with a
 * newline. */
struct buf;
void verify_bundle_header(struct buf *out, const struct verify_result *of);

#endif
