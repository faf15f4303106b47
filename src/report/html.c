/* html.c - see html.h. */
#include "report/html.h"

#include <inttypes.h>

#include "base/amount.h"
#include "base/own.h"
#include "base/visible.h"
#include "report/plan_rows.h"
#include "report/why.h"

static const char HEAD[] =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"referrer\" content=\"no-referrer\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<style>\n"
        ":root{color-scheme:light dark;--fg:#1b1f24;--bg:#fff;--dim:#57606a;--line:#d0d7de;"
        "--bad:#b42318;--warn:#8a5a00;--good:#1a7f37;--box:#f6f8fa}\n"
        "@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--dim:#9198a1;"
        "--line:#30363d;--bad:#ff7b72;--warn:#e3b341;--good:#3fb950;--box:#161b22}}\n"
        "body{margin:2rem auto;max-width:62rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;"
        "color:var(--fg);background:var(--bg)}\n"
        "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\n"
        "table{border-collapse:collapse;width:100%}\n"
        "th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid "
        "var(--line);overflow-wrap:anywhere}\n"
        "th{color:var(--dim);font-weight:600;white-space:nowrap}\n"
        "td.n{text-align:right;white-space:nowrap;width:4rem;color:var(--dim)}\n"
        "code{font:13px/1.5 ui-monospace,monospace;unicode-bidi:isolate}\n"
        ".bad{color:var(--bad)}.warn{color:var(--warn)}.good{color:var(--good)}"
        ".dim{color:var(--dim)}\n"
        "p.verdict{padding:.6rem .9rem;background:var(--box);border-left:4px solid;"
        "font-weight:600}\n"
        "</style>\n";

/* ---- texts ----------------------------------------------------------------------- */

/* Appends a text that is already visible. */
static void put_escaped(struct buf *out, const char *text)
{
	static const char *const ENTITIES[] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
	};

	for (const char *p = text; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;
		if (c < ARRAY_LEN(ENTITIES) && ENTITIES[c] != NULL) {
			buf_adds(out, ENTITIES[c]);
		} else {
			buf_addc(out, *p);
		}
	}
}

/* Appends a text of the record: visible, then escaped. */
static void put_text(struct buf *out, const char *text)
{
	auto_buf shown = BUF(RENDER_MAX);

	visible_text(&shown, text, false);
	out->failed |= shown.failed;
	put_escaped(out, shown.data != NULL ? shown.data : "");
}

static void put_code(struct buf *out, const char *text)
{
	buf_adds(out, "<code>");
	put_escaped(out, text);
	buf_adds(out, "</code>");
}

static void open_table(struct buf *out, const char *title, const char *heads)
{
	buf_addf(out, "<h2>%s</h2>\n<table>%s\n", title, heads);
}

/* Writes a row of two cells: our own label, and a text that is visible. */
static void put_row(void *arg, const char *label, const char *text)
{
	struct buf *out = arg;

	buf_addf(out, "<tr><th>%s</th><td>", label);
	put_escaped(out, text);
	buf_adds(out, "</td></tr>\n");
}

/* ---- the summary ----------------------------------------------------------------- */

static void put_verdict(struct buf *out, const struct html_report *r)
{
	const struct overview *v = r->view;
	size_t told = overview_count_told(v);
	bool over = v->has_facts && v->facts.state == RUN_ENDED;

	buf_addf(out, "<p class=\"verdict %s\">",
	         !r->sound || told > 0 ? "bad"
	         : over                ? "good"
	                               : "warn");
	if (!r->sound) {
		buf_adds(out, "This record cannot be trusted. ");
	}
	if (v->unobserved) {
		buf_adds(out, "The run was not observed, so it is not known what was denied.");
	} else if (told > 0) {
		buf_addf(out, "%zu thing%s denied.", told, told == 1 ? " was" : "s were");
	} else {
		buf_adds(out, over ? "Nothing was denied." : "Nothing was denied so far.");
	}
	buf_adds(out, "</p>\n");
}

/* Writes a row with a text of the record. */
static void put_fact(struct buf *out, const char *label, const char *text)
{
	buf_addf(out, "<tr><th>%s</th><td>", label);
	put_text(out, text);
	buf_adds(out, "</td></tr>\n");
}

static void put_run(struct buf *out, const struct run_facts *f)
{
	auto_buf text = BUF(RENDER_MAX);

	put_fact(out, "run", f->id);
	put_fact(out, "skill", f->skill);
	if (f->version[0] != '\0') {
		put_fact(out, "version", f->version);
	}
	put_fact(out, "started", f->started);
	if (f->state == RUN_ENDED) {
		render_end(&text, f->end, f->exit_code);
		buf_addf(&text, ", exit status %" PRId64 ", after ", f->exit_code);
		amount_time(&text, f->duration_us);
	} else {
		buf_adds(&text, f->state == RUN_LIVE ? "none yet: the run is running"
		                                     : "none: the record is incomplete");
	}
	put_row(out, "end", text.data);
}

static void put_summary(struct buf *out, const struct html_report *r)
{
	const struct overview *v = r->view;
	char dropped[64];

	buf_adds(out, "<table>\n");
	if (v->has_facts) {
		put_run(out, &v->facts);
	}
	if (v->lost_layers != NULL && v->lost_layers[0] != '\0') {
		put_row(out, "<span class=\"bad\">without</span>", v->lost_layers);
	}
	if (v->dropped > 0) {
		snprintf(dropped, sizeof(dropped), "%" PRId64 " events were not recorded",
		         v->dropped);
		put_row(out, "dropped", dropped);
	}
	buf_addf(out, "<tr><th>record</th><td class=\"%s\">", r->sound ? "good" : "bad");
	put_text(out, r->verified);
	buf_adds(out, "</td></tr>\n</table>\n");
}

static void put_classes(struct buf *out, const struct overview *v)
{
	if (v->n_classes == 0) {
		return;
	}
	open_table(out, "Looks like",
	           "<tr><th>class</th><th>severity</th><th>events</th><th></th></tr>");
	for (size_t i = 0; i < v->n_classes; i++) {
		const struct overview_class *c = &v->classes[i];
		buf_adds(out, "<tr><td>");
		put_escaped(out, c->name);
		buf_adds(out, " <span class=\"dim\">");
		put_escaped(out, c->tactic);
		buf_adds(out, "</span></td><td class=\"bad\">");
		put_escaped(out, c->severity);
		buf_addf(out, "</td><td>%" PRId64 "</td><td>%s</td></tr>\n", c->count,
		         c->prevented ? "prevented" : "<span class=\"bad\">NOT PREVENTED</span>");
	}
	buf_adds(out, "</table>\n");
}

/* ---- denials --------------------------------------------------------------------- */

static void put_denial(struct buf *out, const struct overview_item *i)
{
	buf_addf(out, "<tr><td class=\"n\">%" PRIu64 "</td><td class=\"bad\">", i->count);
	put_code(out, i->text);
	if (i->let_through) {
		buf_adds(out, " NOT PREVENTED");
	}
	if (i->program[0] != '\0') {
		buf_adds(out, "<br><span class=\"dim\">by ");
		put_escaped(out, i->program);
		buf_adds(out, "</span>");
	}
	buf_adds(out, "</td><td>");
	put_escaped(out, why_reason(i));
	if (i->reason[0] != '\0') {
		buf_adds(out, " <span class=\"dim\">(");
		put_escaped(out, i->reason);
		buf_adds(out, ")</span>");
	}
	buf_adds(out, "</td><td>");
	if (i->remedy[0] != '\0') {
		put_code(out, i->remedy);
	} else {
		buf_adds(out, reason_is_misfortune(i->why) ? "" : why_remedy(i));
	}
	buf_adds(out, "</td></tr>\n");
}

static void put_denials(struct buf *out, const struct overview *v, const char *title, bool everyday)
{
	bool open = false;

	for (size_t n = 0; n < v->n_items; n++) {
		const struct overview_item *i = &v->items[n];
		if (i->group == GROUP_FAILED ||
		    (everyday ? i->denial != DENIAL_EVERYDAY : !overview_is_told(i))) {
			continue;
		}
		if (!open) {
			open_table(out, title,
			           "<tr><th></th><th>what</th><th>why</th><th>to allow</th></tr>");
			open = true;
		}
		put_denial(out, i);
	}
	buf_adds(out, open ? "</table>\n" : "");
}

/* ---- the other groups ------------------------------------------------------------ */

enum which { ORDINARY, ROUTINE };

static void put_item(struct buf *out, const struct overview_item *i)
{
	buf_addf(out, "<tr><td class=\"n\">%" PRIu64 "</td><td>", i->count);
	put_code(out, i->text);
	if (i->bytes_out > 0 || i->bytes_in > 0) {
		buf_adds(out, " <span class=\"dim\">");
		amount_bytes(out, i->bytes_out);
		buf_adds(out, " out, ");
		amount_bytes(out, i->bytes_in);
		buf_adds(out, " in</span>");
	}
	if (i->denial == DENIAL_LIMIT && i->remedy[0] != '\0') {
		buf_adds(out, "; allow more: ");
		put_code(out, i->remedy);
	}
	buf_adds(out, "</td></tr>\n");
}

static void put_group(struct buf *out, const struct overview *v, enum render_group group,
                      const char *title, enum which which)
{
	bool open = false;

	for (size_t n = 0; n < v->n_items; n++) {
		const struct overview_item *i = &v->items[n];
		if (i->group != group || i->routine != (which == ROUTINE)) {
			continue;
		}
		if (!open) {
			open_table(out, title, "");
			open = true;
		}
		put_item(out, i);
	}
	buf_adds(out, open ? "</table>\n" : "");
	if (which == ORDINARY && v->left_out[group] > 0) {
		buf_addf(out,
		         "<p class=\"dim\">%s: %" PRIu64 " more events are in the record.</p>\n",
		         title, v->left_out[group]);
	}
}

static void put_groups(struct buf *out, const struct overview *v)
{
	static const struct {
		enum render_group group;
		const char *title;
		enum which which;
	} GROUPS[] = {
		{ GROUP_LIMITS, "Limits that were reached", ORDINARY },
		{ GROUP_NETWORK, "Network", ORDINARY },
		{ GROUP_FAILED, "Allowed, but failed", ORDINARY },
		{ GROUP_WRITTEN, "Files changed", ORDINARY },
		{ GROUP_PRIVATE, "Written to private places, and gone since the run ended",
		  ORDINARY },
		{ GROUP_PROGRAMS, "Programs", ORDINARY },
		{ GROUP_READ, "Files read, by directory", ORDINARY },
		{ GROUP_ABSENT, "Looked for and not found, by directory", ORDINARY },
		{ GROUP_ENV, "Environment", ORDINARY },
		{ GROUP_OUTPUT, "Output", ORDINARY },
		{ GROUP_READ, "Files of the system, by directory", ROUTINE },
	};

	for (size_t i = 0; i < ARRAY_LEN(GROUPS); i++) {
		put_group(out, v, GROUPS[i].group, GROUPS[i].title, GROUPS[i].which);
	}
}

void html_write(struct buf *out, const struct html_report *r)
{
	const struct overview *v = r->view;
	const char *skill = v->has_facts ? v->facts.skill : "";

	buf_adds(out, HEAD);
	buf_adds(out, "<title>Run of ");
	put_text(out, skill);
	buf_adds(out, "</title></head><body>\n<h1>Run of ");
	put_text(out, skill);
	buf_adds(out, "</h1>\n");
	put_verdict(out, r);
	put_summary(out, r);
	put_classes(out, v);
	put_denials(out, v, "Denied", false);
	put_denials(out, v, "Refused; most programs try such things and work without them", true);
	put_groups(out, v);
	if (r->run != NULL) {
		open_table(out, "Plan: what was granted, and by what", "");
		plan_rows(r->run, put_row, out);
		buf_adds(out, "</table>\n");
	}
	buf_adds(out,
	         "<p class=\"dim\">Written by skillsandbox " SSB_VERSION ".</p>\n</body></html>\n");
}
