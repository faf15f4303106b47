/* verify.h - checks that a record is whole, unchanged, and written by the owner.
 *
 * The chain alone shows accidents. Only the signature shows that the record was not written anew,
 * and only if the key is known from elsewhere. So there are three answers: complete (up to the
 * signed end), incomplete (a good beginning: crash, truncation, or still running) and bad at
 * record N.
 *
 * The ledger of a session is a record, too. It is complete if it ends with a signature. What was
 * added later is signed again, so there may be several signatures; a ledger that is cut back to
 * an earlier signature is complete as well. The signed line says how many reservations were open,
 * which may have led to more lines. */
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
	        *key; /* the owner's public key; NULL: not known, and so nothing is complete */
	const char *run_id; /* the record must be this run's; "": any run */
};

struct verify_result {
	enum verify_state state;
	uint64_t records; /* good records */
	uint64_t bytes;   /* their bytes */
	uint64_t bad_at;  /* seq of the bad record or of the first missing one */
	char why[160];    /* what is wrong or missing */
	bool signed_end;  /* there is a valid signature, by `key` */
	uint8_t key[VERIFY_KEY_BYTES];
	char run_id[VERIFY_ID]; /* as the record says; in a ledger, the session's id */
	char version[64];       /* of the program that wrote it, as the record says */
	bool bundle;            /* it is an export, with a header line */
	bool ledger;            /* it is the ledger of a session */
	uint64_t open;          /* reservations that were open at the signed end */
	uint8_t head[32];       /* hash of the last good line */
};

const char *verify_state_name(enum verify_state s); /* "complete", "incomplete", "bad" */

/* Reads the whole file. Fails only if it cannot be read. */
int verify_record(int fd, const struct verify_ask *ask, struct verify_result *ret,
                  struct ssb_error *err);

/* Appends the header line of an export, with its newline. */
struct buf;
void verify_bundle_header(struct buf *out, const struct verify_result *of);

#endif
