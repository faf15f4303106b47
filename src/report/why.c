/* why.c - writes the text about a denial. */
#include "report/why.h"

#include <assert.h>

const char *why_reason(const struct overview_item *i)
{
	const char *words = i->because[0] != '\0' ? i->because : reason_text(i->why);

	return words != NULL ? words : "the plan does not allow it";
}

const char *why_remedy(const struct overview_item *i)
{
	return i->remedy[0] != '\0' ? i->remedy : "this cannot be allowed";
}

void why_limit(struct buf *out, const struct overview_item *i)
{
	assert(i->denial == DENIAL_LIMIT);
	buf_adds(out, i->text);
	if (i->remedy[0] != '\0') {
		buf_addf(out, "; allow more: %s", i->remedy);
	}
}

void why_json_item(struct json *j, const struct overview_item *i)
{
	assert(i->reason != NULL && i->remedy != NULL); /* `i` is a denial */
	json_open(j, '{');
	json_kstr(j, "what", i->text);
	json_kuint(j, "count", i->count);
	json_kstr(j, "program", i->program);
	json_kstr(j, "path", i->path);
	json_kstr(j, "host", i->host);
	json_kstr(j, "reason", i->reason);
	json_kstr(j, "rule", i->rule);
	json_kstr(j, "error", i->error);
	json_kstr(j, "remedy", i->remedy);
	json_kstr(j, "first", i->first);
	json_kbool(j, "violation", i->denial == DENIAL_VIOLATION);
	json_kbool(j, "everyday", i->denial == DENIAL_EVERYDAY);
	json_kbool(j, "prevented", !i->let_through);
	json_close(j, '}');
}

void why_json(struct json *j, const struct overview *v)
{
	json_open(j, '[');
	for (size_t n = 0; n < v->n_items; n++) {
		if (v->items[n].denial != DENIAL_NOT) {
			why_json_item(j, &v->items[n]);
		}
	}
	json_close(j, ']');
}
