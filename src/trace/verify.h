/* verify.h - checks that a record is complete, unchanged, and written by the owner.
 *
 * The chain of hashes alone detects only accidents, because anyone can compute it. The signature
 * proves that the record was not replaced, but only if the key is known from another source. So
 * there are three results: complete (up to the signed end), incomplete (a valid beginning: the run
 * crashed, was cut off, or is still running), and bad at record N.
 *
 * The ledger of a session is a record, too. It is complete if it ends with a signature. Lines that
 * are added later are signed again, so there may be several signatures. A ledger that was cut back
 * to an earlier signature therefore also passes as complete. The signed line says how many
 * reservations were open at that time. Each of them may have led to more lines after it. */
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
	/* the owner's public key; NULL if it is not known: then no record counts as complete */
	const uint8_t *key;
	const char *run_id; /* the id of the run that the record must belong to; "": any run */
};

struct verify_result {
	enum verify_state state;
	uint64_t records; /* number of valid records */
	uint64_t bytes;   /* bytes of the valid records */
	uint64_t bad_at;  /* seq of the bad record or of the first missing one */
	char why[160];    /* what is wrong or missing */
	bool signed_end;  /* there is a valid signature, by `key` */
	uint8_t key[VERIFY_KEY_BYTES];
	char run_id[VERIFY_ID]; /* the id in the record; in a ledger, the session's id */
	char version[64];       /* version of the writing program, as the record says */
	bool bundle;            /* the file is an export, with a header line */
	bool ledger;            /* the file is the ledger of a session */
	uint64_t open;          /* reservations that were open at the signed end */
	uint8_t head[32];       /* hash of the last valid line */
};

const char *verify_state_name(enum verify_state s); /* "complete", "incomplete", "bad" */

/* Reads and checks the whole file. Returns -1 only if the file cannot be read; otherwise *ret
 * contains the result. */
int verify_record(int fd, const struct verify_ask *ask, struct verify_result *ret,
                  struct ssb_error *err);

/* Appends the header line of an export to `out`, including its newline. */
struct buf;
void verify_bundle_header(struct buf *out, const struct verify_result *of);

#endif
