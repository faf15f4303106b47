/* policy.h - what a session may spend and do: session.yaml.
 * The format is described in skillsandbox-session(5). */
#ifndef SESSION_POLICY_H
#define SESSION_POLICY_H

#include <stddef.h>

#include "session/money.h"
#include "session/types.h"
#include "skillsandbox.h"

#define SESSION_NO_LIMIT UINT64_MAX

struct session_limit {
	uint64_t max; /* in the unit of the meter (ms for seconds); SESSION_NO_LIMIT: none */
	enum session_act act;
};

/* A kind of violation that is counted: a name given by a scanner, an event kind
 * of the trace ("file_blocked"), or a threat class ("credential_harvesting"). */
struct session_threshold {
	char name[64];
	uint64_t count; /* acts when the count reaches it; 1 or more */
	enum session_act act;
};

enum notify_kind {
	NOTIFY_SLACK,
	NOTIFY_JSON,
	NOTIFY_PAGERDUTY,
	NOTIFY_OTEL, /* in an outbox only: a part of the ledger, for audit.export */
};

struct session_notify {
	enum notify_kind kind;
	char *url;
	char *secret; /* file with the HMAC key (json), or the routing key itself (pagerduty) */
};

enum session_export_kind { EXPORT_FILE, EXPORT_OTEL };

struct session_export {
	enum session_export_kind kind;
	char *to; /* an http(s) URL; a path, absolute or beneath <state_dir>/exports, without ".."
	           */
};

struct session_policy {
	char *source; /* the file's bytes, NUL-terminated; kept in the store */
	size_t source_len;
	char version[32];
	char agent_id[SESSION_ID];
	/* budget */
	micros max_cost_per_session;
	micros max_cost_per_action;
	unsigned alert_at_ppm; /* 0.80 = 800000, of every budget and limit */
	enum session_act on_exceed;
	uint64_t reservation_ms;
	bool charge_on_timeout; /* else an unsettled reservation is given back */
	/* session */
	uint64_t max_duration_ms;
	uint64_t max_actions;
	/* limits; `violations` of limits and of violations.thresholds are one list */
	struct session_limit limits[SESSION_METERS];
	struct session_limit all_violations; /* limits.violations.total: past it */
	struct session_threshold *thresholds;
	size_t n_thresholds;
	/* kill_switch */
	bool kill_enabled; /* else what would kill blocks; the owner's own kill always works */
	uint64_t grace_ms;
	enum session_act on_store_loss; /* of runs: ACT_KILL, ACT_PAUSE, ACT_LOG: they go on */
	struct session_notify *notify;
	size_t n_notify;
	/* audit */
	bool audit_enabled; /* gates the exports; the store's own ledger is always kept */
	struct session_export *exports;
	size_t n_exports;
};

/* As of an empty file. */
int session_policy_init(struct session_policy *p, struct ssb_error *err);
void session_policy_done(struct session_policy *p); /* accepts a zeroed one */

/* `ret` is initialised and filled here, and done by the caller, also after a
 * failure. All findings go to `diags` (not NULL); any error in the file is
 * SSB_E_POLICY. */
int session_policy_parse(const char *file, const char *bytes, size_t len,
                         struct session_policy *ret, struct ssb_diags *diags,
                         struct ssb_error *err);
/* The file `path`, opened without following a symlink; NULL: as of an empty one. */
int session_policy_load(const char *path, struct session_policy *ret, struct ssb_diags *diags,
                        struct ssb_error *err);

/* The ledger goes to a collector. */
bool session_policy_sends(const struct session_policy *p);
/* NULL: this kind of violation is only counted. */
const struct session_threshold *session_policy_threshold(const struct session_policy *p,
                                                         const char *name);
/* "30m", "1.5h", "90", "5s" in milliseconds; false: none of these, negative, or
 * more than a year. */
bool session_duration_parse(const char *s, uint64_t *ret_ms);

#endif
