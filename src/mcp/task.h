/* task.h - the tasks extension (io.modelcontextprotocol/tasks): calls whose client does
 * not wait for them.
 *
 * A call becomes a task when its handler says so and its client knows of tasks; it goes
 * on as before, and its answer is kept for tasks/get. While it waits for input, the
 * questions are in tasks/get and the answers come by tasks/update.
 *
 * An id is 128 random bits, and good only for the principal whose call it was. One that
 * is under way has no time to live; its answer is kept for TASK_KEEP_MS. */
#ifndef MCP_TASK_H
#define MCP_TASK_H

#include "mcp/mcp.h"

#define TASK_KEEP_MS (15U * 60 * 1000)
#define TASK_POLL_MS 1000

struct mcp_peer;
struct task_store;
struct task;

struct task_store *task_store_new(uint64_t keep_ms); /* NULL: no memory */
void task_store_free(struct task_store *t);          /* after all calls; accepts NULL */

/* Rows of the protocol's methods: MCP_MODERN, all of them. */
mcp_handler task_get, task_update, task_cancel;

/* Of a call with c->task, which is NULL after it: `json` is its result's object, or
 * (failed) the object of its error. */
void task_ended(struct mcp_call *c, bool failed, const char *json, size_t len);
/* It waits for input now, phase CALL_WAITING: instead of {"resultType":"input_required"}.
 * When tasks/update has brought all of it, mcp_call_resume(). */
void task_waits(struct mcp_call *c);

/* Progress becomes the message of its status. */
void task_progress(struct mcp_call *c, const char *message);

/* Whether the client has declared the extension; false: answered. */
bool task_allowed(struct mcp_call *c);
bool task_known(const struct mcp_call *c, const char *task_id); /* to whoever makes `c` */

#endif
