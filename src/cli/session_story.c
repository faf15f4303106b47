/* session_story.c - collects from a session's ledger what happened in the session.
 *
 * An action is listed when it is finished: settled, released or refused. Until then it waits:
 * it is open, or has timed out and its bill may still come. If a session has more actions than
 * MAX_TOLD, the first are listed and the others are only counted. */
#include <string.h>

#include "base/own.h"
#include "cli/session_view.h"

#define MAX_TOLD    10000
#define MAX_WAITING 4096
#define STORY_BYTES ((size_t)64 * 1024 * 1024)

struct waiting {
	int64_t reservation;
	struct buf text; /* the action as JSON; used if the action is never settled */
};

struct session_story {
	struct buf actions; /* finished elements of actions[] */
	struct buf violations;
	size_t n_actions;
	size_t n_violations;
	size_t left_out;
	struct waiting *waiting;
	size_t n_waiting;
};

struct session_story *session_story_new(void)
{
	struct session_story *s = calloc(1, sizeof(*s));

	if (s == NULL || (s->waiting = calloc(MAX_WAITING, sizeof(*s->waiting))) == NULL) {
		free(s);
		return NULL;
	}
	buf_init(&s->actions, STORY_BYTES);
	buf_init(&s->violations, STORY_BYTES);
	return s;
}

void session_story_free(struct session_story *s)
{
	if (s == NULL) {
		return;
	}
	for (size_t i = 0; i < s->n_waiting; i++) {
		buf_done(&s->waiting[i].text);
	}
	free(s->waiting);
	buf_done(&s->actions);
	buf_done(&s->violations);
	free(s);
}

/* ---- writing ------------------------------------------------------------- */

static void copy_member(struct json *j, const char *key, const struct json_node *n)
{
	if (n != NULL && json_is(n, JSON_STRING)) {
		json_key(j, key);
		json_strn(j, n->str, n->len);
	} else if (n != NULL && json_is(n, JSON_NUMBER)) {
		json_key(j, key);
		json_raw(j, n->str, n->len);
	} else {
		json_kstr(j, key, NULL);
	}
}

static const char *action_outcome(const struct line *l)
{
	if (l->kind != EV_ACTION_SETTLED) {
		return l->kind == EV_ACTION_BLOCKED ? "blocked" : "reserved";
	}
	return line_true(l, "released")    ? "released"
	       : line_true(l, "timed_out") ? "timed_out"
	                                   : "settled";
}

static void put_action(struct buf *out, const struct line *l)
{
	bool settled = l->kind == EV_ACTION_SETTLED;
	bool blocked = l->kind == EV_ACTION_BLOCKED;
	struct json j = JSON_TO(out, false);

	json_open(&j, '{');
	copy_member(&j, "name", line_get(l, "action"));
	if (settled) {
		copy_member(&j, "cost", line_get(l, "cost_usd"));
	} else {
		json_kmillionths(&j, "cost", 0); /* nothing was charged, or not yet */
	}
	json_kbool(&j, "blocked", blocked);
	copy_member(&j, "block_reason", blocked ? line_get(l, "reason") : NULL);
	json_kstr(&j, "timestamp", l->time);
	copy_member(&j, "estimated_cost", line_get(l, settled ? "estimated_cost_usd" : "cost_usd"));
	copy_member(&j, "reservation", line_get(l, "reservation"));
	json_kstr(&j, "outcome", action_outcome(l));
	json_close(&j, '}');
}

static void keep_entry(struct buf *list, size_t *n, size_t *left_out, const struct buf *one)
{
	if (*n == MAX_TOLD || one->failed) {
		(*left_out)++;
		return;
	}
	buf_adds(list, *n > 0 ? "," : "");
	buf_add(list, one->data, one->len);
	(*n)++;
}

static void put_violation(struct session_story *s, const struct line *l,
                          const struct json_node *count)
{
	auto_buf one = BUF(STORY_BYTES);
	struct json j = JSON_TO(&one, false);

	json_open(&j, '{');
	if (count != NULL) { /* the line is from a run, which reports counts */
		json_kstr(&j, "type", count->key);
		json_kstr(&j, "timestamp", l->time);
		json_kstr(&j, "details", NULL);
		copy_member(&j, "count", count);
		copy_member(&j, "run", line_get(l, "run"));
	} else {
		copy_member(&j, "type", line_get(l, "violation_type"));
		json_kstr(&j, "timestamp", l->time);
		copy_member(&j, "details", line_get(l, "details"));
		json_kint(&j, "count", 1);
	}
	json_close(&j, '}');
	keep_entry(&s->violations, &s->n_violations, &s->left_out, &one);
}

/* ---- gathering ----------------------------------------------------------- */

static struct waiting *find_waiting(struct session_story *s, int64_t reservation)
{
	/* Searches backwards, because the reservation is usually one of the last. */
	for (size_t i = s->n_waiting; i > 0; i--) {
		if (s->waiting[i - 1].reservation == reservation) {
			return &s->waiting[i - 1];
		}
	}
	return NULL;
}

static void drop_waiting(struct session_story *s, struct waiting *w)
{
	size_t behind = s->n_waiting - (size_t)(w - s->waiting) - 1;

	buf_done(&w->text);
	memmove(w, w + 1, behind * sizeof(*w));
	s->n_waiting--;
}

static void wait_for(struct session_story *s, const struct line *l, int64_t reservation)
{
	struct waiting *w = find_waiting(s, reservation);

	if (w != NULL) {
		drop_waiting(s, w);
	}
	if (s->n_waiting == MAX_WAITING) {
		s->left_out++;
		return;
	}
	w = &s->waiting[s->n_waiting++];
	w->reservation = reservation;
	buf_init(&w->text, STORY_BYTES);
	put_action(&w->text, l);
}

static void add_action(struct session_story *s, const struct line *l)
{
	int64_t reservation = json_integer(line_get(l, "reservation"), 0);
	bool open = l->kind == EV_ACTION_ALLOWED || line_true(l, "timed_out");
	auto_buf one = BUF(STORY_BYTES);

	if (open) {
		wait_for(s, l, reservation);
		return;
	}
	struct waiting *w = reservation > 0 ? find_waiting(s, reservation) : NULL;
	if (w != NULL) {
		drop_waiting(s, w);
	}
	put_action(&one, l);
	keep_entry(&s->actions, &s->n_actions, &s->left_out, &one);
}

void session_story_add(struct session_story *s, const struct line *l)
{
	switch (l->kind) {
	case EV_ACTION_ALLOWED:
	case EV_ACTION_BLOCKED:
	case EV_ACTION_SETTLED:
		add_action(s, l);
		break;
	case EV_VIOLATION:
		put_violation(s, l, NULL);
		break;
	case EV_USAGE:
		JSON_EACH (n, &l->doc, line_get(l, "violations")) {
			put_violation(s, l, n);
		}
		break;
	default:
		break;
	}
}

static void put_list(struct json *j, const char *key, const struct buf *list)
{
	auto_buf all = BUF(STORY_BYTES + 2);

	buf_addc(&all, '[');
	if (list->len > 0) {
		buf_add(&all, list->data, list->len);
	}
	buf_addc(&all, ']');
	json_key(j, key);
	json_raw(j, all.failed ? "null" : all.data, all.failed ? 4 : all.len);
}

void session_story_json(struct session_story *s, struct json *j)
{
	while (s->n_waiting > 0) {
		keep_entry(&s->actions, &s->n_actions, &s->left_out, &s->waiting[0].text);
		drop_waiting(s, &s->waiting[0]);
	}
	put_list(j, "actions", &s->actions);
	put_list(j, "violations", &s->violations);
	json_kuint(j, "left_out", s->left_out);
}
