/* tally.c - adds up the supervisor's messages into reports for the store. */
#include "session/tally.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"

int tally_init(struct tally *t, struct ssb_error *err)
{
	*t = (struct tally){ .names = calloc(MAX_TALLY_NAMES, sizeof(t->names[0])) };
	return t->names != NULL ? 0 : ssb_fail(err, SSB_E_NOMEM, 0, "session", "out of memory");
}

/* Adds the growth of a meter. The supervisor sends totals since the start of the run. */
static void grow_meter(struct tally *t, enum session_meter m, uint64_t now)
{
	if (now > t->seen[m]) {
		t->open.meters[m] += now - t->seen[m];
		t->seen[m] = now;
	}
}

static void add_name(struct tally *t, const char *name)
{
	for (size_t i = t->n_names; i > 0; i--) {
		if (strcmp(t->names[i - 1], name) == 0) {
			return;
		}
	}
	if (t->n_names == MAX_TALLY_NAMES && !t->is_taken && t->known == t->n_names) {
		t->n_names = t->known = 0; /* all names are in the store: begin a new list */
	}
	if (t->n_names < MAX_TALLY_NAMES) {
		snprintf(t->names[t->n_names++], sizeof(t->names[0]), "%s", name);
		t->urgent = true;
	}
}

static void add_violations(struct tally *t, const struct govern_msg *m)
{
	for (size_t i = 0; i < EV_COUNT; i++) {
		t->open.kinds[i] += m->violations.kinds[i];
	}
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		t->open.classes[i] += m->violations.classes[i];
	}
	t->open.total += m->violations.total;
	t->urgent = true;
}

void tally_hear(struct tally *t, const struct govern_msg *m)
{
	char name[sizeof(m->connection.name)];

	assert(t->names != NULL);
	switch (m->kind) {
	case GOVERN_USED:
		grow_meter(t, METER_CPU_MS, m->used.cpu_ms);
		grow_meter(t, METER_WALL_MS, m->used.wall_ms);
		grow_meter(t, METER_BYTES_OUT, m->used.bytes_out);
		grow_meter(t, METER_BYTES_IN, m->used.bytes_in);
		break;
	case GOVERN_CONNECTION:
		snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, m->connection.name);
		t->open.meters[METER_CONNECTIONS]++;
		add_name(t, name);
		break;
	case GOVERN_VIOLATIONS:
		add_violations(t, m);
		break;
	case GOVERN_ENDED:
		for (size_t i = 0; i < CLASS_COUNT; i++) {
			t->open.classes[i] += m->ended.derived[i];
		}
		break;
	default:
		break;
	}
}

bool tally_full(const struct tally *t)
{
	return t->n_names == MAX_TALLY_NAMES && (t->is_taken || t->known < t->n_names);
}

static bool part_empty(const struct tally_part *p)
{
	static const struct tally_part none;

	return memcmp(p, &none, sizeof(none)) == 0;
}

bool tally_empty(const struct tally *t)
{
	return !t->again && part_empty(&t->open) &&
	       t->n_names == (t->is_taken ? t->taken_names : t->known);
}

bool tally_repeats(const struct tally *t)
{
	return t->again;
}

bool tally_urgent(const struct tally *t, const uint64_t room[SESSION_METERS])
{
	bool urgent = t->urgent;

	for (size_t i = 0; i < SESSION_METERS; i++) {
		urgent = urgent || (t->open.meters[i] > 0 && t->open.meters[i] > room[i] / 2);
	}
	return urgent;
}

_Static_assert(EV_COUNT + CLASS_COUNT <= ARRAY_LEN(((struct session_usage *)NULL)->violations),
               "every kind and every class has its place");

static void put_violation(struct session_usage *u, const char *name, uint64_t n)
{
	if (n > 0 && u->n_violations < ARRAY_LEN(u->violations)) {
		u->violations[u->n_violations].name = name;
		u->violations[u->n_violations++].n = n;
	}
}

/* Makes the next report from all usage that is not reported yet. */
static void close_report(struct tally *t)
{
	t->taken = t->open;
	t->taken_names = t->n_names;
	t->open = (struct tally_part){ 0 };
	t->urgent = false;
	t->report++;
}

void tally_take(struct tally *t, struct session_usage *ret)
{
	assert(!t->is_taken);
	if (!t->again) {
		close_report(t);
	}
	*ret = (struct session_usage){ .report = t->report, .all_violations = t->taken.total };
	memcpy(ret->meters, t->taken.meters, sizeof(ret->meters));
	for (size_t i = 0; i < EV_COUNT; i++) {
		put_violation(ret, event_kind_name((enum event_kind)i), t->taken.kinds[i]);
	}
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		put_violation(ret, CLASSES[i].name, t->taken.classes[i]);
	}
	for (size_t i = t->known; i < t->taken_names; i++) {
		t->list[ret->n_domains++] = t->names[i];
	}
	ret->domains = t->list;
	t->is_taken = true;
}

void tally_settled(struct tally *t, bool stored)
{
	assert(t->is_taken);
	t->known = stored ? t->taken_names : t->known;
	t->again = !stored;
	t->is_taken = false;
}
