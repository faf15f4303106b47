/* Reads a record of arbitrary bytes. One manifest is made from the record, as `init` does, and
 * another one is reduced to what the record used, as `shrink` does. Both must be valid and must not
 * request anything dangerous. */
#include <string.h>
#include <sys/mman.h>

#include "fuzz.h"
#include "base/limits.h"
#include "base/own.h"
#include "learn/propose.h"
#include "learn/shrink.h"
#include "os/file.h"

static const char BASE[] = "skill: {name: s, version: '1'}\nentrypoint: {command: sh}\n"
                           "permissions:\n  network: {egress: [{domain: '*.example.com'}]}\n"
                           "  filesystem: {read: [~/notes], write: [/srv/out]}\n"
                           "  env_vars: {allow: [KEY_A, LANG]}\n";

static struct manifest *parse(const char *text, size_t len)
{
	struct manifest *m = NULL;

	must(manifest_parse("m", text, len, &m, NULL, NULL) == 0);
	return m;
}

static void check_proposal(const struct manifest *base, const struct needs *s)
{
	AUTO(manifest_freep) struct manifest *m = NULL;
	auto_buf text = BUF(MAX_YAML_BYTES);

	if (propose_manifest(base, s, NULL, &text) != 0) {
		return;
	}
	m = parse(text.data, text.len);
	for (size_t i = 0; i < s->n; i++) {
		/* A dangerous variable may be in the new manifest only if it was in the base. */
		must(s->v[i].danger == NULL || s->v[i].kind == NEED_PROGRAM ||
		     cover_manifest(base, s->home, &s->v[i]) || s->v[i].kind != NEED_ENV ||
		     !cover_manifest(m, s->home, &s->v[i]));
	}
}

static void check_shrink(const struct manifest *base, const struct needs *s)
{
	struct shrink unused = { 0 };
	auto_buf patch = BUF(1 << 20);

	must(shrink_find(base, s, &unused) == 0);
	must(unused.n == 0 ||
	     shrink_patch(base, &unused, "m", BASE, sizeof(BASE) - 1, &patch) == 0);
	shrink_done(&unused);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(needs_done) struct needs s = { 0 };
	AUTO(manifest_freep) struct manifest *base = parse(BASE, sizeof(BASE) - 1);
	const struct owner owner = { .home = "/nonexistent/u",
		                     .user = "u",
		                     .config_dir = "/nonexistent/c",
		                     .state_dir = "/nonexistent/s" };
	struct ssb_error err = { 0 };
	auto_fd fd = memfd_create("record", MFD_CLOEXEC);

	must(fd >= 0 && file_write_all(fd, data, size) == 0);
	if (needs_from_record(&owner, fd, "run", &s, &err) != 0) {
		must(err.code != SSB_OK && err.text[0] != '\0');
		return 0;
	}
	must(s.n <= MAX_NEEDS);
	check_proposal(base, &s);
	check_shrink(base, &s);
	return 0;
}
