/* tool_run.c - run_skill: from a call to a run, and from its end to an answer.
 *
 *   find          the skill, by skills.h                        begin_call()
 *     │
 *   look, plan,   the consent decision, by approve.h: it can    decide_call()
 *   ask, keep     wait for errands, and for the client
 *     │
 *   start         the run, by job.h                             start_run()
 *     │
 *   answer        its output as progress, its end as a result   on_ended()
 *
 * If the client is asked, this call ends. The client's answer calls the handler again from the
 * start. Nothing has been run by then. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/approve.h"
#include "serve/bind.h"
#include "serve/errand.h"
#include "serve/job.h"
#include "serve/records.h"
#include "serve/run_news.h"
#include "serve/run_say.h"

/* The time after which a call becomes a task, if the client supports tasks. */
#define TASK_MS 5000

struct run_call {
	struct serve *serve;
	struct mcp_call *call;
	char **args; /* the array is owned; the call owns the strings */
	struct approve_case consent;
	struct string_list withheld;
	struct serve_job *job;
	struct run_news *news;
	struct loop_timer *task;
	struct job_end end; /* used while the record is read; its output is owned */
};

static void run_call_free(struct run_call *r)
{
	if (r != NULL) {
		loop_untimer(&r->task);
		run_news_free(r->news);
		free((char *)(uintptr_t)r->end.out[0]);
		free((char *)(uintptr_t)r->end.out[1]);
		free(r->args);
		approve_done(&r->consent);
		string_list_done(&r->withheld);
		free(r);
	}
}

OWN_FREEP(run_call_freep, struct run_call, run_call_free)

/* ---- while it runs ------------------------------------------------------------- */

static void on_output(void *arg, int stream, const char *data, size_t len)
{
	struct run_call *r = arg;

	run_news_output(r->news, stream, data, len);
}

static void on_started(void *arg, const char *run_id)
{
	struct run_call *r = arg;

	records_started(r->serve->records, run_id);
}

static void on_line(void *arg, const struct line *l)
{
	struct run_call *r = arg;

	run_news_line(r->news, l);
}

static void on_cancel(void *arg)
{
	struct run_call *r = arg;

	job_cancel(r->job);
}

static void on_task(void *arg)
{
	struct run_call *r = arg;

	(void)mcp_become_task(r->call, "the skill is running");
}

/* ---- its end -------------------------------------------------------------------------- */

/* Runs in an errand, because it reads the denials from the record. The skill decides how large the
 * record is. */
static void say_denied(void *arg, struct mcp_call *c)
{
	const struct run_call *r = arg;

	run_say_result(r->serve, c, r->consent.skill.name, &r->withheld, &r->end, NULL);
}

static void say_without(void *arg, struct mcp_call *c, const struct errand_end *end)
{
	const struct run_call *r = arg;

	run_say_result(r->serve, c, r->consent.skill.name, &r->withheld, &r->end, end->why);
}

static void free_call(void *arg)
{
	run_call_free(arg);
}

/* Takes `r`. Copies the output, because *end is not valid any more when the record has been
 * read. */
static void answer_by_record(struct run_call *r, const struct job_end *end)
{
	const struct errand_answer w = {
		.answer = say_denied, .failed = say_without, .free = free_call, .arg = r
	};

	r->end = *end;
	for (size_t i = 0; i < ARRAY_LEN(end->out); i++) {
		char *copy = malloc(end->out_len[i] + 1);
		if (copy != NULL && end->out_len[i] > 0) {
			memcpy(copy, end->out[i], end->out_len[i]);
		}
		r->end.out[i] = copy;
		r->end.out_len[i] = copy != NULL ? end->out_len[i] : 0;
	}
	errand_answer(r->serve, r->call, &w);
}

static void on_ended(void *arg, const struct job_end *end)
{
	AUTO(run_call_freep) struct run_call *r = arg;
	struct mcp_call *c = r->call;

	mcp_on_cancel(c, NULL, NULL);
	run_news_free(r->news); /* freed before the call ends, because the news borrows it */
	r->news = NULL;
	loop_untimer(&r->task);
	if (end->ran && run_reads_record(&end->result)) {
		answer_by_record(steal_ptr(&r), end);
	} else if (end->ran) {
		run_say_result(r->serve, c, r->consent.skill.name, &r->withheld, end, NULL);
	} else {
		run_say_error(c, &end->err);
	}
}

/* ---- its start --------------------------------------------------------------------- */

/* Returns the W3C trace context ("00-32 hex-16 hex-2 hex"), or NULL if the client sent anything
 * else. */
static const char *traceparent_of(const struct mcp_call *c)
{
	const char *s = json_string(mcp_meta(c, "traceparent"), NULL);
	static const size_t DASHES[] = { 2, 35, 52 };

	if (s == NULL || strlen(s) != 55 || strspn(s, "0123456789abcdef-") != 55) {
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(DASHES); i++) {
		if (s[DASHES[i]] != '-') {
			return NULL;
		}
	}
	return s;
}

/* Starts the job. If it returns 0, the job uses `r` until it calls on_ended(), which takes
 * `r`. */
static int start_job(struct run_call *r, const struct ssb_plan *plan, struct ssb_error *err)
{
	struct serve *s = r->serve;
	struct mcp_call *c = r->call;
	struct bound bound;

	if (run_withheld(plan, &r->withheld) != 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "run", "out of memory");
	}
	bind_of(s->binding, c, &bound);
	r->news = run_news_new(s->loop, c);
	const struct job_wish wish = { .plan = plan,
		                       .who = mcp_principal(c),
		                       .session = bound.id[0] != '\0' ? bound.id : NULL,
		                       .prepare = bound.own ? bind_ensure : NULL,
		                       .prepare_arg = &bound,
		                       .traceparent = traceparent_of(c),
		                       .keep = MAX_RESULT_OUTPUT };
	const struct job_watch watch = { .output = r->news != NULL ? on_output : NULL,
		                         .started = on_started,
		                         .line = r->news != NULL ? on_line : NULL,
		                         .ended = on_ended,
		                         .arg = r };
	if (job_start(s, &wish, &watch, &r->job, err) != 0) {
		return -1;
	}
	(void)loop_after(s->loop, TASK_MS, on_task, r, &r->task);
	mcp_on_cancel(c, on_cancel, r);
	return 0;
}

static int start_run(struct run_call *r, struct ssb_error *err)
{
	const struct ssb_plan *plan = r->consent.decision.plan;
	struct ssb_error lost = { 0 };

	if (consent_use(&r->serve->owner, plan, err) != 0) {
		return -1;
	}
	if (start_job(r, plan, err) != 0) {
		/* Nothing was run, so the use of the approval does not count. */
		(void)consent_unuse(&r->serve->owner, plan, &lost);
		return -1;
	}
	return 0;
}

/* ---- its arguments ------------------------------------------------------------------ */

/* Reads the arguments for the skill. *ret is new; its strings are borrowed from the call. */
static int read_args(const struct mcp_call *c, char ***ret, struct ssb_error *err)
{
	const struct json_node *list = mcp_arg(c, "args");
	auto_free char **v = calloc((list != NULL ? list->n : 0) + 1, sizeof(*v));
	size_t n = 0;

	if (v == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "args", "out of memory");
	}
	JSON_EACH (i, mcp_doc(c), list) {
		if (strlen(i->str) != i->len) {
			return ssb_fail(err, SSB_E_USAGE, 0, "args",
			                "argument %zu contains a NUL byte, which no program can "
			                "receive in an argument",
			                n + 1);
		}
		v[n++] = (char *)i->str;
	}
	*ret = steal_ptr(&v);
	return 0;
}

static int begin_call(struct run_call *r, struct ssb_error *err)
{
	struct approve_case *k = &r->consent;

	if (approve_begin(k, r->serve, r->call, mcp_arg_string(r->call, "skill_dir"), err) != 0 ||
	    read_args(r->call, &r->args, err) != 0) {
		return -1;
	}
	k->args = r->args;
	k->narrow = run_narrow(r->call);
	return 0;
}

/* ---- the call ------------------------------------------------------------------------ */

static void answer_failure(struct run_call *r, const struct ssb_error *err)
{
	if (!approve_refuse(&r->consent, err)) {
		run_say_error(r->call, err);
	}
}

/* Takes `r`. If the call must wait, `r` is kept until on_step() or on_ended(). */
static void decide_call(struct run_call *r)
{
	AUTO(run_call_freep) struct run_call *mine = r;
	struct ssb_error err = { 0 };
	int rc = approve_decide(&r->consent, &err);

	if (rc == CONSENT_WAITS) {
		if (!r->consent.asked) {
			(void)steal_ptr(&mine); /* until on_step() */
		}
		return;
	}
	if (rc != 0) {
		answer_failure(r, &err);
	} else if (start_run(r, &err) != 0) {
		run_say_error(r->call, &err);
	} else {
		(void)steal_ptr(&mine); /* until on_ended() */
	}
}

static void on_step(void *arg, const struct ssb_error *err)
{
	AUTO(run_call_freep) struct run_call *r = arg;

	if (err != NULL) {
		answer_failure(r, err);
	} else {
		decide_call(steal_ptr(&r));
	}
}

/* Runs in an errand. */
static void answer_dry_run(void *app, struct mcp_call *c)
{
	AUTO(run_call_freep) struct run_call *r = calloc(1, sizeof(*r));
	const struct ssb_plan *plan = NULL;
	struct ssb_error err = { 0 };

	if (r == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	r->serve = app;
	r->call = c;
	if (begin_call(r, &err) != 0 || approve_preview(&r->consent, &plan, &err) != 0) {
		run_say_error(c, &err);
		return;
	}
	run_say_plan(c, r->consent.skill.name, plan);
}

void tool_run_skill(void *app, struct mcp_call *c)
{
	struct ssb_error err = { 0 };

	if (mcp_arg_boolean(c, "dry_run", false)) {
		errand_tool(app, c, answer_dry_run);
		return;
	}
	AUTO(run_call_freep) struct run_call *r = calloc(1, sizeof(*r));
	if (r == NULL) {
		mcp_fail(c, MCP_E_INTERNAL, "out of memory");
		return;
	}
	r->serve = app;
	r->call = c;
	if (begin_call(r, &err) != 0) {
		run_say_error(c, &err);
		return;
	}
	r->consent.resume = on_step;
	r->consent.arg = r;
	switch (approve_look_up(&r->consent, &err)) {
	case 0:
		decide_call(steal_ptr(&r));
		break;
	case CONSENT_WAITS:
		(void)steal_ptr(&r); /* until on_step() */
		break;
	default:
		run_say_error(c, &err);
	}
}
