#include "serve/approve.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/approve_priv.h"

/* What was approved for one principal, for as long as that and the server live: to a
 * skill, with this manifest and these files. */
struct session_grant {
	char *principal;
	char *skill;
	uint8_t manifest[SHA256_BYTES];
	uint8_t tree[SHA256_BYTES]; /* of its files */
	enum ssb_option option;
	char *value;
};

struct approvals {
	const struct serve *serve;
	struct session_grant *v;
	size_t n;
};

int approvals_new(struct serve *s, struct approvals **ret, struct ssb_error *err)
{
	struct approvals *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	a->serve = s;
	*ret = a;
	return 0;
}

static void session_grant_done(struct session_grant *g)
{
	free(g->principal);
	free(g->skill);
	free(g->value);
}

void approvals_free(struct approvals *a)
{
	for (size_t i = 0; a != NULL && i < a->n; i++) {
		session_grant_done(&a->v[i]);
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
			session_grant_done(&a->v[i]);
		} else {
			a->v[n++] = a->v[i];
		}
	}
	a->n = n;
}

void approved_for_done(struct approved_for *f)
{
	given_free(f->v, f->n);
	given_free(f->keep, f->n_keep);
	*f = (struct approved_for){ 0 };
}

/* ---- what is granted, what is missing ------------------------------------ */

bool approved_for_has(const struct approved_for *f, enum ssb_option option, const char *value)
{
	return given_has(f->v, f->n, option, value);
}

/* False without memory. */
static bool add(struct approved_for *f, enum ssb_option option, const char *value)
{
	return given_add(&f->v, &f->n, option, value) == 0;
}

bool approve_askable(const struct refusal *r)
{
	return r->value != NULL && lock_option_name(r->option) != NULL;
}

static bool remembered(const struct approvals *a, const struct approve_case *k,
                       enum ssb_option option, const char *value)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct session_grant *g = &a->v[i];
		if (strcmp(g->principal, mcp_principal(k->call)) == 0 && g->option == option &&
		    strcmp(g->value, value) == 0 && strcmp(g->skill, k->skill->dir) == 0 &&
		    memcmp(g->tree, k->looked->found.now.tree, sizeof(g->tree)) == 0 &&
		    memcmp(g->manifest, k->plan->manifest_digest, sizeof(g->manifest)) == 0) {
			return true;
		}
	}
	return false;
}

/* Adds what was granted for the session and lifts a refusal. True: something was. */
static bool recall(const struct approvals *a, const struct approve_case *k,
                   struct approved_for *given)
{
	size_t before = given->n;

	for (size_t i = 0; i < k->plan->n_refusals; i++) {
		const struct refusal *r = &k->plan->refusals[i];
		if (r->value != NULL && remembered(a, k, r->option, r->value)) {
			(void)add(given, r->option, r->value);
		}
	}
	if (k->word && remembered(a, k, AS_IT_IS, k->looked->tree)) {
		(void)add(given, AS_IT_IS, k->looked->tree);
	}
	return given->n > before;
}

void approval_wish(const struct looked *looked, const struct approved_for *given,
                   struct plan_wish *w)
{
	const struct consent_found *f = &looked->found;

	w->extra = given->v;
	w->n_extra = given->n;
	w->consent = f->state == CONSENT_HOLDS ? f : NULL;
	w->copied = looked->copied;
	w->shown = given->n > 0 ? looked->tree : NULL;
	w->without =
	        f->state == CONSENT_CHANGED || f->state == CONSENT_OVER ? &f->lock.declined : NULL;
}

/* Nothing but the owner's word lets it run as it is. */
static bool needs_word(const struct looked *l, const struct ssb_plan *plan)
{
	return l->found.state == CONSENT_CHANGED || l->found.state == CONSENT_OVER ||
	       (l->found.state == CONSENT_NONE && plan->consent.refuse);
}

int approval_recall(const struct approvals *a, struct mcp_call *c, struct plan_wish *w,
                    struct approved_for *given, const struct ssb_plan **ret, struct ssb_error *err)
{
	AUTO(looked_done) struct looked looked = { 0 };
	struct approve_case k = { .call = c, .skill = w->skill, .looked = &looked };
	struct plan_wish wish = *w;
	const struct ssb_plan *plan = NULL;

	if (look_here(a->serve, w->skill, &looked, err) != 0) {
		return -1;
	}
	do {
		approval_wish(&looked, given, &wish);
		if (plans_get(a->serve->plans, &wish, &plan, NULL, err) != 0) {
			return -1;
		}
		k.plan = plan;
		k.word = needs_word(&looked, plan);
	} while (looked.known && recall(a, &k, given));
	*ret = plan;
	return 0;
}

/* ---- the answer ---------------------------------------------------------- */

static enum choice read_choice(const struct mcp_call *c, unsigned round)
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
		if (strcmp(action, "accept") == 0 && strcmp(word, CHOICES[i].name) == 0) {
			return (enum choice)i;
		}
	}
	return CHOICE_DENY;
}

/* Where there are too many, the oldest is asked for again. */
static void remember(struct approvals *a, const struct approve_case *k, const struct given *g)
{
	if (a->n == MAX_APPROVED) {
		session_grant_done(&a->v[0]);
		memmove(a->v, a->v + 1, --a->n * sizeof(*a->v));
	}
	struct session_grant *v = realloc(a->v, (a->n + 1) * sizeof(*v));
	if (v == NULL) {
		return; /* so is this one */
	}
	a->v = v;
	struct session_grant *last = &v[a->n];
	*last = (struct session_grant){ .principal = strdup(mcp_principal(k->call)),
		                        .skill = strdup(k->skill->dir),
		                        .option = g->option,
		                        .value = strdup(g->value) };
	memcpy(last->manifest, k->plan->manifest_digest, sizeof(last->manifest));
	memcpy(last->tree, k->looked->found.now.tree, sizeof(last->tree));
	if (last->principal != NULL && last->skill != NULL && last->value != NULL) {
		a->n++;
	} else {
		session_grant_done(last);
	}
}

void approve_state(struct buf *out, const struct approve_case *k, const struct approved_for *given,
                   const struct approved_for *asked)
{
	const struct ssb_plan *plan = k->plan;
	const struct approved_for *lists[2] = { given, asked };
	char digest[65];
	struct json j;

	hex_encode(plan->manifest_digest, sizeof(plan->manifest_digest), digest);
	json_init(&j, out, false);
	json_open(&j, '[');
	json_str(&j, digest);
	json_str(&j, k->looked->tree);
	json_uint(&j, given->rounds);
	for (int l = 0; l < 2; l++) {
		json_open(&j, '[');
		for (size_t i = 0; i < lists[l]->n; i++) {
			json_int(&j, lists[l]->v[i].option);
			json_str(&j, lists[l]->v[i].value);
		}
		json_close(&j, ']');
	}
	json_close(&j, ']');
}

static void read_grants(const struct json_doc *doc, const struct json_node *list,
                        struct approved_for *ret)
{
	for (const struct json_node *n = json_first(doc, list); n != NULL;) {
		const struct json_node *value = json_next(doc, n);
		(void)add(ret, (enum ssb_option)json_integer(n, -1), json_string(value, ""));
		n = json_next(doc, value);
	}
}

/* Ours, authenticated: what is not there was never asked. False where the manifest is
 * another one now, or the files are others. */
static bool state_read(const char *text, const struct approve_case *k, struct approved_for *given,
                       struct approved_for *asked)
{
	const struct ssb_plan *plan = k->plan;
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	const char *why = NULL;
	char digest[65];

	hex_encode(plan->manifest_digest, sizeof(plan->manifest_digest), digest);
	if (json_read(&doc, text, strlen(text), &why) != 0) {
		return false;
	}
	const struct json_node *n = json_first(&doc, json_top(&doc));
	if (strcmp(json_string(n, ""), digest) != 0) {
		return false;
	}
	n = json_next(&doc, n);
	if (strcmp(json_string(n, ""), k->looked->tree) != 0) {
		return false;
	}
	n = json_next(&doc, n);
	given->rounds = (unsigned)json_integer(n, MAX_APPROVE_ROUNDS);
	n = json_next(&doc, n);
	read_grants(&doc, n, given);
	read_grants(&doc, json_next(&doc, n), asked);
	return true;
}

/* Takes the client's answer. -1: the owner said no, or it could not be kept; 1: it is to
 * be kept first. */
static int hear(struct approvals *a, const struct approve_case *k, struct approved_for *given,
                struct ssb_error *err)
{
	AUTO(approved_for_done) struct approved_for asked = { 0 };
	const char *state = mcp_state(k->call);

	given->heard = true;
	if (state == NULL || !state_read(state, k, given, &asked)) {
		return 0; /* nothing was asked, or of what is not there any more */
	}
	if (k->word && !approved_for_has(&asked, AS_IT_IS, k->looked->tree) &&
	    !approved_for_has(given, AS_IT_IS, k->looked->tree)) {
		return 0; /* its approval held when it was asked */
	}
	enum choice choice = read_choice(k->call, given->rounds);
	if (choice == CHOICE_DENY) {
		return ssb_fail(err, SSB_E_POLICY, 0, "approval", "the owner did not approve it");
	}
	if (choice == CHOICE_ALWAYS && !given->kept) {
		given->keep = steal_ptr(&asked.v);
		given->n_keep = asked.n;
		asked.n = 0;
		return 1;
	}
	if (choice == CHOICE_ALWAYS && given->kept_why != NULL) {
		return ssb_fail(err, SSB_E_SYS, 0, "approval", "%s", given->kept_why);
	}
	for (size_t i = 0; i < asked.n; i++) {
		if (choice == CHOICE_SESSION) {
			remember(a, k, &asked.v[i]);
		}
		(void)add(given, asked.v[i].option, asked.v[i].value);
	}
	return 0;
}

/* What could be asked for and is not given, as much as fits into one question. False:
 * something else is refused as well, and no answer would make the plan run. */
static bool missing(const struct approve_case *k, const struct approved_for *given,
                    struct approved_for *ret)
{
	const struct ssb_plan *plan = k->plan;
	size_t most = MAX_APPROVE_ITEMS + (k->word ? 1 : 0);

	if (k->word && !approved_for_has(given, AS_IT_IS, k->looked->tree) &&
	    !add(ret, AS_IT_IS, k->looked->tree)) {
		return false;
	}
	for (size_t i = 0; i < plan->n_refusals; i++) {
		const struct refusal *r = &plan->refusals[i];
		if (!approve_askable(r) || approved_for_has(given, r->option, r->value) ||
		    (ret->n < most && !add(ret, r->option, r->value))) {
			return false;
		}
	}
	return true;
}

static const char *why_asked(const struct approve_case *k)
{
	const enum consent state = k->looked->found.state;

	return !k->word                   ? "the skill asks for what its owner has not granted"
	       : state == CONSENT_CHANGED ? "the skill changed since it was approved"
	       : state == CONSENT_OVER    ? "the approval of the skill is over"
	                                  : "nobody approved the skill";
}

static enum approval put(struct approvals *a, const struct approve_case *k,
                         struct approved_for *given)
{
	AUTO(approved_for_done) struct approved_for asked = { 0 };
	char why[128];

	if (!missing(k, given, &asked)) {
		return approve_refuse(a->serve, k, false,
		                      "the skill asks for what no approval can give");
	}
	if (!mcp_can(k->call, MCP_CAN_ELICIT)) {
		snprintf(why, sizeof(why), "%s, and this client cannot ask the owner",
		         why_asked(k));
		return approve_refuse(a->serve, k, true, why);
	}
	if (given->rounds >= MAX_APPROVE_ROUNDS) {
		return approve_refuse(a->serve, k, true, "the skill asks for more and more");
	}
	return approve_put(a->serve, k, given, &asked);
}

enum approval approval_ask(struct approvals *a, struct mcp_call *c, const struct skill *skill,
                           const struct ssb_plan *plan, const struct looked *looked,
                           struct approved_for *given)
{
	const struct approve_case k = { .call = c,
		                        .skill = skill,
		                        .plan = plan,
		                        .looked = looked,
		                        .word = needs_word(looked, plan) };
	struct ssb_error err = { 0 };
	size_t before = given->n;

	if (plan->n_refusals == 0 && (!k.word || approved_for_has(given, AS_IT_IS, looked->tree))) {
		return APPROVAL_NONE;
	}
	if (!looked->known) { /* nobody could say what it is that is agreed to */
		return approve_refuse(a->serve, &k, true,
		                      looked->why != NULL ? looked->why : "out of memory");
	}
	int heard = given->heard ? 0 : hear(a, &k, given, &err);
	if (heard != 0) {
		return heard > 0 ? APPROVAL_KEEP : approve_refuse(a->serve, &k, true, err.text);
	}
	if (recall(a, &k, given) || given->n > before) {
		return APPROVAL_GIVEN;
	}
	return put(a, &k, given);
}
