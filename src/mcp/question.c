/* question.c - questions to the client.
 *
 * Legacy: each question is a request to the client, sent before the response to the call. The call
 * waits, and its handler is called again when all questions have answers. Modern: see retry.c. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"
#include "mcp/task.h"

static const struct question {
	const char *method;
	enum mcp_ability needs;
	const char *capability;
} QUESTIONS[] = {
	{ "elicitation/create", MCP_CAN_ELICIT, "elicitation" },
	{ "sampling/createMessage", MCP_CAN_SAMPLE, "sampling" },
	{ "roots/list", MCP_CAN_LIST_ROOTS, "roots" },
};

static const struct question *question_of(const char *method)
{
	return ARRAY_FIND(e, QUESTIONS, ARRAY_LEN(QUESTIONS), strcmp(e->method, method) == 0);
}

/* ---- answers ---- */

static struct kept_answer *answer_of(const struct mcp_call *c, const char *key)
{
	return ARRAY_FIND(answer, c->answers, c->n_answers, strcmp(answer->key, key) == 0);
}

static void answer_done(struct kept_answer *a)
{
	free(a->key);
	free(a->text);
}

void mcp_call_forget_answers(struct mcp_call *c)
{
	for (size_t i = 0; i < c->n_answers; i++) {
		answer_done(&c->answers[i]);
	}
	free(c->answers);
	c->answers = NULL;
	c->n_answers = 0;
}

/* Stores the answer. Replaces an earlier answer to the same key. */
static int keep_answer(struct mcp_call *c, struct kept_answer *a)
{
	struct kept_answer *old = answer_of(c, a->key);

	if (old != NULL) {
		answer_done(old);
		*old = *a;
		return 0;
	}
	if (c->n_answers >= (size_t)MAX_MCP_ASKS * MAX_MCP_ROUNDS) {
		return -1;
	}
	struct kept_answer *v = realloc(c->answers, (c->n_answers + 1) * sizeof(*v));
	if (v == NULL) {
		return -1;
	}
	v[c->n_answers++] = *a;
	c->answers = v;
	return 0;
}

static int graft_value(struct json_doc *to, const struct json_doc *from, uint32_t *ret_node)
{
	size_t n = to->n_nodes + from->n_nodes;
	uint32_t shift = (uint32_t)to->n_nodes;

	if (n > UINT32_MAX / 2) {
		return -1;
	}
	if (n > to->room_nodes) {
		struct json_node *nodes = realloc(to->nodes, n * sizeof(*nodes));
		if (nodes == NULL) {
			return -1;
		}
		to->nodes = nodes;
		to->room_nodes = n;
	}
	for (size_t i = 0; i < from->n_nodes; i++) {
		struct json_node *node = &to->nodes[shift + i];
		*node = from->nodes[i];
		node->first += node->first != 0 ? shift : 0;
		node->next += node->next != 0 ? shift : 0;
	}
	to->n_nodes = n;
	*ret_node = shift;
	return 0;
}

/* Copies the value into the call's doc. The copy gets its own text. */
static int copy_value(struct mcp_call *c, const struct json_doc *doc, const struct json_node *node,
                      struct kept_answer *a)
{
	struct json_doc copy AUTO(json_doc_done) = { 0 };
	const char *why = NULL;
	auto_buf text = BUF(MAX_MCP_ANSWERS - c->answer_bytes);
	struct json j = JSON_TO(&text, false);

	json_copy(&j, doc, node);
	if (text.failed || json_read(&copy, text.data, text.len, &why) < 0 ||
	    graft_value(&c->m.doc, &copy, &a->node) < 0) {
		return -1;
	}
	c->answer_bytes += text.len;
	a->text = steal_ptr(&copy.text);
	c->m.params = json_member(&c->m.doc, json_top(&c->m.doc), "params");
	return 0;
}

int mcp_call_keep_answer(struct mcp_call *c, const char *key, const struct json_doc *doc,
                         const struct json_node *node)
{
	struct kept_answer a = { .key = strdup(key), .refused = node == NULL };

	if (a.key == NULL || (node != NULL && copy_value(c, doc, node, &a) < 0) ||
	    keep_answer(c, &a) < 0) {
		answer_done(&a);
		return -1;
	}
	return 0;
}

enum mcp_answer mcp_answer(const struct mcp_call *c, const char *key,
                           const struct json_node **ret_answer)
{
	const struct kept_answer *a = answer_of(c, key);

	if (a == NULL) {
		return MCP_UNASKED;
	}
	if (a->refused) {
		return MCP_REFUSED;
	}
	*ret_answer = &c->m.doc.nodes[a->node];
	return MCP_ANSWERED;
}

const char *mcp_state(const struct mcp_call *c)
{
	return c->state;
}

/* ---- questions ---- */

void mcp_call_forget_questions(struct mcp_call *c)
{
	for (size_t i = 0; i < c->n_asks; i++) {
		free(c->asks[i].key);
		free(c->asks[i].params);
	}
	free(c->asks);
	c->asks = NULL;
	c->n_asks = 0;
}

void mcp_ask(struct mcp_call *c, const char *key, const char *method, const char *params)
{
	const struct question *q = question_of(method);

	assert(q != NULL);
	if (c->n_asks >= MAX_MCP_ASKS) {
		return; /* the handler asks this question in the next round */
	}
	struct ask *v = realloc(c->asks, (c->n_asks + 1) * sizeof(*v));
	if (v == NULL) {
		return;
	}
	c->asks = v;
	struct ask a = { .key = strdup(key), .method = q->method, .params = strdup(params) };
	if (a.key == NULL || a.params == NULL) {
		free(a.key);
		free(a.params);
		return;
	}
	v[c->n_asks++] = a;
}

static void write_request(struct json *j, const struct ask *a)
{
	json_kstr(j, "method", a->method);
	json_key(j, "params");
	json_raw(j, a->params, strlen(a->params));
}

void mcp_call_write_questions(const struct mcp_call *c, struct json *j)
{
	json_open(j, '{');
	for (size_t i = 0; i < c->n_asks; i++) {
		if (!c->asks[i].answered) {
			json_kopen(j, c->asks[i].key, '{');
			write_request(j, &c->asks[i]);
			json_close(j, '}');
		}
	}
	json_close(j, '}');
}

/* ---- modern ---- */

/* Returns true if the client can answer every question. If not, ends the call with an error and
 * returns false. */
static bool can_ask_all(struct mcp_call *c)
{
	char data[64 + sizeof("elicitation")];

	for (size_t i = 0; i < c->n_asks; i++) {
		const struct question *q = question_of(c->asks[i].method);
		if (!mcp_can(c, q->needs)) {
			(void)snprintf(data, sizeof(data), "{\"requiredCapabilities\":{\"%s\":{}}}",
			               q->capability);
			mcp_fail_data(c, MCP_E_CAPABILITY, data,
			              "this call asks the client a question, which needs the "
			              "client capability %s; the client did not declare it",
			              q->capability);
			return false;
		}
	}
	return true;
}

static void wait_modern(struct mcp_call *c)
{
	if (!can_ask_all(c)) {
		return;
	}
	if (c->task != NULL) {
		c->phase = CALL_WAITING;
		task_waits(c);
	} else {
		mcp_call_send_questions(c);
	}
}

/* ---- legacy ---- */

static void refuse_ask(struct mcp_call *c, struct ask *a)
{
	a->answered = true;
	(void)mcp_call_keep_answer(c, a->key, NULL, NULL);
}

static void send_ask(struct mcp_call *c, struct ask *a)
{
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	a->id = ++c->server->last_ask;
	json_open(&j, '{');
	json_kstr(&j, "jsonrpc", "2.0");
	json_kuint(&j, "id", a->id);
	write_request(&j, a);
	json_close(&j, '}');
	if (text.failed) {
		refuse_ask(c, a); /* without a request, no answer would come */
	} else {
		c->out->send(c->out, MCP_REQUEST, 200, text.data, text.len);
	}
}

bool mcp_call_all_answered(const struct mcp_call *c)
{
	return !ARRAY_HAS(ask, c->asks, c->n_asks, !ask->answered);
}

/* Refuses questions that the client cannot answer, sends the others and waits. */
static void wait_legacy(struct mcp_call *c)
{
	for (size_t i = 0; i < c->n_asks; i++) {
		if (!mcp_can(c, question_of(c->asks[i].method)->needs)) {
			refuse_ask(c, &c->asks[i]);
		}
	}
	c->phase = CALL_WAITING;
	for (size_t i = 0; c->phase == CALL_WAITING && i < c->n_asks; i++) {
		if (!c->asks[i].answered && c->out != NULL) {
			send_ask(c, &c->asks[i]);
		}
	}
	if (c->phase == CALL_WAITING && mcp_call_all_answered(c)) {
		mcp_call_resume(c);
	}
}

void mcp_wait(struct mcp_call *c, const char *state)
{
	assert(c->phase == CALL_RUNNING && (c->row->flags & MCP_ASKS) != 0);
	c->on_cancel = NULL;
	free(c->state);
	c->state = strdup(state != NULL ? state : "");
	if (c->canceled) {
		mcp_call_drop(c);
	} else if (c->state == NULL || ++c->rounds > MAX_MCP_ROUNDS) {
		mcp_fail(c, MCP_E_INTERNAL,
		         "the tool asked the client more often than the protocol allows");
	} else if (c->era == MCP_ERA_MODERN) {
		wait_modern(c);
	} else {
		mcp_call_hold(c);
		wait_legacy(c);
		mcp_call_release(c);
	}
}

void mcp_call_withdraw_questions(struct mcp_call *c)
{
	char params[64];

	if (c->phase != CALL_WAITING || c->era != MCP_ERA_LEGACY || c->peer->gone) {
		return;
	}
	for (size_t i = 0; i < c->n_asks; i++) {
		if (!c->asks[i].answered) {
			(void)snprintf(params, sizeof(params), "{\"requestId\":%" PRIu64 "}",
			               c->asks[i].id);
			mcp_call_notify(c, "notifications/cancelled", params);
		}
	}
}

static struct ask *find_question(const struct mcp_peer *p, const char *id, struct mcp_call **ret)
{
	char text[24];

	for (struct mcp_call *c = LIST_FIRST(&p->calls); c != NULL; c = LIST_NEXT(c, link)) {
		for (size_t i = 0;
		     c->phase == CALL_WAITING && c->era == MCP_ERA_LEGACY && i < c->n_asks; i++) {
			(void)snprintf(text, sizeof(text), "%" PRIu64, c->asks[i].id);
			if (!c->asks[i].answered && strcmp(text, id) == 0) {
				*ret = c;
				return &c->asks[i];
			}
		}
	}
	return NULL;
}

void mcp_peer_take_response(struct mcp_peer *p, const struct mcp_message *m)
{
	const struct json_node *result = json_member(&m->doc, json_top(&m->doc), "result");
	struct mcp_call *c = NULL;
	struct ask *a = m->id != NULL ? find_question(p, m->id, &c) : NULL;

	if (a == NULL) {
		return; /* no question has this id, or it is answered already */
	}
	a->answered = true;
	/* An answer that is too long to keep counts as a refusal. */
	if (!json_is(result, JSON_OBJECT) || mcp_call_keep_answer(c, a->key, &m->doc, result) < 0) {
		(void)mcp_call_keep_answer(c, a->key, NULL, NULL);
	}
	if (mcp_call_all_answered(c)) {
		mcp_call_resume(c);
	}
}
