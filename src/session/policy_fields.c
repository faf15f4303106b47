/* policy_fields.c - the format of session.yaml as tables, one per level. skillsandbox-session(5)
 * says which keys are from the known schema, and which are additions. */
#include "session/policy_priv.h"

#include <assert.h>
#include <string.h>

#include "trace/classes.h"
#include "trace/event.h"
#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"

#define ANY_VIOLATIONS "total"

/* ---- limits -------------------------------------------------------------- */

/* Reads a limit: a number, or a mapping with a number and the reaction. */
static void read_limit(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct session_limit *l = at;
	struct field max = f->level->fields[0];

	if (n->kind == YNODE_MAP) {
		level_read_map(c, n, f, l);
		return;
	}
	max.key = f->key;
	max.read(c, n, &max, (char *)l + max.offset);
}

#define LIMIT_AT(member) .offset = offsetof(struct session_limit, member)
#define MAX_MISSING      .missing = "write \"max: 10\""

static const struct field COUNT_FIELDS[] = {
	{ "max", values_read_number, LIMIT_AT(max), MAX_MISSING, .max = MAX_SESSION_COUNT },
	{ "on_exceed", policy_read_act, LIMIT_AT(act) },
};
static const struct level COUNT_LEVEL = LEVEL("a limit", COUNT_FIELDS);

static const struct field SECONDS_FIELDS[] = {
	{ "max", policy_read_seconds, LIMIT_AT(max), MAX_MISSING, .max = MAX_SESSION_SECONDS },
	{ "on_exceed", policy_read_act, LIMIT_AT(act) },
};
static const struct level SECONDS_LEVEL = LEVEL("a limit of time", SECONDS_FIELDS);

static const struct field BYTES_FIELDS[] = {
	{ "max", policy_read_size, LIMIT_AT(max), MAX_MISSING, .max = MAX_NET_BYTES_CAP },
	{ "on_exceed", policy_read_act, LIMIT_AT(act) },
};
static const struct level BYTES_LEVEL = LEVEL("a limit of bytes", BYTES_FIELDS);

/* ---- violations ---------------------------------------------------------- */

static const char *name_problem(const struct session_policy *p, const char *s)
{
	if (s[0] == '\0' || strlen(s) >= sizeof(p->thresholds->name)) {
		return "is not a name of 1 to 63 bytes";
	}
	if (s[strcspn(s, "\n\t")] != '\0') {
		return "has a line break or tab in it";
	}
	return session_policy_threshold(p, s) != NULL ? "has a threshold already" : NULL;
}

static void add_threshold(struct ctx *c, const struct ynode *n, struct session_policy *p,
                          uint64_t count, enum session_act act)
{
	char quoted[QUOTE_SIZE];
	const char *problem = name_problem(p, n->key);

	if (p->n_thresholds >= MAX_LIST_ITEMS) {
		problem = "is beyond the limit of 256 kinds of violations";
	}
	if (problem != NULL) {
		report_add(c->rep, SSB_ERROR, n->key_line, n->key_col,
		           "violations.thresholds and limits.violations fill the same list",
		           "%s %s", report_quote(quoted, n->key), problem);
		return;
	}
	if (!ARRAY_MORE(p->thresholds, p->n_thresholds)) {
		c->nomem = true;
		return;
	}
	struct session_threshold *to = &p->thresholds[p->n_thresholds++];
	*to = (struct session_threshold){ .count = count, .act = act };
	snprintf(to->name, sizeof(to->name), "%s", n->key);
}

static const struct field THRESHOLD_FIELDS[] = {
	{ "count", values_read_number, offsetof(struct session_threshold, count),
	  .missing = "write \"count: 3\"", .min = 1, .max = MAX_SESSION_COUNT },
	{ "on_threshold", policy_read_act, .offset = offsetof(struct session_threshold, act) },
};
static const struct level THRESHOLD_LEVEL =
        LEVEL("an item of violations.thresholds", THRESHOLD_FIELDS);

static void read_thresholds(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct policy_draft *d = at;

	if (n->kind != YNODE_MAP) {
		level_read_map(c, n, f, d); /* reports the error */
		return;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		struct session_threshold t = { .act = SESSION_ACTS };
		struct field row = THRESHOLD_FIELDS[0];
		if (i->kind == YNODE_MAP) {
			level_read(c, i, &THRESHOLD_LEVEL, &t);
		} else {
			row.key = i->key;
			values_read_number(c, i, &row, &t.count);
		}
		add_threshold(c, i, &d->p, t.count, t.act);
	}
}

#define N_COUNTED (CLASS_COUNT + EV_COUNT + 1)

/* Returns true if the key is a threat class, a kind of event or the total: what the runtime
 * itself counts. Reports an error for any other key. */
static bool is_counted(struct ctx *c, const struct ynode *n)
{
	const char *names[N_COUNTED] = { [N_COUNTED - 1] = ANY_VIOLATIONS };
	char quoted[QUOTE_SIZE];
	char remedy[160];

	for (size_t i = 0; i < N_COUNTED - 1; i++) {
		names[i] = i < CLASS_COUNT ? CLASSES[i].name
		                           : event_kind_name((enum event_kind)(i - CLASS_COUNT));
	}
	for (size_t i = 0; i < N_COUNTED; i++) {
		if (strcmp(names[i], n->key) == 0) {
			return true;
		}
	}
	const char *near = report_nearest(n->key, names, N_COUNTED, sizeof(names[0]));
	snprintf(remedy, sizeof(remedy),
	         "%s%s; a type that a scanner reports belongs under violations.thresholds",
	         near != NULL ? "write " : "write total, a threat class or a kind of event",
	         near != NULL ? near : "");
	report_add(c->rep, SSB_ERROR, n->key_line, n->key_col, remedy, "unknown key %s",
	           report_quote(quoted, n->key));
	return false;
}

static void read_counted(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct policy_draft *d = at;

	if (n->kind != YNODE_MAP) {
		level_read_map(c, n, f, d); /* reports the error */
		return;
	}
	for (const struct ynode *i = n->first; i != NULL; i = i->next) {
		struct session_limit l = { SESSION_NO_LIMIT, ACT_KILL };
		struct field row = { i->key, read_limit, 0, .level = &COUNT_LEVEL };
		if (!is_counted(c, i)) {
			continue;
		}
		read_limit(c, i, &row, &l);
		if (strcmp(i->key, ANY_VIOLATIONS) == 0) {
			d->p.all_violations = l;
		} else {
			/* A limit is the highest count that is allowed. A threshold is the first
			 * count that is not. */
			uint64_t count = l.max == SESSION_NO_LIMIT ? l.max : l.max + 1;
			add_threshold(c, i, &d->p, count, l.act);
		}
	}
}

/* ---- words --------------------------------------------------------------- */

static void read_timeout(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	static const char *const WORDS[] = { "release", "charge" };
	int i = values_node_choice(c, n, f, WORDS, ARRAY_LEN(WORDS));

	if (i >= 0) {
		*(bool *)at = i == 1;
	}
}

/* Reads on_store_loss: what must happen to a run that can no longer be metered. */
static void read_loss(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	static const char *const WORDS[] = { "kill", "pause", "continue" };
	static const enum session_act ACTS[] = { ACT_KILL, ACT_PAUSE, ACT_LOG };
	int i = values_node_choice(c, n, f, WORDS, ARRAY_LEN(WORDS));

	if (i >= 0) {
		*(enum session_act *)at = ACTS[i];
	}
}

/* Reads audit.include. The list is checked but not used, because the ledger always contains
 * everything. */
static void read_include(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	(void)at;
	if (values_node_is_list(c, n, f)) {
		for (const struct ynode *i = n->first; i != NULL; i = i->next) {
			(void)values_node_text(c, i, f);
		}
	}
}

/* ---- the tables ---------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct policy_draft, member)

static const struct field BUDGET_FIELDS[] = {
	{ "max_cost_per_session", policy_read_money, AT(p.max_cost_per_session) },
	{ "max_cost_per_action", policy_read_money, AT(p.max_cost_per_action) },
	{ "alert_at", policy_read_ppm, AT(p.alert_at_ppm) },
	{ "on_exceed", policy_read_act, AT(p.on_exceed) },
	{ "reservation_timeout", policy_read_duration, AT(p.reservation_ms), .min = 1000,
	  .max = MAX_SESSION_SECONDS * 1000 },
	{ "on_timeout", read_timeout, AT(p.charge_on_timeout) },
};
static const struct level BUDGET_LEVEL = LEVEL("budget", BUDGET_FIELDS);

static const struct field SESSION_FIELDS[] = {
	{ "max_duration", policy_read_duration, AT(p.max_duration_ms),
	  .max = MAX_SESSION_SECONDS * 1000 },
	{ "max_actions", values_read_number, AT(p.max_actions), .max = MAX_SESSION_COUNT },
};
static const struct level SESSION_LEVEL = LEVEL("session", SESSION_FIELDS);

static const struct level NAMES_LEVEL = { "violations.thresholds", THRESHOLD_FIELDS, 0 };

static const struct field VIOLATION_FIELDS[] = {
	{ "thresholds", read_thresholds, 0, .level = &NAMES_LEVEL },
	{ "on_threshold", policy_read_act, AT(on_threshold) },
	{ "pii_scanner", policy_read_ignored, .offset = 0 },
};
static const struct level VIOLATION_LEVEL = LEVEL("violations", VIOLATION_FIELDS);

#define METER(name, meter, table)                                                                  \
	{                                                                                          \
		name, read_limit, AT(p.limits[meter]), .level = &(table)                           \
	}

static const struct field LIMIT_FIELDS[] = {
	METER("runs", METER_RUNS, COUNT_LEVEL),
	METER("cpu_seconds", METER_CPU_MS, SECONDS_LEVEL),
	METER("wall_seconds", METER_WALL_MS, SECONDS_LEVEL),
	METER("bytes_out", METER_BYTES_OUT, BYTES_LEVEL),
	METER("bytes_in", METER_BYTES_IN, BYTES_LEVEL),
	METER("connections", METER_CONNECTIONS, COUNT_LEVEL),
	METER("domains", METER_DOMAINS, COUNT_LEVEL),
	{ "violations", read_counted, 0, .level = &NAMES_LEVEL },
};
static const struct level LIMIT_LEVEL = LEVEL("limits", LIMIT_FIELDS);

static const struct field KILL_FIELDS[] = {
	{ "enabled", policy_read_flag, AT(p.kill_enabled) },
	{ "notify", policy_read_notify, 0, .level = &NOTIFY_LEVEL },
	{ "grace_period", policy_read_duration, AT(p.grace_ms), .max = MAX_GRACE_SECONDS * 1000 },
	{ "on_store_loss", read_loss, AT(p.on_store_loss) },
};
static const struct level KILL_LEVEL = LEVEL("kill_switch", KILL_FIELDS);

static const struct field AUDIT_FIELDS[] = {
	{ "enabled", policy_read_flag, AT(p.audit_enabled) },
	{ "include", read_include, .offset = 0 },
	{ "export", policy_read_exports, 0, .level = &EXPORT_LEVEL },
};
static const struct level AUDIT_LEVEL = LEVEL("audit", AUDIT_FIELDS);

static const struct field TOP_FIELDS[] = {
	{ "version", policy_read_short, AT(p.version),
	  .max = sizeof(((struct session_policy *)0)->version) },
	{ "agent_id", policy_read_short, AT(p.agent_id), .max = SESSION_ID },
	{ "budget", level_read_map, 0, .level = &BUDGET_LEVEL },
	{ "session", level_read_map, 0, .level = &SESSION_LEVEL },
	{ "violations", level_read_map, 0, .level = &VIOLATION_LEVEL },
	{ "limits", level_read_map, 0, .level = &LIMIT_LEVEL },
	{ "kill_switch", level_read_map, 0, .level = &KILL_LEVEL },
	{ "audit", level_read_map, 0, .level = &AUDIT_LEVEL },
};
static const struct level TOP_LEVEL = LEVEL("the top level", TOP_FIELDS);

static const struct level *const ALL_LEVELS[] = {
	&TOP_LEVEL,    &BUDGET_LEVEL, &SESSION_LEVEL,   &VIOLATION_LEVEL,
	&LIMIT_LEVEL,  &KILL_LEVEL,   &AUDIT_LEVEL,     &NOTIFY_LEVEL,
	&EXPORT_LEVEL, &COUNT_LEVEL,  &THRESHOLD_LEVEL,
};

bool policy_fields_read(const struct report *rep, const struct ynode *root, struct policy_draft *d)
{
	struct ctx c = { .rep = rep, .levels = ALL_LEVELS, .n_levels = ARRAY_LEN(ALL_LEVELS) };

	assert(root != NULL && d->p.source != NULL);
	if (root->kind == YNODE_MAP) {
		level_read(&c, root, &TOP_LEVEL, d);
	} else if (!root->bad && !ynode_is_null(root)) {
		report_add(rep, SSB_ERROR, root->line, root->col,
		           "write keys such as budget: or limits:",
		           "the session policy must be a mapping, not %s",
		           root->kind == YNODE_SEQ ? "a list" : "a single value");
	}
	for (size_t i = 0; i < d->p.n_thresholds; i++) {
		if (d->p.thresholds[i].act == SESSION_ACTS) {
			d->p.thresholds[i].act = d->on_threshold;
		}
	}
	return !c.nomem;
}
