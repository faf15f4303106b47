/* Parses a manifest of arbitrary bytes: the parser must end without a crash, and an accepted
 * manifest must be as other code expects it. */
#include <string.h>

#include "fuzz.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/manifest.h"
#include "manifest/write.h"

/* Other code relies on these properties without checking them again. */
static void check_promises(const struct manifest *m)
{
	char *again = NULL;
	enum host_kind kind = HOST_EXACT;

	must(m->name[0] != '\0' && strlen(m->name) <= MAX_NAME_BYTES);
	must(m->version != NULL && m->description != NULL && m->author != NULL);
	must(m->command.s == NULL ? m->args.n == 0 : m->command.s[0] != '\0');
	must(m->workdir[0] == '/');
	must(m->n_egress <= MAX_LIST_ITEMS && m->args.n <= MAX_LIST_ITEMS);
	for (size_t i = 0; i < m->n_egress; i++) {
		const struct egress_rule *rule = &m->egress[i];
		must(rule->n_ports > 0 && rule->ports[0] > 0);
		/* normalising twice changes nothing */
		must(domain_check(rule->domain.s, &again, &kind) == NULL);
		must(strcmp(again, rule->domain.s) == 0 && kind == rule->kind);
		free(again);
	}
	for (size_t i = 0; i < m->read.n; i++) {
		must(strstr(m->read.v[i].s, "/../") == NULL && m->read.v[i].line > 0);
		must(check_path(m->read.v[i].s, &again) == NULL);
		must(strcmp(again, m->read.v[i].s) == 0);
		free(again);
	}
	for (size_t i = 0; i < m->env.n; i++) {
		must(check_env_name(m->env.v[i].s) == NULL);
	}
	must(m->resources.memory_mb >= MIN_MEMORY_MB && m->resources.memory_mb <= MAX_MEMORY_MB);
	must(m->resources.max_disk_mb >= 1);
}

/* A manifest that is written must be read back as the same manifest. */
static void check_written(const struct manifest *m)
{
	struct manifest *again = NULL;
	auto_buf text, twice;

	buf_init(&text, (size_t)4 * MAX_YAML_BYTES);
	buf_init(&twice, (size_t)4 * MAX_YAML_BYTES);
	manifest_write(&text, m, NULL);
	must(!text.failed);
	if (text.len > MAX_YAML_BYTES) {
		return; /* its indentation can make it longer than the original */
	}
	must(manifest_parse_as(ENTRY_OPTIONAL, "again", text.data, text.len, &again, NULL, NULL) ==
	     0);
	manifest_write(&twice, again, NULL);
	must(twice.len == text.len && memcmp(twice.data, text.data, text.len) == 0);
	must(again->n_egress == m->n_egress && again->read.n == m->read.n &&
	     again->write.n == m->write.n && again->env.n == m->env.n);
	for (size_t i = 0; i < m->args.n; i++) {
		must(again->args.n == m->args.n && strcmp(again->args.v[i].s, m->args.v[i].s) == 0);
	}
	must(strcmp(again->description, m->description) == 0);
	manifest_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ssb_diags *diags = ssb_diags_new();
	struct ssb_error err = { 0 };
	struct manifest *m = NULL;

	if (manifest_parse_as(ENTRY_OPTIONAL, "fuzz.yaml", (const char *)data, size, &m, diags,
	                      &err) == 0) {
		must(err.code == SSB_OK && !diag_has_errors(diags));
		check_promises(m);
		check_written(m);
		manifest_free(m);
	} else {
		must(m == NULL && err.code == SSB_E_MANIFEST && diag_has_errors(diags));
		must(err.where[0] != '\0' && err.text[0] != '\0');
	}
	ssb_diags_free(diags);
	return 0;
}
