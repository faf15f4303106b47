/* record_output.c - what a run wrote, from its record, page by page.
 *
 * A page is named by its place in the record, in bytes: the next one is found at once,
 * however long the record is. A place that is not the beginning of a line is none. */
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "sandbox/relay.h"
#include "serve/records.h"

#define HEAD 200 /* bytes of a line in which its kind stands */

const char *const OUTPUT_KINDS[2] = { "stdout", "stderr" };

/* Whether the line looks as if it were of a stream; -1: of none. To read all of each line
 * is what takes long. */
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

static bool is_place(const struct record *r, uint64_t from)
{
	char before = '\n';

	return from <= r->size &&
	       (from == 0 ||
	        (pread(r->file.fd, &before, 1, (off_t)from - 1) == 1 && before == '\n'));
}

/* Which of the streams go on behind the page. What is not looked at may be of both. */
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

/* False: it does not fit, and is for the next page. */
static bool add(struct buf *out, const struct json_node *message)
{
	if (out->len + message->len + 1 > out->cap) {
		return false;
	}
	buf_add(out, message->str, message->len);
	/* A piece of this very length is the beginning of a longer line. */
	if (message->len != LINE_BYTES) {
		buf_addc(out, '\n');
	}
	return true;
}

/* False: the page ends before this line. */
static bool take(struct output_page *page, struct line *l, const char *text, size_t len)
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
	        strcmp(l->kind, OUTPUT_KINDS[i]) == 0 ? line_get(l, "message") : NULL;
	if (message == NULL || message->type != JSON_STRING) {
		return true;
	}
	page->more[i] = !add(&page->out[i], message);
	return !page->more[i];
}

int record_output(const struct record *r, uint64_t from, struct output_page *page)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text;
	size_t len;
	size_t looked = 0;

	if (!is_place(r, from)) {
		return -1;
	}
	reader_init(&in, r->file.fd, from);
	uint64_t at = from;
	while (reader_next(&in, &text, &len) == READER_LINE) {
		looked += len;
		if (looked > MAX_SERVED_RECORD) {
			page->more[0] = page->more[1] = true;
		}
		if (page->more[0] || !take(page, &l, text, len)) {
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
