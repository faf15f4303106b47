/* Runs lint on a file of a skill of arbitrary bytes; the first byte chooses its name. Two runs must
 * have the same findings. Each finding must have an existing line and a text that cannot control a
 * terminal. */
#include <string.h>

#include "fuzz.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "consent/lint_priv.h"
#include "consent/sarif.h"

static const char *const NAMES[] = { "run.sh", "SKILL.md",  "main.py", "x.js",
	                             "m.pkl",  "data.json", "README",  "a\x1b[2J.py" };

static void must_be_visible(const char *text)
{
	for (size_t len = strlen(text), i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(text + i, len - i, &cp);
		must(n > 0 && (cp == '\n' || !visible_deceptive(cp)));
		i += n;
	}
}

static void look(struct lint *l, const char *name, const char *bytes, size_t len)
{
	*l = (struct lint){ .grade = 'A', .dir = strdup("d") };
	lint_bytes(l, name, (len & 1) != 0, bytes, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(lint_done) struct lint a = { 0 };
	AUTO(lint_done) struct lint b = { 0 };
	auto_buf text, sarif;
	size_t lines = 1;

	buf_init(&text, (size_t)16 << 20);
	buf_init(&sarif, (size_t)16 << 20);
	if (size == 0 || size > MAX_LINT_FILE) {
		return 0;
	}
	const char *name = NAMES[data[0] % ARRAY_LEN(NAMES)];
	const char *bytes = (const char *)data + 1;
	for (size_t i = 1; i < size; i++) {
		lines += data[i] == '\n';
	}
	look(&a, name, bytes, size - 1);
	look(&b, name, bytes, size - 1);
	must(a.n == b.n && a.grade == b.grade && a.n <= MAX_LINT_FINDINGS);
	for (size_t i = 0; i < a.n; i++) {
		must(a.v[i].id == b.v[i].id && a.v[i].line == b.v[i].line);
		must(a.v[i].line <= lines && a.v[i].grade <= a.grade);
	}
	lint_text(&text, &a, false);
	sarif_write(&sarif, &a, 1);
	must(!text.failed && !sarif.failed);
	must_be_visible(text.data);
	return 0;
}
