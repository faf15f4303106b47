/* consent_ask.c - see consent_ask.h. */
#include "cli/consent_ask.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/number.h"
#include "base/own.h"
#include "cli/ask.h"
#include "cli/say.h"
#include "manifest/resources.h"
#include "policy/options.h"

#define MAX_ANSWER 512

enum consent_reply { REPLY_NO, REPLY_ONCE, REPLY_ALWAYS, REPLY_CHOOSE };

enum consent_question { QUESTION_RUN = 1, QUESTION_REMEMBER = 2, QUESTION_ANY = 3 };

/* `in`: the questions that take this answer; `offer`: its text in them. */
static const struct {
	const char *letter;
	const char *text;
	const char *offer;
	enum consent_reply reply;
	enum consent_question in;
} REPLIES[] = {
	{ "o", "once", "[o]nce, ", REPLY_ONCE, QUESTION_RUN },
	{ "a", "always", "[a]lways, ", REPLY_ALWAYS, QUESTION_RUN },
	{ "a", "all", "[a]ll, ", REPLY_ALWAYS, QUESTION_REMEMBER },
	{ "c", "choose", "[c]hoose what to take out, ", REPLY_CHOOSE, QUESTION_ANY },
};

static const char *const TITLES[] = {
	[CONSENT_NONE] = "was not approved yet.",
	[CONSENT_HOLDS] = "is approved.",
	[CONSENT_CHANGED] = "has CHANGED since it was approved.",
	[CONSENT_OVER] = "was approved, but the approval has ended.",
};

/* ---- what the command line gives ----------------------------------------------------------- */

/* Does the list contain the path, either as written in a manifest ("~/notes") or in full? */
static bool says_path(const struct ssb_plan *p, const struct string_list *l, const char *path)
{
	bool home = path[0] == '~' && p->home != NULL;
	size_t n = home ? strlen(p->home) : 0;

	for (size_t i = 0; i < l->n; i++) {
		const char *said = l->v[i];
		if (strcmp(said, path) == 0 ||
		    (home && strncmp(said, p->home, n) == 0 && strcmp(said + n, path + 1) == 0)) {
			return true;
		}
	}
	return false;
}

static bool says_variable(const struct string_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++) {
		size_t n = strcspn(l->v[i], "=");
		if (strlen(name) == n && strncmp(l->v[i], name, n) == 0) {
			return true;
		}
	}
	return false;
}

/* Returns true if the owner's flags, presets or policy file grant the host at port 443. */
static bool says_host(const struct ssb_plan *p, const char *host)
{
	return ARRAY_HAS(e, p->egress, p->n_egress,
	                 e->from != NULL && strcmp(e->domain.s, host) == 0 &&
	                         egress_rule_has_port(e, 443));
}

/* Returns true if the command line sets this limit. `value` is what the manifest asks for, such
 * as "memory_mb 4096"; --memory takes its place. */
static bool says_limit(const struct ssb_options *o, const char *value)
{
	size_t n = strcspn(value, " ");

	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		const struct resource *r = &RESOURCES[i];
		if (strlen(r->name) == n && strncmp(r->name, value, n) == 0) {
			return resource_of(&o->res, r) != OPTION_UNSET;
		}
	}
	return false;
}

static bool is_said(const struct request *r, const struct ssb_plan *p, const struct ability *a)
{
	const struct ssb_options *o = r->options;

	switch (a->kind) {
	case ABILITY_NETWORK:
		return says_host(p, a->value);
	case ABILITY_READ:
		return says_path(p, &o->read, a->value) || says_path(p, &o->write, a->value);
	case ABILITY_WRITE:
		return says_path(p, &o->write, a->value);
	case ABILITY_ENV:
		return says_variable(&o->env, a->value);
	case ABILITY_PROGRAMS:
		return o->toolchain_given || !p->toolchain_auto;
	case ABILITY_LIMIT:
		return says_limit(o, a->value);
	case ABILITY_OTHER:
		break;
	}
	return false;
}

bool consent_needed(const struct request *r, const struct ssb_plan *plan)
{
	AUTO(abilities_done) struct abilities a = { 0 };

	if (abilities_of(plan, &a) != 0) {
		return true;
	}
	return ARRAY_HAS(e, a.v, a.n, e->dangerous || !is_said(r, plan, e));
}

/* ---- taking items out ----------------------------------------------------------- */

/* Reads numbers from 1 to n, separated by spaces or commas, and sets ret[number - 1] for each. */
static bool read_numbers(const char *text, size_t n, bool *ret)
{
	while (*text != '\0') {
		uint64_t v = 0;
		text += strspn(text, " ,");
		if (*text == '\0') {
			break;
		}
		text = number_read(text, n, &v);
		if (text == NULL || v == 0) {
			return false;
		}
		ret[v - 1] = true;
	}
	return true;
}

/* Asks which items the skill must not get, and takes them out. Returns -1 if there is no memory,
 * or no answer. */
static int take_out_items(struct consent_view *v)
{
	char answer[MAX_ANSWER];
	auto_free bool *out = calloc(v->abilities.n + 1, sizeof(*out));

	say_notef("choose the items that the skill must run without:");
	consent_show_abilities(v, true);
	if (out == NULL || !ask_line("skillsandbox: numbers to take out (empty line: none): ",
	                             answer, sizeof(answer))) {
		return -1;
	}
	if (!read_numbers(answer, v->abilities.n, out)) {
		say_errorf("type numbers from the list, with spaces between them");
		return 0;
	}
	for (size_t i = v->abilities.n; i > 0; i--) {
		if (out[i - 1] && consent_view_decline(v, i - 1) != 0) {
			return -1;
		}
	}
	return 0;
}

/* ---- the answer ----------------------------------------------------------------- */

/* Returns whether this reply is one that the question offers. Any other reply means no. */
static bool is_offered(const struct consent_view *v, enum consent_reply reply)
{
	switch (reply) {
	case REPLY_ALWAYS:
		return v->pinned && consent_view_never(v) == 0;
	case REPLY_ONCE:
		return consent_view_never(v) == 0;
	case REPLY_CHOOSE:
		return v->abilities.n > 0;
	case REPLY_NO:
		break;
	}
	return true;
}

static enum consent_reply ask_reply(const struct consent_view *v, enum consent_question in)
{
	char answer[MAX_ANSWER];
	auto_buf prompt = BUF(SAY_MAX);
	enum consent_reply found = REPLY_NO;

	buf_adds(&prompt,
	         in == QUESTION_RUN ? "skillsandbox: run it? " : "skillsandbox: remember this? ");
	for (size_t i = 0; i < ARRAY_LEN(REPLIES); i++) {
		bool offered = (REPLIES[i].in & in) != 0 && is_offered(v, REPLIES[i].reply);
		buf_adds(&prompt, offered ? REPLIES[i].offer : "");
	}
	buf_adds(&prompt, "[N]o: ");
	if (prompt.failed || !ask_line(prompt.data, answer, sizeof(answer))) {
		return REPLY_NO;
	}
	for (size_t i = 0; i < ARRAY_LEN(REPLIES); i++) {
		bool said = strcmp(REPLIES[i].letter, answer) == 0 ||
		            strcmp(REPLIES[i].text, answer) == 0;
		if (said && (REPLIES[i].in & in) != 0 && is_offered(v, REPLIES[i].reply)) {
			found = REPLIES[i].reply;
		}
	}
	return found;
}

/* Fills the decision for an answer "once". The run uses exactly the bytes that were shown: they are
 * compared while they are copied or, if they are too large for a copy, when the run starts. */
static enum consent_answer answer_once(struct consent_decision *d, struct consent_view *v)
{
	struct ssb_error err = { 0 };

	if (consent_view_input(v, &d->input, &err) != 0) {
		say_error(&err);
		return ANSWER_NO;
	}
	(void)consent_by(d->owner, CONSENT_BY_TERMINAL ", once", d->by, sizeof(d->by));
	d->pinned = v->pinned;
	d->shown = v->files;
	v->files = (struct skill_files){ 0 };
	d->as_it_is = true;
	return ANSWER_ONCE;
}

enum consent_answer consent_ask(const struct request *r, struct consent_decision *d,
                                struct consent_view *ret_view)
{
	struct consent_view *v = ret_view;

	assert(d->plan != NULL && v->dir == NULL);
	if (!ask_terminal()) {
		return ANSWER_IMPOSSIBLE;
	}
	consent_view_read(v, d->dir);
	if (consent_view_make(v, d->plan, r->options, &d->found.lock.declined) != 0) {
		say_errorf("out of memory");
		return ANSWER_NO;
	}
	if (d->found.state == CONSENT_CHANGED) {
		consent_show_changes(&d->found.lock, &d->found.now, d->plan, NULL);
	}
	for (;;) {
		consent_show(v, TITLES[d->found.state]);
		switch (ask_reply(v, QUESTION_RUN)) {
		case REPLY_CHOOSE:
			if (take_out_items(v) != 0) {
				return ANSWER_NO;
			}
			break;
		case REPLY_ONCE:
			return answer_once(d, v);
		case REPLY_ALWAYS:
			return ANSWER_ALWAYS;
		case REPLY_NO:
			return ANSWER_NO;
		}
	}
}

enum ask_answer consent_ask_remember(struct consent_view *v, const char *title)
{
	enum consent_reply reply = REPLY_CHOOSE;

	if (!ask_terminal()) {
		return ASKED_NOBODY;
	}
	while (reply == REPLY_CHOOSE) {
		consent_show(v, title);
		reply = ask_reply(v, QUESTION_REMEMBER);
		if (reply == REPLY_CHOOSE && take_out_items(v) != 0) {
			return ASKED_NO;
		}
	}
	if (reply == REPLY_NO) {
		return ASKED_NO;
	}
	return abilities_dangerous(&v->abilities) > 0
	               ? ask_yes("the items marked with ! are dangerous. Grant them, too?")
	               : ASKED_YES;
}
