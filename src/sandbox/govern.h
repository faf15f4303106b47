/* govern.h - the messages between the supervisor and a governor, which may end, stop and meter a
 * run from outside. The messages go over a pair of SOCK_SEQPACKET sockets. run_request.govern_fd is
 * the supervisor's end of the pair; -1: there is no governor. The sandbox's code does not depend on
 * sessions.
 *
 * The supervisor reports what the run does; the governor sends commands. If the governor's end
 * closes, the run is killed: no run continues ungoverned. */
#ifndef SANDBOX_GOVERN_H
#define SANDBOX_GOVERN_H

#include <stdint.h>

#include "trace/classes.h"
#include "trace/event.h"

enum govern_kind {
	/* Messages to the governor: */
	/* The sandbox exists and the skill starts next. Sent a second time if the sandbox has to be
	 * built again without namespaces. */
	GOVERN_PLACED,
	GOVERN_USED,       /* every GOVERN_TICK_MS if anything has changed */
	GOVERN_CONNECTION, /* a connection was opened */
	GOVERN_VIOLATIONS, /* sent at the end of each turn of the loop in which a violation was
	                      recorded */
	GOVERN_STANDS,     /* paused: every process has stopped */
	GOVERN_GOES,       /* resumed */
	GOVERN_ENDED,      /* the last message: every process has ended and the trace is closed */
	/* Messages to the supervisor: */
	GOVERN_KILL,
	GOVERN_PAUSE,
	GOVERN_RESUME,
};

#define GOVERN_TICK_MS 100

struct govern_msg {
	uint32_t kind;
	union {
		struct {
			char run_id[40];
			int32_t init; /* the pid of init on the host */
			uint64_t init_start;
		} placed;
		struct { /* totals since the start */
			uint64_t cpu_ms;
			uint64_t wall_ms; /* without pauses */
			uint64_t bytes_out;
			uint64_t bytes_in;
		} used;
		struct {
			char name[256]; /* the declared name of the destination; if the rule has no
			                   name, its address */
		} connection;
		struct { /* counts since the last GOVERN_VIOLATIONS */
			uint64_t total;
			uint64_t kinds[EV_COUNT];
			uint64_t classes[CLASS_COUNT];
		} violations;
		struct {
			int32_t exit_status;
			int32_t end; /* enum ssb_end; -1: the run failed */
			/* 1 for a class that the run has only because it is derived from other
			 * classes; else 0 */
			uint64_t derived[CLASS_COUNT];
		} ended;
		struct {
			uint64_t grace_ms; /* time between SIGTERM, which also closes the network,
			                      and SIGKILL; 0: SIGKILL at once */
			char reason[256];
		} kill;
	};
};

#endif
