/* plan_rows.c - see plan_rows.h. */
#include "report/plan_rows.h"

#include "base/own.h"
#include "manifest/resources.h"
#include "report/render.h"

struct rows {
	const struct line *run;
	plan_row_fn *put;
	void *arg;
	struct buf text; /* the row under construction */
};

const struct json_node *plan_rows_plan(const struct line *run)
{
	const struct json_node *plan = json_member(&run->doc, run->top, "plan");

	return json_is(plan, JSON_OBJECT) ? plan : NULL;
}

static void end_row(struct rows *r, const char *label)
{
	if (r->text.len > 0 && !r->text.failed) {
		r->put(r->arg, label, r->text.data);
	}
	buf_reset(&r->text);
}

static const struct json_node *find_member(const struct rows *r, const struct json_node *of,
                                           const char *name)
{
	return json_member(&r->run->doc, of, name);
}

/* Appends a member, if it is a text or a number, between two texts. */
static bool add_member(struct rows *r, const char *before, const struct json_node *of,
                       const char *name, const char *after)
{
	const struct json_node *n = find_member(r, of, name);

	if ((!json_is(n, JSON_STRING) && !json_is(n, JSON_NUMBER)) || n->len == 0) {
		return false;
	}
	buf_adds(&r->text, before);
	render_text(&r->text, n, "");
	buf_adds(&r->text, after);
	return true;
}

static void add_list(struct rows *r, const struct json_node *list, const char *between)
{
	const char *before = "";

	JSON_EACH (n, &r->run->doc, list) {
		buf_adds(&r->text, before);
		render_text(&r->text, n, "?");
		before = between;
	}
}

/* Says what granted it: "(manifest: skillsandbox.yaml:7:9)", "(flag: --read)". */
static void add_origin(struct rows *r, const struct json_node *n)
{
	bool named = add_member(r, "  (", n, "origin", "");

	buf_adds(&r->text, named ? ": " : "  (");
	add_member(r, "", n, "where", "");
	buf_addc(&r->text, ')');
}

static void put_skill(struct rows *r, const struct json_node *plan)
{
	add_member(r, "", plan, "name", "");
	add_member(r, " ", plan, "version", "");
	end_row(r, "skill");
	add_member(r, "", plan, "manifest", "");
	add_member(r, "  (", plan, "format", ")");
	end_row(r, "manifest");
	add_list(r, find_member(r, plan, "argv"), " ");
	add_member(r, "  in ", plan, "workdir", "");
	end_row(r, "runs");
	const struct json_node *a = find_member(r, plan, "approved");
	if (json_is(a, JSON_OBJECT)) {
		add_member(r, "by ", a, "by", "");
		add_member(r, ", ", a, "at", "");
		add_member(r, ", for the files ", a, "tree", "");
	} else {
		add_member(r, "no: ", find_member(r, plan, "consent"), "state", "");
	}
	end_row(r, "approved");
}

static void put_granted(struct rows *r, const struct json_node *granted)
{
	JSON_EACH (n, &r->run->doc, find_member(r, granted, "files")) {
		add_member(r, "", n, "access", " ");
		add_member(r, "", n, "path", "");
		add_origin(r, n);
		end_row(r, "files");
	}
	JSON_EACH (n, &r->run->doc, find_member(r, granted, "network")) {
		add_member(r, "", n, "protocol", " ");
		add_member(r, "", n, "domain", ":");
		add_list(r, find_member(r, n, "ports"), ",");
		add_origin(r, n);
		end_row(r, "network");
	}
	add_list(r, find_member(r, granted, "allow_private"), ", ");
	end_row(r, "private");
	add_list(r, find_member(r, granted, "env"), ", ");
	end_row(r, "env");
}

static void put_limits(struct rows *r, const struct json_node *limits)
{
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		const struct json_node *n = find_member(r, limits, RESOURCES[i].name);
		int64_t v = json_integer(n, -1);
		if (n == NULL) {
			continue;
		}
		buf_addf(&r->text, "%s ", RESOURCES[i].name);
		if (v < 0) {
			buf_adds(&r->text, "none");
		} else {
			resource_amount(&r->text, RESOURCES[i].unit, (uint64_t)v);
		}
		end_row(r, "limits");
	}
}

static void put_refusals(struct rows *r, const char *label, const struct json_node *list)
{
	JSON_EACH (n, &r->run->doc, list) {
		add_member(r, "", n, "what", ": ");
		add_member(r, "", n, "why", "");
		add_origin(r, n);
		end_row(r, label);
	}
}

void plan_rows(const struct line *run, plan_row_fn *put, void *arg)
{
	const struct json_node *plan = plan_rows_plan(run);
	struct rows r = { .run = run, .put = put, .arg = arg, .text = BUF(RENDER_MAX) };

	if (plan == NULL) {
		put(arg, "plan", "too large for the record; the file trace.json beside it has it");
		return;
	}
	put_skill(&r, plan);
	put_granted(&r, find_member(&r, plan, "granted"));
	put_limits(&r, find_member(&r, plan, "limits"));
	add_member(&r, "", plan, "profile", "");
	end_row(&r, "profile");
	put_refusals(&r, "denied", find_member(&r, plan, "denied"));
	put_refusals(&r, "withheld", find_member(&r, plan, "withheld"));
	buf_done(&r.text);
}
