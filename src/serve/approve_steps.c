/* approve_steps.c - the steps of a consent decision, done for a client of the server.
 *
 * LOOK and KEEP read every file of the skill, which can take long, so they are done in
 * errands. An errand of LOOK returns one JSON object, which write_look() writes and
 * take_look() reads. An errand of KEEP returns why the approval could not be stored, or
 * nothing. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/approve_priv.h"
#include "serve/errand.h"

#define MAX_CHANGED (64UL * 1024) /* bytes of the changes, as lines for people */

int approve_begin(struct approve_case *k, struct serve *s, struct mcp_call *c, const char *word,
                  struct ssb_error *err)
{
	const struct skill *skill = NULL;

	*k = (struct approve_case){ .serve = s, .call = c };
	if (skills_find(s->skills, word, &skill, err) != 0) {
		return -1;
	}
	k->skill = (struct skill){ .name = strdup(skill->name), .dir = strdup(skill->dir) };
	if (k->skill.name == NULL || k->skill.dir == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "skill", "out of memory");
	}
	k->decision = (struct consent_decision){ .owner = &s->owner, .dir = k->skill.dir };
	return 0;
}

static void files_done(struct approve_files *f)
{
	free(f->why);
	free(f->changes);
	*f = (struct approve_files){ 0 };
}

void approve_done(struct approve_case *k)
{
	consent_decision_done(&k->decision);
	files_done(&k->files);
	approve_items_done(&k->keep);
	string_list_done(&k->naming);
	free(k->skill.name);
	free(k->skill.dir);
	*k = (struct approve_case){ 0 };
}

/* ---- plans ------------------------------------------------------------------------- */

static int get_plan(const struct approve_case *k, const struct ssb_plan **ret,
                    struct ssb_error *err)
{
	/* A dry run is already in an errand, so it may look up every path. */
	const struct plan_wish w = { .skill = &k->skill,
		                     .args = k->args,
		                     .narrow = k->narrow,
		                     .asks = mcp_can(k->call, MCP_CAN_ELICIT),
		                     .look = k->decision.dry ? NULL : &k->naming,
		                     .input = &k->decision.input };

	return plans_get(k->serve->plans, &w, ret, NULL, err);
}

/* Makes the plan of the whole skill, without what the arguments of this call remove. */
static int get_whole_plan(const struct approve_case *k, const struct consent_input *input,
                          const struct ssb_plan **ret, struct ssb_error *err)
{
	const struct plan_wish w = { .skill = &k->skill, .input = input };

	return plans_get(k->serve->plans, &w, ret, NULL, err);
}

static int make_plan(void *arg, struct ssb_error *err)
{
	struct approve_case *k = arg;
	const struct ssb_plan *plan = NULL;

	if (get_plan(k, &plan, err) != 0) {
		return -1;
	}
	if (plan_lacks_script(plan) && !k->decision.dry) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, "script",
		                "args must begin with the script to run; the skill has: %s",
		                plan->scripts);
	}
	consent_planned(&k->decision, plan, plan->n_refusals > 0);
	return 0;
}

/* ---- LOOK -------------------------------------------------------------------------- */

static int read_files(const struct approve_case *k, struct consent_found *found,
                      struct approve_files *files, struct ssb_error *err)
{
	const struct owner *owner = &k->serve->owner;
	struct ssb_error why = { 0 };

	if (consent_look(owner, k->skill.dir, found, err) != 0) {
		return -1;
	}
	files->known = found->state != CONSENT_NONE ||
	               lock_files_look(owner, k->skill.dir, &found->now, &why) == 0;
	if (files->known) {
		files->large = !snapshot_fits(&found->now);
	} else {
		files->why = strdup(why.text);
	}
	return 0;
}

/* Makes the copy of the skill that will run. It has the approved files or, without an approval
 * that holds, the files that the owner is asked about now. */
static int ensure_copy(const struct approve_case *k, const struct consent_found *found,
                       const struct approve_files *files, bool *ret_copied, struct ssb_error *err)
{
	AUTO(consent_input_done) struct consent_input w = { 0 };
	const struct owner *owner = &k->serve->owner;

	snapshot_tidy(owner);
	if (found->state == CONSENT_HOLDS) {
		*ret_copied = true;
		return consent_by_approval(owner, found, false, &w, err);
	}
	return files->known && !files->large
	               ? snapshot_make(owner, k->skill.dir, &found->now, ret_copied, err)
	               : 0;
}

static void put_changes(const struct approve_case *k, const struct consent_found *found,
                        struct json *j)
{
	const struct ssb_plan *plan = NULL;
	struct ssb_error none = { 0 };
	auto_buf text = BUF(MAX_CHANGED);

	if (found->state != CONSENT_CHANGED) {
		return;
	}
	(void)get_whole_plan(k, NULL, &plan, &none);
	approve_changes(&text, found, plan);
	json_kstr(j, "changes", text.failed || text.len == 0 ? NULL : text.data);
}

/* Runs in the errand of LOOK. */
static void write_look(void *arg, struct buf *out)
{
	const struct approve_case *k = arg;
	AUTO(consent_found_done) struct consent_found found = { 0 };
	AUTO(files_done) struct approve_files files = { 0 };
	struct ssb_error err = { 0 };
	bool copied = false;
	struct json j = JSON_TO(out, false);

	json_open(&j, '{');
	if (read_files(k, &found, &files, &err) != 0 ||
	    ensure_copy(k, &found, &files, &copied, &err) != 0) {
		json_kint(&j, "code", err.code);
		json_kstr(&j, "where", err.where);
		json_kstr(&j, "error", err.text);
	} else {
		if (files.known) {
			digest_put(&j, "tree", found.now.tree);
		}
		json_kint(&j, "large", files.large);
		json_kint(&j, "copied", copied);
		json_kstr(&j, "why", files.why);
		put_changes(k, &found, &j);
	}
	json_close(&j, '}');
}

static char *copy_member(const struct json_doc *doc, const char *name)
{
	const char *text = json_string(json_member(doc, json_top(doc), name), NULL);

	return text != NULL ? strdup(text) : NULL;
}

/* Runs in the server after LOOK. Reads the approval again, and compares it with the files that
 * the errand found. */
static int take_look(struct approve_case *k, const struct json_doc *doc, struct ssb_error *err)
{
	AUTO(consent_found_done) struct consent_found found = { 0 };
	const struct json_node *top = json_top(doc);
	const char *tree = json_string(json_member(doc, top, "tree"), NULL);
	uint8_t hash[SHA256_BYTES] = { 0 };

	if (json_member(doc, top, "error") != NULL) {
		return ssb_fail(err, (enum ssb_code)json_integer(json_member(doc, top, "code"), 0),
		                0, json_string(json_member(doc, top, "where"), ""), "%s",
		                json_string(json_member(doc, top, "error"), ""));
	}
	files_done(&k->files);
	k->files.known = tree != NULL && digest_parse(tree, hash);
	if (consent_look_known(&k->serve->owner, k->skill.dir, hash, &found, err) != 0) {
		return -1;
	}
	k->files.large = json_integer(json_member(doc, top, "large"), 0) != 0;
	k->files.why = copy_member(doc, "why");
	k->files.changes = copy_member(doc, "changes");
	bool copied = json_integer(json_member(doc, top, "copied"), 0) != 0;
	consent_looked(&k->decision, &found, true, copied);
	return 0;
}

static void on_looked(void *arg, const struct errand_end *end)
{
	struct approve_case *k = arg;
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	struct ssb_error err = { 0 };
	const char *why = end->why;
	int failed;

	mcp_on_cancel(k->call, NULL, NULL);
	if (end->fate != ERRAND_DONE || json_read(&doc, end->data, end->len, &why) != 0) {
		failed = ssb_fail(&err, SSB_E_SYS, 0, "skill",
		                  "could not read the skill's files: %s", why);
	} else {
		failed = take_look(k, &doc, &err);
	}
	k->resume(k->arg, failed != 0 ? &err : NULL);
}

static int start_errand(struct approve_case *k, void (*run)(void *arg, struct buf *out),
                        void (*ended)(void *arg, const struct errand_end *end),
                        struct ssb_error *err)
{
	const struct errand_wish wish = { .run = run, .ended = ended, .arg = k };

	return errand_of_call(k->serve, k->call, &wish, err) != 0 ? -1 : CONSENT_WAITS;
}

/* ---- files that the arguments name ---------------------------------------------------- */

/* Runs in an errand. */
static void write_naming(void *arg, struct buf *out)
{
	const struct approve_case *k = arg;
	const struct plan_wish w = { .skill = &k->skill, .args = k->args };
	const struct ssb_plan *plan = NULL;
	struct ssb_error none = { 0 };
	struct json j = JSON_TO(out, false);

	json_open(&j, '[');
	if (plans_get(k->serve->plans, &w, &plan, NULL, &none) == 0) {
		for (size_t i = 0; i < plan->naming.n; i++) {
			json_str(&j, plan->naming.v[i]);
		}
	}
	json_close(&j, ']');
}

static void on_named(void *arg, const struct errand_end *end)
{
	struct approve_case *k = arg;
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	struct ssb_error err = { 0 };
	const char *why = end->why;
	int failed = 0;

	mcp_on_cancel(k->call, NULL, NULL);
	if (end->fate != ERRAND_DONE || json_read(&doc, end->data, end->len, &why) != 0) {
		failed = ssb_fail(&err, SSB_E_SYS, 0, "args",
		                  "could not look up the files that the arguments name: %s", why);
	} else {
		JSON_EACH (n, &doc, json_top(&doc)) {
			failed |= string_list_add(&k->naming, json_string(n, ""), MAX_ARGS);
		}
	}
	k->resume(k->arg, failed != 0 ? &err : NULL);
}

int approve_look_up(struct approve_case *k, struct ssb_error *err)
{
	bool paths = false;

	for (size_t i = 0; k->args != NULL && k->args[i] != NULL && !paths; i++) {
		paths = arguments_may_be_path(k->args[i]);
	}
	return paths ? start_errand(k, write_naming, on_named, err) : 0;
}

static int look_at_files(void *arg, struct ssb_error *err)
{
	struct approve_case *k = arg;
	struct consent_decision *d = &k->decision;
	AUTO(consent_found_done) struct consent_found found = { 0 };

	/* A dry run is already in an errand, so the files are read here. */
	if (d->dry) {
		files_done(&k->files);
		if (read_files(k, &found, &k->files, err) != 0) {
			return -1;
		}
		consent_looked(d, &found, true, false);
		return 0;
	}
	/* Most skills were never approved and lack nothing: their files need not be read. */
	if (!d->look_at_all && !lock_there(&k->serve->owner, k->skill.dir)) {
		const uint8_t unread[SHA256_BYTES] = { 0 };
		if (consent_look_known(&k->serve->owner, k->skill.dir, unread, &found, err) != 0) {
			return -1;
		}
		consent_looked(d, &found, false, false);
		return 0;
	}
	return start_errand(k, write_look, on_looked, err);
}

/* ---- ASK --------------------------------------------------------------------------- */

static int ask_client(void *arg, struct ssb_error *err)
{
	struct approve_case *k = arg;
	struct consent_decision *d = &k->decision;
	enum consent_answer answer;

	(void)err;
	if (d->dry) {
		bool given = k->files.known && approve_recall(k->serve->approvals, k);
		answer = given ? ANSWER_ONCE : ANSWER_IMPOSSIBLE;
	} else {
		answer = approve_ask(k->serve->approvals, k);
	}
	if (answer == ANSWER_NONE) {
		return CONSENT_WAITS;
	}
	consent_answered(d, answer);
	return 0;
}

/* ---- KEEP -------------------------------------------------------------------------- */

/* Stores an approval of the items in k->keep and of those that were granted for the same files
 * before. Items that the owner declined stay declined. */
static int store_approval(const struct approve_case *k, struct ssb_error *err)
{
	const struct consent_decision *d = &k->decision;
	const struct lock *lock = &d->found.lock;
	const struct consent_input input = { .lock = lock };
	const struct ssb_plan *plan = NULL;
	struct skill_files shown = { 0 }; /* only its digest is set */
	char by[96];

	if (get_whole_plan(k, &input, &plan, err) != 0) {
		return -1;
	}
	if (memcmp(plan->manifest_digest, d->manifest, sizeof(d->manifest)) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, "approval",
		                "the skill changed while you were asked");
	}
	snprintf(by, sizeof(by), "MCP client %.80s", mcp_client_name(k->call));
	const struct consent_terms terms = { .by = by,
		                             .uses = -1,
		                             .some = true,
		                             .grants = k->keep.v,
		                             .n_grants = k->keep.n,
		                             .declined = &lock->declined };
	memcpy(shown.tree, d->found.now.tree, sizeof(shown.tree));
	return consent_give(&k->serve->owner, k->skill.dir, plan, &shown, &terms, err);
}

static void write_kept(void *arg, struct buf *out)
{
	struct ssb_error err = { 0 };

	if (store_approval(arg, &err) != 0) {
		buf_adds(out, err.text[0] != '\0' ? err.text : "it could not be stored");
	}
}

static void on_kept(void *arg, const struct errand_end *end)
{
	struct approve_case *k = arg;
	struct ssb_error err = { 0 };

	mcp_on_cancel(k->call, NULL, NULL);
	if (end->fate == ERRAND_DONE && end->len == 0) {
		consent_kept(&k->decision);
		k->resume(k->arg, NULL);
		return;
	}
	(void)ssb_fail(&err, SSB_E_SYS, 0, "approval", "%.*s",
	               end->fate == ERRAND_DONE ? (int)end->len : (int)strlen(end->why),
	               end->fate == ERRAND_DONE ? end->data : end->why);
	k->resume(k->arg, &err);
}

static int keep_approval(void *arg, struct ssb_error *err)
{
	return start_errand(arg, write_kept, on_kept, err);
}

/* ---- all of it --------------------------------------------------------------------- */

static const struct consent_steps STEPS = {
	.look = look_at_files, .plan = make_plan, .ask = ask_client, .keep = keep_approval
};

int approve_decide(struct approve_case *k, struct ssb_error *err)
{
	assert(k->skill.dir != NULL && k->resume != NULL && !k->asked);
	return consent_decide(&k->decision, &STEPS, k, err);
}

int approve_preview(struct approve_case *k, const struct ssb_plan **ret, struct ssb_error *err)
{
	assert(k->skill.dir != NULL && k->decision.plan == NULL);
	k->decision.dry = true;
	if (consent_decide(&k->decision, &STEPS, k, err) != 0) {
		return -1;
	}
	*ret = k->decision.plan;
	return 0;
}

bool approve_refuse(struct approve_case *k, const struct ssb_error *err)
{
	const struct consent_decision *d = &k->decision;
	const struct ssb_plan *plan = NULL;
	struct ssb_error none = { 0 };

	/* The cache may have dropped the refused plan meanwhile, so it is made again. */
	if ((d->next != CONSENT_STOP && d->next != CONSENT_KEEP) ||
	    get_plan(k, &plan, &none) != 0) {
		return false;
	}
	approve_say_refused(k, plan, k->why[0] != '\0' ? k->why : err->text);
	return true;
}
