/* retry.c - questions and answers of the modern era.
 *
 * The response contains the questions and ends the call. The client sends the request again with
 * the answers and with requestState, which is sealed (state.h) and contains
 *
 *   {"state": the handler's state, "asked": [KEY, ...],
 *    "answers": {KEY: an answer of an earlier round, ...}}
 *
 * so that a handler gets the same data in both eras. Answers to keys that were not asked are
 * ignored. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"
#include "mcp/state.h"

/* ---- the digest of the parameters ---- */

static int hash_value(struct sha256 *s, const struct json_doc *doc, const struct json_node *node);

static void hash_bytes(struct sha256 *s, const char *data, size_t len)
{
	uint64_t n = len;

	sha256_update(s, &n, sizeof(n));
	if (len > 0) {
		sha256_update(s, data, len);
	}
}

static int by_key(const void *a, const void *b)
{
	const struct json_node *const *x = a;
	const struct json_node *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* Returns whether the member is one that a retry adds to the request. */
static bool part_of_retry(const struct json_node *member)
{
	return strcmp(member->key, "_meta") == 0 || strcmp(member->key, "inputResponses") == 0 ||
	       strcmp(member->key, "requestState") == 0;
}

/* Hashes the members sorted by name, so that their order does not matter. */
static int hash_object(struct sha256 *s, const struct json_doc *doc, const struct json_node *object,
                       bool top)
{
	auto_free const struct json_node **v =
	        calloc(object->n + 1, sizeof(const struct json_node *));
	size_t n = 0;

	if (v == NULL) {
		return -1;
	}
	JSON_EACH (m, doc, object) {
		if (!top || !part_of_retry(m)) {
			v[n++] = m;
		}
	}
	qsort(v, n, sizeof(const struct json_node *), by_key);
	sha256_update(s, &n, sizeof(n));
	for (size_t i = 0; i < n; i++) {
		hash_bytes(s, v[i]->key, strlen(v[i]->key));
		if (hash_value(s, doc, v[i]) < 0) {
			return -1;
		}
	}
	return 0;
}

/* Hashes the type and length before each value, so that two different values never give the same
 * bytes. */
static int hash_value(struct sha256 *s, const struct json_doc *doc, const struct json_node *node)
{
	uint8_t type = (uint8_t)node->type;

	sha256_update(s, &type, 1);
	if (node->type == JSON_OBJECT) {
		return hash_object(s, doc, node, false);
	}
	if (node->type == JSON_STRING || node->type == JSON_NUMBER) {
		hash_bytes(s, node->str, node->len);
	}
	if (node->type == JSON_ARRAY) {
		sha256_update(s, &node->n, sizeof(node->n));
		JSON_EACH (e, doc, node) {
			if (hash_value(s, doc, e) < 0) {
				return -1;
			}
		}
	}
	return 0;
}

int mcp_params_digest(const struct json_doc *doc, const struct json_node *object,
                      uint8_t ret[SHA256_BYTES])
{
	static const struct json_node nothing = { .type = JSON_OBJECT };
	struct sha256 s;

	sha256_init(&s);
	if (hash_object(&s, doc, object != NULL ? object : &nothing, true) < 0) {
		return -1;
	}
	sha256_final(&s, ret);
	return 0;
}

/* ---- requestState ---- */

static int seal_state(struct mcp_call *c, struct buf *out)
{
	struct state_binding of = { .method = c->m.method, .principal = c->peer->principal };
	auto_buf text = BUF(MAX_MCP_STATE);
	struct json j = JSON_TO(&text, false);

	json_open(&j, '{');
	json_kstr(&j, "state", c->state);
	json_kopen(&j, "asked", '[');
	for (size_t i = 0; i < c->n_asks; i++) {
		json_str(&j, c->asks[i].key);
	}
	json_close(&j, ']');
	json_kopen(&j, "answers", '{');
	for (size_t i = 0; i < c->n_answers; i++) {
		if (!c->answers[i].refused) { /* a refused question has no answer to write */
			json_key(&j, c->answers[i].key);
			json_copy(&j, &c->m.doc, &c->m.doc.nodes[c->answers[i].node]);
		}
	}
	json_close(&j, '}');
	json_close(&j, '}');
	if (text.failed || mcp_params_digest(&c->m.doc, c->m.params, of.params) < 0) {
		return -1;
	}
	return state_seal(c->server->states, &of, text.data, out);
}

void mcp_call_send_questions(struct mcp_call *c)
{
	auto_buf sealed = BUF(MAX_MCP_RESULT);

	if (seal_state(c, &sealed) < 0) {
		mcp_fail(c, MCP_E_INTERNAL,
		         "the state and answers of this request are too long to keep");
		return;
	}
	struct json *j = mcp_call_begin_result(c, "input_required", false);
	if (c->n_asks > 0) {
		json_key(j, "inputRequests");
		mcp_call_write_questions(c, j);
	}
	json_kstr(j, "requestState", sealed.data);
	mcp_done(c);
}

/* Keeps the client's answers to the keys that were asked. Storing an answer may move all nodes
 * of the doc, so each answer is looked up anew. */
static int take_answers(struct mcp_call *c, const struct json_doc *asked)
{
	const struct json_node *keys = json_member(asked, json_top(asked), "asked");

	JSON_EACH (k, asked, keys) {
		const struct json_node *all = mcp_param(c, "inputResponses");
		const struct json_node *a = json_member(&c->m.doc, all, k->str);
		if (json_is(a, JSON_OBJECT) && mcp_call_keep_answer(c, k->str, &c->m.doc, a) < 0) {
			return -1;
		}
	}
	return 0;
}

static int take_state(struct mcp_call *c, const char *text, size_t len)
{
	struct json_doc doc AUTO(json_doc_done) = { 0 };
	const char *why = NULL;

	if (json_read(&doc, text, len, &why) < 0) {
		return -1;
	}
	const struct json_node *old = json_member(&doc, json_top(&doc), "answers");
	JSON_EACH (a, &doc, old) {
		if (mcp_call_keep_answer(c, a->key, &doc, a) < 0) {
			return -1;
		}
	}
	c->state = strdup(json_string(json_member(&doc, json_top(&doc), "state"), ""));
	return c->state != NULL ? take_answers(c, &doc) : -1;
}

static int open_state(struct mcp_call *c, const struct json_node *sealed)
{
	struct state_binding of = { .method = c->m.method, .principal = c->peer->principal };
	enum state_verdict verdict = STATE_FORGED;
	auto_buf text = BUF(MAX_MCP_RESULT);

	if (mcp_params_digest(&c->m.doc, c->m.params, of.params) < 0) {
		verdict = STATE_FAILED;
	} else if (json_is(sealed, JSON_STRING) && strlen(sealed->str) == sealed->len) {
		verdict = state_open(c->server->states, &of, sealed->str, &text);
	}
	if (verdict != STATE_GOOD) {
		mcp_fail(c, MCP_E_PARAMS, "requestState %s", state_verdict_text(verdict));
		return -1;
	}
	if (take_state(c, text.data, text.len) < 0) {
		mcp_fail(c, MCP_E_PARAMS, "the answers are too long");
		return -1;
	}
	return 0;
}

int mcp_call_open_state(struct mcp_call *c)
{
	const struct json_node *sealed = mcp_param(c, "requestState");
	const struct json_node *all = mcp_param(c, "inputResponses");

	if ((c->row->flags & MCP_ASKS) == 0) {
		return 0;
	}
	if (all != NULL && all->type != JSON_OBJECT) {
		mcp_fail(c, MCP_E_PARAMS, "inputResponses must be an object");
		return -1;
	}
	return sealed != NULL ? open_state(c, sealed) : 0;
}
