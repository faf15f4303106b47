#include "cli/consent_ask.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "cli/ask.h"
#include "cli/consent_show.h"
#include "cli/say.h"
#include "manifest/resources.h"
#include "policy/options.h"

#define MAX_ANSWER 512
#define BY         "on terminal"

enum word { WORD_NO, WORD_ONCE, WORD_ALWAYS, WORD_CHOOSE };

static const struct {
	const char *text;
	enum word word;
} WORDS[] = {
	{ "o", WORD_ONCE },        { "once", WORD_ONCE }, { "a", WORD_ALWAYS },
	{ "always", WORD_ALWAYS }, { "c", WORD_CHOOSE },  { "choose", WORD_CHOOSE },
};

static const char *const TITLES[] = {
	[CONSENT_NONE] = "was not approved yet.",
	[CONSENT_HOLDS] = "is approved.",
	[CONSENT_CHANGED] = "has CHANGED since it was approved.",
	[CONSENT_OVER] = "was approved; that is over.",
};

/* ---- what the owner said already ----------------------------------------------- */

/* "--read PATH" as a manifest would have asked for it. */
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

/* HOST is HOST:443. */
static bool says_host(const struct string_list *l, const char *host)
{
	for (size_t i = 0; i < l->n; i++) {
		size_t n = strlen(host);
		const char *said = l->v[i];
		if (strncmp(said, host, n) == 0 &&
		    (said[n] == '\0' || strcmp(said + n, ":443") == 0)) {
			return true;
		}
	}
	return false;
}

/* "memory_mb 4096": whatever --memory says counts in its stead. */
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
		return says_host(&o->net, a->value);
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
	for (size_t i = 0; i < a.n; i++) {
		if (a.v[i].dangerous || !is_said(r, plan, &a.v[i])) {
			return true;
		}
	}
	return false;
}

/* ---- taking out ----------------------------------------------------------------- */

/* Numbers with spaces or commas between them, each of 1..n; marks them. */
static bool read_numbers(const char *text, size_t n, bool *ret)
{
	while (*text != '\0') {
		char *end = NULL;
		text += strspn(text, " ,");
		if (*text == '\0') {
			break;
		}
		unsigned long v = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
		if (v < 1 || v > n) {
			return false;
		}
		ret[v - 1] = true;
		text = end;
	}
	return true;
}

/* -1: without memory, or nobody answers. */
static int choose(struct consent_view *v)
{
	char answer[MAX_ANSWER];
	auto_free bool *out = calloc(v->abilities.n + 1, sizeof(*out));

	say_notef("it runs without what you take out:");
	consent_show_abilities(v, true);
	if (out == NULL || !ask_line("skillsandbox: numbers to take out (an empty line for none): ",
	                             answer, sizeof(answer))) {
		return -1;
	}
	if (!read_numbers(answer, v->abilities.n, out)) {
		say_errorf("write numbers of the list, with spaces between them");
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

/* What is offered: the rest of the words mean no. */
static bool is_offered(const struct consent_view *v, enum word word)
{
	switch (word) {
	case WORD_ALWAYS:
		return v->pinned && consent_view_never(v) == 0;
	case WORD_ONCE:
		return consent_view_never(v) == 0;
	case WORD_CHOOSE:
		return v->abilities.n > 0;
	case WORD_NO:
		break;
	}
	return true;
}

static enum word ask_word(const struct consent_view *v)
{
	char answer[MAX_ANSWER];
	auto_buf prompt;

	buf_init(&prompt, SAY_MAX);
	buf_adds(&prompt, "skillsandbox: run it? ");
	buf_adds(&prompt, is_offered(v, WORD_ONCE) ? "[o]nce, " : "");
	buf_adds(&prompt, is_offered(v, WORD_ALWAYS) ? "[a]lways, " : "");
	buf_adds(&prompt, is_offered(v, WORD_CHOOSE) ? "[c]hoose what to take out, " : "");
	buf_adds(&prompt, "[N]o: ");
	if (prompt.failed || !ask_line(prompt.data, answer, sizeof(answer))) {
		return WORD_NO;
	}
	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
		if (strcmp(WORDS[i].text, answer) == 0 && is_offered(v, WORDS[i].word)) {
			return WORDS[i].word;
		}
	}
	return WORD_NO;
}

/* It runs from the bytes that were shown, and from nothing that took their place meanwhile:
 * they are compared as they are copied, or where they are too many for that when it starts. */
static enum answer once(const struct owner *o, struct consent_view *v,
                        struct consent_word *ret_word, struct skill_files *ret_shown)
{
	AUTO(consent_word_done) struct consent_word w = { 0 };
	struct ssb_error err = { 0 };
	char by[128];

	if ((v->pinned &&
	     consent_once(o, v->dir, &v->files, consent_by(o, BY ", once", by, sizeof(by)), &w,
	                  &err) != 0) ||
	    consent_view_say(v, &w, &err) != 0) {
		say_error(&err);
		return ANSWER_NO;
	}
	*ret_word = w;
	w = (struct consent_word){ 0 };
	*ret_shown = v->files;
	v->files = (struct skill_files){ 0 };
	return ANSWER_ONCE;
}

static enum answer always(const struct owner *o, const struct consent_view *v)
{
	char by[128];
	struct ssb_error err = { 0 };
	struct consent_terms terms = { .declined = &v->declined,
		                       .by = consent_by(o, BY, by, sizeof(by)),
		                       .uses = -1 };

	if (consent_give(o, v->dir, v->plan, &v->files, &terms, &err) != 0) {
		say_error(&err);
		return ANSWER_NO;
	}
	say_notef("approved, as it is now; 'skillsandbox approve --revoke DIR' takes it back");
	return ANSWER_ALWAYS;
}

enum answer consent_ask(const struct request *r, const struct owner *o, const char *dir,
                        const struct consent_found *f, const struct ssb_plan *plan,
                        struct consent_word *ret_word, struct skill_files *ret_shown)
{
	AUTO(consent_view_done) struct consent_view v = { 0 };

	if (!ask_terminal()) {
		return ANSWER_NOBODY;
	}
	if (consent_view_make(dir, plan, r->options, &f->lock.declined, &v) != 0) {
		say_errorf("out of memory");
		return ANSWER_NO;
	}
	if (f->state == CONSENT_CHANGED) {
		consent_show_changes(f, plan);
	}
	for (;;) {
		consent_show(&v, TITLES[f->state]);
		enum word word = ask_word(&v);
		if (word == WORD_CHOOSE && choose(&v) == 0) {
			continue;
		}
		if (word == WORD_ONCE || word == WORD_ALWAYS) {
			return word == WORD_ONCE ? once(o, &v, ret_word, ret_shown) : always(o, &v);
		}
		return ANSWER_NO;
	}
}
