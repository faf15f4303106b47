/* Reads a file of a skill from arbitrary bytes; the first line is its name. The manifest that is
 * made from it must be valid, and may request only what was found in the file. */
#include <string.h>

#include "fuzz.h"
#include "base/limits.h"
#include "base/own.h"
#include "learn/propose.h"

static const char BASE[] = "skill: {name: s, version: '1'}\nentrypoint: {command: sh}\n"
                           "permissions: {}\n";

static void check_proposal(const struct needs *s)
{
	AUTO(manifest_freep) struct manifest *base = NULL;
	AUTO(manifest_freep) struct manifest *m = NULL;
	struct ssb_error err = { 0 };
	auto_free size_t *open = NULL;
	size_t n = 0;
	size_t innocent = 0;
	auto_buf text = BUF(MAX_YAML_BYTES);

	must(manifest_parse("b", BASE, sizeof(BASE) - 1, &base, NULL, &err) == 0);
	if (propose_manifest(base, s, "head", &text) != 0) {
		return;
	}
	must(manifest_parse("m", text.data, text.len, &m, NULL, &err) == 0);
	for (size_t i = 0; i < s->n; i++) {
		innocent += s->v[i].danger == NULL && s->v[i].kind != NEED_PROGRAM;
	}
	must(m->read.n + m->write.n + m->env.n + m->n_egress <= innocent);
	must(propose_uncovered(m, s, &open, &n) == 0);
	for (size_t i = 0; i < n && innocent < MAX_LIST_ITEMS; i++) {
		must(s->v[open[i]].danger != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(needs_done) struct needs s = { 0 };
	const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;

	if (newline == NULL) {
		return 0;
	}
	auto_free char *name = strndup((const char *)data, (size_t)(newline - data));
	size_t len = size - (size_t)(newline + 1 - data);
	auto_free char *text = malloc(len + (len == 0));
	must(name != NULL && text != NULL);
	memcpy(text, newline + 1, len);
	must(hints_text(name, text, len, &s) == 0);
	must(s.n <= MAX_NEEDS);
	for (size_t i = 1; i < s.n; i++) { /* needs must be sorted by kind, and counted */
		must(s.v[i - 1].kind <= s.v[i].kind && s.v[i].hint && s.v[i].count > 0);
	}
	check_proposal(&s);
	return 0;
}
