/* serve.h - `skillsandbox serve`: offers tools over MCP for the owner who started it.
 *
 * The owner's flags, policy file and session decide what a run may do. A client can ask for less,
 * never for more.
 *
 *   skills    what is served             job      one run
 *   plans     what a skill may do        errand   work that the loop must not do
 *   approve   what the owner is asked    child    the process under both
 *   bind      which session a run joins  records  records of runs
 *
 * tool_*.c, resource_*.c, prompts.c and skill_list.c handle calls; tables.c lists them. */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include "mcp/mcp.h"
#include "mcp/tools.h"
#include "policy/options.h"
#include "policy/owner.h"

struct skills;
struct plans;
struct job_list;
struct approvals;
struct binding;
struct records;
struct errands;

struct serve_options {
	char *const *skills; /* directories, as the owner named them */
	size_t n_skills;
	const struct ssb_options *owner; /* the owner's flags: part of every plan */
	const char *session;             /* session that every run joins; NULL: none */
	const char *session_policy; /* path; each client then gets its own session; NULL: none */
	const char *http;           /* ADDRESS:PORT; NULL: none */
	const char *socket;         /* path; NULL: none */
	char *token; /* required with `http`; the server wipes this copy after it has read the token
	              */
	size_t max_runs; /* most runs of all clients at one time; 0: depends on the processors */
	bool otel;       /* export the record of each run */
	bool all_runs;   /* clients see every run of the owner */
	/* Called when clients can connect, with an address or a path; not for stdio. */
	void (*listening)(const char *where);
};

/* The state of the server. A process has only one. */
struct serve {
	struct owner owner;
	const struct serve_options *opt;
	struct loop *loop;
	struct mcp_server *mcp;
	struct skills *skills;
	struct plans *plans;
	struct job_list *jobs;
	struct approvals *approvals;
	struct binding *binding;
	struct records *records;
	struct errands *errands;
};

/* Serves until the client disconnects (stdio) or a signal arrives (SIGTERM, SIGINT, SIGHUP). Then
 * cancels every run and waits until all have ended. */
int serve_main(const struct serve_options *o, struct ssb_error *err);

/* tables.c */
extern const struct mcp_method SERVE_METHODS[];
extern const size_t N_SERVE_METHODS;

/* tool_record.c: arguments and results of why_denied and get_trace */
#define N_WHY_FIELDS   2
#define N_TRACE_FIELDS 5
extern const struct mcp_field WHY_FIELDS[N_WHY_FIELDS];
extern const struct mcp_field TRACE_FIELDS[N_TRACE_FIELDS];
extern const char WHY_SCHEMA[];
extern const char TRACE_SCHEMA[];

/* Handlers of tools and methods; `app` is the struct serve. */
mcp_handler tool_run_skill;                                                  /* tool_run.c */
mcp_handler tool_list_skills, tool_validate_skill, tool_inspect_skill;       /* tool_skills.c */
mcp_handler tool_why_denied, tool_get_trace;                                 /* tool_record.c */
mcp_handler tool_session_status, tool_report_violation;                      /* tool_session.c */
mcp_handler serve_resources_list, serve_resources_templates, serve_complete; /* resource_list.c */
mcp_handler serve_resources_read;                                            /* resource_read.c */
mcp_handler serve_prompts_list, serve_prompts_get;                           /* prompts.c */
mcp_handler serve_skills_list, serve_skills_get, serve_directory_read;       /* skill_list.c */

#endif
