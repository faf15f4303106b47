/* classes.c - counts the events of each class, derives further classes, and writes them all. */
#include "trace/classes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

static const char *const SEVERITIES[] = {
	[SEVERITY_NONE] = "",     [SEVERITY_UNCLASSIFIED] = "unclassified",
	[SEVERITY_LOW] = "low",   [SEVERITY_MEDIUM] = "medium",
	[SEVERITY_HIGH] = "high", [SEVERITY_CRITICAL] = "critical",
};

const char *classes_severity_name(enum class_severity severity)
{
	return (size_t)severity < ARRAY_LEN(SEVERITIES) ? SEVERITIES[severity] : "";
}

enum class_severity classes_severity_from(const char *name)
{
	for (size_t i = SEVERITY_UNCLASSIFIED; i < ARRAY_LEN(SEVERITIES); i++) {
		if (strcmp(name, SEVERITIES[i]) == 0) {
			return (enum class_severity)i;
		}
	}
	return SEVERITY_NONE;
}

void classes_init(struct classes *c, const char *home)
{
	*c = (struct classes){ .home = home };
}

/* Returns whether the attempt was denied by us, the kernel, the broker or a limit. */
static bool was_prevented(const struct event *e)
{
	return e->status == STATUS_DENIED || e->kind == EV_FILE_BLOCKED ||
	       e->kind == EV_NETWORK_EGRESS_BLOCKED || e->kind == EV_SYSCALL_BLOCKED ||
	       e->kind == EV_RESOURCE_LIMIT_HIT;
}

static void add_technique(struct class_hits *h, const char *technique)
{
	for (size_t i = 0; i < h->n_techniques; i++) {
		if (strcmp(h->techniques[i], technique) == 0) {
			return;
		}
	}
	if (h->n_techniques < CLASS_TECHNIQUES) {
		h->techniques[h->n_techniques++] = technique;
	}
}

/* Adds line `seq` of the record to h->evidence, which is in ascending order. A line is added only
 * once, however many events repeat it. */
static void add_evidence(struct class_hits *h, uint64_t seq)
{
	size_t at = h->n_evidence;

	while (at > 0 && h->evidence[at - 1] > seq) {
		at--;
	}
	if (seq == CLASS_NO_LINE || h->n_evidence == CLASS_EVIDENCE ||
	    (at > 0 && h->evidence[at - 1] == seq)) {
		return;
	}
	memmove(&h->evidence[at + 1], &h->evidence[at],
	        (h->n_evidence - at) * sizeof(h->evidence[0]));
	h->evidence[at] = seq;
	h->n_evidence++;
}

void classes_count(struct classes *c, const struct event *e, struct class_verdict class,
                   uint64_t seq)
{
	assert((unsigned)e->kind < EV_COUNT);

	bool prevented = was_prevented(e);
	uint64_t times = e->times > 0 ? e->times : 1;

	c->enforced += e->violation || e->kind == EV_RESOURCE_LIMIT_HIT ? times : 0;
	c->not_prevented += e->violation && !prevented ? times : 0;
	c->unwritten += e->violation && seq == CLASS_NO_LINE;
	if (class.id == CLASS_NONE) {
		return;
	}
	struct class_hits *h = &(class.ordinary ? c->ordinary : c->hits)[class.id];
	h->count += times;
	h->not_prevented += prevented ? 0 : times;
	add_technique(h, class.technique);
	add_evidence(h, seq);
}

void classes_add(struct classes *c, const struct event *e, uint64_t seq)
{
	classes_count(c, e, classes_of(e, c->home), seq);
}

/* Adds the counts of `from` to those of `to`, and at most `max` lines of its evidence. Because of
 * `max`, the evidence of a class that is derived from two classes shows both. */
static void join_hits(struct class_hits *to, const struct class_hits *from, size_t max)
{
	to->count += from->count;
	to->not_prevented += from->not_prevented;
	for (size_t i = 0; i < from->n_evidence && i < max; i++) {
		add_evidence(to, from->evidence[i]);
	}
}

static void join_all(struct class_hits *to, const struct class_hits *from)
{
	join_hits(to, from, CLASS_EVIDENCE);
	for (size_t i = 0; i < from->n_techniques; i++) {
		add_technique(to, from->techniques[i]);
	}
}

void classes_derive(const struct classes *c, struct classes *ret)
{
	struct class_hits *hits = ret->hits;
	struct class_hits *stolen = &hits[CLASS_CREDENTIAL_HARVESTING];
	struct class_hits *sent = &hits[CLASS_CREDENTIAL_EXFILTRATION];
	struct class_hits *whole = &hits[CLASS_SUPPLY_CHAIN_ATTACK];
	static const enum class_id WAYS_OUT[] = { CLASS_DATA_EXFILTRATION,
		                                  CLASS_COMMAND_AND_CONTROL };

	*ret = *c;
	for (size_t i = 0; stolen->count > 0 && i < CLASS_COUNT; i++) {
		join_all(&hits[i], &c->ordinary[i]);
	}
	for (size_t w = 0; stolen->count > 0 && w < 2; w++) {
		join_all(sent, &hits[WAYS_OUT[w]]);
	}
	if (sent->count == 0) {
		return;
	}
	/* These attempts are now reported as credential exfiltration, the more severe class. */
	hits[CLASS_DATA_EXFILTRATION] = (struct class_hits){ 0 };
	join_hits(whole, stolen, CLASS_EVIDENCE / 2);
	join_hits(whole, sent, CLASS_EVIDENCE / 2);
	whole->count = 1;
	add_technique(whole, CLASSES[CLASS_SUPPLY_CHAIN_ATTACK].techniques);
}

bool classes_empty(const struct classes *c)
{
	return !ARRAY_HAS(hit, c->hits, CLASS_COUNT, hit->count > 0) && c->enforced == 0 &&
	       c->not_prevented == 0;
}

static void write_class(struct json *j, enum class_id id, const struct class_hits *h)
{
	const struct class_info *info = &CLASSES[id];

	json_open(j, '{');
	json_kstr(j, "class", info->name);
	json_kstr(j, "severity", classes_severity_name(info->severity));
	json_kstr(j, "description", info->description);
	json_kstr(j, "prevented_by", info->prevented_by);
	json_kstr(j, "mitre_tactic", info->tactic);
	json_kopen(j, "mitre_techniques", '[');
	for (size_t i = 0; i < h->n_techniques; i++) {
		json_str(j, h->techniques[i]);
	}
	json_close(j, ']');
	json_kuint(j, "count", h->count);
	json_kbool(j, "prevented", h->not_prevented == 0);
	json_kopen(j, "evidence", '[');
	for (size_t i = 0; i < h->n_evidence; i++) {
		json_uint(j, h->evidence[i]);
	}
	json_close(j, ']');
	json_close(j, '}');
}

void classes_write(const struct classes *c, struct json *j)
{
	struct classes all;
	bool prevented = c->not_prevented == 0;
	enum class_severity worst = classes_worst(c);

	classes_derive(c, &all);
	json_open(j, '{');
	json_kuint(j, "total_enforcements", c->enforced);
	json_kopen(j, "classifications", '[');
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		if (all.hits[i].count > 0) {
			write_class(j, (enum class_id)i, &all.hits[i]);
			prevented = prevented && all.hits[i].not_prevented == 0;
		}
	}
	json_close(j, ']');
	json_kbool(j, "all_prevented", prevented);
	json_kopen(j, "classes", '[');
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		if (all.hits[i].count > 0) {
			json_str(j, CLASSES[i].name);
		}
	}
	json_close(j, ']');
	json_kstr(j, "max_severity",
	          classes_severity_name(worst != SEVERITY_NONE ? worst : SEVERITY_UNCLASSIFIED));
	json_close(j, '}');
}

enum class_severity classes_worst(const struct classes *c)
{
	struct classes all;

	classes_derive(c, &all);
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		if (all.hits[i].count > 0) {
			return CLASSES[i].severity;
		}
	}
	return SEVERITY_NONE;
}

void classes_names(const struct classes *c, char *out, size_t size, const char **ret_severity)
{
	struct classes all;
	size_t used = 0;

	classes_derive(c, &all);
	out[0] = '\0';
	*ret_severity = classes_severity_name(SEVERITY_NONE);
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		const char *name = CLASSES[i].name;
		size_t need = strlen(name) + (used > 0 ? 2 : 0);
		if (all.hits[i].count == 0 || need >= size - used) {
			continue;
		}
		snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", name);
		*ret_severity =
		        used > 0 ? *ret_severity : classes_severity_name(CLASSES[i].severity);
		used += need;
	}
}
