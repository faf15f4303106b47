/* schema.h - the tables of the store in both databases. Times are wall-clock microseconds,
 * money is micro-dollars; `n` is the store's own number.
 *
 *   sessions      one row each: totals, state, head of the ledger's chain. `policy` is the
 *                 digest of its policy, `paused_by` the session whose pause it shares,
 *                 `deadline` when its time is over, or, if it is over, until when its runs
 *                 may keep running. `due`, of a root: no reservation of its tree times out
 *                 before; 0: none is open. `due` changes seldom, and saves an index to which
 *                 each check and each settle would write
 *   policies      (digest, source): separate, so that a row of sessions stays small
 *   counts        (session, name, count): violations by type, kind and class
 *   domains       (session, name): names that its runs contacted
 *   reservations  n, session, root, action, amount, made, expires, state: the open ones, and
 *                 those that timed out, whose bill may still come. Settled ones are deleted,
 *                 so that the rows stay few and on few pages: the ledger records them. n is
 *                 random, not counted: knowing it is enough to settle it
 *   runs          n, session, place (session.h), begun, ended, exit status, ending, `used`:
 *                 the last report of usage that was counted
 *   ledger        n, line: chained like a trace's record. n is SESSION_LINE(): the lines of
 *                 one session lie together, and a new line is written to one page
 *   copies        (session, item, seq): copies of the ledger that are behind, by their place
 *                 in the policy, and the first line that they lack
 *   outbox        n, session, kind, url, secret, body, tries, due, leased, state
 *   sends         n, session, url, sent, span, tries, due, leased, state: how much of a
 *                 ledger a collector has. `sent` is the first line that it lacks; it changes
 *                 when a request was answered, never with a new line: lines have their own
 *                 pages
 *
 * A transaction touches few rows and so few pages: a check touches one row of sessions for
 * the session and each ancestor, one reservation and one line. */
#ifndef SESSION_SCHEMA_H
#define SESSION_SCHEMA_H

#include <stdint.h>

#define SESSION_SCHEMA_VERSION 1

#define SESSION_LINE(session, seq) (((int64_t)(session) << 32) | (int64_t)(seq))
#define SESSION_MAX_N              INT32_MAX
#define SESSION_LINE_SEQ(n)        ((n)&SESSION_MAX_LINES)
#define SESSION_MAX_LINES          UINT32_MAX

/* The statements in order, with a NULL at the end. */
extern const char *const SESSION_SCHEMA[];

#endif
