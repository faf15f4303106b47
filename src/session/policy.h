/* policy.h - the policy of a session (session.yaml): how much money, time and actions it may use.
 * skillsandbox-session(5) describes the format. */
#ifndef SESSION_POLICY_H
#define SESSION_POLICY_H

#include <stddef.h>

#include "session/money.h"
#include "session/types.h"
#include "skillsandbox.h"

#define SESSION_NO_LIMIT UINT64_MAX

struct session_limit {
	uint64_t max; /* in the meter's unit (times are in ms); SESSION_NO_LIMIT: none */
	enum session_act act;
};

/* A kind of violation that is counted: a name from a scanner, an event kind of the trace
 * ("file_blocked"), or a threat class ("credential_harvesting"). */
struct session_threshold {
	char name[64];
	uint64_t count; /* acts when the count reaches this number, which is at least 1 */
	enum session_act act;
};

struct session_notify {
	enum notify_kind kind;
	char *url;
	char *secret; /* path of the file with the key (json), or the routing key (pagerduty) */
};

enum session_export_kind { EXPORT_FILE, EXPORT_OTEL };

struct session_export {
	enum session_export_kind kind;
	/* An http(s) URL, or a path without "..". The path is absolute, or below
	 * <state_dir>/exports. */
	char *to;
};

struct session_policy {
	char *source; /* bytes of the file, NUL-terminated; kept in the store */
	size_t source_len;
	char version[32];
	char agent_id[SESSION_ID];
	/* budget */
	micros max_cost_per_session;
	micros max_cost_per_action;
	unsigned alert_at_ppm; /* alert_at: 0.80 is 800000; for every budget and limit */
	enum session_act on_exceed;
	uint64_t reservation_ms;
	bool charge_on_timeout; /* false: the amount of an unsettled reservation is given back */
	/* session */
	uint64_t max_duration_ms;
	uint64_t max_actions;
	/* limits; `thresholds` has the items of limits.violations and of violations.thresholds */
	struct session_limit limits[SESSION_METERS];
	struct session_limit all_violations; /* limits.violations.total */
	struct session_threshold *thresholds;
	size_t n_thresholds;
	/* kill_switch */
	bool kill_enabled; /* false: a kill becomes a block, except for the owner's own kill */
	uint64_t grace_ms;
	/* What happens to the runs: ACT_KILL, ACT_PAUSE, or ACT_LOG (they continue). */
	enum session_act on_store_loss;
	struct session_notify *notify;
	size_t n_notify;
	/* audit */
	bool audit_enabled; /* false: no exports; the store's own ledger is always kept */
	struct session_export *exports;
	size_t n_exports;
};

/* Fills `p` with the policy of an empty file. */
int session_policy_init(struct session_policy *p, struct ssb_error *err);
void session_policy_done(struct session_policy *p); /* accepts a zeroed one */

/* Initialises and fills `ret`, which the caller must release with session_policy_done(), also after
 * a failure. All findings are added to `diags`, which must not be NULL. For any error in the file
 * the code is SSB_E_POLICY. */
int session_policy_parse(const char *file, const char *bytes, size_t len,
                         struct session_policy *ret, struct ssb_diags *diags,
                         struct ssb_error *err);
/* Loads the file `path`, which must not be a symlink. Otherwise like session_policy_parse(). If
 * `path` is NULL, the result is the policy of an empty file. */
int session_policy_load(const char *path, struct session_policy *ret, struct ssb_diags *diags,
                        struct ssb_error *err);

/* Returns true if the ledger is sent to a collector (EXPORT_OTEL). */
bool session_policy_sends(const struct session_policy *p);
/* Returns the threshold for `name`, borrowed from `p`, or NULL if there is none: this kind of
 * violation is then only counted. */
const struct session_threshold *session_policy_threshold(const struct session_policy *p,
                                                         const char *name);
/* Converts "30m", "1.5h", "90", "5s" to milliseconds. Returns false if the text is invalid,
 * negative, or more than a year. */
bool session_duration_parse(const char *s, uint64_t *ret_ms);

#endif
