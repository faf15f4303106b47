/* task.c - makes tasks of calls, keeps their answers, and answers requests about them. */
#include "mcp/task.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

#include "base/stamp.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "mcp/mcp_priv.h"
#include "mcp/subs.h"
#include "os/clock.h"

#define ID_BYTES 16

enum task_end { TASK_OPEN, TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED };

struct task {
	struct task *next; /* the next older task */
	char id[2 * ID_BYTES + 1];
	char *principal;
	struct mcp_call *call; /* NULL: answered, or canceled by the client */
	enum task_end end;
	char *answer; /* object of the result or error; NULL: none yet */
	size_t answer_len;
	char *message;
	int64_t created_us; /* wall clock */
	int64_t updated_us;
	uint64_t began_ms; /* monotonic clock */
	uint64_t ended_ms;
	uint64_t told_ms; /* time of the last progress notification */
};

struct task_store {
	struct task *newest;
	size_t n;
	size_t bytes; /* bytes of the answers of all tasks */
	uint64_t keep_ms;
};

struct task_store *task_store_new(uint64_t keep_ms)
{
	struct task_store *t = calloc(1, sizeof(*t));

	if (t != NULL) {
		t->keep_ms = keep_ms;
	}
	return t;
}

static void free_task(struct task *t)
{
	if (t != NULL) {
		free(t->principal);
		free(t->answer);
		free(t->message);
		free(t);
	}
}

static void free_taskp(struct task **t)
{
	free_task(*t);
}

void task_store_free(struct task_store *t)
{
	if (t == NULL) {
		return;
	}
	while (t->newest != NULL) {
		struct task *next = t->newest->next;
		free_task(t->newest);
		t->newest = next;
	}
	free(t);
}

static void drop_task(struct task_store *all, struct task **at)
{
	struct task *t = *at;

	*at = t->next;
	all->n--;
	all->bytes -= t->answer_len;
	free_task(t);
}

/* Removes the ended tasks that were kept long enough. */
static void expire_tasks(struct task_store *all)
{
	uint64_t now = clock_ms();

	for (struct task **at = &all->newest; *at != NULL;) {
		if ((*at)->call == NULL && now - (*at)->ended_ms > all->keep_ms) {
			drop_task(all, at);
		} else {
			at = &(*at)->next;
		}
	}
}

/* What one client stores. */
struct share {
	const char *principal;
	size_t has;           /* bytes of its answers, or number of its tasks */
	struct task **oldest; /* the client's oldest ended task */
};

static struct share *share_of(struct share v[MAX_MCP_TASKS], size_t *n, const char *principal)
{
	for (size_t i = 0; i < *n; i++) {
		if (strcmp(v[i].principal, principal) == 0) {
			return &v[i];
		}
	}
	v[*n] = (struct share){ .principal = principal };
	return &v[(*n)++];
}

/* Makes room: drops the oldest ended task of the client that stores the most, so that one client
 * cannot remove the answers of another. Returns -1 if all tasks are running. */
static int drop_oldest_task(struct task_store *all, bool bytes)
{
	struct share v[MAX_MCP_TASKS];
	const struct share *most = NULL;
	size_t n = 0;

	assert(all->n <= MAX_MCP_TASKS);
	for (struct task **at = &all->newest; *at != NULL; at = &(*at)->next) {
		if ((*at)->call == NULL) {
			struct share *s = share_of(v, &n, (*at)->principal);
			s->has += bytes ? (*at)->answer_len : 1;
			s->oldest = at;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (most == NULL || v[i].has > most->has ||
		    (v[i].has == most->has &&
		     (*v[i].oldest)->began_ms < (*most->oldest)->began_ms)) {
			most = &v[i];
		}
	}
	if (most == NULL) {
		return -1;
	}
	drop_task(all, most->oldest);
	return 0;
}

/* Finds a task of the same client. Other clients must not learn that the task exists. */
static struct task *find_task(const struct mcp_call *c, const char *id)
{
	struct task_store *all = c->server->tasks;

	expire_tasks(all);
	for (struct task *t = all->newest; t != NULL; t = t->next) {
		if (strcmp(t->id, id) == 0 && strcmp(t->principal, mcp_principal(c)) == 0) {
			return t;
		}
	}
	return NULL;
}

bool task_known(const struct mcp_call *c, const char *task_id)
{
	return find_task(c, task_id) != NULL;
}

/* ---- a task as JSON --------------------------------------------------------------- */

static void write_time(struct json *j, const char *key, int64_t us)
{
	struct stamp stamp = STAMP_NONE;

	json_kstr(j, key, stamp_text_us(&stamp, us));
}

static const char *status_text(const struct task *t)
{
	static const char *const TEXTS[] = {
		[TASK_OPEN] = "working",
		[TASK_COMPLETED] = "completed",
		[TASK_FAILED] = "failed",
		[TASK_CANCELLED] = "cancelled",
	};

	return t->call != NULL && t->call->phase == CALL_WAITING ? "input_required" : TEXTS[t->end];
}

/* Writes the members of a Task or, if `detailed`, of a DetailedTask, which also has the result,
 * error or questions. */
static void write_task(const struct task *t, uint64_t keep_ms, bool detailed, struct json *j)
{
	json_kstr(j, "taskId", t->id);
	json_kstr(j, "status", status_text(t));
	if (t->message != NULL) {
		json_kstr(j, "statusMessage", t->message);
	}
	write_time(j, "createdAt", t->created_us);
	write_time(j, "lastUpdatedAt", t->updated_us);
	json_key(j, "ttlMs");
	if (t->call == NULL) {
		json_uint(j, t->ended_ms - t->began_ms + keep_ms);
	} else {
		json_null(j); /* a running task has no time limit */
	}
	json_kuint(j, "pollIntervalMs", TASK_POLL_MS);
	if (!detailed) {
		return;
	}
	if (t->answer != NULL) {
		json_key(j, t->end == TASK_FAILED ? "error" : "result");
		json_raw(j, t->answer, strlen(t->answer));
	} else if (t->call != NULL && t->call->phase == CALL_WAITING) {
		json_key(j, "inputRequests");
		mcp_call_write_questions(t->call, j);
	}
}

/* Notifies the subscribers of the task. The task may be freed before this returns. */
static void send_task_news(struct mcp_server *s, struct task *t)
{
	char id[sizeof(t->id)];
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	memcpy(id, t->id, sizeof(id));
	t->updated_us = clock_wall_us();
	json_open(&j, '{');
	write_task(t, s->tasks->keep_ms, true, &j);
	json_close(&j, '}');
	if (!text.failed) {
		subs_task(s->subs, id, text.data);
	}
}

static void set_task_message(struct task *t, const char *message)
{
	char *copy = message != NULL ? mcp_text_cut(message, MAX_MCP_TASK_TEXT) : NULL;

	if (copy != NULL) {
		free(t->message);
		t->message = copy;
	}
}

/* ---- the call ---------------------------------------------------------------------- */

static struct task *make_task(struct mcp_call *c, const char *message)
{
	struct task_store *all = c->server->tasks;
	uint8_t id[ID_BYTES];
	AUTO(free_taskp) struct task *t = calloc(1, sizeof(*t));

	expire_tasks(all);
	if ((all->n >= MAX_MCP_TASKS && drop_oldest_task(all, false) < 0) || t == NULL ||
	    getrandom(id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
		return NULL;
	}
	hex_encode(id, sizeof(id), t->id);
	t->principal = strdup(mcp_principal(c));
	if (t->principal == NULL) {
		return NULL;
	}
	set_task_message(t, message);
	t->call = c;
	t->created_us = t->updated_us = clock_wall_us();
	t->began_ms = clock_ms();
	t->next = all->newest;
	all->newest = t;
	all->n++;
	return steal_ptr(&t);
}

bool mcp_become_task(struct mcp_call *c, const char *message)
{
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&text, false);

	if (c->task != NULL) {
		task_progress(c, message);
		return true;
	}
	if (c->era != MCP_ERA_MODERN || (c->server->app->features & MCP_TASKS) == 0 ||
	    c->out == NULL || strcmp(c->m.method, "tools/call") != 0 ||
	    !mcp_has_extension(c, EXTENSION_TASKS)) {
		return false;
	}
	c->task = make_task(c, message);
	if (c->task == NULL) {
		return false;
	}
	json_open(&j, '{');
	mcp_call_write_result_head(c, &j, "task", false);
	write_task(c->task, c->server->tasks->keep_ms, false, &j);
	json_close(&j, '}');
	mcp_call_detach(c, text.failed ? "{}" : text.data);
	return true;
}

/* Sets the message of the task's status to the message of the error. */
static void set_error_message(struct task *t)
{
	struct json_doc doc AUTO(json_doc_done) = { 0 };
	const char *why = NULL;

	if (json_read(&doc, t->answer, strlen(t->answer), &why) == 0) {
		set_task_message(t,
		                 json_string(json_member(&doc, json_top(&doc), "message"), NULL));
	}
}

/* Separates the task from its call, and ends it. */
static void close_task(struct mcp_server *s, struct task *t, enum task_end end)
{
	assert(t->call != NULL && t->end == TASK_OPEN && end != TASK_OPEN);
	t->call->task = NULL;
	t->call = NULL;
	t->end = end;
	t->ended_ms = clock_ms();
	if (end != TASK_FAILED) {
		/* The message was about work that has ended. The message of an error stays. */
		free(t->message);
		t->message = NULL;
	}
	send_task_news(s, t);
}

void task_ended(struct mcp_call *c, bool failed, const char *json, size_t len)
{
	static const char lost[] = "{\"code\":-32603,\"message\":\"out of memory\"}";
	struct task_store *all = c->server->tasks;
	struct task *t = c->task;

	if (t == NULL) {
		return; /* the client has canceled the task */
	}
	if (c->canceled) {
		close_task(c->server, t, TASK_CANCELLED);
		return;
	}
	while (all->bytes + len > MAX_MCP_TASK_BYTES && drop_oldest_task(all, true) == 0) {
	}
	t->answer = json != NULL ? strndup(json, len) : NULL;
	if (t->answer == NULL) {
		failed = true;
		t->answer = strdup(lost);
	}
	t->answer_len = t->answer != NULL ? strlen(t->answer) : 0;
	all->bytes += t->answer_len;
	if (failed && t->answer != NULL) {
		set_error_message(t);
	}
	close_task(c->server, t, failed ? TASK_FAILED : TASK_COMPLETED);
}

void task_waits(struct mcp_call *c)
{
	if (c->task != NULL) {
		send_task_news(c->server, c->task);
	}
}

void task_progress(struct mcp_call *c, const char *message)
{
	struct task *t = c->task;
	uint64_t now = clock_ms();

	if (t == NULL || message == NULL) {
		return;
	}
	set_task_message(t, message);
	t->updated_us = clock_wall_us();
	/* A notification contains the whole task, so notifications are sent no more often than a
	 * client would poll. */
	if (now - t->told_ms >= TASK_POLL_MS) {
		t->told_ms = now;
		send_task_news(c->server, t);
	}
}

/* ---- methods ----------------------------------------------------------------------- */

bool task_allowed(struct mcp_call *c)
{
	if (mcp_has_extension(c, EXTENSION_TASKS)) {
		return true;
	}
	mcp_fail_data(c, MCP_E_CAPABILITY,
	              "{\"requiredCapabilities\":{\"extensions\":{\"" EXTENSION_TASKS "\":{}}}}",
	              "the client has not declared the extension " EXTENSION_TASKS);
	return false;
}

/* Finds the task that params.taskId names. NULL: not found, and the call has been answered. */
static struct task *named_task(struct mcp_call *c)
{
	const char *id = json_string(mcp_param(c, "taskId"), NULL);

	if (!task_allowed(c)) {
		return NULL;
	}
	if (id == NULL) {
		mcp_fail(c, MCP_E_PARAMS, "%s needs params.taskId, a string", c->m.method);
		return NULL;
	}
	struct task *t = find_task(c, id);
	if (t == NULL) {
		mcp_fail(c, MCP_E_PARAMS,
		         "task not found: it never existed, belongs to another "
		         "client, or has expired");
	}
	return t;
}

void task_get(void *app, struct mcp_call *c)
{
	(void)app;
	struct task *t = named_task(c);

	if (t != NULL) {
		write_task(t, c->server->tasks->keep_ms, true, mcp_result(c));
		mcp_done(c);
	}
}

void task_cancel(void *app, struct mcp_call *c)
{
	(void)app;
	struct task *t = named_task(c);

	if (t == NULL) {
		return;
	}
	struct mcp_call *call = t->call;
	if (call == NULL) {
		mcp_done(c);
		return;
	}
	mcp_call_hold(call);
	close_task(c->server, t, TASK_CANCELLED);
	mcp_done(c);
	mcp_call_cancel(call);
	mcp_call_release(call);
}

/* Takes the answers to open questions, and ignores all others. Returns -1 if there is no memory. */
static int take_answers(struct mcp_call *call, const struct json_doc *doc,
                        const struct json_node *answers)
{
	for (size_t i = 0; i < call->n_asks; i++) {
		struct ask *a = &call->asks[i];
		const struct json_node *node = json_member(doc, answers, a->key);
		if (!json_is(node, JSON_OBJECT) || a->answered) {
			continue;
		}
		if (mcp_call_keep_answer(call, a->key, doc, node) < 0) {
			return -1;
		}
		a->answered = true;
	}
	return 0;
}

void task_update(void *app, struct mcp_call *c)
{
	(void)app;
	struct task *t = named_task(c);
	const struct json_node *answers = mcp_param(c, "inputResponses");

	if (t == NULL) {
		return;
	}
	if (!json_is(answers, JSON_OBJECT)) {
		mcp_fail(c, MCP_E_PARAMS, "tasks/update needs params.inputResponses, an object");
		return;
	}
	struct mcp_call *call = t->call;
	if (call == NULL || call->phase != CALL_WAITING) {
		mcp_done(c); /* there is no open question */
		return;
	}
	if (take_answers(call, mcp_doc(c), answers) < 0) {
		mcp_fail(c, MCP_E_INTERNAL, "there are too many answers, or not enough memory");
		return;
	}
	t->updated_us = clock_wall_us();
	mcp_call_hold(call);
	mcp_done(c);
	if (call->phase == CALL_WAITING && !call->canceled && mcp_call_all_answered(call)) {
		mcp_call_resume(call);
	}
	mcp_call_release(call);
}
