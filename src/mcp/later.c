/* Stands in until subs.c and task.c are here. */
#include <stdlib.h>

#include "mcp/subs.h"
#include "mcp/task.h"

struct subs {
	int none;
};
struct tasks {
	int none;
};

struct subs *subs_new(void)
{
	return calloc(1, sizeof(struct subs));
}
void subs_free(struct subs *s)
{
	free(s);
}
void subs_subscribe(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_done(c);
}
void subs_unsubscribe(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_done(c);
}
void subs_listen(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_done(c);
}
void subs_forget(struct subs *s, const struct mcp_peer *p)
{
	(void)s;
	(void)p;
}
void subs_end(struct subs *s)
{
	(void)s;
}
void mcp_resource_updated(struct mcp_server *s, const char *uri)
{
	(void)s;
	(void)uri;
}
void mcp_list_changed(struct mcp_server *s, enum mcp_feature what)
{
	(void)s;
	(void)what;
}
bool mcp_resource_wanted(const struct mcp_server *s, const char *uri)
{
	(void)s;
	(void)uri;
	return false;
}
struct tasks *tasks_new(uint64_t keep_ms)
{
	(void)keep_ms;
	return calloc(1, sizeof(struct tasks));
}
void tasks_free(struct tasks *t)
{
	free(t);
}
void task_get(void *app, struct mcp_call *c)
{
	(void)app;
	mcp_fail(c, MCP_E_PARAMS, "no such task");
}
void task_update(void *app, struct mcp_call *c)
{
	task_get(app, c);
}
void task_cancel(void *app, struct mcp_call *c)
{
	task_get(app, c);
}
void task_ended(struct mcp_call *c, bool failed, const char *json, size_t len)
{
	(void)c;
	(void)failed;
	(void)json;
	(void)len;
}
void task_waits(struct mcp_call *c)
{
	(void)c;
}
bool mcp_become_task(struct mcp_call *c, const char *message)
{
	(void)c;
	(void)message;
	return false;
}
