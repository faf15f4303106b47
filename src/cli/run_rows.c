/* run_rows.c - see run_rows.h. */
#include "cli/run_rows.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/columns.h"
#include "base/json.h"
#include "base/name.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/line.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "report/render.h"

#define SHORT_ID   8
#define GAP        2
#define LEAST_NAME 8 /* least columns for the name of a skill */

enum column {
	COL_RUN,
	COL_STARTED,
	COL_SKILL,
	COL_END,
	COL_TIME,
	COL_SEVERITY,
	COL_VIOLATIONS,
	COLUMNS
};

static const char *const TITLES[COLUMNS] = {
	[COL_RUN] = "run",
	[COL_STARTED] = "started",
	[COL_SKILL] = "skill",
	[COL_END] = "end",
	[COL_TIME] = "time",
	[COL_SEVERITY] = "severity",
	[COL_VIOLATIONS] = "violations",
};

struct run_cells {
	struct buf cell[COLUMNS];
	enum say_colour colour[COLUMNS];
};

static void row_done(struct run_cells *w)
{
	for (size_t c = 0; c < COLUMNS; c++) {
		buf_done(&w->cell[c]);
	}
}

static void begin_row(struct run_cells *w)
{
	*w = (struct run_cells){ 0 };
	for (size_t c = 0; c < COLUMNS; c++) {
		buf_init(&w->cell[c], SAY_MAX);
		buf_adds(&w->cell[c], "");
	}
}

static void fill_end(struct run_cells *w, const struct run_facts *f)
{
	struct buf *out = &w->cell[COL_END];

	if (f->state != RUN_ENDED) {
		buf_adds(out, run_state_name(f->state));
		w->colour[COL_END] = f->state == RUN_LIVE ? SAY_GREEN : SAY_YELLOW;
		return;
	}
	render_end(out, f->end, f->exit_code);
	if (name_to_end(f->end) == SSB_END_EXITED) {
		buf_addf(out, " %" PRId64, f->exit_code);
	}
	amount_time(&w->cell[COL_TIME], f->duration_us);
}

static void fill_row(struct run_cells *w, const struct run_facts *f)
{
	begin_row(w);
	buf_addf(&w->cell[COL_RUN], "%.*s", SHORT_ID, f->id);
	line_put_time(&w->cell[COL_STARTED], f->started);
	visible_addf(&w->cell[COL_SKILL], "%s%s%s", f->skill, f->version[0] != '\0' ? " " : "",
	             f->version);
	if (f->session[0] != '\0') {
		visible_addf(&w->cell[COL_SKILL], " (session %s)", f->session);
	}
	fill_end(w, f);
	buf_adds(&w->cell[COL_SEVERITY],
	         f->severity > 0 ? classes_severity_name(f->severity) : "-");
	w->colour[COL_SEVERITY] = f->severity >= SEVERITY_HIGH  ? SAY_RED
	                          : f->severity > SEVERITY_NONE ? SAY_YELLOW
	                                                        : SAY_PLAIN;
	buf_addf(&w->cell[COL_VIOLATIONS], "%" PRId64, f->violations);
	w->colour[COL_VIOLATIONS] = f->violations > 0 ? SAY_RED : SAY_PLAIN;
}

static size_t cell_width(const struct run_cells *w, enum column c)
{
	return columns_count(w->cell[c].data, w->cell[c].len);
}

/* Finds the width of each column. On a terminal, the name of the skill gets what is left. */
static void find_widths(const struct run_facts *runs, size_t n, size_t width[COLUMNS])
{
	size_t columns = screen_columns(STDOUT_FILENO), others = 0;

	for (size_t c = 0; c < COLUMNS; c++) {
		width[c] = strlen(TITLES[c]);
	}
	for (size_t i = 0; i < n; i++) {
		AUTO(row_done) struct run_cells w;
		fill_row(&w, &runs[i]);
		for (enum column c = 0; c < COLUMNS; c++) {
			width[c] = cell_width(&w, c) > width[c] ? cell_width(&w, c) : width[c];
		}
	}
	for (enum column c = 0; c < COLUMNS; c++) {
		others += c == COL_SKILL ? GAP : width[c] + GAP;
	}
	size_t left = columns > others + LEAST_NAME ? columns - others : LEAST_NAME;
	if (columns > 0 && width[COL_SKILL] > left) {
		width[COL_SKILL] = left;
	}
}

static void put_row(struct buf *out, const struct run_cells *w, const size_t width[COLUMNS])
{
	for (enum column c = 0; c < COLUMNS; c++) {
		auto_buf cell = BUF(SAY_MAX);
		bool last = c + 1 == COLUMNS;

		screen_cell(&cell, &w->cell[c], last ? 0 : width[c], c == COL_TIME);
		say_colour(out, STDOUT_FILENO, w->colour[c], cell.data != NULL ? cell.data : "");
		buf_adds(out, last ? "\n" : "  ");
	}
}

static void put_table(struct buf *out, const struct run_facts *runs, size_t n)
{
	size_t width[COLUMNS];
	AUTO(row_done) struct run_cells head;

	begin_row(&head);
	for (size_t c = 0; c < COLUMNS; c++) {
		buf_adds(&head.cell[c], TITLES[c]);
	}
	find_widths(runs, n, width);
	put_row(out, &head, width);
	for (size_t i = 0; i < n; i++) {
		AUTO(row_done) struct run_cells w;
		fill_row(&w, &runs[i]);
		put_row(out, &w, width);
	}
}

int run_rows_print(const struct run_facts *runs, size_t n, bool as_json)
{
	auto_buf out = BUF(8 * SAY_MAX);
	struct json j = JSON_TO(&out, true);

	if (!as_json) {
		if (n > 0) {
			put_table(&out, runs, n);
		}
		return screen_rows(STDOUT_FILENO, &out);
	}
	json_open(&j, '[');
	for (size_t i = 0; i < n; i++) {
		run_facts_json(&j, &runs[i]);
	}
	json_close(&j, ']');
	buf_addc(&out, '\n');
	return say_out(STDOUT_FILENO, &out);
}
