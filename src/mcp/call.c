/* call.c - the states of a call, and the functions that its handler uses. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"
#include "mcp/task.h"

#define NO_MEMORY "{\"code\":-32603,\"message\":\"out of memory\"}"

/* Sends the error without using the heap, which may be exhausted. */
static void send_no_memory(struct mcp_call *c, int status)
{
	static const char format[] = "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":" NO_MEMORY "}";
	char text[sizeof(format) + MESSAGE_ID];

	(void)snprintf(text, sizeof(text), format, c->m.id);
	c->out->send(c->out, MCP_RESPONSE, status, text, strlen(text));
}

static size_t call_weight(const struct mcp_call *c)
{
	return c->m.doc.room_text + c->m.doc.room_nodes * sizeof(struct json_node);
}

static void call_link(struct mcp_call *c, struct mcp_peer *p)
{
	c->peer = p;
	LIST_INSERT_HEAD(&p->calls, c, link);
	p->refs++;
	p->n_calls++;
	p->weight += c->weight;
}

struct mcp_call *mcp_call_new(struct mcp_peer *p, struct mcp_out *out, struct mcp_message *m)
{
	struct mcp_call *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		return NULL;
	}
	c->server = p->server;
	c->out = out;
	c->m = *m;
	*m = (struct mcp_message){ 0 };
	buf_init(&c->text, MAX_MCP_RESULT);
	c->weight = call_weight(c);
	call_link(c, p);
	p->server->n_calls++;
	p->server->weight += c->weight;
	return c;
}

static void call_free(struct mcp_call *c)
{
	struct mcp_server *s = c->server;

	s->weight -= c->weight;
	mcp_call_forget_questions(c);
	mcp_call_forget_answers(c);
	mcp_message_done(&c->m);
	json_doc_done(&c->defaults);
	buf_done(&c->text);
	free(c->state);
	mcp_peer_unref(c->peer);
	free(c);
	mcp_server_drop_call(s);
}

static void call_unlink(struct mcp_call *c)
{
	struct mcp_peer *p = c->peer;

	LIST_REMOVE(c, link);
	p->n_calls--;
	p->weight -= c->weight;
}

void mcp_call_move(struct mcp_call *c, struct mcp_peer *heir)
{
	struct mcp_peer *p = c->peer;

	call_unlink(c);
	call_link(c, heir);
	mcp_peer_unref(p);
}

void mcp_call_hold(struct mcp_call *c)
{
	c->holds++;
}

/* Must not be inlined: the compiler would warn of two frees of the same call, because it does not
 * see that `holds` prevents the second one. */
__attribute__((noinline)) void mcp_call_release(struct mcp_call *c)
{
	assert(c->holds > 0);
	if (--c->holds == 0 && c->phase == CALL_ENDED) {
		call_free(c);
	}
}

/* Ends the call. No message is sent after that. */
static void call_over(struct mcp_call *c)
{
	struct mcp_out *out = c->out;

	mcp_call_hold(c);
	c->phase = CALL_ENDED;
	c->on_cancel = NULL;
	c->out = NULL;
	call_unlink(c);
	if (out != NULL) {
		out->end(out);
	}
	mcp_call_release(c);
}

static void respond_task(struct mcp_call *c)
{
	if (c->text.failed) {
		task_ended(c, true, NO_MEMORY, strlen(NO_MEMORY));
	} else {
		task_ended(c, c->failed, c->text.data + c->body_at, c->text.len - c->body_at - 1);
	}
}

void mcp_call_respond(struct mcp_call *c, int status)
{
	assert(c->phase != CALL_ENDED);
	mcp_call_hold(c);
	c->on_cancel = NULL;
	c->answered = true; /* from now on a disconnect cancels nothing */
	if (c->task != NULL) {
		respond_task(c);
	} else if (c->out != NULL && !c->text.failed) {
		c->out->send(c->out, MCP_RESPONSE, status, c->text.data, c->text.len);
	} else if (c->out != NULL) {
		send_no_memory(c, 500);
	}
	call_over(c);
	mcp_call_release(c);
}

void mcp_call_drop(struct mcp_call *c)
{
	if (c->task != NULL) {
		/* the client may still ask for the task */
		mcp_fail(c, MCP_E_INTERNAL, "canceled");
	} else {
		call_over(c);
	}
}

void mcp_call_cancel(struct mcp_call *c)
{
	if (c->canceled || c->answered || c->phase == CALL_ENDED) {
		return;
	}
	mcp_call_hold(c);
	c->canceled = true;
	mcp_call_withdraw_questions(c);
	struct mcp_out *out = steal_ptr(&c->out);
	if (out != NULL) {
		out->end(out);
	}
	if (c->phase == CALL_WAITING) {
		mcp_call_drop(c);
	} else if (c->on_cancel != NULL) {
		void (*fn)(void *arg) = c->on_cancel;
		c->on_cancel = NULL;
		fn(c->on_cancel_arg);
	}
	mcp_call_release(c);
}

void mcp_call_detach(struct mcp_call *c, const char *result)
{
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	mcp_call_begin_response(c, &j);
	json_raw(&j, result, strlen(result));
	json_close(&j, '}');
	mcp_call_hold(c);
	if (c->out != NULL && text.failed) {
		send_no_memory(c, 200);
	} else if (c->out != NULL) {
		c->out->send(c->out, MCP_RESPONSE, 200, text.data, text.len);
	}
	struct mcp_out *out = steal_ptr(&c->out);
	if (out != NULL) {
		out->end(out);
	}
	mcp_call_release(c);
}

void mcp_call_run(struct mcp_call *c)
{
	assert(c->row != NULL && c->phase != CALL_ENDED);
	mcp_call_hold(c);
	c->running = true;
	do {
		c->again = false;
		c->phase = CALL_RUNNING;
		c->row->handle(c->server->app->arg, c);
	} while (c->again && c->phase == CALL_WAITING);
	c->running = false;
	mcp_call_release(c);
}

void mcp_call_resume(struct mcp_call *c)
{
	mcp_call_forget_questions(c);
	if (c->running) {
		c->again = true; /* calls the handler again after it has returned */
	} else {
		mcp_call_run(c);
	}
}

void mcp_on_cancel(struct mcp_call *c, void (*fn)(void *arg), void *arg)
{
	if (c->canceled && fn != NULL) {
		fn(arg);
		return;
	}
	c->on_cancel = fn;
	c->on_cancel_arg = arg;
}

/* ---- the request ---- */

const struct json_doc *mcp_doc(const struct mcp_call *c)
{
	return &c->m.doc;
}

const struct json_node *mcp_param(const struct mcp_call *c, const char *name)
{
	return json_member(&c->m.doc, c->m.params, name);
}

const struct json_node *mcp_meta(const struct mcp_call *c, const char *key)
{
	return json_member(&c->m.doc, mcp_param(c, "_meta"), key);
}

const char *mcp_principal(const struct mcp_call *c)
{
	return c->peer->principal;
}

const char *mcp_client_name(const struct mcp_call *c)
{
	if (c->era == MCP_ERA_LEGACY) {
		return c->peer->client_name != NULL ? c->peer->client_name : "";
	}
	return json_string(json_member(&c->m.doc, mcp_meta(c, META_CLIENT), "name"), "");
}

bool mcp_can(const struct mcp_call *c, enum mcp_ability what)
{
	unsigned abilities = c->peer->abilities;

	if (c->era == MCP_ERA_MODERN) {
		abilities = mcp_client_abilities(&c->m.doc, mcp_meta(c, META_CAPABILITIES));
	}
	return (abilities >> what & 1) != 0;
}

bool mcp_has_extension(const struct mcp_call *c, const char *name)
{
	if (c->era == MCP_ERA_MODERN) {
		const struct json_node *all =
		        json_member(&c->m.doc, mcp_meta(c, META_CAPABILITIES), "extensions");
		return json_is(json_member(&c->m.doc, all, name), JSON_OBJECT);
	}
	size_t len = strlen(name);
	for (const char *at = c->peer->extensions; at != NULL && *at != '\0';) {
		const char *end = strchr(at, '\n');
		if ((size_t)(end - at) == len && memcmp(at, name, len) == 0) {
			return true;
		}
		at = end + 1;
	}
	return false;
}
