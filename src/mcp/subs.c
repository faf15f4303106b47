/* subs.c - keeps the subscriptions of all peers, and sends them updates. */
#include "mcp/subs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/limits.h"
#include "base/own.h"
#include "base/string_list.h"
#include "mcp/mcp_priv.h"
#include "mcp/task.h"

/* An open subscriptions/listen call. */
struct listen {
	LIST_ENTRY(listen) link;
	struct mcp_call *call; /* subscriptions/listen; answered when the subscription ends */
	unsigned lists;        /* bits of the lists whose changes are sent: MCP_TOOLS, ... */
	struct string_list uris;
	struct string_list tasks;
	uint64_t told; /* the last value of `news` for which it got a message */
};

/* The subscriptions of one legacy peer. */
struct legacy {
	LIST_ENTRY(legacy) link;
	struct mcp_peer *peer;
	struct string_list uris;
	uint64_t told;
};

struct subs {
	LIST_HEAD(listen_list, listen) listens;
	LIST_HEAD(legacy_list, legacy) legacies;
	uint64_t news; /* number of the news that is sent now */
};

/* A list that can change: its features, and its names in the protocol. */
struct sub_list {
	enum mcp_feature what;
	enum mcp_feature change;
	const char *key;
	const char *method;
};

static const struct sub_list SUB_LISTS[] = {
	{ MCP_TOOLS, MCP_TOOLS_CHANGE, "toolsListChanged", "notifications/tools/list_changed" },
	{ MCP_PROMPTS, MCP_PROMPTS_CHANGE, "promptsListChanged",
	  "notifications/prompts/list_changed" },
	{ MCP_RESOURCES, MCP_RESOURCES_CHANGE, "resourcesListChanged",
	  "notifications/resources/list_changed" },
};

/* ---- all subscriptions --------------------------------------------------------- */

struct subs *subs_new(void)
{
	return calloc(1, sizeof(struct subs));
}

void subs_free(struct subs *s)
{
	if (s == NULL) {
		return;
	}
	while (!LIST_EMPTY(&s->legacies)) {
		subs_forget(s, LIST_FIRST(&s->legacies)->peer);
	}
	free(s); /* no calls are left, so `listens` is empty */
}

static struct legacy *find_legacy(const struct subs *s, const struct mcp_peer *p)
{
	struct legacy *l = LIST_FIRST(&s->legacies);

	while (l != NULL && l->peer != p) {
		l = LIST_NEXT(l, link);
	}
	return l;
}

void subs_forget(struct subs *s, const struct mcp_peer *p)
{
	struct legacy *l = find_legacy(s, p);

	if (l != NULL) {
		LIST_REMOVE(l, link);
		string_list_done(&l->uris);
		free(l);
	}
}

static struct legacy *make_legacy(struct subs *s, struct mcp_peer *p)
{
	struct legacy *l = find_legacy(s, p);

	if (l == NULL && (l = calloc(1, sizeof(*l))) != NULL) {
		l->peer = p;
		LIST_INSERT_HEAD(&s->legacies, l, link);
	}
	return l;
}

static void listen_free(struct listen *l)
{
	string_list_done(&l->uris);
	string_list_done(&l->tasks);
	free(l);
}

/* Counts the open listen calls of a peer, and the sum of their URIs and tasks. */
static void count_listens(const struct subs *s, const struct mcp_peer *p, size_t *ret_n,
                          size_t *ret_words)
{
	*ret_n = 0;
	*ret_words = 0;
	for (const struct listen *l = LIST_FIRST(&s->listens); l != NULL; l = LIST_NEXT(l, link)) {
		if (l->call->peer == p) {
			*ret_n += 1;
			*ret_words += l->uris.n + l->tasks.n;
		}
	}
}

/* ---- legacy: resources/subscribe ------------------------------------------------- */

/* Returns params.uri. Returns NULL if it is wrong; the call has then been answered. */
static const char *named_uri(struct mcp_call *c)
{
	const struct json_node *node = mcp_param(c, "uri");
	const char *uri = json_string(node, NULL);

	if (uri == NULL || node->len == 0 || strlen(uri) != node->len) {
		mcp_fail(c, MCP_E_PARAMS, "%s needs params.uri, a string", c->m.method);
		return NULL;
	}
	if (node->len > MAX_MCP_URI) {
		mcp_fail(c, MCP_E_PARAMS, "params.uri is longer than %d bytes", MAX_MCP_URI);
		return NULL;
	}
	return uri;
}

void subs_subscribe(void *app, struct mcp_call *c)
{
	(void)app;
	const char *uri = named_uri(c);

	if (uri == NULL) {
		return;
	}
	struct legacy *l = make_legacy(c->server->subs, c->peer);
	if (l != NULL && l->uris.n >= MAX_MCP_WATCHED && !string_list_has(&l->uris, uri)) {
		mcp_fail(c, MCP_E_REQUEST, "too many subscriptions: at most %d at once",
		         MAX_MCP_WATCHED);
	} else if (l == NULL || string_list_add_once(&l->uris, uri, MAX_MCP_WATCHED) < 0) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
	} else {
		mcp_done(c);
	}
}

void subs_unsubscribe(void *app, struct mcp_call *c)
{
	(void)app;
	const char *uri = named_uri(c);

	if (uri == NULL) {
		return;
	}
	struct legacy *l = find_legacy(c->server->subs, c->peer);
	if (l != NULL) {
		string_list_drop(&l->uris, uri);
	}
	mcp_done(c);
}

/* ---- modern: subscriptions/listen ------------------------------------------------ */

/* Reads the strings of one member of the filter. Returns false if they are wrong; the call has then
 * been answered. */
static bool take_words(struct mcp_call *c, const struct json_node *list, const char *key,
                       size_t room, struct string_list *ret)
{
	const struct json_doc *doc = mcp_doc(c);

	if (list == NULL) {
		return true;
	}
	if (!json_is(list, JSON_ARRAY) || list->n > room) {
		mcp_fail(c, MCP_E_PARAMS,
		         "params.notifications.%s must be an array of strings; at most %d in "
		         "all subscriptions",
		         key, MAX_MCP_WATCHED);
		return false;
	}
	JSON_EACH (n, doc, list) {
		const char *word = json_string(n, NULL);
		if (word == NULL || strlen(word) != n->len || n->len > MAX_MCP_URI) {
			mcp_fail(c, MCP_E_PARAMS,
			         "params.notifications.%s must hold strings of at most %d bytes",
			         key, MAX_MCP_URI);
			return false;
		}
		if (string_list_add_once(ret, word, MAX_MCP_WATCHED) < 0) {
			mcp_fail(c, MCP_E_INTERNAL, "out of memory");
			return false;
		}
	}
	return true;
}

/* Reads the lists for whose changes the client asks, and keeps those that the server can report.
 * Returns false if the filter is wrong; the call has then been answered. */
static bool take_lists(struct mcp_call *c, const struct json_node *filter, struct listen *l)
{
	for (size_t i = 0; i < ARRAY_LEN(SUB_LISTS); i++) {
		const struct json_node *want = json_member(mcp_doc(c), filter, SUB_LISTS[i].key);
		if (want != NULL && !json_is(want, JSON_TRUE) && !json_is(want, JSON_FALSE)) {
			mcp_fail(c, MCP_E_PARAMS, "params.notifications.%s must be true or false",
			         SUB_LISTS[i].key);
			return false;
		}
		if (json_is(want, JSON_TRUE) &&
		    (c->server->app->features & SUB_LISTS[i].change) != 0) {
			l->lists |= SUB_LISTS[i].what;
		}
	}
	return true;
}

static bool take_tasks(struct mcp_call *c, const struct json_node *list, size_t room,
                       struct listen *l)
{
	struct string_list all = { 0 };

	if (list == NULL || !task_allowed(c)) {
		return list == NULL;
	}
	bool good = take_words(c, list, "taskIds", room, &all);
	for (size_t i = 0; good && i < all.n; i++) {
		if (task_known(c, all.v[i]) &&
		    string_list_add_once(&l->tasks, all.v[i], MAX_MCP_WATCHED) < 0) {
			mcp_fail(c, MCP_E_INTERNAL, "out of memory");
			good = false;
		}
	}
	string_list_done(&all);
	return good;
}

/* Fills `l` from the parameters. Returns false if they are wrong; the call has then been answered.
 */
static bool take_filter(struct mcp_call *c, struct listen *l)
{
	const struct json_doc *doc = mcp_doc(c);
	const struct json_node *filter = mcp_param(c, "notifications");
	size_t n = 0;
	size_t words = 0;

	if (!json_is(filter, JSON_OBJECT)) {
		mcp_fail(c, MCP_E_PARAMS,
		         "subscriptions/listen needs params.notifications, an object that selects "
		         "the notifications");
		return false;
	}
	count_listens(c->server->subs, c->peer, &n, &words);
	if (n >= MAX_MCP_LISTENS) {
		mcp_fail(c, MCP_E_REQUEST, "too many subscriptions: at most %d at once",
		         MAX_MCP_LISTENS);
		return false;
	}
	size_t room = words < MAX_MCP_WATCHED ? MAX_MCP_WATCHED - words : 0;
	if (!take_lists(c, filter, l) ||
	    !take_words(c, json_member(doc, filter, "resourceSubscriptions"),
	                "resourceSubscriptions", room, &l->uris) ||
	    !take_tasks(c, json_member(doc, filter, "taskIds"), room - l->uris.n, l)) {
		return false;
	}
	if ((c->server->app->features & MCP_SUBSCRIBE) == 0) {
		string_list_done(&l->uris);
	}
	return true;
}

/* Sends {"_meta":{"...subscriptionId":ID},MEMBERS} to the subscriber. `object` is a finished JSON
 * object with at least one member, or NULL. The subscription may be freed before this returns. */
static void listen_tell(const struct listen *l, const char *method, const char *object)
{
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	json_open(&j, '{');
	json_kopen(&j, "_meta", '{');
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
		mcp_call_notify(l->call, method, text.data);
	}
}

static void listen_acknowledge(const struct listen *l)
{
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	json_open(&j, '{');
	json_kopen(&j, "notifications", '{');
	for (size_t i = 0; i < ARRAY_LEN(SUB_LISTS); i++) {
		if ((l->lists & SUB_LISTS[i].what) != 0) {
			json_kbool(&j, SUB_LISTS[i].key, true);
		}
	}
	if (l->uris.n > 0) {
		json_kstrs(&j, "resourceSubscriptions", l->uris.v, l->uris.n);
	}
	if (l->tasks.n > 0) {
		json_kstrs(&j, "taskIds", l->tasks.v, l->tasks.n);
	}
	json_close(&j, '}');
	json_close(&j, '}');
	if (!text.failed) {
		listen_tell(l, "notifications/subscriptions/acknowledged", text.data);
	}
}

/* Called when the client canceled the subscription or is gone. */
static void listen_canceled(void *arg)
{
	struct listen *l = arg;
	struct mcp_call *c = l->call;

	LIST_REMOVE(l, link);
	listen_free(l);
	mcp_done(c);
}

void subs_listen(void *app, struct mcp_call *c)
{
	(void)app;
	struct listen *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	l->call = c;
	mcp_call_hold(c); /* the call may be answered in this function */
	if (take_filter(c, l)) {
		LIST_INSERT_HEAD(&c->server->subs->listens, l, link);
		mcp_on_cancel(c, listen_canceled, l);
		listen_acknowledge(l);
	} else {
		listen_free(l);
	}
	mcp_call_release(c);
}

/* Answers the call with {"resultType":"complete","_meta":{"...subscriptionId":ID}}. */
static void listen_end(struct listen *l)
{
	struct mcp_call *c = l->call;
	struct json *j = &c->json;

	LIST_REMOVE(l, link);
	listen_free(l);
	mcp_on_cancel(c, NULL, NULL);
	buf_reset(&c->text);
	json_init(j, &c->text, false);
	mcp_call_begin_response(c, j);
	json_open(j, '{');
	json_kstr(j, "resultType", "complete");
	json_kopen(j, "_meta", '{');
	json_key(j, META_SUBSCRIPTION);
	json_raw(j, c->m.id, strlen(c->m.id));
	json_close(j, '}');
	json_close(j, '}');
	json_close(j, '}');
	mcp_call_respond(c, 200);
}

void subs_end(struct subs *s)
{
	while (!LIST_EMPTY(&s->listens)) {
		listen_end(LIST_FIRST(&s->listens));
	}
}

void mcp_server_end(struct mcp_server *s)
{
	subs_end(s->subs);
}

/* ---- news ---------------------------------------------------------------------- */

/* Finds the next subscription that wants the current news and has not received it. Sending may
 * free any subscription, so each search starts at the beginning. */
static struct listen *next_listen(struct subs *s, unsigned list, const char *uri, const char *task)
{
	for (struct listen *l = LIST_FIRST(&s->listens); l != NULL; l = LIST_NEXT(l, link)) {
		if (l->told != s->news &&
		    ((l->lists & list) != 0 || (uri != NULL && string_list_has(&l->uris, uri)) ||
		     (task != NULL && string_list_has(&l->tasks, task)))) {
			l->told = s->news;
			return l;
		}
	}
	return NULL;
}

static struct mcp_peer *next_legacy(struct mcp_server *s, const char *uri)
{
	for (struct legacy *l = LIST_FIRST(&s->subs->legacies); l != NULL; l = LIST_NEXT(l, link)) {
		if (l->told != s->subs->news && string_list_has(&l->uris, uri)) {
			l->told = s->subs->news;
			return l->peer;
		}
	}
	return NULL;
}

static struct mcp_peer *next_peer(struct mcp_server *s)
{
	for (struct mcp_peer *p = LIST_FIRST(&s->peers); p != NULL; p = LIST_NEXT(p, link)) {
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
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	json_open(&j, '{');
	json_kstr(&j, "uri", uri);
	json_close(&j, '}');
	if (text.failed) {
		return;
	}
	s->subs->news++;
	for (struct mcp_peer *p = next_legacy(s, uri); p != NULL; p = next_legacy(s, uri)) {
		mcp_peer_notify(p, method, text.data);
	}
	for (struct listen *l = next_listen(s->subs, 0, uri, NULL); l != NULL;
	     l = next_listen(s->subs, 0, uri, NULL)) {
		listen_tell(l, method, text.data);
	}
}

bool mcp_resource_wanted(const struct mcp_server *s, const char *uri)
{
	for (const struct legacy *l = LIST_FIRST(&s->subs->legacies); l != NULL;
	     l = LIST_NEXT(l, link)) {
		if (string_list_has(&l->uris, uri)) {
			return true;
		}
	}
	for (const struct listen *l = LIST_FIRST(&s->subs->listens); l != NULL;
	     l = LIST_NEXT(l, link)) {
		if (string_list_has(&l->uris, uri)) {
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
		assert(list < SUB_LISTS + ARRAY_LEN(SUB_LISTS));
	}
	if ((s->app->features & list->change) == 0) {
		return; /* the server did not declare that this list changes */
	}
	s->subs->news++;
	for (struct mcp_peer *p = next_peer(s); p != NULL; p = next_peer(s)) {
		mcp_peer_notify(p, list->method, NULL);
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
