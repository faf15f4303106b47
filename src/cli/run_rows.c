/* run_rows.c - see run_rows.h. */
#include "cli/run_rows.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/json.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/screen.h"

#define SHORT_ID 8

static void put_state(struct buf *out, const struct run_facts *f)
{
	char text[40];

	if (f->state != RUN_ENDED) {
		snprintf(text, sizeof(text), "%-14s", run_state_name(f->state));
		say_colour(out, STDOUT_FILENO, f->state == RUN_LIVE ? SAY_GREEN : SAY_YELLOW, text);
		return;
	}
	/* `word` comes from the record, which may be forged, so only letters are printed. */
	char end[sizeof(f->end)];
	snprintf(end, sizeof(end), "%.*s", (int)strspn(f->end, "abcdefghijklmnopqrstuvwxyz_"),
	         f->end);
	snprintf(text, sizeof(text), "%s %" PRId64, end, f->exit_code);
	buf_addf(out, "%-14s", text);
}

static void put_row(struct buf *out, const struct run_facts *f)
{
	auto_buf cell = BUF(SAY_MAX);
	char number[32];

	visible_text(&cell, f->started, false);
	buf_addf(out, "%.*s  %.19sZ  ", SHORT_ID, f->id, cell.data != NULL ? cell.data : "");
	put_state(out, f);
	buf_reset(&cell);
	if (f->state == RUN_ENDED) {
		amount_time(&cell, f->duration_us);
	}
	buf_addf(out, " %10s ", cell.data != NULL ? cell.data : "");
	snprintf(number, sizeof(number), "%10" PRId64, f->violations);
	say_colour(out, STDOUT_FILENO, f->violations > 0 ? SAY_RED : SAY_PLAIN, number);
	buf_addf(out, "  %-12s ", f->severity > 0 ? classes_severity_name(f->severity) : "-");
	visible_text(out, f->skill, false);
	if (f->version[0] != '\0') {
		visible_addf(out, " %s", f->version);
	}
	if (f->session[0] != '\0') {
		visible_addf(out, "  (session %s)", f->session);
	}
	buf_addc(out, '\n');
}

int run_rows_print(const struct run_facts *runs, size_t n, bool as_json)
{
	auto_buf out = BUF(8 * SAY_MAX);
	struct json j = JSON_TO(&out, true);

	if (as_json) {
		json_open(&j, '[');
	} else if (n > 0) {
		buf_adds(&out,
		         "run       started               end              duration violations"
		         "  severity     skill\n");
	}
	for (size_t i = 0; i < n; i++) {
		if (as_json) {
			run_facts_json(&j, &runs[i]);
		} else {
			put_row(&out, &runs[i]);
		}
	}
	if (as_json) {
		json_close(&j, ']');
		buf_addc(&out, '\n');
	}
	return (as_json ? say_out : screen_rows)(STDOUT_FILENO, &out);
}
