/* policy_priv.h - declarations that the readers of session.yaml share. */
#ifndef SESSION_POLICY_PRIV_H
#define SESSION_POLICY_PRIV_H

#include "manifest/levels.h"
#include "session/policy.h"

/* ---- reading the tree of a session.yaml into a struct session_policy ---- */

/* A policy while it is read. It also contains the values that cannot be set before the whole file
 * was read. */
struct policy_draft {
	struct session_policy p;
	enum session_act on_threshold; /* applies to thresholds without their own on_threshold */
};

/* Fills `d`, which must contain the defaults, from the root of a file. Adds every finding to the
 * report. Returns false only if memory is exhausted. */
bool policy_fields_read(const struct report *rep, const struct ynode *root, struct policy_draft *d);

/* policy_items.c: row readers for the lists in kill_switch and audit. `at` must be a
 * struct policy_draft. */
void policy_read_notify(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void policy_read_exports(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
extern const struct level NOTIFY_LEVEL;
extern const struct level EXPORT_LEVEL;

/* ---- policy_values.c ---- */

/* Readers of values that manifest/values.h does not have. If a reader rejects a value, it reports a
 * finding and leaves `*at` unchanged. */
#define ROW_READER(name)                                                                           \
	void name(struct ctx *c, const struct ynode *n, const struct field *f, void *at)

ROW_READER(policy_read_money);    /* micros */
ROW_READER(policy_read_ppm);      /* unsigned: a fraction from 0 to 1, in millionths */
ROW_READER(policy_read_duration); /* uint64_t in ms, from min to max */
ROW_READER(policy_read_seconds);  /* uint64_t in ms; min, max and the file are in whole seconds */
ROW_READER(policy_read_size);     /* uint64_t in bytes; the file may say 10MB */
ROW_READER(policy_read_flag);     /* bool */
ROW_READER(policy_read_act);      /* enum session_act */
ROW_READER(policy_read_short);    /* char[max]: one line that fits and is not empty */
ROW_READER(policy_read_ignored);  /* reads nothing: the key has no meaning for this program */

/* Returns a new, non-empty text of one line. Returns NULL after reporting a finding, which does
 * not repeat the text, because it may be a secret. */
char *policy_read_secret(struct ctx *c, const struct ynode *n, const struct field *f);

#endif
