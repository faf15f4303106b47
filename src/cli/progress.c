/* progress.c - shows a line on a terminal while a skill runs: the seconds and the newest event. */
#include "cli/progress.h"

#include <poll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "os/clock.h"
#include "report/render.h"
#include "trace/reader.h"
#include "trace/runs.h"

#define TICK_MS           50
#define PROGRESS_FIRST_MS 2000 /* shorter runs show no progress */
#define PROGRESS_HEAD     9    /* columns of "   12 s  " */

/* Keeps the text of the newest line about a denial or the network: people want to know these while
 * they wait. */
static void note_lines(struct reader *in, struct line *l, struct buf *newest)
{
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;

	while (reader_next(in, &text, &len) == READER_LINE && line_parse(l, text, len, &why) == 0) {
		enum render_group group = render_group(l);
		if (group == GROUP_DENIED || group == GROUP_NETWORK || group == GROUP_REFUSED) {
			buf_reset(newest);
			render_what(newest, l);
		}
	}
}

/* Shows one line, always at the same place: "  12 s, connect to api.example.com:443". */
static void show_progress(uint64_t ms, const struct buf *newest)
{
	size_t columns = screen_columns(STDERR_FILENO);
	size_t room = columns > PROGRESS_HEAD + 1 ? columns - PROGRESS_HEAD - 1 : 0;
	size_t n = newest->data == NULL ? 0 : newest->len < room ? newest->len : room;
	auto_buf out = BUF(SAY_MAX);

	while (n > 0 && n < newest->len && ((unsigned char)newest->data[n] & 0xc0) == 0x80) {
		n--; /* do not cut a character in two */
	}
	buf_addf(&out, "\r%5llu s  ", (unsigned long long)ms / 1000);
	buf_add(&out, newest->data != NULL ? newest->data : "", n);
	for (; n < room; n++) {
		buf_addc(&out, ' ');
	}
	(void)say_out(STDERR_FILENO, &out);
}

static void clear_progress(void)
{
	auto_buf out = BUF(SAY_MAX);

	buf_addc(&out, '\r');
	for (size_t n = screen_columns(STDERR_FILENO); n > 1; n--) {
		buf_addc(&out, ' ');
	}
	buf_addc(&out, '\r');
	(void)say_out(STDERR_FILENO, &out);
}

void progress_follow(int record)
{
	struct reader in;
	struct line l = { 0 };
	struct buf newest = BUF(SAY_MAX);
	uint64_t begun = clock_ms(), shown = 0;

	reader_init(&in, record, 0);
	while (run_file_live(record)) {
		note_lines(&in, &l, &newest);
		uint64_t ms = clock_ms() - begun;
		if (ms >= PROGRESS_FIRST_MS && ms / 1000 != shown) {
			shown = ms / 1000;
			show_progress(ms, &newest);
		}
		(void)poll(NULL, 0, TICK_MS);
	}
	if (shown > 0) {
		clear_progress();
	}
}
