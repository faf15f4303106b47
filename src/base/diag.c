#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

struct diag_entry {
	struct ssb_diag view; /* points into the three texts below */
	char where[192];
	char text[512];
	char remedy[320];
};

struct ssb_diags {
	struct diag_entry *entries[MAX_DIAGS];
	size_t count;
	size_t errors;
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

void diag_add(struct ssb_diags *d, enum ssb_severity severity, const char *where,
              const char *remedy, const char *fmt, ...)
{
	if (d == NULL) {
		return;
	}
	if (severity == SSB_ERROR) {
		d->errors++;
	}
	if (d->count == MAX_DIAGS) {
		struct diag_entry *last = d->entries[MAX_DIAGS - 1];
		snprintf(last->text, sizeof(last->text),
		         "too many findings; the rest is not shown");
		last->remedy[0] = '\0';
		last->view.severity = d->errors > 0 ? SSB_ERROR : severity;
		return;
	}
	struct diag_entry *e = calloc(1, sizeof(*e));
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
	d->entries[d->count++] = e;
}
