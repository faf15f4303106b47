/* approve.c - reads the owner's answers, which a client brings, and remembers what they granted.
 *
 * An answer comes with the state of its question (approve_state()), which the protocol library
 * authenticates. It counts only if the skill still has the manifest and the files that the
 * question was about. */
#include "serve/approve.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/approve_priv.h"

/* the name in the record of the party that approved */
#define BY "MCP client, for a run or a session"

/* One item that the owner granted for the client's session. It is for one skill with this
 * manifest and these files, and ends with the client or the server. */
struct session_grant {
	char *principal;
	char *skill;
	uint8_t manifest[SHA256_BYTES];
	uint8_t tree[SHA256_BYTES];
	enum ssb_option option;
	char *value; /* NULL: the item is the permission to run with these files */
};

struct approvals {
	struct session_grant *v;
	size_t n;
};

int approvals_new(struct approvals **ret, struct ssb_error *err)
{
	struct approvals *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	*ret = a;
	return 0;
}

static void free_grant(struct session_grant *g)
{
	free(g->principal);
	free(g->skill);
	free(g->value);
}

void approvals_free(struct approvals *a)
{
	for (size_t i = 0; a != NULL && i < a->n; i++) {
		free_grant(&a->v[i]);
	}
	if (a != NULL) {
		free(a->v);
	}
	free(a);
}

void approvals_forget(struct approvals *a, const char *principal)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->v[i].principal, principal) == 0) {
			free_grant(&a->v[i]);
		} else {
			a->v[n++] = a->v[i];
		}
	}
	a->n = n;
}

void approve_items_done(struct approve_items *items)
{
	given_free(items->v, items->n);
	*items = (struct approve_items){ 0 };
}

bool approve_items_has(const struct approve_items *items, enum ssb_option option, const char *value)
{
	return given_has(items->v, items->n, option, value);
}

/* Returns false if memory is short. */
static bool add_item(struct approve_items *items, enum ssb_option option, const char *value)
{
	return given_add(&items->v, &items->n, option, value) == 0;
}

bool approve_can_lift(const struct refusal *r)
{
	return r->value != NULL && lock_option_name(r->option) != NULL;
}

/* ---- grants of a session ------------------------------------------------- */

static bool is_remembered(const struct approvals *a, const struct approve_case *k,
                          enum ssb_option option, const char *value)
{
	const struct consent_decision *d = &k->decision;

	for (size_t i = 0; i < a->n; i++) {
		const struct session_grant *g = &a->v[i];
		bool same = value == NULL ? g->value == NULL
		                          : g->value != NULL && g->option == option &&
		                                    strcmp(g->value, value) == 0;
		if (same && strcmp(g->principal, mcp_principal(k->call)) == 0 &&
		    strcmp(g->skill, k->skill.dir) == 0 &&
		    memcmp(g->tree, d->found.now.tree, sizeof(g->tree)) == 0 &&
		    memcmp(g->manifest, d->plan->manifest_digest, sizeof(g->manifest)) == 0) {
			return true;
		}
	}
	return false;
}

/* Remembers a grant. If there are too many, it forgets the oldest one; if memory is short, it
 * does not remember the new one. The client is asked again for a forgotten grant. `value` is
 * as in struct session_grant. */
static void remember_grant(struct approvals *a, const struct approve_case *k,
                           enum ssb_option option, const char *value)
{
	const struct consent_decision *d = &k->decision;

	if (a->n == MAX_APPROVED) {
		free_grant(&a->v[0]);
		memmove(a->v, a->v + 1, --a->n * sizeof(*a->v));
	}
	struct session_grant *v = realloc(a->v, (a->n + 1) * sizeof(*v));
	if (v == NULL) {
		return;
	}
	a->v = v;
	struct session_grant *last = &v[a->n];
	*last = (struct session_grant){ .principal = strdup(mcp_principal(k->call)),
		                        .skill = strdup(k->skill.dir),
		                        .option = option,
		                        .value = value != NULL ? strdup(value) : NULL };
	memcpy(last->manifest, d->plan->manifest_digest, sizeof(last->manifest));
	memcpy(last->tree, d->found.now.tree, sizeof(last->tree));
	if (last->principal != NULL && last->skill != NULL &&
	    (value == NULL || last->value != NULL)) {
		a->n++;
	} else {
		free_grant(last);
	}
}

static void remember_items(struct approvals *a, const struct approve_case *k,
                           const struct approve_items *items)
{
	if (items->as_it_is) {
		remember_grant(a, k, 0, NULL);
	}
	for (size_t i = 0; i < items->n; i++) {
		remember_grant(a, k, items->v[i].option, items->v[i].value);
	}
}

/* ---- what the consent decision gets ------------------------------------------- */

/* Binds the answer to the files that the owner was shown: it is not valid for others. */
static void pin_files(struct approve_case *k)
{
	struct consent_decision *d = &k->decision;

	memcpy(d->shown.tree, d->found.now.tree, sizeof(d->shown.tree));
	d->pinned = true;
	snprintf(d->by, sizeof(d->by), "%s", BY);
}

/* Adds granted items to the decision. If memory is short, an item stays missing, and the client
 * is asked for it again. */
static void give_items(struct approve_case *k, const struct approve_items *items)
{
	pin_files(k);
	k->decision.as_it_is |= items->as_it_is;
	for (size_t i = 0; i < items->n; i++) {
		(void)consent_input_give(&k->decision.input, items->v[i].option, items->v[i].value);
	}
}

static bool is_given(const struct approve_case *k, enum ssb_option option, const char *value)
{
	const struct consent_input *w = &k->decision.input;

	return given_has(w->given, w->n_given, option, value);
}

static bool lacks_word(const struct approve_case *k)
{
	return consent_is_required(&k->decision) && !k->decision.as_it_is;
}

bool approve_recall(const struct approvals *a, struct approve_case *k)
{
	AUTO(approve_items_done) struct approve_items found = { 0 };
	const struct ssb_plan *plan = k->decision.plan;

	assert(plan != NULL);
	for (size_t i = 0; i < plan->n_refusals; i++) {
		const struct refusal *r = &plan->refusals[i];
		if (r->value != NULL && !is_given(k, r->option, r->value) &&
		    is_remembered(a, k, r->option, r->value)) {
			(void)add_item(&found, r->option, r->value);
		}
	}
	found.as_it_is = lacks_word(k) && is_remembered(a, k, 0, NULL);
	if (found.n == 0 && !found.as_it_is) {
		return false;
	}
	give_items(k, &found);
	return true;
}

/* ---- the state of a question ----------------------------------------------- */

static void put_items(struct json *j, bool as_it_is, const struct given *v, size_t n)
{
	json_open(j, '[');
	json_uint(j, as_it_is);
	for (size_t i = 0; i < n; i++) {
		json_int(j, v[i].option);
		json_str(j, v[i].value);
	}
	json_close(j, ']');
}

void approve_state(struct buf *out, const struct approve_case *k, const struct approve_items *asked)
{
	const struct consent_decision *d = &k->decision;
	char manifest[2 * SHA256_BYTES + 1];
	char tree[DIGEST_TEXT];
	struct json j = JSON_TO(out, false);

	hex_encode(d->plan->manifest_digest, sizeof(d->plan->manifest_digest), manifest);
	json_open(&j, '[');
	json_str(&j, manifest);
	json_str(&j, digest_text(d->found.now.tree, tree));
	json_uint(&j, k->rounds);
	put_items(&j, d->as_it_is, d->input.given, d->input.n_given);
	put_items(&j, asked->as_it_is, asked->v, asked->n);
	json_close(&j, ']');
}

struct approve_answer {
	struct approve_items given; /* items that were granted before the question */
	struct approve_items asked;
	unsigned rounds;
};

static void answer_done(struct approve_answer *x)
{
	approve_items_done(&x->given);
	approve_items_done(&x->asked);
}

static void read_items(const struct json_doc *doc, const struct json_node *list,
                       struct approve_items *ret)
{
	const struct json_node *n = json_first(doc, list);

	ret->as_it_is = json_integer(n, 0) != 0;
	n = n != NULL ? json_next(doc, n) : NULL;
	while (n != NULL) {
		const struct json_node *value = json_next(doc, n);
		(void)add_item(ret, (enum ssb_option)json_integer(n, -1), json_string(value, ""));
		n = json_next(doc, value);
	}
}

/* Returns false if the manifest or the files of the skill have changed since the question. The text
 * is authenticated: approve_state() wrote it. */
static bool read_state(const char *text, const struct approve_case *k, struct approve_answer *ret)
{
	const struct consent_decision *d = &k->decision;
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	char manifest[2 * SHA256_BYTES + 1];
	char tree[DIGEST_TEXT];
	const char *why = NULL;

	hex_encode(d->plan->manifest_digest, sizeof(d->plan->manifest_digest), manifest);
	if (json_read(&doc, text, strlen(text), &why) != 0) {
		return false;
	}
	const struct json_node *n = json_first(&doc, json_top(&doc));
	if (strcmp(json_string(n, ""), manifest) != 0) {
		return false;
	}
	n = json_next(&doc, n);
	if (strcmp(json_string(n, ""), digest_text(d->found.now.tree, tree)) != 0) {
		return false;
	}
	n = json_next(&doc, n);
	ret->rounds = (unsigned)json_integer(n, MAX_APPROVE_ROUNDS);
	n = json_next(&doc, n);
	read_items(&doc, n, &ret->given);
	read_items(&doc, json_next(&doc, n), &ret->asked);
	return true;
}

/* ---- the answer ---------------------------------------------------------- */

static enum approve_choice read_choice(const struct mcp_call *c, unsigned round)
{
	const struct json_node *answer = NULL;
	char key[APPROVE_KEY];

	approve_key(round, key);
	if (mcp_answer(c, key, &answer) != MCP_ANSWERED) {
		return CHOICE_DENY;
	}
	const struct json_doc *doc = mcp_doc(c);
	const char *action = json_string(json_member(doc, answer, "action"), "");
	const struct json_node *content = json_member(doc, answer, "content");
	const char *word = json_string(json_member(doc, content, "decision"), "");
	for (int i = 0; i < CHOICE_COUNT; i++) {
		if (strcmp(action, "accept") == 0 && strcmp(word, APPROVE_CHOICES[i].name) == 0) {
			return (enum approve_choice)i;
		}
	}
	return CHOICE_DENY;
}

static enum consent_answer refuse_call(struct approve_case *k, bool hopeless, const char *why)
{
	k->hopeless = hopeless;
	snprintf(k->why, sizeof(k->why), "%s", why);
	return ANSWER_NO;
}

/* Returns ANSWER_NONE if there is no answer, or if it answers another question. */
static enum consent_answer take_answer(struct approvals *a, struct approve_case *k)
{
	AUTO(answer_done) struct approve_answer x = { 0 };
	const char *state = mcp_state(k->call);

	k->heard = true;
	if (state == NULL || !read_state(state, k, &x)) {
		return ANSWER_NONE;
	}
	k->rounds = x.rounds;
	if (lacks_word(k) && !x.asked.as_it_is && !x.given.as_it_is) {
		/* The question was not about the files, because an approval of them still held
		 * then. */
		return ANSWER_NONE;
	}
	switch (read_choice(k->call, x.rounds)) {
	case CHOICE_SESSION:
		remember_items(a, k, &x.asked);
		give_items(k, &x.given);
		give_items(k, &x.asked);
		return ANSWER_ONCE;
	case CHOICE_ONCE:
		give_items(k, &x.given);
		give_items(k, &x.asked);
		return ANSWER_ONCE;
	case CHOICE_ALWAYS:
		x.given.as_it_is = false; /* the files must match the approval that is stored now */
		give_items(k, &x.given);
		k->keep = x.asked;
		x.asked = (struct approve_items){ 0 };
		return ANSWER_ALWAYS;
	default:
		return refuse_call(k, false, "the owner did not approve it");
	}
}

/* ---- the question -------------------------------------------------------- */

/* Collects the items that are missing and that the owner could grant. Returns false if they do
 * not fit into one question, or if something else is refused, too: then no answer would let the
 * skill run. */
static bool find_missing(const struct approve_case *k, struct approve_items *ret)
{
	const struct ssb_plan *plan = k->decision.plan;

	ret->as_it_is = lacks_word(k);
	for (size_t i = 0; i < plan->n_refusals; i++) {
		const struct refusal *r = &plan->refusals[i];
		if (!approve_can_lift(r) || is_given(k, r->option, r->value) ||
		    (ret->n < MAX_APPROVE_ITEMS && !add_item(ret, r->option, r->value))) {
			return false;
		}
	}
	return true;
}

static const char *reason_to_ask(const struct approve_case *k)
{
	if (!lacks_word(k)) {
		return "the skill asks for something that its owner has not granted";
	}
	switch (k->decision.found.state) {
	case CONSENT_CHANGED:
		return "the skill changed since it was approved";
	case CONSENT_OVER:
		return "the approval of the skill has ended";
	default:
		return "the skill is not approved";
	}
}

static enum consent_answer put_question(struct approve_case *k)
{
	AUTO(approve_items_done) struct approve_items asked = { 0 };
	char why[sizeof(k->why)];

	if (!find_missing(k, &asked)) {
		return refuse_call(k, true,
		                   "the skill asks for something that no approval can give");
	}
	if (!mcp_can(k->call, MCP_CAN_ELICIT)) {
		snprintf(why, sizeof(why), "%s, and this client cannot ask the owner",
		         reason_to_ask(k));
		return refuse_call(k, false, why);
	}
	if (k->rounds >= MAX_APPROVE_ROUNDS) {
		snprintf(why, sizeof(why), "the skill asks for more after each of %d answers",
		         MAX_APPROVE_ROUNDS);
		return refuse_call(k, false, why);
	}
	if (approve_put(k, &asked) != 0) {
		return refuse_call(k, false, "the skill asks for more than fits into a question");
	}
	k->asked = true;
	return ANSWER_NONE;
}

enum consent_answer approve_ask(struct approvals *a, struct approve_case *k)
{
	assert(k->decision.plan != NULL && k->decision.looked_at_all && !k->asked);
	if (!k->files.known) { /* the owner would not know which files the answer approves */
		return refuse_call(k, false, k->files.why != NULL ? k->files.why : "out of memory");
	}
	if (!k->heard) {
		enum consent_answer answer = take_answer(a, k);
		if (answer != ANSWER_NONE) {
			return answer;
		}
	}
	return approve_recall(a, k) ? ANSWER_ONCE : put_question(k);
}
