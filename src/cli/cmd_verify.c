/* cmd_verify.c - checks that a record is complete and unchanged. The exit status is 0 (good), 1
 * (bad) or 3 (incomplete).
 *
 * A ledger grows after it was signed, so an attacker can cut it back to an earlier signature.
 * If the store that the ledger comes from is on this machine, `audit verify` asks it how long
 * the ledger is. */
#include <inttypes.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/own.h"
#include "base/visible.h"
#include "cli/cli_record.h"
#include "cli/say.h"
#include "cli/screen.h"
#include "session/session.h"

static const int STATUS[] = {
	[VERIFY_COMPLETE] = EXIT_FINE,
	[VERIFY_INCOMPLETE] = EXIT_INCOMPLETE,
	[VERIFY_BAD] = EXIT_FINDINGS,
};

static void put_json(struct buf *out, const struct verify_result *v, const char *key, bool live)
{
	struct json j = JSON_TO(out, true);

	json_open(&j, '{');
	json_kstr(&j, "state", verify_state_name(v->state));
	json_kstr(&j, v->ledger ? "session_id" : "run_id", v->run_id);
	json_kuint(&j, "records", v->records);
	json_kuint(&j, "bytes", v->bytes);
	if (v->ledger) {
		json_kuint(&j, "open_reservations", v->open);
	}
	if (v->state != VERIFY_COMPLETE) {
		json_kuint(&j, "at", v->bad_at);
		json_kstr(&j, "why", v->why);
	}
	json_kbool(&j, "live", live);
	json_kbool(&j, "bundle", v->bundle);
	json_kstr(&j, "key", v->signed_end ? key : NULL);
	json_close(&j, '}');
	buf_addc(out, '\n');
}

static void put_text(struct buf *out, const struct verify_result *v, const char *key, bool live)
{
	switch (v->state) {
	case VERIFY_COMPLETE:
		say_colour(out, STDOUT_FILENO, SAY_GREEN, "complete");
		if (v->open > 0) {
			buf_addf(out, " so far, %" PRIu64 " reservation%s open", v->open,
			         v->open == 1 ? " was" : "s were");
		}
		buf_addf(out, ": %" PRIu64 " records, signed with the key %s\n", v->records, key);
		return;
	case VERIFY_INCOMPLETE:
		say_colour(out, STDOUT_FILENO, SAY_YELLOW, "incomplete");
		buf_addf(out, ": %" PRIu64 " good records, then %s%s\n", v->records, v->why,
		         live ? " (the run is still running)" : "");
		return;
	default:
		say_colour(out, STDOUT_FILENO, SAY_RED, "bad");
		buf_addf(out, " at record %" PRIu64 ": ", v->bad_at);
		visible_text(out, v->why, false);
		if (v->signed_end) {
			buf_addf(out, " (the key is %s)", key);
		}
		buf_addc(out, '\n');
	}
}

static void judge_store(const struct ledger_known *k, struct verify_result *v)
{
	if (!k->found || (k->same && k->lines == v->records)) {
		return;
	}
	v->state = k->same ? VERIFY_INCOMPLETE : VERIFY_BAD;
	v->bad_at = k->same ? v->records : v->records - 1;
	(void)snprintf(
	        v->why, sizeof(v->why),
	        k->lines < v->records
	                ? "the file is longer than the ledger in the store, which has %" PRIu64
	                  " records"
	        : k->same ? "the end is missing: the ledger in the store has %" PRIu64 " records"
	                  : "this record differs from that of the ledger in the store, "
	                    "which has %" PRIu64 " records",
	        k->lines);
}

/* Compares the ledger with the store. If the store does not answer, `v` is unchanged. */
static void ask_store(const struct owner *owner, struct verify_result *v)
{
	struct session_store *store = NULL;
	struct ledger_known known = { 0 };
	struct ssb_error err = { 0 };

	if (!v->ledger || v->state == VERIFY_BAD || v->records == 0 ||
	    !session_store_exists(owner)) {
		return;
	}
	if (session_store_open(owner, &store, &err) != 0 ||
	    session_ledger_known(store, v->run_id, v->records - 1, v->head, &known, &err) != 0) {
		say_warningf("not compared with the store: %s", err.text);
	} else {
		judge_store(&known, v);
	}
	session_store_close(store);
}

int cmd_verify(struct request *r)
{
	AUTO(cli_record_done) struct record_request q = RECORD_REQUEST_NONE;
	struct verify_result v = { 0 };
	char key[2 * VERIFY_KEY_BYTES + 1];
	auto_buf out = BUF(SAY_MAX);
	int status = cli_record_open(r, NULL, &q);
	if (status == EXIT_FINE) {
		status = cli_record_verify(r, &q, &v);
	}
	if (status != EXIT_FINE) {
		return status;
	}
	ask_store(&q.owner, &v);
	bool live = v.state == VERIFY_INCOMPLETE && run_file_live(q.file.fd);
	hex_encode(v.key, sizeof(v.key), key);
	if (request_has(r, FLAG_JSON)) {
		put_json(&out, &v, key, live);
	} else if (!request_has(r, FLAG_QUIET)) {
		visible_addf(&out, "%s: ", cli_record_name(&q));
		put_text(&out, &v, key, live);
	}
	status = (request_has(r, FLAG_JSON) ? say_out : screen_text)(STDOUT_FILENO, &out);
	return status != EXIT_FINE ? status : STATUS[v.state];
}
