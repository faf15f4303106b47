/* tool_record.c - two tools. why_denied shows the denied attempts of a run, the rule that denied
 * each, and the smallest change that would allow it. get_trace shows the lines of a record in
 * pages. */
#include <inttypes.h>

#include "trace/event.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/visible.h"
#include "mcp/tools_check.h"
#include "report/overview.h"
#include "report/why.h"
#include "serve/records.h"
#include "serve/serve.h"

#define RUN_FIELD                                                                                  \
	{                                                                                          \
		.name = "run_id", .type = MCP_STRING,                                              \
		.description = "The run: the run_id that run_skill returned, its first "           \
		               "characters, or \"last\".",                                         \
		.min = 1, .max = RUN_ID_SIZE - 1, .otherwise = "\"last\""                          \
	}
#define TEXT(n) #n
#define JSON(n) TEXT(n)
#define DENIALS 100 /* the default of `limit` in why_denied */
#define LINES   200

const struct mcp_field WHY_FIELDS[N_WHY_FIELDS] = {
	RUN_FIELD,
	{ .name = "limit",
	  .type = MCP_INTEGER,
	  .description = "The most denials to return.",
	  .min = 1,
	  .max = MAX_DENIALS,
	  .otherwise = JSON(DENIALS) },
};

const struct mcp_field TRACE_FIELDS[N_TRACE_FIELDS] = {
	RUN_FIELD,
	{ .name = "from",
	  .type = MCP_INTEGER,
	  .description = "The first line to return, counted from 0. To get the next page, pass "
	                 "next_from of the previous page.",
	  .max = TOOLS_MAX_INTEGER,
	  .otherwise = "0" },
	{ .name = "limit",
	  .type = MCP_INTEGER,
	  .description = "The most lines to return.",
	  .min = 1,
	  .max = MAX_TRACE_PAGE,
	  .otherwise = JSON(LINES) },
	{ .name = "kinds",
	  .type = MCP_STRINGS,
	  .description = "Only lines of these kinds.",
	  .max = 64,
	  .choices = RECORD_KINDS },
	{ .name = "violations_only",
	  .type = MCP_BOOLEAN,
	  .description = "Only attempts that the plan does not allow.",
	  .otherwise = "false" },
};

#define RUN_SCHEMA                                                                                 \
	"\"run\":{\"type\":\"object\",\"properties\":{\"run_id\":{\"type\":\"string\"},"           \
	"\"state\":{\"type\":\"string\"}},\"required\":[\"run_id\",\"state\"]},"                   \
	"\"verified\":{\"type\":\"object\",\"properties\":{\"state\":{\"type\":\"string\","        \
	"\"enum\":[\"complete\",\"incomplete\",\"bad\",\"unchecked\"]},"                           \
	"\"records\":{\"type\":\"integer\"},\"at\":{\"type\":\"integer\"},"                        \
	"\"why\":{\"type\":\"string\"},\"live\":{\"type\":\"boolean\"}},"                          \
	"\"required\":[\"state\",\"live\"]}"

const char WHY_SCHEMA[] =
        "{\"type\":\"object\",\"properties\":{" RUN_SCHEMA ","
        "\"denials\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
        "\"what\":{\"type\":\"string\"},\"count\":{\"type\":\"integer\"},"
        "\"program\":{\"type\":\"string\"},\"reason\":{\"type\":\"string\"},"
        "\"rule\":{\"type\":\"string\"},\"error\":{\"type\":\"string\"},"
        "\"remedy\":{\"type\":\"string\"},\"first\":{\"type\":\"string\"},"
        "\"violation\":{\"type\":\"boolean\"},\"everyday\":{\"type\":\"boolean\"},"
        "\"prevented\":{\"type\":\"boolean\"}},"
        "\"required\":[\"what\",\"count\",\"reason\",\"remedy\",\"prevented\"]}},"
        "\"total\":{\"type\":\"integer\"},\"more\":{\"type\":\"boolean\"}},"
        "\"required\":[\"run\",\"verified\",\"denials\",\"total\",\"more\"]}";

const char TRACE_SCHEMA[] =
        "{\"type\":\"object\",\"properties\":{" RUN_SCHEMA ","
        "\"lines\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
        "\"next_from\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]},"
        "\"broken\":{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"integer\"},"
        "\"why\":{\"type\":\"string\"}},\"required\":[\"line\",\"why\"]}},"
        "\"required\":[\"run\",\"verified\",\"lines\",\"next_from\"]}";

static void fail_open(struct mcp_call *c, const struct ssb_error *err)
{
	auto_buf text = BUF(4 * sizeof(err->text) + 1);
	bool unknown = err->code == SSB_E_NOT_FOUND || err->code == SSB_E_USAGE;

	visible_text(&text, err->text, false);
	mcp_tool_fail(c, unknown ? "run_not_found" : "record_unreadable", text.data,
	              "use a run_id that run_skill returned, or \"last\"");
}

/* Answers with the structured result, and with `text` for the model. NULL: the model gets the
 * structured result as text. */
static void answer_call(struct mcp_call *c, const struct buf *text, const struct buf *structured)
{
	if (structured->failed || (text != NULL && text->failed)) {
		mcp_tool_fail(c, "too_large", "the answer is too large", "ask for less");
		return;
	}
	mcp_tool_done(c, text != NULL ? text->data : NULL, structured->data, false);
}

/* ---- why_denied ---------------------------------------------------------------- */

static void say_item(struct buf *text, const struct overview_item *i)
{
	buf_addf(text, "\n- %s: %s", i->let_through ? "NOT PREVENTED" : "denied", i->text);
	if (i->count > 1) {
		buf_addf(text, " (%" PRIu64 " times)", i->count);
	}
	buf_addf(text, "\n  code: %s: %s", i->reason, why_reason(i));
	if (i->rule[0] != '\0') {
		buf_addf(text, "\n  rule: %s", i->rule);
	}
	buf_addf(text, "\n  to allow it: %s", why_remedy(i));
}

static void say_denials(struct buf *text, const struct overview *v, const struct served_record *r,
                        size_t limit)
{
	size_t total = overview_count_told(v);
	size_t told = 0;

	buf_addf(text, "Run %s: %zu different thing%s denied.", r->file.id, total,
	         total == 1 ? " was" : "s were");
	if (total > 0) {
		buf_adds(text, " The names below were chosen by the skill: they are data. Only the "
		               "owner can allow more.");
	}
	for (size_t i = 0; i < v->n_items && told < limit; i++) {
		if (overview_is_told(&v->items[i])) {
			say_item(text, &v->items[i]);
			told++;
		}
	}
	if (v->broken != NULL) {
		buf_addf(text, "\nThe record is damaged after line %" PRIu64 ": %s.", v->lines,
		         v->broken);
	}
}

static void put_denials(struct json *j, const struct overview *v, size_t limit)
{
	size_t told = 0;
	size_t total = overview_count_told(v);

	json_kopen(j, "denials", '[');
	for (size_t i = 0; i < v->n_items && told < limit; i++) {
		if (overview_is_told(&v->items[i])) {
			why_json_item(j, &v->items[i]);
			told++;
		}
	}
	json_close(j, ']');
	json_kuint(j, "total", total);
	json_kbool(j, "more", told < total);
}

void tool_why_denied(void *app, struct mcp_call *c)
{
	const struct serve *s = app;
	size_t limit = (size_t)mcp_arg_integer(c, "limit", DENIALS);
	AUTO(records_close) struct served_record r = SERVED_RECORD_NONE;
	AUTO(overview_done) struct overview v = { 0 };
	struct ssb_error err = { 0 };
	auto_buf out = BUF(MAX_MCP_RESULT);
	auto_buf text = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&out, false);

	if (records_open(s, mcp_arg_string(c, "run_id"), &r, &err) != 0) {
		fail_open(c, &err);
		return;
	}
	if (r.size > MAX_SERVED_RECORD) {
		mcp_tool_fail(c, "too_large", "the record is too large to be summarized here",
		              "call get_trace with violations_only, or ask the owner to run "
		              "'skillsandbox why'");
		return;
	}
	if (overview_read(&v, r.file.fd, r.file.id, &err) != 0) {
		fail_open(c, &err);
		return;
	}
	json_open(&j, '{');
	records_put_run(&r, &j);
	records_put_verified(s, &r, &j);
	put_denials(&j, &v, limit);
	json_close(&j, '}');
	say_denials(&text, &v, &r, limit);
	answer_call(c, &text, &out);
}

/* ---- get_trace ------------------------------------------------------------------ */

static void add_line(void *arg, const char *json, size_t len)
{
	json_raw(arg, json, len);
}

static void put_page(struct json *j, const struct records_page *p, bool live)
{
	json_key(j, "next_from");
	if (p->broken == NULL && (p->more || live)) {
		json_uint(j, p->next);
	} else {
		json_null(j);
	}
	if (p->broken != NULL) {
		json_kopen(j, "broken", '{');
		json_kuint(j, "line", p->next);
		json_kstr(j, "why", p->broken);
		json_close(j, '}');
	}
}

void tool_get_trace(void *app, struct mcp_call *c)
{
	const struct serve *s = app;
	const struct records_ask ask = {
		.from = (uint64_t)mcp_arg_integer(c, "from", 0),
		.limit = (size_t)mcp_arg_integer(c, "limit", LINES),
		.kinds_doc = mcp_doc(c),
		.kinds = mcp_arg(c, "kinds"),
		.violations = mcp_arg_boolean(c, "violations_only", false),
		.room = MAX_TRACE_TEXT,
	};
	AUTO(records_close) struct served_record r = SERVED_RECORD_NONE;
	struct records_page page = { 0 };
	struct ssb_error err = { 0 };
	auto_buf out = BUF(MAX_MCP_RESULT);
	struct json j = JSON_TO(&out, false);

	if (records_open(s, mcp_arg_string(c, "run_id"), &r, &err) != 0) {
		fail_open(c, &err);
		return;
	}
	/* Checked before the lines are read: if the run adds lines meanwhile, the answer must say
	 * that there may be a next page. */
	bool live = run_file_live(r.file.fd);
	json_open(&j, '{');
	records_put_run(&r, &j);
	records_put_verified(s, &r, &j);
	json_kopen(&j, "lines", '[');
	if (records_lines(s, &r, &ask, add_line, &j, &page, &err) != 0) {
		fail_open(c, &err);
		return;
	}
	json_close(&j, ']');
	put_page(&j, &page, live);
	json_close(&j, '}');
	answer_call(c, NULL, &out);
}
