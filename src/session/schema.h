/* schema.h - the tables of the store in both databases. Times are wall-clock microseconds, money is
 * micro-dollars; `n` is the store's own number.
 *
 *   sessions      one row each: totals, state, head of the ledger's chain. `policy` is the
 *                 digest of the policy. `paused_by` is the session whose pause paused this
 *                 one. `deadline` is the time at which the session expires or, if it is over,
 *                 until which its runs may continue. `due` (of a root): no reservation of the
 *                 tree times out before this time; 0: no reservation is open. `due` seldom
 *                 changes, and replaces an index that each check and each settle would change
 *   policies      (digest, source): separate, so that a row of sessions stays small
 *   counts        (session, name, count): violations by type, kind and class
 *   domains       (session, name): names that the session's runs contacted
 *   reservations  n, session, root, action, amount, made, expires, state: open reservations,
 *                 and those that timed out, whose bill may still come. A settled reservation
 *                 is deleted, so that the rows stay few and on few pages: the ledger records
 *                 it. n is random and not a counter, because knowing n is enough to settle
 *   runs          n, session, place (session.h), begun, ended, exit status, ending, `used`:
 *                 number of the last report of usage that was counted
 *   ledger        n, line: chained like the record of a run. n is SESSION_LINE(): the lines of
 *                 a session are on neighbouring pages, and a new line changes one page
 *   copies        (session, item, seq): copies of the ledger that lack lines. item is their
 *                 place in the policy, seq the first missing line
 *   outbox        n, session, kind, url, secret, body, tries, due, leased, state
 *   sends         n, session, url, sent, span, tries, due, leased, state: how much of a
 *                 ledger a collector has. `sent` is the first line that it lacks. `sent`
 *                 changes when a request was answered, not with each new line, so a new line
 *                 changes only the pages of the ledger
 *
 * A transaction changes few rows and so few pages: a check changes the row of the session and of
 * each ancestor, one reservation and one line. */
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
