/* hang_up.h - ends the connection of a call that is not finished, as a server may do at any time.
 * The product never does that, so the tests do it with private headers of the library. */
#ifndef TESTS_MCP_HANG_UP_H
#define TESTS_MCP_HANG_UP_H

#include "mcp/mcp.h"

/* Ends the stream of a legacy HTTP client that can resume it (revision 2025-11-25). Does
 * nothing for other clients. */
void hang_up(struct mcp_call *c);

#endif
