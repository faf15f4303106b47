/* policy_fields.h - the tree of a session.yaml into a struct session_policy. */
#ifndef SESSION_POLICY_FIELDS_H
#define SESSION_POLICY_FIELDS_H

#include "manifest/levels.h"
#include "session/policy.h"

/* A policy while it is read: what the order of the file leaves open. */
struct draft {
	struct session_policy p;
	enum session_act on_threshold; /* of the thresholds that do not say */
};

/* Fills `d` (defaults are in it) from the root of a file; every finding goes to
 * the report. False only when memory is out. */
bool policy_fields_read(const struct report *rep, const struct ynode *root, struct draft *d);

/* policy_items.c: readers for rows, of the lists in kill_switch and audit; `at`
 * is the draft. */
void read_notify(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
void read_exports(struct ctx *c, const struct ynode *n, const struct field *f, void *at);
extern const struct level NOTIFY_LEVEL;
extern const struct level EXPORT_LEVEL;

#endif
