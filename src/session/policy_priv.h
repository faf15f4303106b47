/* policy_priv.h - how the files that read session.yaml share their work. */
#ifndef SESSION_POLICY_PRIV_H
#define SESSION_POLICY_PRIV_H

#include "manifest/levels.h"
#include "session/policy.h"

/* ---- the tree of a session.yaml into a struct session_policy ---- */

/* A policy while it is read: what the order of the file leaves open. */
struct policy_draft {
	struct session_policy p;
	enum session_act on_threshold; /* of the thresholds that do not say */
};

/* Fills `d` (defaults are in it) from the root of a file; every finding goes to
 * the report. False only when memory is out. */
bool policy_fields_read(const struct report *rep, const struct ynode *root, struct policy_draft *d);

/* policy_items.c: readers for rows, of the lists in kill_switch and audit; `at`
 * is the draft. */
void policy_read_notify(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void policy_read_exports(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
extern const struct level NOTIFY_LEVEL;
extern const struct level EXPORT_LEVEL;

/* ---- policy_values.c ---- */

/* Readers of values that manifest/values.h does not have. Each of them reports a value that
 * it refuses, and leaves `*at` unchanged then. */
#define ROW_READER(name)                                                                           \
	void name(struct ctx *c, const struct ynode *n, const struct field *f, void *at)

ROW_READER(read_money);    /* micros, from the text itself */
ROW_READER(read_ppm);      /* unsigned: a part of one, 0 to 1, in millionths */
ROW_READER(read_duration); /* uint64_t in ms, from min to max */
ROW_READER(read_seconds);  /* uint64_t in ms; written as whole seconds, min and max too */
ROW_READER(read_size);     /* uint64_t: bytes, also as 10MB */
ROW_READER(read_flag);     /* bool */
ROW_READER(read_act);      /* enum session_act */
ROW_READER(read_short);    /* char[max]: one line that fits, and not empty */
ROW_READER(read_ignored);  /* nothing: a key of the known schema without a meaning here */

/* A text in one line that is not empty; new, or NULL (reported). What is wrong
 * is said without the text: it may be a secret. */
char *policy_read_secret(struct ctx *c, const struct ynode *n, const struct field *f);

#endif
