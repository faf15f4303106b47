/* cmd_validate.c - checks all given manifests, and reports every finding. */
#include <unistd.h>

#include "base/json.h"
#include "base/name.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/say.h"

static void put_findings(struct json *j, const char *file, const struct ssb_diags *diags)
{
	for (size_t i = 0; i < ssb_diags_count(diags); i++) {
		const struct ssb_diag *d = ssb_diags_get(diags, i);
		json_open(j, '{');
		json_kstr(j, "file", file);
		json_kstr(j, "where", d->where);
		json_kstr(j, "severity", name_of_finding(d->severity));
		json_kstr(j, "text", d->text);
		json_kstr(j, "remedy", d->remedy);
		json_close(j, '}');
	}
}

/* Reports a file that cannot be checked at all as a finding. */
static void put_failure(struct json *j, const char *file, const struct ssb_error *err)
{
	json_open(j, '{');
	json_kstr(j, "file", file);
	json_kstr(j, "where", err->where);
	json_kstr(j, "severity", name_of_finding(SSB_ERROR));
	json_kstr(j, "text", err->text);
	json_kstr(j, "remedy", "");
	json_close(j, '}');
}

/* Returns true if the file is valid. */
static bool validate_one(const char *file, struct json *j, const struct request *r)
{
	struct ssb_error err = { 0 };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();

	bool valid = ssb_validate(file, diags, &err) == 0;
	bool told = diags != NULL && ssb_diags_count(diags) > 0 && err.code == SSB_E_MANIFEST;
	if (request_has(r, FLAG_JSON)) {
		if (diags != NULL) {
			put_findings(j, file, diags);
		}
		if (!valid && !told) {
			put_failure(j, file, &err);
		}
		return valid;
	}
	if (diags != NULL) {
		say_diags(diags, SSB_NOTE);
	}
	if (!valid && !told) {
		say_error(&err);
	}
	if (valid && !request_has(r, FLAG_QUIET)) {
		visible_addf(j->out, "%s: valid\n", file);
	}
	return valid;
}

int cmd_validate(struct request *r)
{
	bool all_valid = true;
	bool as_json = request_has(r, FLAG_JSON);
	auto_buf out = { 0 };

	if (r->operands.n == 0) {
		return say_fail(EXIT_USAGE, "validate needs a DIR or FILE");
	}
	buf_init(&out, SAY_MAX);
	struct json j = JSON_TO(&out, true);
	if (as_json) {
		json_open(&j, '[');
	}
	for (int i = 0; i < r->operands.n; i++) {
		all_valid = validate_one(r->operands.v[i], &j, r) && all_valid;
	}
	if (as_json) {
		json_close(&j, ']');
		buf_addc(&out, '\n');
	}
	int status = say_out(STDOUT_FILENO, &out);
	return status != EXIT_FINE ? status : all_valid ? EXIT_FINE : EXIT_FINDINGS;
}
