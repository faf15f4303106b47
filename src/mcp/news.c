/* What those who subscribed hear. */
#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"
#include "mcp/subs.h"
#include "mcp/subs_priv.h"

void listen_tell(const struct listen *l, const char *method, const char *object)
{
	auto_buf text;
	struct json j;

	buf_init(&text, MAX_MCP_RESULT);
	json_init(&j, &text, false);
	json_open(&j, '{');
	json_key(&j, "_meta");
	json_open(&j, '{');
	json_key(&j, META_SUBSCRIPTION);
	json_raw(&j, l->call->m.id, strlen(l->call->m.id));
	json_close(&j, '}');
	if (object != NULL) {
		buf_addc(&text, ',');
		buf_adds(&text, object + 1);
	} else {
		json_close(&j, '}');
	}
	if (!text.failed) {
		call_notify(l->call, method, text.data);
	}
}

/* Whoever is told may free anything: each time from the start, and nobody twice. */
static struct listen *next_listen(struct subs *s, unsigned list, const char *uri, const char *task)
{
	for (struct listen *l = s->listens; l != NULL; l = l->next) {
		if (l->told != s->news &&
		    ((l->lists & list) != 0 || (uri != NULL && words_has(&l->uris, uri)) ||
		     (task != NULL && words_has(&l->tasks, task)))) {
			l->told = s->news;
			return l;
		}
	}
	return NULL;
}

static struct mcp_peer *next_legacy(struct mcp_server *s, const char *uri)
{
	for (struct legacy *l = s->subs->legacies; l != NULL; l = l->next) {
		if (l->told != s->subs->news && words_has(&l->uris, uri)) {
			l->told = s->subs->news;
			return l->peer;
		}
	}
	return NULL;
}

static struct mcp_peer *next_peer(struct mcp_server *s)
{
	for (struct mcp_peer *p = s->peers; p != NULL; p = p->next) {
		if (p->told != s->subs->news && mcp_peer_initialized(p)) {
			p->told = s->subs->news;
			return p;
		}
	}
	return NULL;
}

void mcp_resource_updated(struct mcp_server *s, const char *uri)
{
	static const char method[] = "notifications/resources/updated";
	auto_buf text;
	struct json j;

	buf_init(&text, MAX_MCP_RESULT);
	json_init(&j, &text, false);
	json_open(&j, '{');
	json_kstr(&j, "uri", uri);
	json_close(&j, '}');
	if (text.failed) {
		return;
	}
	s->subs->news++;
	for (struct mcp_peer *p = next_legacy(s, uri); p != NULL; p = next_legacy(s, uri)) {
		peer_notify(p, method, text.data);
	}
	for (struct listen *l = next_listen(s->subs, 0, uri, NULL); l != NULL;
	     l = next_listen(s->subs, 0, uri, NULL)) {
		listen_tell(l, method, text.data);
	}
}

bool mcp_resource_wanted(const struct mcp_server *s, const char *uri)
{
	for (const struct legacy *l = s->subs->legacies; l != NULL; l = l->next) {
		if (words_has(&l->uris, uri)) {
			return true;
		}
	}
	for (const struct listen *l = s->subs->listens; l != NULL; l = l->next) {
		if (words_has(&l->uris, uri)) {
			return true;
		}
	}
	return false;
}

void mcp_list_changed(struct mcp_server *s, enum mcp_feature what)
{
	const struct sub_list *list = SUB_LISTS;

	while (list->what != what) {
		list++;
		assert(list < SUB_LISTS + N_SUB_LISTS);
	}
	if ((s->app->features & list->change) == 0) {
		return; /* nobody was told that it can */
	}
	s->subs->news++;
	for (struct mcp_peer *p = next_peer(s); p != NULL; p = next_peer(s)) {
		peer_notify(p, list->method, NULL);
	}
	for (struct listen *l = next_listen(s->subs, what, NULL, NULL); l != NULL;
	     l = next_listen(s->subs, what, NULL, NULL)) {
		listen_tell(l, list->method, NULL);
	}
}

void subs_task(struct subs *s, const char *task_id, const char *object)
{
	s->news++;
	for (struct listen *l = next_listen(s, 0, NULL, task_id); l != NULL;
	     l = next_listen(s, 0, NULL, task_id)) {
		listen_tell(l, "notifications/tasks", object);
	}
}
