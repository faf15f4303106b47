/* Reads SKILL.md and manifest.yaml from arbitrary bytes with the lenient reader (says): it must
 * never crash or fail. Our strict reader must accept the resulting manifest without a warning, and
 * the manifest may request only variables. The first line is also read as the first line of a
 * script. */
#include <string.h>

#include "fuzz.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/limits.h"
#include "manifest/manifest.h"
#include "skill/derive.h"
#include "skill/says.h"
#include "skill/script.h"

static void check_says(const struct says *s, char *const *argv)
{
	const char *command = argv[0];
	const struct derived d = { "SKILL.md", "directory", s, command != NULL ? argv : NULL };
	struct ssb_diags *diags = ssb_diags_new();
	struct manifest *m = NULL;
	struct ssb_error err = { 0 };
	struct buf text;

	for (size_t i = 0; i < WISH_KINDS; i++) {
		must(s->wishes[i].n <= MAX_WISHES);
		for (size_t k = 0; k < s->wishes[i].n; k++) {
			must(i != WISH_ENV || check_env_name(s->wishes[i].v[k].name) == NULL);
		}
	}
	buf_init(&text, MAX_YAML_BYTES);
	derive_manifest(&text, &d);
	must(manifest_parse_as(ENTRY_OPTIONAL, "f", text.data, text.len, &m, diags, &err) == 0);
	must(ssb_diags_count(diags) == 0);
	must(m->n_egress == 0 && m->read.n == 0 && m->write.n == 0);
	must(m->profile == PROFILE_DEFAULT && strcmp(m->workdir, "/skill") == 0);
	must(m->env.n == s->wishes[WISH_ENV].n);
	must(memcmp(&m->resources, &RESOURCE_DEFAULTS, sizeof(m->resources)) == 0);
	must(command == NULL ? m->command.s == NULL : strcmp(m->command.s, command) == 0);
	manifest_free(m);
	buf_done(&text);
	ssb_diags_free(diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ssb_diags *diags = ssb_diags_new();
	const char *text = (const char *)data;
	struct script script = { 0 };
	struct says s;

	int is_script = script_read_shebang(text, size, &script) == 0;
	must(is_script == (script.n > 0) && script.n <= MAX_SHEBANG_WORDS);
	must(says_markdown(&s, "SKILL.md", text, size, diags) == 0);
	check_says(&s, script.words);
	says_done(&s);
	must(says_skillware(&s, "manifest.yaml", text, size, diags) == 0);
	check_says(&s, script.words);
	says_done(&s);
	must(!diag_has_errors(diags));
	script_done(&script);
	ssb_diags_free(diags);
	return 0;
}
