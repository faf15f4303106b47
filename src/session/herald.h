/* herald.h - messages to the owner: Slack, PagerDuty, plain JSON with an HMAC. A herald is a
 * detached process that delivers the messages in the outbox of the store. It tries each message a
 * limited number of times at growing intervals, and writes a ledger line for each delivery.
 *
 * outbox_item.body is the event, one JSON object. The transaction that the event reports also
 * writes the body:
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
 *   violation_counts  object: name to number, at most MAX_JSON_MEMBERS
 *
 * Further members of the event are passed on in plain JSON and in PagerDuty's details. Any
 * text may be hostile, so herald_body() cleans it for each receiver. */
#ifndef SESSION_HERALD_H
#define SESSION_HERALD_H

#include "base/buf.h"
#include "session/session.h"

#define HERALD_TRIES      8
#define HERALD_REQUEST_MS 10000 /* limit for one whole request */
#define HERALD_FIRST_MS   1500  /* wait after the first failure; varied by up to a half */
#define HERALD_FACTOR     3     /* factor between one wait and the next */
#define HERALD_MIN_MS     1000  /* shortest wait; HERALD_MAX_MS is the longest */
#define HERALD_MAX_MS     300000
#define HERALD_REST_MS    (30 * 60 * 1000) /* wait after HERALD_TRIES tries to reach a collector */
#define HERALD_TOTAL_MS   (15 * 60 * 1000) /* the longest time that one herald runs */

/* The result of one request. */
struct herald_result {
	unsigned status;        /* 0: no answer */
	bool retry;             /* another try may succeed */
	int64_t retry_after_ms; /* wait that the receiver asks for; -1: none */
	char error[200];        /* "": delivered. Must never contain the URL or a secret. */
};

/* Makes the body for one receiver from the event's JSON. Invalid UTF-8, control characters
 * and characters that reverse the direction of text are replaced. Text for Slack is escaped
 * and cut to Slack's limits. */
int herald_body(const struct outbox_item *item, struct buf *out, struct ssb_error *err);

/* Sends one request from this process, and loads libcurl. Plain JSON with a secret has:
 *   X-SkillSandbox-Timestamp: seconds since 1970, of this try
 *   X-SkillSandbox-Signature: sha256=hex of HMAC-SHA-256(key, timestamp "." body)
 *   X-SkillSandbox-Delivery:  the same for every try (also without a secret)
 * The key is the content of the secret file without a newline at its end. The file must be
 * a regular file of the owner that no other user can read, and is read again for every
 * request. If it cannot be read, nothing is sent. */
void herald_post(const struct outbox_item *item, uint64_t deadline_ms, struct herald_result *ret);
/* Returns the time until the next try, or 0 if there must be no more tries. `tries` includes the
 * try that has just failed. */
uint64_t herald_retry_ms(const struct herald_result *r, unsigned tries);
/* Like herald_retry_ms(), for a part of a ledger. Returns 0 only if the collector rejects the
 * content. After any other error the part can be sent later, because the ledger is kept. */
uint64_t herald_retry_otel_ms(const struct herald_result *r, unsigned tries);

/* Delivers messages until the outbox is empty, or until `deadline_ms` (clock_ms()). A slow receiver
 * does not delay the others, because each request is a child process. */
int herald_deliver(struct session_store *ss, uint64_t deadline_ms, struct ssb_error *err);
/* Sets *ret if a message waits and no herald is delivering it, because its herald died or the lease
 * ended. For commands that can start a herald. */
int herald_due(struct session_store *ss, bool *ret, struct ssb_error *err);

/* Must be called first in main(). If this process was started as a herald, it works here, and the
 * call returns its exit status. -1: this process is not a herald. A herald is this executable,
 * started again: a forked child could not use the store, and would inherit the caller's files. */
int herald_role(char *const argv[]);
/* Starts a detached herald. Returns -1 if that is impossible, or if the program does not call
 * herald_role(). Only one herald works for each state directory: a second one ends at once, and the
 * first delivers its messages. */
int herald_start(const struct owner *o, struct ssb_error *err);

#endif
