/* schema.h - the tables of the store, as both databases have them. Times are
 * wall-clock microseconds, money micro-dollars; `n` is the store's own number.
 *
 *   sessions      one row each: totals, state, head of the ledger's chain; `policy` is
 *                 the digest of its policy, `paused_by` the session whose pause it shares
 *   policies      (digest, source): apart, so that a row of sessions stays small
 *   counts        (session, name, count): violations by type, kind and class
 *   domains       (session, name): contacted by its runs
 *   reservations  n, session, action, amount, made, expires, state, actual
 *   runs          n, session, place (session.h), begun, ended, exit status, ending
 *   ledger        (session, seq, line): chained as a trace's record
 *   outbox        n, session, kind, url, secret, body, tries, due, leased, state
 *
 * A transaction touches few rows, and so few pages: a check is one row of
 * sessions for it and each ancestor, one reservation, one line. */
#ifndef SESSION_SCHEMA_H
#define SESSION_SCHEMA_H

#define SESSION_SCHEMA_VERSION 1

/* One statement after the other, NULL at the end. */
extern const char *const SESSION_SCHEMA[];

#endif
