/* record_pages.c - reads a record in pages: its lines, or the output of the run.
 *
 * The owner's other programs can write to a record, so it may be forged. A line that cannot be
 * parsed ends the page, and the page says so. A line that is too long for a page is replaced by a
 * short entry.
 *
 * A page of output is named by its position in the record, in bytes, so that the next page is found
 * at once even if the record is long. A position must be the beginning of a line. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "report/render.h"
#include "sandbox/relay.h"
#include "serve/records_priv.h"
#include "serve/show.h"

#define LINE_ROOM ((size_t)4 * MAX_RECORD_LINE) /* room for one line after escaping */
#define HEAD      200 /* the kind is within the first HEAD bytes of a line */

/* ---- lines ----------------------------------------------------------------------- */

struct line_scan {
	const struct records_ask *ask;
	records_line_fn *line;
	void *arg;
	struct records_page *page;
	size_t used;     /* bytes of JSON on the page so far */
	size_t looked;   /* bytes of the record that were read so far */
	struct buf text; /* text of one line */
};

static bool is_wanted(const struct records_ask *ask, const struct line *l)
{
	if (ask->violations && !render_is_violation(l)) {
		return false;
	}
	JSON_EACH (k, ask->kinds_doc, ask->kinds) {
		if (json_is(k, JSON_STRING) && event_kind_from(k->str, k->len) == l->kind) {
			return true;
		}
	}
	/* If the client names no kinds, it wants all. */
	return json_first(ask->kinds_doc, ask->kinds) == NULL;
}

/* Writes a short entry for a line that is too long. */
static void put_stub(struct buf *text, const struct line *l)
{
	struct json j = JSON_TO(text, false);

	buf_reset(text);
	json_open(&j, '{');
	json_kint(&j, "seq", l->seq);
	show_kstr(&j, "time", l->time);
	show_kstr(&j, "kind", l->kind_name);
	json_kbool(&j, "cut", true);
	json_close(&j, '}');
}

/* Returns false if the page is full: the line then belongs to the next page. */
static bool put_line(struct line_scan *s, const struct line *l)
{
	struct json j = JSON_TO(&s->text, false);

	buf_reset(&s->text);
	show_value(&j, &l->doc, l->top);
	if (s->text.failed || s->text.len > s->ask->room) {
		put_stub(&s->text, l);
	}
	if (s->page->n > 0 && s->used + s->text.len > s->ask->room) {
		return false;
	}
	s->used += s->text.len;
	s->page->n++;
	s->line(s->arg, s->text.data, s->text.len);
	return true;
}

/* Returns false if the page ends before this line. */
static bool scan_line(struct line_scan *s, struct line *l, const char *text, size_t len)
{
	if (s->page->n >= s->ask->limit || s->looked > MAX_TRACE_SCAN) {
		return false;
	}
	if (line_parse(l, text, len, &s->page->broken) != 0) {
		return false;
	}
	s->page->broken = NULL;
	if (is_wanted(s->ask, l) && !put_line(s, l)) {
		return false;
	}
	s->looked += len;
	s->page->next++;
	return true;
}

/* Skips the lines before `from`. Starts where the last page ended, if that is not after
 * `from`. */
static enum reader_line skip_lines(const struct records *k, struct reader *in,
                                   const struct served_record *r, uint64_t from)
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

int records_lines(const struct serve *s, const struct served_record *r,
                  const struct records_ask *ask, records_line_fn *line, void *arg,
                  struct records_page *ret, struct ssb_error *err)
{
	struct records_page page = { .next = ask->from };
	struct line_scan scan = { .ask = ask, .line = line, .arg = arg, .page = &page };
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text;
	size_t len;
	uint64_t offset = 0;

	buf_init(&scan.text, LINE_ROOM);
	reader_init(&in, r->file.fd, 0);
	enum reader_line got = skip_lines(s->records, &in, r, ask->from);
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

/* ---- output ---------------------------------------------------------------------- */

const char *const OUTPUT_KINDS[2] = { "stdout", "stderr" };

/* Guesses the stream of a line from its first bytes; -1: neither stream. Parsing every line would
 * take too long. */
static int stream_of(const char *line, size_t len)
{
	static const char *const marks[2] = { "\"kind\":\"stdout\"", "\"kind\":\"stderr\"" };
	size_t head = len < HEAD ? len : HEAD;

	for (int i = 0; i < 2; i++) {
		if (memmem(line, head, marks[i], strlen(marks[i])) != NULL) {
			return i;
		}
	}
	return -1;
}

static bool is_line_start(const struct served_record *r, uint64_t from)
{
	char before = '\n';

	return from <= r->size &&
	       (from == 0 ||
	        (pread(r->file.fd, &before, 1, (off_t)from - 1) == 1 && before == '\n'));
}

/* Finds out which streams continue after the page. If the rest of the record is too long to be
 * searched, assumes that both do. */
static void look_ahead(struct output_page *page, struct reader *in)
{
	const char *text;
	size_t len;
	size_t looked = 0;

	while ((!page->more[0] || !page->more[1]) && reader_next(in, &text, &len) == READER_LINE) {
		int i = stream_of(text, len);
		looked += len;
		if (i >= 0) {
			page->more[i] = true;
		}
		if (looked > MAX_SERVED_RECORD) {
			page->more[0] = page->more[1] = true;
		}
	}
}

/* Appends the message to `out`. Returns false if it does not fit, and so belongs to the next
 * page. */
static bool add_message(struct buf *out, const struct json_node *message)
{
	if (out->len + message->len + 1 > out->cap) {
		return false;
	}
	buf_add(out, message->str, message->len);
	/* A message of exactly LINE_BYTES is the beginning of a longer line, which the next
	 * message continues. */
	if (message->len != LINE_BYTES) {
		buf_addc(out, '\n');
	}
	return true;
}

/* Returns false if the page ends before this line. */
static bool take_line(struct output_page *page, struct line *l, const char *text, size_t len)
{
	int i = stream_of(text, len);
	const char *why = NULL;

	if (i < 0) {
		return true;
	}
	if (line_parse(l, text, len, &why) != 0) {
		page->broken = why;
		return false;
	}
	const struct json_node *message =
	        l->kind == (i == 0 ? EV_STDOUT : EV_STDERR) ? line_get(l, "message") : NULL;
	if (message == NULL || message->type != JSON_STRING) {
		return true;
	}
	page->more[i] = !add_message(&page->out[i], message);
	return !page->more[i];
}

int records_output(const struct served_record *r, uint64_t from, struct output_page *page)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text;
	size_t len;
	size_t looked = 0;

	reader_init(&in, r->file.fd, from);
	if (!is_line_start(r, from)) {
		return -1;
	}
	uint64_t at = from;
	while (reader_next(&in, &text, &len) == READER_LINE) {
		looked += len;
		if (looked > MAX_SERVED_RECORD) {
			page->more[0] = page->more[1] = true;
		}
		if (page->more[0] || !take_line(page, &l, text, len)) {
			break;
		}
		at = in.offset - (in.end - in.begin);
	}
	if (page->more[0] || page->more[1]) {
		page->next = at;
		look_ahead(page, &in);
	}
	return 0;
}
