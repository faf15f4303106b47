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

/* One step of a tool. Step 0 runs at once, and each later step `ms` after the one before. Returns
 * false if it has answered the call: then no step follows. */
typedef bool later_step(struct mcp_call *c, unsigned step, const char *text);
/* Runs the steps of `fn`. Copies `text`, which may be NULL. If the call is canceled, it is answered
 * at once. */
void later_start(struct fixture *f, struct mcp_call *c, uint64_t ms, later_step *fn,
                 const char *text);
later_step later_text; /* in step 1 it answers with `text` */

/* ---- asking (fixture_ask.c) --------------------------------------------------- */

struct question {
	const char *key;
	enum mcp_ability needs;
	const char *params;
};

/* Asks the client the questions that are not answered yet. Returns true if all are answered. If it
 * returns false, the handler must return, because the call has been answered, or waits for the
 * client with `state`. If the client does not support a question, the question is skipped if
 * `optional`, and otherwise is an error. */
bool fixture_ask(struct mcp_call *c, const struct question *q, size_t n, const char *state,
                 bool optional);
/* Returns a member of the answer's content as a string, or the answer's action if `member` is
 * NULL. */
const char *fixture_answer(const struct mcp_call *c, const char *key, const char *member);

#endif
