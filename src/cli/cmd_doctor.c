/* cmd_doctor.c - shows, layer by layer, what this kernel and machine offer. */
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/say.h"

static void put_json(struct buf *out, const struct ssb_check *checks, size_t n)
{
	struct json j = JSON_TO(out, true);

	json_open(&j, '[');
	for (size_t i = 0; i < n; i++) {
		json_open(&j, '{');
		json_kstr(&j, "name", checks[i].name);
		json_kbool(&j, "ok", checks[i].ok != 0);
		json_kstr(&j, "detail", checks[i].detail);
		json_kstr(&j, "remedy", checks[i].remedy);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	buf_addc(out, '\n');
}

static void put_text(struct buf *out, const struct ssb_check *checks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct ssb_check *c = &checks[i];
		say_colour(out, STDOUT_FILENO, c->ok ? SAY_GREEN : SAY_RED,
		           c->ok ? "ok     " : "missing");
		buf_addf(out, "  %-14s ", c->name);
		visible_addf(out, "%s\n", c->detail);
		if (c->remedy[0] != '\0') {
			visible_addf(out, "         help: %s\n", c->remedy);
		}
	}
}

int cmd_doctor(struct request *r)
{
	struct ssb_error err = { 0 };
	auto_free struct ssb_check *checks = NULL;
	size_t n = 0;
	auto_buf out = BUF(SAY_MAX);

	if (r->operands.n > 0) {
		return say_fail(EXIT_USAGE, "doctor takes no argument");
	}
	if (ssb_doctor(&checks, &n, &err) != 0) {
		say_error(&err);
		return exit_status_of(&err, false);
	}
	(request_has(r, FLAG_JSON) ? put_json : put_text)(&out, checks, n);
	return say_out(STDOUT_FILENO, &out);
}
