/* trace_ends.c - writes the lines of the record that are not events: how the run began, in which
 * sandbox, with which files, how it ended, and the owner's signature. */
#include <string.h>
#include <sys/utsname.h>

#include "trace/key.h"
#include "trace/trace_limits.h"
#include "trace/trace_priv.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/name.h"
#include "base/own.h"

int trace_check_key(const struct owner *owner, struct ssb_error *err)
{
	struct trace_key made;

	if (trace_key_ready(owner)) {
		return 0;
	}
	if (trace_key_load(owner, &made, err) != 0) {
		return -1;
	}
	trace_key_done(&made);
	return 0;
}

static void put_run(struct trace *t, const char *plan, size_t plan_len,
                    const uint8_t plan_digest[SHA256_BYTES], const struct utsname *host)
{
	struct json *j = record_begin(&t->record, RECORD_KINDS[EV_RUN]);

	json_kint(j, "schema", TRACE_SCHEMA_VERSION);
	json_kstr(j, "run_id", t->id);
	json_kstr(j, "skill_name", t->plan->name);
	json_kstr(j, "skill_version", t->plan->version);
	json_kstr(j, "manifest", t->plan->manifest);
	if (t->plan->manifest != NULL) {
		digest_put(j, "manifest_digest", t->plan->manifest_digest);
	} else {
		json_kstr(j, "manifest_digest", NULL);
	}
	digest_put(j, "plan_digest", plan_digest);
	json_kstr(j, "kernel", host->release);
	json_kstr(j, "host", host->machine);
	json_kuint(j, "user", t->owner.uid);
	json_kstr(j, "audit", audit_level_name(t->plan->audit));
	json_kstr(j, "version", SSB_VERSION);
	json_key(j, "plan");
	if (plan == NULL) {
		json_null(j);
		json_kbool(j, "plan_cut", true);
	} else {
		json_raw(j, plan, plan_len);
	}
}

int trace_put_run(struct trace *t, const char *plan, struct ssb_error *err)
{
	struct utsname host = { 0 };
	uint8_t digest[SHA256_BYTES];
	size_t len = strlen(plan);

	(void)uname(&host);
	sha256(plan, len, digest);
	put_run(t, plan, len, digest, &host);
	if (record_end(&t->record)) {
		return 0;
	}
	/* The plan does not fit a line. Leave it out: the document contains it, and the record has
	 * its digest. */
	put_run(t, NULL, 0, digest, &host);
	if (record_end(&t->record)) {
		return 0;
	}
	return ssb_fail(err, SSB_E_LIMIT, 0, "trace",
	                "the first line of the record is longer than 64 KiB");
}

void trace_put_layers(struct trace *t, const struct layer_report layers[LAYER_COUNT])
{
	struct json *j = record_begin(&t->record, RECORD_KINDS[EV_LAYERS]);

	json_key(j, "layers");
	layers_write(j, layers);
	(void)record_end(&t->record);
}

void trace_put_files(struct trace *t)
{
	auto_buf members = BUF(FILES_LIST_BYTES + 1024);

	if (!files_line_finish(&t->files, FILES_WAIT_MS, &members)) {
		return; /* a command without a skill has no directory of its own */
	}
	struct json *j = record_begin(&t->record, RECORD_KINDS[EV_FILES]);
	if (members.len > 0) {
		json_raw(j, members.data, members.len);
	} else {
		json_kbool(j, "incomplete", true);
	}
	(void)record_end(&t->record);
}

static void put_dropped(struct json *j, const struct rooms *r)
{
	json_kopen(j, "dropped_by", '{');
	for (size_t i = 0; i < ROOM_COUNT; i++) {
		if (r->dropped[i] > 0) {
			json_kuint(j, ROOMS[i].name, r->dropped[i]);
		}
	}
	json_close(j, '}');
}

static void put_counters(struct json *j, const struct trace *t, const struct ssb_result *r)
{
	json_kopen(j, "counters", '{');
	json_kuint(j, "events", t->events);
	json_kuint(j, "violations", t->violations);
	json_kuint(j, "dropped", trace_all_dropped(t));
	json_kuint(j, "repeats", t->repeats);
	json_kuint(j, "unreadable", t->unreadable);
	json_kuint(j, "stdout_bytes", r != NULL ? r->stdout_bytes : 0);
	json_kuint(j, "stderr_bytes", r != NULL ? r->stderr_bytes : 0);
	if (trace_all_dropped(t) > 0) {
		put_dropped(j, &t->rooms);
	}
	json_close(j, '}');
}

static void put_end(struct trace *t, const struct ssb_result *r)
{
	struct json *j = record_begin(&t->record, RECORD_KINDS[EV_END]);

	json_key(j, "exit_code");
	if (r != NULL) {
		json_int(j, r->exit_status);
	} else {
		json_null(j);
	}
	json_kstr(j, "end", t->failed || r == NULL ? "failed" : name_of_end(r->end));
	json_kint(j, "signal", r != NULL ? r->signal : 0);
	json_kuint(j, "duration_us", r != NULL && !t->failed ? r->duration_us : t->record.mono_us);
	put_counters(j, t, r);
	json_key(j, "summary");
	if (classes_empty(&t->classes)) {
		json_null(j);
	} else {
		classes_write(&t->classes, j);
	}
}

int trace_put_end(struct trace *t, const struct ssb_result *result, struct ssb_error *err)
{
	AUTO(trace_key_done) struct trace_key key = { 0 };
	uint8_t signature[ED25519_SIGNATURE];
	char hex[2 * sizeof(signature) + 1];

	if (trace_key_load(&t->owner, &key, err) != 0) {
		return -1;
	}
	put_end(t, result);
	if (!record_end(&t->record)) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "trace", "out of memory");
	}
	trace_key_sign(&key, t->record.hash, signature);
	struct json *j = record_begin_same(&t->record, RECORD_KINDS[EV_SIGNATURE]);
	hex_encode(key.pair.public, sizeof(key.pair.public), hex);
	json_kstr(j, "key", hex);
	hex_encode(signature, sizeof(signature), hex);
	json_kstr(j, "signature", hex);
	return record_end(&t->record) ? 0 : ssb_fail(err, SSB_E_NOMEM, 0, "trace", "out of memory");
}
