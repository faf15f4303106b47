#include "serve/records.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/key.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "report/run_json.h"
#include "serve/records_priv.h"
#include "serve/show.h"

#define MIN_WORD 4

static void records_freep(struct records **r)
{
	records_free(*r);
}

int records_new(struct serve *s, struct records **ret, struct ssb_error *err)
{
	AUTO(records_freep) struct records *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "records", "out of memory");
	}
	r->serve = s;
	if (records_live_new(s, &r->live, err) != 0) {
		return -1;
	}
	*ret = steal_ptr(&r);
	return 0;
}

void records_free(struct records *r)
{
	if (r != NULL) {
		records_live_free(r->live);
	}
	free(r);
}

int records_fd(const struct records *r)
{
	return r != NULL ? records_live_fd(r->live) : -1;
}

void records_note(const struct records *r, struct buf *out)
{
	buf_add(out, &r->memo, sizeof(r->memo));
}

size_t records_take_note(struct records *r, const char *data, size_t len)
{
	if (len < sizeof(r->memo)) {
		return len;
	}
	memcpy(&r->memo, data + len - sizeof(r->memo), sizeof(r->memo));
	if (r->memo.live_id[0] != '\0') {
		records_live_follow(r->live, r->memo.live_id);
		r->memo.live_id[0] = '\0';
	}
	return len - sizeof(r->memo);
}

/* ---- one of them ------------------------------------------------------------ */

static bool word_valid(const char *word)
{
	size_t len = strlen(word);

	return strcmp(word, "last") == 0 ||
	       (len >= MIN_WORD && len < RUN_ID_SIZE && strspn(word, "0123456789abcdef-") == len);
}

static int no_run(const char *word, struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOT_FOUND, 0, "run_id",
	                "there is no run '%s' of a skill that is served here", word);
}

/* A whole id is the name of its record: no other run has to be looked at. */
static int open_word(const struct serve *s, const char *word, struct run_file *ret,
                     struct ssb_error *err)
{
	char id[RUN_ID_SIZE];

	if (runs_id_valid(word, strlen(word))) {
		memcpy(id, word, sizeof(id));
	} else if (record_find(s, word, id, err) != 0) {
		return -1;
	}
	ret->fd = records_live_open(s->records->live, id);
	if (ret->fd < 0 && errno != ENOENT) {
		return ssb_fail(err, SSB_E_SYS, 0, "run_id",
		                "the record of the run '%s' cannot be opened", word);
	}
	memcpy(ret->id, id, sizeof(ret->id));
	return ret->fd < 0 ? no_run(word, err) : 0;
}

int record_open(const struct serve *s, const char *word, struct record *ret, struct ssb_error *err)
{
	AUTO(record_close) struct record r = RECORD_NONE;
	struct stat st;

	/* What it would take for the path of a file must not get there. */
	if (!word_valid(word)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "run_id",
		                "that is no id of a run; write one that run_skill returned, its "
		                "first %d characters or more, or \"last\"",
		                MIN_WORD);
	}
	if (open_word(s, word, &r.file, err) != 0) {
		return -1;
	}
	if (fstat(r.file.fd, &st) != 0 || st.st_uid != s->owner.uid ||
	    !record_told(s, r.file.fd, r.file.id)) {
		return no_run(word, err);
	}
	r.size = (uint64_t)st.st_size;
	r.mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (run_file_live(r.file.fd)) {
		records_live_follow(s->records->live, r.file.id);
		memcpy(s->records->memo.live_id, r.file.id, sizeof(r.file.id));
	}
	*ret = r;
	r.file.fd = -1;
	return 0;
}

int record_open_id(const struct serve *s, const char *id, struct record *ret, struct ssb_error *err)
{
	if (!runs_id_valid(id, strlen(id))) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, "run", "that is no id of a run");
	}
	return record_open(s, id, ret, err);
}

void record_close(struct record *r)
{
	run_file_done(&r->file);
}

/* ---- what is known of it ------------------------------------------------------ */

void record_json_run(const struct record *r, struct json *j)
{
	struct run_facts facts = { 0 };
	auto_buf text = { 0 };
	struct json raw;

	buf_init(&text, MAX_RECORD_LINE);
	json_key(j, "run");
	if (r->size > MAX_SERVED_RECORD || run_facts_read(&facts, r->file.fd, r->file.id) != 0) {
		json_open(j, '{');
		json_kstr(j, "run_id", r->file.id);
		json_kstr(j, "state", run_file_live(r->file.fd) ? "live" : "unreadable");
		json_close(j, '}');
		return;
	}
	json_init(&raw, &text, false);
	run_json(&raw, &facts);
	show_json(j, text.data, text.len);
}

/* The answer for the record as it is; from before, where nothing has changed. */
static int check(struct records *k, const struct record *r, struct verify_result *ret)
{
	uint8_t key[VERIFY_KEY_BYTES];
	struct ssb_error err = { 0 };

	if (strcmp(k->memo.checked_id, r->file.id) == 0 && k->memo.checked_size == r->size &&
	    k->memo.checked_mtime == r->mtime) {
		*ret = k->memo.checked;
		return 0;
	}
	bool known = trace_key_public(&k->serve->owner, key, &err) == 0;
	struct verify_ask ask = { .key = known ? key : NULL, .run_id = r->file.id };
	struct verify_result v = { 0 };
	if (verify_record(r->file.fd, &ask, &v, &err) != 0) {
		return -1;
	}
	memcpy(k->memo.checked_id, r->file.id, sizeof(k->memo.checked_id));
	k->memo.checked_size = r->size;
	k->memo.checked_mtime = r->mtime;
	k->memo.checked = v;
	*ret = v;
	return 0;
}

void record_json_verified(const struct serve *s, const struct record *r, struct json *j)
{
	struct verify_result v = { 0 };

	json_key(j, "verified");
	json_open(j, '{');
	if (r->size > MAX_SERVED_RECORD) {
		json_kstr(j, "state", "unchecked");
		json_kstr(j, "why",
		          "it is too large to be checked here; 'skillsandbox audit "
		          "verify' does");
	} else if (check(s->records, r, &v) != 0) {
		json_kstr(j, "state", "unchecked");
		json_kstr(j, "why", "it could not be read");
	} else {
		json_kstr(j, "state", verify_state_name(v.state));
		json_kuint(j, "records", v.records);
		if (v.state != VERIFY_COMPLETE) {
			json_kuint(j, "at", v.bad_at);
			show_kstr(j, "why", v.why);
		}
	}
	json_kbool(j, "live", run_file_live(r->file.fd));
	json_close(j, '}');
}
