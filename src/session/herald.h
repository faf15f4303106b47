/* herald.h - messages to the owner: Slack, PagerDuty, plain JSON with an HMAC.
 * A herald, a process of its own that nobody waits for, empties the outbox of
 * the store: bounded tries, later and later, each delivery in the ledger.
 *
 * outbox_item.body is the event, one JSON object, written by the transaction of
 * which it tells:
 *
 *   event             "session_killed", "session_paused", "session_expired",
 *                     "budget_alert"
 *   session_id        text
 *   agent_id          text
 *   reason            text, for people
 *   code              text, of the verdict: "max_cost_per_session", ...
 *   timestamp         text, RFC 3339 (base/stamp.h)
 *   state             text, session_state_name()
 *   session_cost_usd  number with six places
 *   budget_usd        number with six places
 *   action_count      number
 *   violation_counts  object: name to number, MAX_JSON_MEMBERS at most
 *
 * Further members are passed on, in plain JSON and in PagerDuty's details. Any
 * text may be hostile: it is made clean here, for each receiver. */
#ifndef SESSION_HERALD_H
#define SESSION_HERALD_H

#include "base/buf.h"
#include "session/session.h"

#define HERALD_TRIES      8
#define HERALD_REQUEST_MS 10000 /* for one request, everything in it */
#define HERALD_FIRST_MS   1500  /* the wait after the first failure, give or take a half; */
#define HERALD_FACTOR     3     /* the next one is so many times as long */
#define HERALD_MIN_MS     1000  /* what no wait is below or above: */
#define HERALD_MAX_MS     300000
#define HERALD_REST_MS    (30 * 60 * 1000) /* after HERALD_TRIES for a collector */
#define HERALD_TOTAL_MS   (15 * 60 * 1000) /* of one herald */

/* What came of one request. */
struct herald_result {
	unsigned status;        /* 0: there was no answer */
	bool retry;             /* another try may do better */
	int64_t retry_after_ms; /* as the receiver asks; -1: it does not */
	char error[200];        /* "": delivered. Never holds the URL or a secret. */
};

/* The body for one receiver from the event's JSON. Text that is no UTF-8,
 * control characters and such as turn text around are replaced; what goes to
 * Slack is escaped and cut to Slack's limits. */
int herald_body(const struct outbox_item *item, struct buf *out, struct ssb_error *err);

/* One request, in this process; libcurl is loaded. For plain JSON with a secret:
 *   X-SkillSandbox-Timestamp: seconds since 1970, of this try
 *   X-SkillSandbox-Signature: sha256=hex of HMAC-SHA-256(key, timestamp "." body)
 *   X-SkillSandbox-Delivery:  the same for every try (also without a secret)
 * The key is what the secret file holds, without a newline at its end; it must be
 * a regular file of the owner that nobody else can read, and is read anew for
 * every request. Where it cannot be had, nothing is sent. */
void herald_post(const struct outbox_item *item, uint64_t deadline_ms, struct herald_result *ret);
/* The same for a part of a ledger, which goes to a collector (ledger_otlp.h); what
 * the OTEL_* variables say of the manner is done. */
void herald_post_otel(const struct outbox_item *item, uint64_t deadline_ms,
                      struct herald_result *ret);
/* In how long to try again, after `tries` tries with this one; 0: no more. */
uint64_t herald_retry_ms(const struct herald_result *r, unsigned tries);
/* The same for a part of a ledger: 0 only where the collector does not want what is
 * in it. The ledger is kept, and so can wait for a collector that is mended. */
uint64_t herald_retry_otel_ms(const struct herald_result *r, unsigned tries);

/* What the herald does: until the outbox is empty, or `deadline_ms` (clock_ms()).
 * Receivers do not wait for one another: each request is a child process. */
int herald_deliver(struct session_store *ss, uint64_t deadline_ms, struct ssb_error *err);
/* Something waits that nobody delivers at the moment: a herald died, or has
 * given it time that is over. For commands that can start one on the way. */
int herald_due(struct session_store *ss, bool *ret, struct ssb_error *err);

/* A herald is this executable once more: a store does not survive a fork, and a
 * fresh process has nothing of its starter's. So its main() asks this first: not
 * -1 is the exit status of a herald that has done its work. */
int herald_role(char *const argv[]);
/* Starts a herald, detached; -1 where that is not possible, also in a program
 * that does not call herald_role(). One works for each state directory: another
 * that is started meanwhile ends at once, and the first sees to its messages. */
int herald_start(const struct owner *o, struct ssb_error *err);

#endif
