/* A client's configuration of arbitrary bytes: what was added can be added again without a
 * change, and removed again. */
#include <string.h>

/* The command line is a program, not part of the library. */
#include "fuzz.h"
#include "cli/config_edit.c"
#include "cli/toml_check.c"

static const char *const PATH[] = { "m", "s", NULL };

static int edit(bool toml, const struct buf *in, bool out, struct buf *ret)
{
	struct ssb_error err = { 0 };

	buf_init(ret, (size_t)64 << 20);
	return toml ? config_edit_toml(in->data, in->len, "a.b", "# mark", out ? NULL : "x = 1\n",
	                               ret, &err)
	            : config_edit_json(in->data, in->len, PATH, out ? NULL : "{\n  \"x\": 1\n}",
	                               ret, &err);
}

static void round_trip(bool toml, const struct buf *in)
{
	auto_buf once, twice, gone, gone_again, diff;

	buf_init(&diff, (size_t)64 << 20);
	buf_init(&twice, 1);
	buf_init(&gone, 1);
	buf_init(&gone_again, 1);
	if (edit(toml, in, false, &once) != 0) {
		return;
	}
	must(edit(toml, &once, false, &twice) == 0);
	must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	config_edit_diff(in->data, once.data, &diff);
	/* A table without our mark that happens to be the same is not ours to take. */
	if (edit(toml, &once, true, &gone) == 0 && gone.data != NULL) {
		must(gone.len <= once.len);
		must(edit(toml, &gone, true, &gone_again) == 0);
		must(gone_again.len == gone.len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf in = BUF((size_t)64 << 20);

	buf_adds(&in, "");
	buf_add(&in, data, size);
	if (in.data == NULL || memchr(data, '\0', size) != NULL) {
		return 0; /* no text file */
	}
	round_trip(false, &in);
	round_trip(true, &in);
	return 0;
}
