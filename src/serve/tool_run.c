/* tool_run.c - run_skill: from a call to a run, and from its end to an answer.
 *
 *   skill   by skills.h: what is served, and nothing else
 *   plan    by plans.h: what the owner gives, less what the caller does without
 *   look    by look.h: at all its files, where something was approved or has to be
 *   asked   by approve.h: what is missing, of the owner. The handler may be called anew
 *           from the start; nothing has happened until the run begins.
 *   run     by job.h; its news as progress, its end as the result */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/approve.h"
#include "serve/bind.h"
#include "serve/errand.h"
#include "serve/job.h"
#include "serve/keep.h"
#include "serve/records.h"
#include "serve/run_news.h"
#include "serve/run_say.h"

/* How long a client waits before a call becomes a task, where it knows of them. */
#define TASK_MS 5000

struct run_call {
	struct serve *serve;
	struct mcp_call *call;
	char *name; /* of the skill */
	struct string_list withheld;
	struct job *job;
	struct run_news *news;
	struct loop_timer *task;
	struct job_end end; /* of one whose record has to be looked at; it owns what it kept */
};

static void run_call_free(struct run_call *r)
{
	if (r != NULL) {
		loop_untimer(&r->task);
		run_news_free(r->news);
		free((char *)(uintptr_t)r->end.out[0]);
		free((char *)(uintptr_t)r->end.out[1]);
		free(r->name);
		string_list_done(&r->withheld);
		free(r);
	}
}

static void run_call_freep(struct run_call **r)
{
	run_call_free(*r);
}

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

/* In an errand: what it tried is in its record, which is as large as the skill likes. */
static void say_tried(void *arg, struct mcp_call *c)
{
	const struct run_call *r = arg;

	run_say_result(r->serve, c, r->name, &r->withheld, &r->end, NULL);
}

static void say_without(void *arg, struct mcp_call *c, const struct errand_end *end)
{
	const struct run_call *r = arg;

	run_say_result(r->serve, c, r->name, &r->withheld, &r->end, end->why);
}

static void free_call(void *arg)
{
	run_call_free(arg);
}

/* Takes `r`. What is borrowed of the end is gone when the record has been looked at. */
static void look_at_record(struct run_call *r, const struct job_end *end)
{
	const struct errand_answer w = {
		.answer = say_tried, .failed = say_without, .free = free_call, .arg = r
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
	run_news_free(r->news); /* before the call that it tells of is gone */
	r->news = NULL;
	loop_untimer(&r->task);
	if (end->ran && end->result.violations > 0) {
		look_at_record(steal_ptr(&r), end);
	} else if (end->ran) {
		run_say_result(r->serve, c, r->name, &r->withheld, end, NULL);
	} else {
		run_say_error(c, &end->err);
	}
}

/* ---- its start --------------------------------------------------------------------- */

/* W3C trace context: "00-32 hex-16 hex-2 hex"; anything else is as if it were not there. */
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

static int start(struct serve *s, struct mcp_call *c, const char *name, const struct ssb_plan *plan,
                 struct ssb_error *err)
{
	AUTO(run_call_freep) struct run_call *r = calloc(1, sizeof(*r));
	struct bound bound;

	if (r == NULL || (r->name = strdup(name)) == NULL ||
	    run_withheld(plan, &r->withheld) != 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "run", "out of memory");
	}
	bind_of(s->binding, c, &bound);
	r->serve = s;
	r->call = c;
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
	(void)steal_ptr(&r);
	return 0;
}

/* ---- what was asked ------------------------------------------------------------------ */

/* The strings stay the call's; *ret is new. */
static int take_args(const struct mcp_call *c, char ***ret, struct ssb_error *err)
{
	const struct json_node *list = mcp_arg(c, "args");
	auto_free char **v = calloc((list != NULL ? list->n : 0) + 1, sizeof(*v));
	size_t n = 0;

	if (v == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "args", "out of memory");
	}
	for (const struct json_node *i = json_first(mcp_doc(c), list); i != NULL;
	     i = json_next(mcp_doc(c), i)) {
		if (strlen(i->str) != i->len) {
			return ssb_fail(err, SSB_E_USAGE, 0, "args",
			                "argument %zu has a NUL in it; a program cannot be given "
			                "one",
			                n + 1);
		}
		v[n++] = (char *)i->str;
	}
	*ret = steal_ptr(&v);
	return 0;
}

/* How far the call has come: the handler begins anew after each errand. */
struct been {
	struct look_call before; /* "always" was tried */
	struct looked *looked;   /* NULL: not yet */
};
static keep_then go_on_kept;
static look_then go_on_looked;

/* The plan, with all that it needs. 1: the call is answered, or waits for its client. */
static int agree(struct serve *s, struct mcp_call *c, struct plan_wish *w, const struct been *been,
                 const struct ssb_plan **ret, struct ssb_error *err)
{
	AUTO(approved_for_done)
	struct approved_for given = { .kept = been->before.kept,
		                      .kept_why = been->before.kept_why };
	enum approval a = APPROVAL_GIVEN;

	while (a == APPROVAL_GIVEN) {
		approval_wish(been->looked, &given, w);
		if (plans_get(s->plans, w, ret, NULL, err) != 0) {
			return -1;
		}
		a = approval_ask(s->approvals, c, w->skill, *ret, been->looked, &given);
	}
	if (a == APPROVAL_KEEP) {
		return keep_start(s, c, w->skill, *ret, &given, been->looked, go_on_kept, err) == 0
		               ? 1
		               : -1;
	}
	return a == APPROVAL_NONE ? consent_use(&s->owner, *ret, err) : 1;
}

/* Most skills were never approved, and lack nothing: nobody has to read all their files.
 * Else 1. */
static int plan_plain(struct serve *s, const struct plan_wish *w, const struct ssb_plan **ret,
                      struct ssb_error *err)
{
	const struct ssb_plan *plan = NULL;

	if (lock_there(&s->owner, w->skill->dir)) {
		return 1;
	}
	if (plans_get(s->plans, w, &plan, NULL, err) != 0) {
		return -1;
	}
	if (plan->n_refusals > 0 || plan->consent.refuse) {
		return 1;
	}
	*ret = plan;
	return 0;
}

static int run(struct serve *s, struct mcp_call *c, const struct been *been, struct ssb_error *err)
{
	auto_free char **args = NULL;
	const struct ssb_plan *plan = NULL;
	struct plan_wish w = { .narrow = run_narrow(c) };

	if (skills_find(s->skills, mcp_arg_string(c, "skill_dir"), &w.skill, err) != 0 ||
	    take_args(c, &args, err) != 0) {
		return -1;
	}
	w.args = args;
	int open = been->looked != NULL ? agree(s, c, &w, been, &plan, err)
	                                : plan_plain(s, &w, &plan, err);
	if (open == 0) {
		struct ssb_error lost = { 0 };
		int failed = start(s, c, w.skill->name, plan, err);
		if (failed != 0) {
			(void)consent_unuse(&s->owner, plan, &lost); /* nothing was run */
		}
		return failed;
	}
	if (open > 0 && been->looked == NULL) {
		return look_start(s, c, w.skill, &been->before, go_on_looked, err);
	}
	return open < 0 ? -1 : 0;
}

static void go_on(struct serve *s, struct mcp_call *c, const struct been *been)
{
	struct ssb_error err = { 0 };

	if (run(s, c, been, &err) != 0) {
		run_say_error(c, &err);
	}
}

static void go_on_kept(struct serve *s, struct mcp_call *c, const char *why)
{
	go_on(s, c, &(struct been){ .before = { .kept = true, .kept_why = why } });
}

static void go_on_looked(struct serve *s, struct mcp_call *c, const struct look_call *before,
                         struct looked *looked, const struct ssb_error *err)
{
	if (looked == NULL) {
		run_say_error(c, err);
		return;
	}
	go_on(s, c, &(struct been){ .before = *before, .looked = looked });
}

/* In an errand. */
static void dry_run(void *app, struct mcp_call *c)
{
	AUTO(approved_for_done) struct approved_for given = { 0 };
	struct serve *s = app;
	auto_free char **args = NULL;
	const struct ssb_plan *plan = NULL;
	struct plan_wish w = { .narrow = run_narrow(c) };
	struct ssb_error err = { 0 };

	if (skills_find(s->skills, mcp_arg_string(c, "skill_dir"), &w.skill, &err) != 0 ||
	    take_args(c, &args, &err) != 0) {
		run_say_error(c, &err);
		return;
	}
	w.args = args;
	if (approval_recall(s->approvals, c, &w, &given, &plan, &err) != 0) {
		run_say_error(c, &err);
		return;
	}
	run_say_plan(c, w.skill->name, plan);
}

void tool_run_skill(void *app, struct mcp_call *c)
{
	if (mcp_arg_boolean(c, "dry_run", false)) {
		errand_tool(app, c, dry_run);
		return;
	}
	go_on(app, c, &(struct been){ 0 });
}
