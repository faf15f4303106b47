/* record_lines.c - pages of a record.
 *
 * Whoever may write there may have forged it: a line that is none ends the page and is
 * said, a line that is too long for the page is told by its number. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "report/render.h"
#include "serve/records_priv.h"
#include "serve/show.h"

#define LINE_ROOM ((size_t)4 * MAX_RECORD_LINE) /* of one, escaped */

struct scan {
	const struct record_ask *ask;
	record_line_fn *line;
	void *arg;
	struct record_page *page;
	size_t used;     /* bytes of JSON */
	size_t looked;   /* bytes of the record */
	struct buf text; /* of one line */
};

static bool is_wanted(const struct record_ask *ask, const struct line *l)
{
	if (ask->violations && !render_is_violation(l)) {
		return false;
	}
	for (const struct json_node *k = json_first(ask->kinds_doc, ask->kinds); k != NULL;
	     k = json_next(ask->kinds_doc, k)) {
		if (strcmp(json_string(k, ""), l->kind) == 0) {
			return true;
		}
	}
	return json_first(ask->kinds_doc, ask->kinds) == NULL; /* none named: all */
}

/* In its place: that it is there. */
static void stand_in(struct buf *text, const struct line *l)
{
	struct json j;

	buf_reset(text);
	json_init(&j, text, false);
	json_open(&j, '{');
	json_kint(&j, "seq", l->seq);
	show_kstr(&j, "time", l->time);
	show_kstr(&j, "kind", l->kind);
	json_kbool(&j, "cut", true);
	json_close(&j, '}');
}

/* False: the page is full, and this line is for the next one. */
static bool tell(struct scan *s, const struct line *l)
{
	struct json j;

	buf_reset(&s->text);
	json_init(&j, &s->text, false);
	show_value(&j, &l->doc, l->top);
	if (s->text.failed || s->text.len > s->ask->room) {
		stand_in(&s->text, l);
	}
	if (s->page->n > 0 && s->used + s->text.len > s->ask->room) {
		return false;
	}
	s->used += s->text.len;
	s->page->n++;
	s->line(s->arg, s->text.data, s->text.len);
	return true;
}

/* Whether to go on. */
static bool scan_line(struct scan *s, struct line *l, const char *text, size_t len)
{
	if (s->page->n >= s->ask->limit || s->looked > MAX_TRACE_SCAN) {
		return false;
	}
	if (line_parse(l, text, len, &s->page->broken) != 0) {
		return false;
	}
	s->page->broken = NULL;
	if (is_wanted(s->ask, l) && !tell(s, l)) {
		return false;
	}
	s->looked += len;
	s->page->next++;
	return true;
}

/* To the line that was asked for: from where the last page ended, if that is it. */
static enum reader_line skip(const struct records *k, struct reader *in, const struct record *r,
                             uint64_t from)
{
	enum reader_line got = READER_LINE;
	const char *text;
	size_t len;
	uint64_t line = 0;

	if (strcmp(k->memo.page_id, r->file.id) == 0 && k->memo.page_line <= from) {
		in->offset = k->memo.page_offset;
		line = k->memo.page_line;
	}
	while (line < from && (got = reader_next(in, &text, &len)) == READER_LINE) {
		line++;
	}
	return got;
}

int record_lines(const struct serve *s, const struct record *r, const struct record_ask *ask,
                 record_line_fn *line, void *arg, struct record_page *ret, struct ssb_error *err)
{
	struct record_page page = { .next = ask->from };
	struct scan scan = { .ask = ask, .line = line, .arg = arg, .page = &page };
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text;
	size_t len;
	uint64_t offset = 0;

	buf_init(&scan.text, LINE_ROOM);
	reader_init(&in, r->file.fd, 0);
	enum reader_line got = skip(s->records, &in, r, ask->from);
	if (got == READER_LINE) {
		do {
			offset = in.offset - (in.end - in.begin);
			got = reader_next(&in, &text, &len);
		} while (got == READER_LINE && scan_line(&scan, &l, text, len));
	}
	buf_done(&scan.text);
	if (got == READER_FAIL) {
		return ssb_fail(err, SSB_E_SYS, errno, "record", "cannot read the record");
	}
	if (got == READER_LONG) {
		page.broken = "a line is too long";
	}
	page.more = got == READER_LINE && page.broken == NULL;
	if (page.more) {
		memcpy(s->records->memo.page_id, r->file.id, sizeof(s->records->memo.page_id));
		s->records->memo.page_line = page.next;
		s->records->memo.page_offset = offset;
	}
	*ret = page;
	return 0;
}
