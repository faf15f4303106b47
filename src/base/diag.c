/* diag.c - collects findings, up to a cap, and writes them as text. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"

struct diag_entry {
	struct ssb_diag view; /* its pointers point to where, text and remedy below */
	char where[192];
	char text[512];
	char remedy[320];
};

struct ssb_diags {
	struct diag_entry *entries[MAX_DIAGS];
	size_t count;
	size_t errors;
	bool more; /* there are more findings than entries; the last entry says so */
};

struct ssb_diags *ssb_diags_new(void)
{
	return calloc(1, sizeof(struct ssb_diags));
}

void ssb_diags_free(struct ssb_diags *d)
{
	if (d == NULL) {
		return;
	}
	for (size_t i = 0; i < d->count; i++) {
		free(d->entries[i]);
	}
	free(d);
}

size_t ssb_diags_count(const struct ssb_diags *d)
{
	return d == NULL ? 0 : d->count;
}

const struct ssb_diag *ssb_diags_get(const struct ssb_diags *d, size_t i)
{
	return i < d->count ? &d->entries[i]->view : NULL;
}

bool diag_has_errors(const struct ssb_diags *d)
{
	return d->errors > 0;
}

/* Searches the first n entries, from the last to the first, for an entry that is less severe than
 * an alarm. Moves this entry to place n - 1 and returns it. If there is no such entry, returns the
 * one at place n - 1. */
static struct diag_entry *move_last(struct ssb_diags *d, size_t n)
{
	size_t i = n - 1;

	while (i > 0 && d->entries[i]->view.severity >= SSB_ALARM) {
		i--;
	}
	i = d->entries[i]->view.severity < SSB_ALARM ? i : n - 1;
	struct diag_entry *e = d->entries[i];
	for (; i + 1 < n; i++) {
		d->entries[i] = d->entries[i + 1];
	}
	return d->entries[n - 1] = e;
}

/* Returns an entry of the full list that the new finding may replace, or NULL. Only an alarm or an
 * error may replace an entry. Otherwise the many small faults of a hostile file could push out a
 * severe finding. */
static struct diag_entry *room_for(struct ssb_diags *d, enum ssb_severity severity)
{
	struct diag_entry *last = d->entries[MAX_DIAGS - 1];

	if (!d->more) {
		last = move_last(d, MAX_DIAGS);
		snprintf(last->text, sizeof(last->text),
		         "too many findings; the rest is not shown");
		last->remedy[0] = '\0';
		d->more = true;
	}
	enum ssb_severity worst = d->errors > 0 ? SSB_ERROR : severity;
	last->view.severity = worst > last->view.severity ? worst : last->view.severity;
	if (severity < SSB_ALARM) {
		return NULL;
	}
	struct diag_entry *e = move_last(d, MAX_DIAGS - 1);
	return e->view.severity < SSB_ALARM ? e : NULL;
}

static struct diag_entry *new_entry(struct ssb_diags *d)
{
	struct diag_entry *e = calloc(1, sizeof(*e));

	if (e != NULL) {
		d->entries[d->count++] = e;
	}
	return e;
}

void diag_add(struct ssb_diags *d, enum ssb_severity severity, const char *where,
              const char *remedy, const char *fmt, ...)
{
	if (d == NULL) {
		return;
	}
	if (severity == SSB_ERROR) {
		d->errors++;
	}
	struct diag_entry *e = d->count == MAX_DIAGS ? room_for(d, severity) : new_entry(d);
	if (e == NULL) {
		return;
	}
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	snprintf(e->where, sizeof(e->where), "%s", where);
	snprintf(e->remedy, sizeof(e->remedy), "%s", remedy);
	e->view = (struct ssb_diag){ severity, e->where, e->text, e->remedy };
}
