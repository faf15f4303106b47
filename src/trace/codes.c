/* codes.c - converts the stable codes to their texts and back. */
#include "trace/codes.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name.h"

/* Remedies that several reasons share. */
#define REQUEST   "the skill must change its request"
#define NO_EXPECT "the skill must send without Expect (curl -H 'Expect:')"

enum reason_weight { WEIGHT_VIOLATION, WEIGHT_MISFORTUNE, WEIGHT_OUTCOME };
enum grantable { GRANT_ORDINARY, GRANT_DANGEROUS };

static const struct {
	const char *code;
	const char *text;
	const char *remedy;
	enum reason_weight weight;
	enum grantable grant;
	enum reason_remedy kind;
} REASONS[REASON_COUNT] = {
#define REASON(id, code, weight, grant, kind, text, remedy)                                        \
	[REASON_##id] = { code, text, remedy, WEIGHT_##weight, GRANT_##grant, REMEDY_##kind },
#include "trace/codes.def"
	[REASON_UNKNOWN] = { "unknown", NULL, NULL, WEIGHT_VIOLATION, GRANT_DANGEROUS,
	                     REMEDY_NONE },
};

enum { READS = 1, NAMES = 2, TWO = 4 };

static const struct {
	const char *name;
	const char *words;
	unsigned flags;
} OPS[OP_COUNT] = {
#define OP(id, name, flags, words) [OP_##id] = { name, words, flags },
#include "trace/codes.def"
};

static const char *const MODES[MODE_COUNT] = {
#define MODE(id, name) [MODE_##id] = (name),
#include "trace/codes.def"
};

static const char *const STATUSES[STATUS_COUNT] = {
#define STATUS(id, name) [STATUS_##id] = (name),
#include "trace/codes.def"
};

static const char *const PROTOCOLS[PROTOCOL_COUNT] = {
#define PROTOCOL(id, name) [PROTOCOL_##id] = (name),
#include "trace/codes.def"
};

static const char *const RULES[RULE_COUNT] = {
#define RULE(id, name) [RULE_##id] = (name),
#include "trace/codes.def"
};

static const char *const CALL_REMEDIES[CALL_REMEDY_COUNT] = {
#define CALL_REMEDY(id, text) [CALL_REMEDY_##id] = (text),
#include "trace/codes.def"
};

/* Looks for the name behind the first row of a table, which has no name, in the rows before
 * `other`. Returns `other` if it is not there, 0 for NULL and "". */
static int find_name(const char *const *names, size_t stride, int other, const char *name)
{
	const char *const *second = (const char *const *)((uintptr_t)names + stride);

	return name == NULL || name[0] == '\0'
	               ? 0
	               : 1 + (int)name_index(name, second, (size_t)other - 1, stride);
}

const char *reason_code(enum reason r)
{
	assert((unsigned)r < REASON_COUNT);
	return REASONS[r].code;
}

enum reason reason_from(const char *code)
{
	return (enum reason)find_name(&REASONS[0].code, sizeof(REASONS[0]), REASON_UNKNOWN, code);
}

const char *reason_text(enum reason r)
{
	assert((unsigned)r < REASON_COUNT);
	return REASONS[r].text;
}

enum reason_remedy reason_remedy(enum reason r)
{
	assert((unsigned)r < REASON_COUNT);
	return REASONS[r].kind;
}

const char *reason_fixed_remedy(enum reason r)
{
	assert(reason_remedy(r) == REMEDY_FIXED);
	return REASONS[r].remedy;
}

bool reason_is_misfortune(enum reason r)
{
	assert((unsigned)r < REASON_COUNT);
	return REASONS[r].weight == WEIGHT_MISFORTUNE;
}

bool reason_is_grantable(enum reason r)
{
	assert((unsigned)r < REASON_COUNT);
	return REASONS[r].grant == GRANT_ORDINARY;
}

const char *op_name(enum op op)
{
	assert((unsigned)op < OP_COUNT);
	return OPS[op].name;
}

enum op op_from(const char *name)
{
	return (enum op)find_name(&OPS[0].name, sizeof(OPS[0]), OP_OTHER, name);
}

const char *op_words(enum op op)
{
	assert((unsigned)op < OP_COUNT);
	return OPS[op].words != NULL ? OPS[op].words : OPS[op].name;
}

static bool has_flag(enum op op, unsigned flag)
{
	assert((unsigned)op < OP_COUNT);
	return (OPS[op].flags & flag) != 0;
}

bool op_reads(enum op op)
{
	return has_flag(op, READS);
}

bool op_names(enum op op)
{
	return has_flag(op, NAMES);
}

bool op_has_two(enum op op)
{
	return has_flag(op, TWO);
}

const char *mode_name(enum mode mode)
{
	assert((unsigned)mode < MODE_COUNT);
	return MODES[mode];
}

enum mode mode_from(const char *name)
{
	return (enum mode)find_name(MODES, sizeof(MODES[0]), MODE_OTHER, name);
}

const char *event_status_name(enum event_status status)
{
	assert((unsigned)status < STATUS_COUNT);
	return STATUSES[status];
}

enum event_status event_status_from(const char *name)
{
	int status = find_name(STATUSES, sizeof(STATUSES[0]), STATUS_COUNT, name);

	return status < STATUS_COUNT ? (enum event_status)status : STATUS_NONE;
}

const char *event_protocol_name(enum event_protocol protocol)
{
	assert((unsigned)protocol < PROTOCOL_COUNT);
	return PROTOCOLS[protocol];
}

enum event_protocol event_protocol_from(const char *name)
{
	return (enum event_protocol)find_name(PROTOCOLS, sizeof(PROTOCOLS[0]), PROTOCOL_OTHER,
	                                      name);
}

const char *event_rule_name(enum event_rule rule)
{
	assert((unsigned)rule < RULE_COUNT);
	return RULES[rule];
}

enum event_rule event_rule_from(const char *name)
{
	return (enum event_rule)find_name(RULES, sizeof(RULES[0]), RULE_ENTRY, name);
}

const char *call_remedy_text(enum call_remedy r)
{
	assert((unsigned)r < CALL_REMEDY_COUNT);
	return CALL_REMEDIES[r];
}

enum call_remedy call_remedy_from(const char *text)
{
	return (enum call_remedy)find_name(CALL_REMEDIES, sizeof(CALL_REMEDIES[0]),
	                                   CALL_REMEDY_OTHER, text);
}
