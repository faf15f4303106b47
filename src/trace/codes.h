/* codes.h - the stable codes of records as enums, all from one table (codes.def).
 *
 * Program logic must compare these enums and never their texts. The *_from() functions convert the
 * text of a line that was read. A remedy has no code: src/report/remedy.c parses the remedy's text
 * to find out what the remedy grants. */
#ifndef TRACE_CODES_H
#define TRACE_CODES_H

#include <stdbool.h>

enum reason {
	REASON_NONE, /* no reason is given */
#define REASON(id, code, weight, grant, kind, text, remedy) REASON_##id,
#include "trace/codes.def"
	REASON_UNKNOWN, /* a code that this version does not know */
	REASON_COUNT,
};

enum op {
	OP_NONE,
#define OP(id, name, flags, words) OP_##id,
#include "trace/codes.def"
	OP_OTHER, /* any other operation, such as a system call that no rule names */
	OP_COUNT,
};

enum mode {
	MODE_NONE,
#define MODE(id, name) MODE_##id,
#include "trace/codes.def"
	MODE_OTHER, /* a mode that this version does not know */
	MODE_COUNT,
};

/* How certain a line is (skillsandbox-trace(5)). */
enum event_status {
	STATUS_NONE, /* the line is not an attempt */
#define STATUS(id, name) STATUS_##id,
#include "trace/codes.def"
	STATUS_COUNT,
};

/* The protocol of a connection, as in the record. */
enum event_protocol {
	PROTOCOL_NONE,
#define PROTOCOL(id, name) PROTOCOL_##id,
#include "trace/codes.def"
	PROTOCOL_OTHER, /* a protocol that this version does not know */
	PROTOCOL_COUNT,
};

/* The rule that decided about an attempt. */
enum event_rule {
	RULE_NONE,
#define RULE(id, name) RULE_##id,
#include "trace/codes.def"
	/* an entry of a manifest, of the owner or of a profile; event.entry is its text:
	 * "skillsandbox.yaml:12:7", "--read", "strict" */
	RULE_ENTRY,
	RULE_COUNT,
};

/* How the owner can allow a refused system call. */
enum call_remedy {
	CALL_REMEDY_NONE,
#define CALL_REMEDY(id, text) CALL_REMEDY_##id,
#include "trace/codes.def"
	CALL_REMEDY_OTHER, /* a remedy that this version does not know */
	CALL_REMEDY_COUNT,
};

/* How the owner can allow a refused attempt. codes.def says what each kind of remedy is made
 * from. */
enum reason_remedy { REMEDY_NONE, REMEDY_FIXED, REMEDY_NETWORK, REMEDY_PATH };

/* Returns the code in the record; NULL for REASON_NONE, "unknown" for REASON_UNKNOWN. */
const char *reason_code(enum reason r);
/* Converts a code. Returns REASON_NONE for NULL and "". */
enum reason reason_from(const char *code);
/* Returns the reason in words, for people; NULL if there are none. */
const char *reason_text(enum reason r);
enum reason_remedy reason_remedy(enum reason r);
const char *reason_fixed_remedy(enum reason r); /* with REMEDY_FIXED */
/* Returns whether the reason means that the plan allows the attempt and that it failed. Such a
 * failure is not a violation. */
bool reason_is_misfortune(enum reason r);
/* Returns whether an ordinary grant allows an attempt that was refused for this reason (ORDINARY in
 * codes.def). True for REASON_NONE. */
bool reason_is_grantable(enum reason r);

/* Returns the name in the record; NULL for OP_NONE and OP_OTHER. */
const char *op_name(enum op op);
enum op op_from(const char *name); /* NULL and "" are OP_NONE */
/* Returns the words that reports write before a path, or the name if there are no other words. */
const char *op_words(enum op op);
bool op_reads(enum op op);   /* only reads its path */
bool op_names(enum op op);   /* makes or removes the name itself */
bool op_has_two(enum op op); /* has two paths, and both are used */

const char *mode_name(enum mode mode); /* NULL for MODE_NONE and MODE_OTHER */
enum mode mode_from(const char *name); /* NULL and "" are MODE_NONE */

const char *event_status_name(enum event_status status); /* NULL for STATUS_NONE */
enum event_status event_status_from(const char *name);   /* STATUS_NONE: unknown */

const char *event_protocol_name(enum event_protocol protocol); /* NULL: PROTOCOL_NONE, _OTHER */
enum event_protocol event_protocol_from(const char *name);     /* NULL and "" are PROTOCOL_NONE */

const char *event_rule_name(enum event_rule rule); /* NULL for RULE_NONE and RULE_ENTRY */
enum event_rule event_rule_from(const char *name); /* NULL and "" are RULE_NONE */

const char *call_remedy_text(enum call_remedy r);    /* NULL for CALL_REMEDY_NONE and _OTHER */
enum call_remedy call_remedy_from(const char *text); /* NULL and "" are CALL_REMEDY_NONE */

#endif
