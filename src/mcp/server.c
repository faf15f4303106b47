/* server.c - servers and their peers. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"
#include "mcp/state.h"
#include "mcp/subs.h"
#include "mcp/task.h"

static void server_destroy(struct mcp_server *s)
{
	task_store_free(s->tasks);
	subs_free(s->subs);
	state_store_free(s->states);
	free(s);
}

int mcp_server_new(struct loop *loop, const struct mcp_app *app, struct mcp_server **ret,
                   struct ssb_error *err)
{
	struct mcp_server *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		return ssb_fail(err, SSB_E_SYS, ENOMEM, "mcp", "cannot create the server");
	}
	s->loop = loop;
	s->app = app;
	s->states = state_store_new(STATE_TTL_MS);
	s->subs = subs_new();
	s->tasks = task_store_new(TASK_KEEP_MS);
	if (s->states == NULL || s->subs == NULL || s->tasks == NULL) {
		server_destroy(s);
		return ssb_fail(err, SSB_E_SYS, ENOMEM, "mcp", "cannot create the server");
	}
	*ret = s;
	return 0;
}

void mcp_server_free(struct mcp_server *s)
{
	if (s == NULL) {
		return;
	}
	/* This reference is counted like a call, so that the end of the last real call does not
	 * yet free the server. */
	s->n_calls++;
	subs_end(s->subs);
	while (!LIST_EMPTY(&s->peers)) {
		mcp_peer_free(LIST_FIRST(&s->peers));
	}
	s->freed = true;
	mcp_server_drop_call(s);
}

void mcp_server_drop_call(struct mcp_server *s)
{
	assert(s->n_calls > 0);
	s->n_calls--;
	if (s->freed && s->n_calls == 0) {
		server_destroy(s);
	}
}

int mcp_peer_new(struct mcp_server *s, const char *principal, struct mcp_out *news,
                 struct mcp_peer **ret)
{
	struct mcp_peer *p = calloc(1, sizeof(*p));

	if (p == NULL || (p->principal = strdup(principal)) == NULL) {
		free(p);
		return -1;
	}
	p->server = s;
	p->news = news;
	p->refs = 1;
	p->level = MCP_INFO;
	LIST_INSERT_HEAD(&s->peers, p, link);
	*ret = p;
	return 0;
}

void mcp_peer_unref(struct mcp_peer *p)
{
	assert(p->refs > 0);
	if (--p->refs > 0) {
		return;
	}
	free(p->principal);
	free(p->client_name);
	free(p->extensions);
	free(p);
}

/* Finds a call of the peer that is neither canceled nor answered. Canceling a call may change
 * the list, so each search starts at the beginning. */
static struct mcp_call *next_uncanceled(const struct mcp_peer *p)
{
	struct mcp_call *c = LIST_FIRST(&p->calls);

	while (c != NULL && (c->canceled || c->answered)) {
		c = LIST_NEXT(c, link);
	}
	return c;
}

/* Ends the peer. The caller still has a reference to it. */
static void peer_end(struct mcp_peer *p)
{
	assert(!p->gone);
	p->gone = true;
	p->news = NULL;
	LIST_REMOVE(p, link);
	subs_forget(p->server->subs, p);
	for (struct mcp_call *c = next_uncanceled(p); c != NULL; c = next_uncanceled(p)) {
		mcp_call_cancel(c);
	}
}

void mcp_peer_free(struct mcp_peer *p)
{
	if (p == NULL) {
		return;
	}
	peer_end(p);
	if (p->server->app->gone != NULL) {
		p->server->app->gone(p->server->app->arg, p->principal);
	}
	mcp_peer_unref(p);
}

void mcp_peer_leave(struct mcp_peer *p, struct mcp_peer *heir)
{
	if (p == NULL) {
		return;
	}
	assert(strcmp(p->principal, heir->principal) == 0);
	for (struct mcp_call *c = LIST_FIRST(&p->calls), *next; c != NULL; c = next) {
		next = LIST_NEXT(c, link);
		if (c->task != NULL) {
			mcp_call_move(c, heir);
		}
	}
	peer_end(p); /* does not report the principal as gone: `heir` has it */
	mcp_peer_unref(p);
}

bool mcp_peer_initialized(const struct mcp_peer *p)
{
	return p->version != NULL;
}

const char *mcp_peer_version(const struct mcp_peer *p)
{
	return p->version != NULL ? p->version : "";
}

unsigned mcp_client_abilities(const struct json_doc *doc, const struct json_node *capabilities)
{
	const struct json_node *elicit = json_member(doc, capabilities, "elicitation");
	unsigned abilities = 0;

	/* An empty object means elicitation by form. A client that lists only other modes cannot
	 * show forms. */
	if (json_is(elicit, JSON_OBJECT) &&
	    (elicit->n == 0 || json_is(json_member(doc, elicit, "form"), JSON_OBJECT) ||
	     json_member(doc, elicit, "url") == NULL)) {
		abilities |= 1U << MCP_CAN_ELICIT;
	}
	if (json_is(json_member(doc, capabilities, "sampling"), JSON_OBJECT)) {
		abilities |= 1U << MCP_CAN_SAMPLE;
	}
	if (json_is(json_member(doc, capabilities, "roots"), JSON_OBJECT)) {
		abilities |= 1U << MCP_CAN_LIST_ROOTS;
	}
	return abilities;
}
