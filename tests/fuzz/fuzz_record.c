/* Verifies, collects and shows a record of arbitrary bytes. The text for people must be UTF-8 that
 * cannot control a terminal. Valid JSON must be the same after it is written again. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "trace/verify.h"
#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "cli/line.c"
#include "cli/say.c"
#include "cli/screen.c"
#include "os/file.h"
#include "report/remedy.h"
#include "report/overview.h"

static void check_text(const struct buf *b)
{
	for (size_t i = 0; i < b->len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(b->data + i, b->len - i, &cp);
		must(n > 0 && (cp == '\n' || !visible_deceptive(cp)));
		i += n;
	}
}

static void write_again(struct json *j, const struct json_doc *d, const struct json_node *n)
{
	if (n->type == JSON_STRING) {
		json_strn(j, n->str, n->len);
	} else if (n->type == JSON_NUMBER) {
		json_raw(j, n->str, n->len);
	} else if (n->type == JSON_ARRAY || n->type == JSON_OBJECT) {
		json_open(j, n->type == JSON_ARRAY ? '[' : '{');
		for (const struct json_node *m = json_first(d, n); m != NULL; m = json_next(d, m)) {
			if (n->type == JSON_OBJECT) {
				json_key(j, m->key);
			}
			write_again(j, d, m);
		}
		json_close(j, n->type == JSON_ARRAY ? ']' : '}');
	} else {
		json_raw(j,
		         n->type == JSON_NULL   ? "null"
		         : n->type == JSON_TRUE ? "true"
		                                : "false",
		         n->type == JSON_FALSE ? 5 : 4);
	}
}

/* Bytes that are not UTF-8 may form a character when they are written side by side, so the first
 * text that we write may differ from the second. The second must equal the third. */
static void check_json(const char *text, size_t len, int rounds)
{
	struct json_doc doc = { 0 };
	const char *why = NULL;
	struct json j;
	auto_buf out = BUF(64 << 20);

	if (json_read(&doc, text, len, &why) == 0) {
		json_init(&j, &out, false);
		write_again(&j, &doc, json_top(&doc));
		must(!out.failed);
		if (rounds > 0) {
			check_json(out.data, out.len, rounds - 1);
		} else {
			must(out.len == len && memcmp(out.data, text, len) == 0);
		}
	} else {
		must(why != NULL && rounds == 2); /* it is not a text that we wrote */
	}
	json_doc_done(&doc);
}

static void check_lines(int fd)
{
	static const struct render_style style = { -1, true, true, "" };
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	auto_buf out = BUF(SAY_MAX);

	reader_init(&in, fd, 0);
	while (reader_next(&in, &text, &len) == READER_LINE) {
		check_json(text, len, 2);
		if (line_parse(&l, text, len, &why) == 0) {
			buf_reset(&out);
			line_render(&out, &l, &style);
			must(!out.failed &&
			     (out.len == 0 || strchr(out.data, '\n') == out.data + out.len - 1));
			remedy_text(&out, &l, l.seq % 2 == 0);
			check_text(&out);
		}
	}
}

static void check_view(int fd)
{
	AUTO(overview_done) struct overview v = { 0 };
	auto_buf out = BUF(SAY_MAX);

	must(overview_read(&v, fd, "", NULL) == 0);
	for (size_t i = 0; i < v.n_items; i++) {
		const struct overview_item *x = &v.items[i];
		const char *const texts[] = { x->text,  x->program, x->reason, x->rule,
			                      x->error, x->remedy,  x->first };
		buf_reset(&out);
		for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
			buf_adds(&out, texts[k] != NULL ? texts[k] : "");
		}
		check_text(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[VERIFY_KEY_BYTES] = { 1 };
	const struct verify_ask ask = { key, "" };
	struct verify_result r = { 0 };
	auto_fd fd = memfd_create("record", MFD_CLOEXEC);

	must(fd >= 0 && file_write_all(fd, data, size) == 0);
	must(verify_record(fd, &ask, &r, NULL) == 0);
	must(r.state != VERIFY_COMPLETE && r.bad_at == r.records && r.bytes <= size);
	check_lines(fd);
	check_view(fd);
	return 0;
}
