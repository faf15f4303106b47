/* serve.h - `skillsandbox serve`: our tools over MCP, for the owner who started it.
 *
 * The owner's flags, policy file and session decide; whoever speaks to the server
 * can ask for less, never for more. Files: skills (what is served), plans (what a
 * skill may do), job (one run under way), approve (what the owner is asked),
 * bind (which session a run is part of), errand (what the loop must not wait for),
 * tool_*.c, resources, prompts, skill_list. */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "mcp/mcp.h"
#include "mcp/tools.h"
#include "policy/options.h"
#include "policy/owner.h"

struct skills;
struct plans;
struct jobs;
struct approvals;
struct binding;
struct records;
struct errands;

struct serve_options {
	char *const *skills; /* directories, as the owner named them */
	size_t n_skills;
	const struct ssb_options *owner; /* the owner's flags: part of every plan */
	const char *session;             /* every run is part of it; NULL: none */
	const char *session_policy; /* each client gets a session of its own by this file; NULL */
	const char *http;           /* ADDRESS:PORT; NULL: none */
	const char *socket;         /* path; NULL: none */
	char *token;                /* of HTTP; never NULL with it; wiped once it is known */
	size_t max_runs;            /* under way at once, of all clients; 0: by the processors */
	bool otel;                  /* export the record of each run */
	bool all_runs;              /* clients are told of every run of the owner */
	/* Clients can come now, here: an address or a path. Not for stdio. */
	void (*listening)(const char *where);
};

/* The server's state; one in a process. */
struct serve {
	struct owner owner;
	const struct serve_options *opt;
	struct loop *loop;
	struct mcp_server *mcp;
	struct skills *skills;
	struct plans *plans;
	struct jobs *jobs;
	struct approvals *approvals;
	struct binding *binding;
	struct records *records;
	struct errands *errands;
};

/* Serves until its client is gone (stdio) or it is told to end (SIGTERM, SIGINT):
 * then every run is canceled and waited for. */
int serve_main(const struct serve_options *o, struct ssb_error *err);

/* Handlers of methods and tools; `app` is the struct serve. */
extern const struct mcp_method SERVE_METHODS[];
extern const size_t N_SERVE_METHODS;

mcp_handler tool_run_skill, tool_list_skills, tool_validate_skill,
        tool_inspect_skill;                             /* tool_run.c, tool_skills.c */
mcp_handler tool_why_denied, tool_get_trace;            /* tool_record.c */
mcp_handler tool_session_status, tool_report_violation; /* tool_session.c */
mcp_handler serve_resources_list, serve_resources_templates, serve_resources_read; /* resources.c */
mcp_handler serve_prompts_list, serve_prompts_get;                                 /* prompts.c */
mcp_handler serve_complete;                                                        /* complete.c */
mcp_handler serve_skills_list, serve_skills_get,
        serve_directory_read; /* skill_list.c: the skills extension */

#endif
