/* task.h - the tasks extension (io.modelcontextprotocol/tasks): calls whose client does not wait
 * for the response.
 *
 * A call becomes a task when its handler asks for that and the client declared the extension. The
 * call continues as before, and its answer is kept for tasks/get. While the call waits for input,
 * tasks/get shows the questions and tasks/update brings the answers.
 *
 * The id of a task is 128 random bits, and is valid only for the principal that made the call. A
 * running task does not expire; its answer is kept for TASK_KEEP_MS. */
#ifndef MCP_TASK_H
#define MCP_TASK_H

#include "mcp/mcp.h"

#define TASK_KEEP_MS (15U * 60 * 1000)
#define TASK_POLL_MS 1000

struct mcp_peer;
struct task_store;
struct task;

struct task_store *task_store_new(uint64_t keep_ms); /* NULL: out of memory */
/* Must be called after all calls have ended; accepts NULL. */
void task_store_free(struct task_store *t);

/* Handlers of the methods tasks/get, tasks/update and tasks/cancel, all MCP_MODERN. */
mcp_handler task_get, task_update, task_cancel;

/* Ends the task of a call; c->task is NULL afterwards. `json` is the object of the result or, if
 * `failed`, the object of the error. */
void task_ended(struct mcp_call *c, bool failed, const char *json, size_t len);
/* Must be called when the call waits for input (CALL_WAITING); {"resultType":"input_required"} is
 * not sent for a task. When tasks/update has brought all answers, the handler is called again
 * (mcp_call_resume). */
void task_waits(struct mcp_call *c);

/* Sets the message of the task's status, and notifies subscribers. */
void task_progress(struct mcp_call *c, const char *message);

/* Returns whether the client declared the extension. If not, the call has been answered with an
 * error. */
bool task_allowed(struct mcp_call *c);
bool task_known(const struct mcp_call *c, const char *task_id); /* the client has this task */

#endif
