/* schema.h - the tables of the store, as both databases have them. Times are
 * wall-clock microseconds, money micro-dollars; `n` is the store's own number.
 *
 *   sessions      one row each: totals, state, head of the ledger's chain; `policy` is
 *                 the digest of its policy, `paused_by` the session whose pause it shares,
 *                 `deadline` when its time is over; of one that is, until when its runs
 *                 may live; `due`, of a root, before when no reservation of its tree times
 *                 out, 0: none is open. It changes seldom, and spares an index that each
 *                 check and each settle would write to
 *   policies      (digest, source): apart, so that a row of sessions stays small
 *   counts        (session, name, count): violations by type, kind and class
 *   domains       (session, name): contacted by its runs
 *   reservations  n, session, root, action, amount, made, expires, state: those that are
 *                 open, and those that timed out, whose bill may still come. What is settled
 *                 is gone, so that they stay few and lie on few pages: the ledger tells of
 *                 it. n is drawn, not counted: who knows one may settle it
 *   runs          n, session, place (session.h), begun, ended, exit status, ending, `used`:
 *                 the last report of usage that was counted
 *   ledger        n, line: chained as a trace's record. n is SESSION_LINE(): the lines of
 *                 one lie together, and a new one is a write to one page
 *   copies        (session, item, seq): copies of the ledger that lack lines, by their place
 *                 in the policy, and the first line that is not in it
 *   outbox        n, session, kind, url, secret, body, tries, due, leased, state
 *   sends         n, session, url, sent, span, tries, due, leased, state: how much of a ledger
 *                 a collector has. `sent` is the first line that it has not; it is changed
 *                 when a request was answered, never by the lines: these have their own
 *                 pages
 *
 * A transaction touches few rows, and so few pages: a check is one row of
 * sessions for it and each ancestor, one reservation, one line. */
#ifndef SESSION_SCHEMA_H
#define SESSION_SCHEMA_H

#include <stdint.h>

#define SESSION_SCHEMA_VERSION 1

#define SESSION_LINE(session, seq) (((int64_t)(session) << 32) | (int64_t)(seq))
#define SESSION_MAX_N              INT32_MAX
#define SESSION_LINE_SEQ(n)        ((n)&SESSION_MAX_LINES)
#define SESSION_MAX_LINES          UINT32_MAX

/* One statement after the other, NULL at the end. */
extern const char *const SESSION_SCHEMA[];

#endif
