/* fixture.h - a server that only the tests use. It has what the protocol's conformance suite
 * expects of a server, and uses only our protocol library. The suite defines the names and texts of
 * its tools, prompts and resources. */
#ifndef TESTS_MCP_FIXTURE_H
#define TESTS_MCP_FIXTURE_H

#include "mcp/tools.h"
#include "mcp/transport.h"

struct fixture {
	struct loop *loop;
	struct mcp_server *mcp;
};

#define TASKS_EXTENSION "io.modelcontextprotocol/tasks"

/* An image with one pixel, and a sound with one sample. */
#define PNG                                                                                        \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSu" \
	"QmCC"                                                                                     \
	"pLvAAAAAElFTkSuQmCC"
#define WAV "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA=="

extern const struct mcp_tools FIXTURE_TOOLS; /* fixture_tools.c */

mcp_handler fixture_resources, fixture_templates, fixture_read;    /* fixture_data.c */
mcp_handler fixture_prompts, fixture_prompt, fixture_complete;     /* fixture_prompts.c */
mcp_handler tool_logging, tool_logging_once, tool_progress;        /* fixture_later.c */
mcp_handler tool_slow, tool_failing, tool_breaking, tool_streamed; /* the same */
mcp_handler tool_reconnection;                                     /* the same */
mcp_handler tool_asks;                                             /* fixture_ask.c */
mcp_handler tool_elicits, tool_samples, tool_rounds;               /* the same */
mcp_handler tool_asks_in_task, tool_asks_then_task;                /* the same */

/* ---- tools that take time (fixture_later.c) ------------------------------------ */

/* A step of a tool: step 0 runs at once, each other `ms` after the one before. Returns false after
 * it has answered the call. */
typedef bool later_step(struct mcp_call *c, unsigned step, const char *text);
/* Starts the steps. Copies `text`, which may be NULL. A call that is canceled is answered at
 * once. */
void later_start(struct fixture *f, struct mcp_call *c, uint64_t ms, later_step *fn,
                 const char *text);
later_step later_text; /* answers with `text` in step 1 */

/* ---- asking (fixture_ask.c) --------------------------------------------------- */

struct question {
	const char *key;
	enum mcp_ability needs;
	const char *params;
};

/* Asks the client the questions that are not answered yet. Returns true if all are answered. False:
 * the call has been answered, or waits with `state`, and the handler must return. A question that
 * the client cannot be asked is skipped if `optional`; otherwise it is an error. */
bool fixture_ask(struct mcp_call *c, const struct question *q, size_t n, const char *state,
                 bool optional);
/* Returns a member of the answer's content as a string, or its action if `member` is NULL. */
const char *fixture_answer(const struct mcp_call *c, const char *key, const char *member);

#endif
