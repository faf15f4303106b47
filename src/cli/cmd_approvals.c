/* cmd_approvals.c - lists what you approved and whether each approval is still valid. Also removes
 * an approval, even that of a skill that no longer exists. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/error.h"
#include "base/json.h"
#include "base/own.h"
#include "base/stamp.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "consent/consent.h"
#include "consent/lock_json.h"
#include "policy/owner.h"
#include "policy/path.h"

struct approval_row {
	const struct lock *lock;
	const char *state; /* "holds", "changed", "expired", "used", "gone", "unreadable" */
	const char *why;   /* the reason if "unreadable"; else "" */
	struct ssb_error err;
};

/* An approval names a real path. If that path now leads to another place, a symlink has
 * replaced the skill or a directory above it. */
static bool is_led_elsewhere(struct approval_row *r)
{
	auto_free char *real = realpath(r->lock->skill, NULL);

	if (real == NULL || strcmp(real, r->lock->skill) == 0) {
		return false;
	}
	return ssb_fail(&r->err, SSB_E_POLICY, 0, "approval", "is now a symlink to '%.200s'",
	                real) != 0;
}

static const char *find_state(const struct owner *o, struct approval_row *r)
{
	AUTO(consent_found_done) struct consent_found f = { 0 };
	struct stat st;

	r->why = "";
	if (lstat(r->lock->skill, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
		return "gone";
	}
	if (is_led_elsewhere(r) || consent_look(o, r->lock->skill, &f, &r->err) != 0) {
		r->why = r->err.text;
		return "unreadable";
	}
	return f.state == CONSENT_OVER ? (r->lock->uses == 0 ? "used" : "expired")
	                               : consent_state_name(f.state);
}

/* ---- JSON ----------------------------------------------------------------------- */

static void put_row_json(struct json *j, const struct approval_row *r)
{
	const struct lock *l = r->lock;
	char digest[DIGEST_TEXT];

	json_open(j, '{');
	lock_json_skill(j, l);
	json_kstr(j, "state", r->state);
	lock_json_terms(j, l);
	lock_json_given(j, l);
	lock_json_allowed(j, l);
	json_kstr(j, "tree", digest_text(l->files.tree, digest));
	json_kuint(j, "files", l->files.n);
	json_kuint(j, "bytes", l->files.bytes);
	json_kbool(j, "snapshot", l->snapshot);
	json_close(j, '}');
}

/* ---- text ----------------------------------------------------------------------- */

static void put_words(struct buf *out, const char *label, const char *flag, const char *word)
{
	buf_addf(out, "  %-9s %s", label, flag);
	visible_addf(out, "%s\n", word);
}

/* Writes the grants that the owner remembered, each with its date and reason. */
static void put_allowed(struct buf *out, const struct lock *l)
{
	for (size_t i = 0; i < l->n_allowed; i++) {
		const struct given *g = &l->allowed[i];
		buf_addf(out, "  %-9s --%s ", i == 0 ? "allowed" : "", lock_option_name(g->option));
		visible_text(out, g->value, false);
		buf_addf(out, "  (%.10s%s", g->at, g->reason[0] != '\0' ? ": " : "");
		visible_text(out, g->reason, false);
		buf_adds(out, ")\n");
	}
}

static void put_row_text(struct buf *out, const struct approval_row *r)
{
	const struct lock *l = r->lock;
	const struct timespec expires = { .tv_sec = (time_t)l->expires };
	struct stamp stamp = STAMP_NONE;
	char flag[32];

	visible_text(out, l->skill, false);
	buf_addf(out, ": %s%s", r->state, r->why[0] != '\0' ? ": " : "");
	visible_text(out, r->why, false);
	buf_addf(out, "\n  approved  %.10s %.5s by ", l->at, l->at + 11);
	visible_text(out, l->by, false);
	if (l->expires > 0) {
		buf_addf(out, ", until %.10s", stamp_text(&stamp, &expires));
	}
	if (l->uses >= 0) {
		buf_addf(out, ", %lld run%s left", (long long)l->uses, l->uses == 1 ? "" : "s");
	}
	buf_addf(out, "\n  files     %zu, ", l->files.n);
	amount_bytes(out, l->files.bytes);
	buf_addc(out, '\n');
	for (size_t i = 0; i < l->asked.n; i++) {
		if (!string_list_has(&l->declined, l->asked.v[i])) {
			put_words(out, "asked for", "", l->asked.v[i]);
		}
	}
	for (size_t i = 0; i < l->n_grants; i++) {
		snprintf(flag, sizeof(flag), "--%s ", lock_option_name(l->grants[i].option));
		put_words(out, "granted", flag, l->grants[i].value);
	}
	for (size_t i = 0; i < l->declined.n; i++) {
		put_words(out, "declined", "", l->declined.v[i]);
	}
	put_allowed(out, l);
}

static void put_bad_json(struct json *j, const struct lock_bad *b)
{
	json_open(j, '{');
	json_kstr(j, "skill", NULL);
	json_kstr(j, "state", "unreadable");
	json_kstr(j, "file", b->file);
	json_kstr(j, "why", b->why.text);
	json_close(j, '}');
}

static void put_bad_text(struct buf *out, const struct lock_bad *b)
{
	buf_addf(out, "%s: unreadable: ", b->file);
	visible_text(out, b->why.text, false);
	buf_addf(out,
	         "\n  this approval is not valid; to remove it: skillsandbox approvals --revoke "
	         "%.64s\n",
	         b->file);
}

int cmd_approvals_list(const struct owner *o, const char *skill, bool allowed, bool as_json)
{
	AUTO(lock_list_done) struct lock_list l = { 0 };
	struct ssb_error err = { 0 };
	auto_buf out = BUF(SAY_MAX);

	if (lock_list(o, &l, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	struct json j = JSON_TO(&out, true);
	if (as_json) {
		json_open(&j, '[');
	}
	for (size_t i = 0; i < l.n; i++) {
		struct approval_row r = { .lock = &l.v[i] };
		if ((allowed && l.v[i].n_allowed == 0) ||
		    (skill != NULL && strcmp(skill, l.v[i].skill) != 0)) {
			continue;
		}
		r.state = find_state(o, &r);
		if (as_json) {
			put_row_json(&j, &r);
		} else {
			put_row_text(&out, &r);
		}
	}
	for (size_t i = 0; skill == NULL && i < l.n_bad; i++) {
		if (as_json) {
			put_bad_json(&j, &l.bad[i]);
		} else {
			put_bad_text(&out, &l.bad[i]);
		}
	}
	if (as_json) {
		json_close(&j, ']');
		buf_addc(&out, '\n');
	}
	return (as_json ? say_out : screen_text)(STDOUT_FILENO, &out);
}

/* Returns the path that the caller named as an absolute path, without following symlinks. Returns
 * new. */
static char *path_as_named(const char *word)
{
	auto_free char *cwd = getcwd(NULL, 0);
	auto_free char *path = cwd != NULL ? path_from(cwd, word) : NULL;

	return path != NULL ? path_words(path) : NULL;
}

int cmd_approvals_revoke(const struct owner *o, const char *word)
{
	/* The skill may not exist any more, or a symlink may have replaced it. So both the real
	 * path and the path as it was named are tried. A damaged approval has no path: it is
	 * named by the name of its file. */
	bool file = lock_is_name(word);
	auto_free char *real = file ? strdup(word) : path_real(word);
	auto_free char *named = file ? NULL : path_as_named(word);
	const char *const names[] = { real, named };
	struct ssb_error err = { 0 };
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		bool was = false;
		if (names[i] != NULL && consent_revoke(o, names[i], &was, &err) != 0) {
			say_error(&err);
			return EXIT_SANDBOX;
		}
		any |= was;
	}
	if (!any && real == NULL) {
		return say_fail(EXIT_SANDBOX, "%s: directory not found", word);
	}
	say_notef(any ? "the approval was removed" : "this skill was not approved");
	return EXIT_FINE;
}

int cmd_approvals(struct request *r)
{
	AUTO(owner_done) struct owner owner = { 0 };
	bool revoke = request_has(r, FLAG_REVOKE);
	struct ssb_error err = { 0 };

	if (r->operands.n != (revoke ? 1 : 0) || r->operands.dashes) {
		return say_fail(EXIT_USAGE,
		                revoke ? "approvals --revoke needs one DIR, or the name of a file"
		                       : "approvals takes a DIR only with --revoke");
	}
	if (owner_load(&owner, &err) != 0) {
		say_error(&err);
		return EXIT_SANDBOX;
	}
	return revoke ? cmd_approvals_revoke(&owner, r->operands.v[0])
	              : cmd_approvals_list(&owner, NULL, false, request_has(r, FLAG_JSON));
}
