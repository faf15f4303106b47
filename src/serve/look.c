#include "serve/look.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/own.h"
#include "policy/options.h"
#include "serve/approve_priv.h"
#include "serve/errand.h"

#define MAX_CHANGED (64UL * 1024) /* bytes of what changed, for people */

struct look {
	struct serve *serve;
	struct mcp_call *call;
	look_then *then;
	struct skill skill; /* owned */
	struct look_call before;
	char *kept_why; /* of `before` */
};

void looked_done(struct looked *l)
{
	consent_found_done(&l->found);
	free(l->why);
	free(l->changes);
	*l = (struct looked){ 0 };
}

static void look_free(struct look *k)
{
	if (k != NULL) {
		free(k->skill.name);
		free(k->skill.dir);
		free(k->kept_why);
	}
	free(k);
}

static void look_freep(struct look **k)
{
	look_free(*k);
}

int look_here(const struct serve *s, const struct skill *skill, struct looked *ret,
              struct ssb_error *err)
{
	struct looked l = { 0 };
	struct ssb_error why = { 0 };

	if (consent_look(&s->owner, skill->dir, &l.found, err) != 0) {
		looked_done(&l);
		return -1;
	}
	l.known = l.found.state != CONSENT_NONE ||
	          lock_files_look(&s->owner, skill->dir, &l.found.now, &why) == 0;
	if (l.known) {
		(void)digest_text(l.found.now.tree, l.tree);
		l.large = !snapshot_fits(&l.found.now);
	} else {
		l.why = strdup(why.text);
	}
	*ret = l;
	return 0;
}

/* ---- there ------------------------------------------------------------------------- */

/* The copy that it is to run from is there: of what was approved, or else of what the
 * owner is asked about now. */
static int ensure_copy(const struct look *k, struct looked *l, struct ssb_error *err)
{
	AUTO(consent_word_done) struct consent_word w = { 0 };
	const struct owner *owner = &k->serve->owner;

	snapshot_tidy(owner);
	if (l->found.state != CONSENT_HOLDS) {
		return l->known && !l->large
		               ? snapshot_make(owner, k->skill.dir, &l->found.now, &l->copied, err)
		               : 0;
	}
	l->copied = true;
	return consent_by_approval(owner, &l->found, false, &w, err);
}

static void put_changes(const struct look *k, const struct looked *l, struct json *j)
{
	const struct plan_wish w = { .skill = &k->skill };
	const struct ssb_plan *plan = NULL;
	struct ssb_error none = { 0 };
	auto_buf text;

	buf_init(&text, MAX_CHANGED);
	if (l->found.state != CONSENT_CHANGED) {
		return;
	}
	(void)plans_get(k->serve->plans, &w, &plan, NULL, &none);
	approve_changes(&text, &l->found, plan);
	json_kstr(j, "changes", text.failed || text.len == 0 ? NULL : text.data);
}

/* Brings back what `take` reads. */
static void run(void *arg, struct buf *out)
{
	const struct look *k = arg;
	AUTO(looked_done) struct looked l = { 0 };
	struct ssb_error err = { 0 };
	struct json j;

	json_init(&j, out, false);
	json_open(&j, '{');
	if (look_here(k->serve, &k->skill, &l, &err) != 0 || ensure_copy(k, &l, &err) != 0) {
		json_kint(&j, "code", err.code);
		json_kstr(&j, "where", err.where);
		json_kstr(&j, "error", err.text);
	} else {
		json_kstr(&j, "tree", l.known ? l.tree : NULL);
		json_kint(&j, "large", l.large);
		json_kint(&j, "copied", l.copied);
		json_kstr(&j, "why", l.why);
		put_changes(k, &l, &j);
	}
	json_close(&j, '}');
}

/* ---- here -------------------------------------------------------------------------- */

static char *member_copy(const struct json_doc *doc, const char *name)
{
	const char *text = json_string(json_member(doc, json_top(doc), name), NULL);

	return text != NULL ? strdup(text) : NULL;
}

/* The approval is read anew, and judged by the files as they were there. */
static int take(const struct look *k, const struct json_doc *doc, struct looked *ret,
                struct ssb_error *err)
{
	const struct json_node *top = json_top(doc);
	const char *tree = json_string(json_member(doc, top, "tree"), NULL);
	uint8_t hash[SHA256_BYTES] = { 0 };

	if (json_member(doc, top, "error") != NULL) {
		return ssb_fail(err, (enum ssb_code)json_integer(json_member(doc, top, "code"), 0),
		                0, json_string(json_member(doc, top, "where"), ""), "%s",
		                json_string(json_member(doc, top, "error"), ""));
	}
	ret->known = tree != NULL && digest_parse(tree, hash);
	if (consent_look_known(&k->serve->owner, k->skill.dir, hash, &ret->found, err) != 0) {
		return -1;
	}
	if (ret->known) {
		(void)digest_text(hash, ret->tree);
	}
	ret->large = json_integer(json_member(doc, top, "large"), 0) != 0;
	ret->copied = json_integer(json_member(doc, top, "copied"), 0) != 0;
	ret->why = member_copy(doc, "why");
	ret->changes = member_copy(doc, "changes");
	return 0;
}

static void ended(void *arg, const struct errand_end *end)
{
	AUTO(look_freep) struct look *k = arg;
	AUTO(looked_done) struct looked l = { 0 };
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	struct ssb_error err = { 0 };
	const char *why = NULL;
	int failed;

	mcp_on_cancel(k->call, NULL, NULL);
	if (end->fate != ERRAND_DONE || json_read(&doc, end->data, end->len, &why) != 0) {
		failed = ssb_fail(&err, SSB_E_SYS, 0, "skill", "looking at its files: %s",
		                  end->fate != ERRAND_DONE ? end->why : why);
	} else {
		failed = take(k, &doc, &l, &err);
	}
	k->then(k->serve, k->call, &k->before, failed == 0 ? &l : NULL, &err);
}

int look_start(struct serve *s, struct mcp_call *c, const struct skill *skill,
               const struct look_call *before, look_then *then, struct ssb_error *err)
{
	AUTO(look_freep) struct look *k = calloc(1, sizeof(*k));

	if (k == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory");
	}
	k->serve = s;
	k->call = c;
	k->then = then;
	k->skill = (struct skill){ .name = strdup(skill->name), .dir = strdup(skill->dir) };
	k->kept_why = before->kept_why != NULL ? strdup(before->kept_why) : NULL;
	k->before = (struct look_call){ before->kept, k->kept_why };
	if (k->skill.name == NULL || k->skill.dir == NULL ||
	    (before->kept_why != NULL && k->kept_why == NULL)) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory");
	}
	const struct errand_wish wish = { .run = run, .ended = ended, .arg = k };
	if (errand_of_call(s, c, &wish, err) != 0) {
		return -1;
	}
	(void)steal_ptr(&k);
	return 0;
}
