/* cmd_show.c - shows what a run did: first what was denied, then the rest by subject. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/error.h"
#include "base/json.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/line.h"
#include "cli/cli_record.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "os/file.h"
#include "report/html.h"
#include "report/overview.h"
#include "report/plan_rows.h"
#include "report/why.h"

#define SHOWN_ITEMS 20 /* items shown of each group without -v */

static const char *const TITLES[GROUP_COUNT] = {
	[GROUP_DENIED] = "denied",
	[GROUP_NETWORK] = "network",
	[GROUP_WRITTEN] = "files changed",
	[GROUP_PRIVATE] = "written to private places, and gone since the run ended",
	[GROUP_READ] = "files read, by directory",
	[GROUP_ABSENT] = "looked for and not found, by directory",
	[GROUP_PROGRAMS] = "programs",
	[GROUP_ENV] = "environment",
	[GROUP_OUTPUT] = "output",
	[GROUP_LIMITS] = "limits",
	[GROUP_REFUSED] = "refused, but no violation",
	[GROUP_FAILED] = "allowed, but failed",
};

/* What matters comes first. */
static const enum render_group ORDER[] = {
	GROUP_DENIED,  GROUP_LIMITS, GROUP_REFUSED,  GROUP_FAILED, GROUP_NETWORK, GROUP_WRITTEN,
	GROUP_PRIVATE, GROUP_READ,   GROUP_PROGRAMS, GROUP_OUTPUT, GROUP_ABSENT,  GROUP_ENV,
};

static void show_title(struct buf *out, const char *title)
{
	buf_addc(out, '\n');
	say_colour(out, STDOUT_FILENO, SAY_BOLD, title);
	buf_addc(out, '\n');
}

static void show_item(struct buf *out, const struct overview_item *i)
{
	bool denied = i->group == GROUP_DENIED;

	buf_addf(out, "  %6" PRIu64 " x  ", i->count);
	if (i->denial == DENIAL_LIMIT) {
		why_limit(out, i);
		buf_addc(out, '\n');
		return;
	}
	say_colour(out, STDOUT_FILENO, denied ? SAY_RED : SAY_PLAIN, i->text);
	if (i->bytes_out > 0 || i->bytes_in > 0) {
		buf_adds(out, ", ");
		amount_bytes(out, i->bytes_out);
		buf_adds(out, " out, ");
		amount_bytes(out, i->bytes_in);
		buf_adds(out, " in");
	}
	if (i->reason != NULL && i->reason[0] != '\0') {
		buf_addf(out, "  [%s]", i->reason);
	}
	if (denied && i->let_through) {
		say_colour(out, STDOUT_FILENO, SAY_YELLOW, "  NOT PREVENTED");
	}
	buf_addc(out, '\n');
}

static bool is_shown(const struct overview_item *i, enum render_group group, bool all)
{
	return i->group == group && (all || !i->routine);
}

static void show_group(struct buf *out, const struct overview *v, enum render_group group, bool all)
{
	size_t most = all ? SIZE_MAX : SHOWN_ITEMS;
	size_t n = 0, shown = 0;

	for (size_t i = 0; i < v->n_items; i++) {
		n += is_shown(&v->items[i], group, all);
	}
	if (n == 0) {
		return;
	}
	show_title(out, TITLES[group]);
	for (size_t i = 0; i < v->n_items && shown < most; i++) {
		if (is_shown(&v->items[i], group, all)) {
			show_item(out, &v->items[i]);
			shown++;
		}
	}
	if (shown < n) {
		buf_addf(out, "            and %zu more; -v shows them\n", n - shown);
	}
	if (v->left_out[group] > 0) {
		buf_addf(out, "            and %" PRIu64 " more events, which only --json shows\n",
		         v->left_out[group]);
	}
}

static void show_classes(struct buf *out, const struct overview *v)
{
	if (v->n_classes > 0) {
		show_title(out, "what it amounts to");
	}
	for (size_t i = 0; i < v->n_classes; i++) {
		const struct overview_class *c = &v->classes[i];
		buf_adds(out, "  ");
		say_colour(out, STDOUT_FILENO, SAY_RED, c->severity);
		buf_addf(out, " %s (%s), %" PRId64 " event%s, %s\n", c->name, c->tactic, c->count,
		         c->count == 1 ? "" : "s", c->prevented ? "prevented" : "NOT PREVENTED");
	}
}

static void show_head(struct buf *out, const struct overview *v)
{
	const struct run_facts *f = &v->facts;

	if (!v->has_facts) {
		return;
	}
	visible_addf(out, "run      %s\nskill    %s%s%s\nstarted  ", f->id, f->skill,
	             f->version[0] != '\0' ? " " : "", f->version);
	line_put_time(out, f->started);
	buf_adds(out, "\nend      ");
	if (f->state == RUN_ENDED) {
		render_end(out, f->end, f->exit_code);
		buf_addf(out, ", exit status %" PRId64 ", after ", f->exit_code);
		amount_time(out, f->duration_us);
	} else {
		say_colour(out, STDOUT_FILENO, SAY_YELLOW,
		           f->state == RUN_LIVE ? "none yet: the run is running"
		                                : "none: the record is incomplete");
	}
	buf_addf(out, "\nevents   %" PRId64 ", violations %" PRId64 "\n", f->events, f->violations);
}

static void show_doubts(struct buf *out, const struct overview *v)
{
	if (v->lost_layers != NULL && v->lost_layers[0] != '\0') {
		buf_adds(out, "layers   ");
		say_colour(out, STDOUT_FILENO, SAY_RED, "WITHOUT ");
		buf_addf(out, "%s\n", v->lost_layers);
	}
	if (v->dropped > 0) {
		buf_addf(out,
		         "dropped  %" PRId64
		         " events were not recorded, because there were too many%s%s\n",
		         v->dropped, v->dropped_by != NULL ? ": " : "",
		         v->dropped_by != NULL ? v->dropped_by : "");
	}
	if (v->uncounted > 0) {
		buf_addf(out, "         %" PRIu64 " events are in the record and not shown here\n",
		         v->uncounted);
	}
}

/* Prints the lines unchanged. Returns 0, or the exit status. */
static int show_lines(const struct record_request *q)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *line = NULL;
	const char *why = NULL;
	size_t len = 0;
	auto_buf out = BUF(SAY_MAX);

	reader_init(&in, q->file.fd, 0);
	for (uint64_t at = 0; reader_next(&in, &line, &len) == READER_LINE; at++) {
		if (reader_is_header(line, len)) {
			continue;
		}
		if (line_parse(&l, line, len, &why) != 0) {
			say_errorf("line %" PRIu64 " is not a record (%s); see 'audit verify'",
			           at + 1, why);
			return EXIT_FINDINGS;
		}
		buf_reset(&out);
		line_render_raw(&out, line, len, STDOUT_FILENO);
		int status = say_out(STDOUT_FILENO, &out);
		if (status != EXIT_FINE) {
			return status;
		}
	}
	return EXIT_FINE;
}

/* Says how many rows about files of the system and devices are not shown. */
static void show_routine(struct buf *out, const struct overview *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_items; i++) {
		n += v->items[i].routine;
	}
	if (n > 0) {
		buf_addf(out,
		         "\n%zu more row%s about files of the system and devices; -v shows them\n",
		         n, n == 1 ? "" : "s");
	}
}

static void put_plan_row(void *arg, const char *label, const char *text)
{
	buf_addf(arg, "%-9s  %s\n", label, text);
}

/* Prints the plan of the run: as rows, or as the JSON object that the record has. */
static int show_plan(const struct request *r, const struct record_request *q)
{
	AUTO(line_done) struct line run = { 0 };
	bool as_json = request_has(r, FLAG_JSON);
	auto_buf out = BUF(SAY_MAX);

	if (!line_read_run(&run, q->file.fd)) {
		return say_fail(EXIT_FINDINGS, "the record has no first line; see 'audit verify'");
	}
	if (!as_json) {
		plan_rows(&run, put_plan_row, &out);
	} else if (plan_rows_plan(&run) == NULL) {
		return say_fail(EXIT_FINDINGS, "the plan is too large for the record; the file "
		                               "trace.json beside the record has it");
	} else {
		struct json j = JSON_TO(&out, true);
		json_copy(&j, &run.doc, plan_rows_plan(&run));
		buf_addc(&out, '\n');
	}
	int status = (as_json ? say_out : screen_text)(STDOUT_FILENO, &out);
	return status != EXIT_FINE ? status : cli_record_doubt(r, q);
}

static int write_report(const char *path, const struct buf *page)
{
	struct ssb_error err = { 0 };

	if (strcmp(path, "-") == 0) {
		return say_out(STDOUT_FILENO, page);
	}
	auto_fd fd = page->failed ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || file_write_all(fd, page->data, page->len) != 0) {
		ssb_fail(&err, SSB_E_SYS, page->failed ? ENOMEM : errno, "audit show",
		         "cannot write '%s'", path);
		say_error(&err);
		return EXIT_SANDBOX;
	}
	return EXIT_FINE;
}

/* Writes the report as HTML. It contains the result of the check of the record. */
static int show_html(const struct request *r, const struct record_request *q)
{
	AUTO(overview_done) struct overview v = { 0 };
	AUTO(line_done) struct line run = { 0 };
	struct ssb_error err = { 0 };
	auto_buf page = BUF(8 * SAY_MAX), words = BUF(SAY_MAX);
	bool sound = false;

	if (overview_read(&v, q->file.fd, q->file.id, &err) != 0) {
		return exit_status_told(&err);
	}
	int status = cli_record_state(r, q, &words, &sound);
	if (status != EXIT_FINE) {
		return status;
	}
	const struct html_report report = { .view = &v,
		                            .run = line_read_run(&run, q->file.fd) ? &run : NULL,
		                            .verified = words.data,
		                            .sound = sound && v.broken == NULL };
	html_write(&page, &report);
	status = write_report(request_value(r, FLAG_HTML), &page);
	return status != EXIT_FINE || report.sound ? status : EXIT_FINDINGS;
}

static int show_view(const struct request *r, const struct record_request *q)
{
	AUTO(overview_done) struct overview v = { 0 };
	struct ssb_error err = { 0 };
	bool all = request_has(r, FLAG_VERBOSE);
	auto_buf out = BUF(8 * SAY_MAX);

	if (overview_read(&v, q->file.fd, q->file.id, &err) != 0) {
		return exit_status_told(&err);
	}
	show_head(&out, &v);
	show_doubts(&out, &v);
	show_classes(&out, &v);
	for (size_t g = 0; g < ARRAY_LEN(ORDER); g++) {
		show_group(&out, &v, ORDER[g], all);
	}
	if (!all) {
		show_routine(&out, &v);
	}
	int status = screen_text(STDOUT_FILENO, &out);
	if (v.broken != NULL) {
		say_errorf("line %" PRIu64
		           " is not a record (%s), and nothing after it was read; see "
		           "'audit verify'",
		           v.lines + 1, v.broken);
		return EXIT_FINDINGS;
	}
	return status != EXIT_FINE ? status : cli_record_doubt(r, q);
}

int cmd_show(struct request *r)
{
	AUTO(cli_record_done) struct record_request q = RECORD_REQUEST_NONE;
	int status = cli_record_open(r, NULL, &q);

	if (status != EXIT_FINE) {
		return status;
	}
	if (request_has(r, FLAG_HTML)) {
		return show_html(r, &q);
	}
	if (request_has(r, FLAG_PLAN)) {
		return show_plan(r, &q);
	}
	return request_has(r, FLAG_JSON) ? show_lines(&q) : show_view(r, &q);
}
