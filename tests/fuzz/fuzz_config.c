/* Edits an agent's configuration of arbitrary bytes. After an entry has been added, adding it again
 * must change nothing, and removing it must work. */
#include <string.h>

/* Included as source: the code of the command line is not in the library. */
#include "fuzz.h"
#include "cli/config_edit.c"

static const char *const PATH[] = { "m", "s", NULL };

static int edit(const struct buf *in, const char *value, struct buf *ret)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	struct ssb_error err = { 0 };
	const char *why = NULL;

	buf_init(ret, (size_t)64 << 20);
	return json_read_del(&doc, in->data, in->len, &why) != 0
	               ? -1
	               : config_edit_set(&doc, PATH, value, ret, &err);
}

static void round_trip(const struct buf *in)
{
	auto_buf once, twice, gone, gone_again, diff;

	buf_init(&diff, (size_t)64 << 20);
	buf_init(&twice, 1);
	buf_init(&gone, 1);
	buf_init(&gone_again, 1);
	if (edit(in, "{\"x\": 1}", &once) != 0) {
		return;
	}
	must(edit(&once, "{\"x\": 1}", &twice) == 0);
	must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	config_edit_diff(in->data, once.data, &diff);
	must(edit(&once, NULL, &gone) == 0 && gone.len < once.len);
	must(edit(&gone, NULL, &gone_again) == 0 && gone_again.len == gone.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf in = BUF((size_t)64 << 20);

	buf_adds(&in, "");
	buf_add(&in, data, size);
	if (in.data == NULL || memchr(data, '\0', size) != NULL) {
		return 0; /* a file with a NUL byte is not a text file */
	}
	round_trip(&in);
	return 0;
}
