/* cmd_doctor.c - shows, layer by layer, what this kernel and machine offer. */
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/screen.h"

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

/* The checks that may fail: a skill then still runs, and the text says what is different. Every
 * other check must be ok. */
static const struct {
	const char *name;
	const char *words;
} OPTIONAL[] = {
	{ "cgroup", "memory is limited by a watchdog, not by a cgroup" },
	{ "overlay", "some declared directories may be refused" },
	{ "idmap", "declared writes fail" },
	{ "seccomp-notify", "attempts are blocked, but not recorded" },
	{ "groups", "a skill keeps your groups" },
	{ "core-dumps", "this machine learns when a skill crashes" },
};

static const char *find_difference(const struct ssb_check *c)
{
	for (size_t i = 0; i < ARRAY_LEN(OPTIONAL); i++) {
		if (strcmp(OPTIONAL[i].name, c->name) == 0) {
			return OPTIONAL[i].words;
		}
	}
	return NULL;
}

/* Ends the list with one line that says whether skills can run here, and what is different. */
static void put_verdict(struct buf *out, const struct ssb_check *checks, size_t n)
{
	auto_buf missing = BUF(SAY_MAX), different = BUF(SAY_MAX);

	buf_adds(&different, "");
	for (size_t i = 0; i < n; i++) {
		const char *words = checks[i].ok ? NULL : find_difference(&checks[i]);
		if (words != NULL) {
			buf_addf(&different, "; %s", words);
		} else if (!checks[i].ok) {
			buf_addf(&missing, "%s%s", missing.len > 0 ? ", " : "", checks[i].name);
		}
	}
	if (missing.len > 0) {
		say_colour(out, STDOUT_FILENO, SAY_RED, "not ready");
		buf_addf(out, ": %s must work, or be named with --best-effort; the help is above\n",
		         missing.data);
		return;
	}
	say_colour(out, STDOUT_FILENO, different.len > 0 ? SAY_YELLOW : SAY_GREEN, "ready");
	buf_addf(out, "%s\n", different.data);
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
		return exit_status_told(&err);
	}
	if (request_has(r, FLAG_JSON)) {
		put_json(&out, checks, n);
		return say_out(STDOUT_FILENO, &out);
	}
	put_text(&out, checks, n);
	put_verdict(&out, checks, n);
	return screen_text(STDOUT_FILENO, &out);
}
