/* cmd_lint.c - finds what is risky in a skill, and grades the skill. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/error.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "consent/lint.h"
#include "consent/sarif.h"
#include "os/file.h"
#include "policy/owner.h"
#include "skill/programs.h"
#include "skill/skill.h"

static void write_json(struct buf *out, const struct lint v[], size_t n)
{
	struct json j = JSON_TO(out, true);

	json_open(&j, '[');
	for (size_t i = 0; i < n; i++) {
		lint_json(&j, &v[i]);
	}
	json_close(&j, ']');
	buf_addc(out, '\n');
}

static void write_text(struct buf *out, const struct lint v[], size_t n, bool color)
{
	for (size_t i = 0; i < n; i++) {
		lint_text(out, &v[i], color);
	}
}

static int write_out(const char *path, bool for_people, const struct buf *out)
{
	struct ssb_error err = { 0 };

	if (path == NULL || strcmp(path, "-") == 0) {
		return (for_people ? screen_text : say_out)(STDOUT_FILENO, out);
	}
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out->failed || fd < 0 || file_write_all(fd, out->data, out->len) != 0) {
		ssb_fail(&err, SSB_E_SYS, out->failed ? ENOMEM : errno, "lint", "cannot write '%s'",
		         path);
		say_error(&err);
		return EXIT_SANDBOX;
	}
	return EXIT_FINE;
}

static int report_findings(const struct request *r, const struct lint v[], size_t n)
{
	const char *path = request_value(r, FLAG_OUTPUT);
	bool found = false, any = false;
	auto_buf out = BUF(SAY_MAX);

	for (size_t i = 0; i < n; i++) {
		found = lint_worst(&v[i], &any) >= LINT_WARNING || found;
	}
	if (request_has(r, FLAG_SARIF)) {
		sarif_write(&out, v, n);
	} else if (request_has(r, FLAG_JSON)) {
		write_json(&out, v, n);
	} else {
		write_text(&out, v, n, path == NULL && say_coloured(STDOUT_FILENO));
	}
	bool for_people = !request_has(r, FLAG_SARIF) && !request_has(r, FLAG_JSON);
	int status = write_out(path, for_people, &out);
	return status != EXIT_FINE ? status : found ? EXIT_FINDINGS : EXIT_FINE;
}

/* Prints the problems of your own manifest for the skill (the sidecar), and says if this machine
 * does not have its program. They are not among the findings: findings must be the same on every
 * machine. */
static void say_local(const char *dir)
{
	AUTO(owner_done) struct owner owner = { 0 };
	AUTO(skill_found_done) struct skill_found found = { 0 };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	struct ssb_error none = { 0 };

	if (diags != NULL && owner_load(&owner, &none) == 0 &&
	    skill_find(dir, owner.config_dir, NULL, &found, diags, &none) == 0) {
		if (!skill_format_derived(found.format)) {
			programs_warn(found.file, &found.manifest->command, SSB_ALARM, diags);
		}
		say_diags(diags, SSB_ALARM);
	}
}

int cmd_lint(struct request *r)
{
	struct ssb_error err = { 0 };
	size_t n = (size_t)r->operands.n, done = 0;

	if (n == 0) {
		return say_fail(EXIT_USAGE, "lint needs a DIR");
	}
	if (request_has(r, FLAG_SARIF) && request_has(r, FLAG_JSON)) {
		return say_fail(EXIT_USAGE, "lint takes --sarif or --json, not both");
	}
	auto_free struct lint *v = calloc(n, sizeof(*v));
	while (v != NULL && done < n && lint_skill(r->operands.v[done], &v[done], &err) == 0) {
		say_local(r->operands.v[done]);
		done++;
	}
	int status = EXIT_SANDBOX;
	if (done == n) {
		status = report_findings(r, v, n);
	} else {
		if (v == NULL) {
			ssb_fail(&err, SSB_E_NOMEM, 0, "lint", "out of memory");
		}
		say_error(&err);
		status = exit_status_of(&err, false);
	}
	for (size_t i = 0; i < done; i++) {
		lint_done(&v[i]);
	}
	return status;
}
