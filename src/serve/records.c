/* records.c - finds the records that a client may see, and describes one of them.
 *
 * The owner's state directory has records of all runs, with their output. Some of these runs
 * were started by other servers, or are of skills that are not served here, or of commands
 * without a skill. A client may see the runs of the skills that are served (the first line of
 * a record names the manifest) and the runs that this server started, even if their skill has
 * been removed. With --all-runs it may see all runs. A client cannot learn that any other run
 * exists. */
#include "serve/records.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/key.h"
#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/records_priv.h"
#include "serve/show.h"
#include "serve/skills.h"
#include "skill/skill.h"

#define MIN_WORD 4 /* shortest beginning of an id that is accepted */

OWN_FREEP(records_freep, struct records, records_free)

int records_new(struct serve *s, struct records **ret, struct ssb_error *err)
{
	AUTO(records_freep) struct records *r = calloc(1, sizeof(*r));

	assert(s->loop != NULL && s->mcp != NULL);
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

/* ---- which runs a client may see --------------------------------------------- */

void records_started(struct records *k, const char *id)
{
	snprintf(k->started[k->n_started++ % MAX_STARTED], RUN_ID_SIZE, "%s", id);
}

static bool was_started(const struct records *k, const char *id)
{
	for (size_t i = 0; i < MAX_STARTED && i < k->n_started; i++) {
		if (strcmp(k->started[i], id) == 0) {
			return true;
		}
	}
	return false;
}

/* Returns the skill's directory (new), or NULL if the run had no skill or the record does not name
 * it. */
static char *read_skill_dir(int fd)
{
	AUTO(line_done) struct line l = { 0 };

	if (!line_read_run(&l, fd)) {
		return NULL;
	}
	/* A record omits the plan if it is too long for its line. Then the path of the manifest
	 * usually shows the directory. */
	const struct json_node *plan = line_get(&l, "plan");
	const char *dir = json_string(json_member(&l.doc, plan, "skill_dir"), NULL);
	if (dir != NULL) {
		return strdup(dir);
	}
	const char *manifest = line_text(&l, "manifest");
	const char *slash = manifest != NULL ? strrchr(manifest, '/') : NULL;
	return slash != NULL && skill_file_names_one(slash + 1)
	               ? strndup(manifest, (size_t)(slash - manifest))
	               : NULL;
}

/* The skills that are served. The list is valid during one call. */
struct served_skills {
	const struct skill *v;
	size_t n;
};

static struct served_skills list_served(const struct serve *s)
{
	struct served_skills now = { 0 };
	struct ssb_error err = { 0 };

	if (!s->opt->all_runs && skills_list(s->skills, &now.v, &now.n, &err) != 0) {
		now.n = 0;
	}
	return now;
}

static bool is_visible(const struct serve *s, const struct served_skills *now, int fd,
                       const char *id)
{
	if (s->opt->all_runs || was_started(s->records, id)) {
		return true;
	}
	auto_free char *dir = read_skill_dir(fd);
	return dir != NULL && ARRAY_HAS(e, now->v, now->n, strcmp(e->dir, dir) == 0);
}

bool records_visible(const struct serve *s, int fd, const char *id)
{
	const struct served_skills now = list_served(s);

	return is_visible(s, &now, fd, id);
}

int records_each(const struct serve *s, const char *begin, records_each_fn *fn, void *arg,
                 struct ssb_error *err)
{
	AUTO(runs_done) struct runs runs = RUNS_NONE;
	const struct served_skills now = list_served(s);
	size_t looked = 0;

	if (runs_open_some(&runs, s->owner.state_dir, err) != 0) {
		return -1;
	}
	runs_stat(&runs);
	for (size_t i = 0; i < runs.n && looked < MAX_LISTED_RUNS; i++) {
		if (strncmp(runs.v[i].id, begin, strlen(begin)) != 0) {
			continue;
		}
		looked++;
		auto_fd fd = runs_record(&runs, &runs.v[i]);
		if (fd >= 0 && is_visible(s, &now, fd, runs.v[i].id) && !fn(arg, &runs.v[i], fd)) {
			break;
		}
	}
	return 0;
}

static int fail_unknown(const char *word, struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_NOT_FOUND, 0, "run_id",
	                "there is no run '%s' of a skill that is served here", word);
}

struct run_search {
	char id[RUN_ID_SIZE]; /* id of the first matching run */
	size_t n;
	size_t most; /* the search ends after this many runs */
};

static bool take_run(void *arg, const struct run_entry *e, int fd)
{
	struct run_search *f = arg;

	(void)fd;
	if (f->n++ == 0) {
		memcpy(f->id, e->id, sizeof(f->id));
	}
	return f->n < f->most;
}

/* Finds a record by "last" or by the first characters of its id. */
static int find_record(const struct serve *s, const char *word, char ret_id[RUN_ID_SIZE],
                       struct ssb_error *err)
{
	bool last = strcmp(word, "last") == 0;
	struct run_search f = { .most = last ? 1 : 2 };

	if (records_each(s, last ? "" : word, take_run, &f, err) != 0) {
		return -1;
	}
	if (f.n == 0) {
		return fail_unknown(word, err);
	}
	if (f.n > 1) {
		return ssb_fail(err, SSB_E_USAGE, 0, "run_id",
		                "several run ids begin with '%s'; write more characters", word);
	}
	memcpy(ret_id, f.id, sizeof(f.id));
	return 0;
}

/* ---- one record --------------------------------------------------------------- */

static bool is_word_valid(const char *word)
{
	size_t len = strlen(word);

	return strcmp(word, "last") == 0 ||
	       (len >= MIN_WORD && len < RUN_ID_SIZE && strspn(word, "0123456789abcdef-") == len);
}

/* Opens the record that the word names. If the word is a whole id, opens the record by its name,
 * without reading other runs. */
static int open_word(const struct serve *s, const char *word, struct run_file *ret,
                     struct ssb_error *err)
{
	char id[RUN_ID_SIZE];

	if (runs_id_valid(word, strlen(word))) {
		memcpy(id, word, sizeof(id));
	} else if (find_record(s, word, id, err) != 0) {
		return -1;
	}
	ret->fd = records_live_open(s->records->live, id);
	if (ret->fd < 0 && errno != ENOENT) {
		return ssb_fail(err, SSB_E_SYS, 0, "run_id", "cannot open the record of run '%s'",
		                word);
	}
	memcpy(ret->id, id, sizeof(ret->id));
	return ret->fd < 0 ? fail_unknown(word, err) : 0;
}

int records_open(const struct serve *s, const char *word, struct served_record *ret,
                 struct ssb_error *err)
{
	AUTO(records_close) struct served_record r = SERVED_RECORD_NONE;
	struct stat st;

	/* This check refuses every word that could be the path of a file. */
	if (!is_word_valid(word)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "run_id",
		                "not a run id; write an id that run_skill returned, its first %d "
		                "characters or more, or \"last\"",
		                MIN_WORD);
	}
	if (open_word(s, word, &r.file, err) != 0) {
		return -1;
	}
	if (fstat(r.file.fd, &st) != 0 || st.st_uid != s->owner.uid ||
	    !records_visible(s, r.file.fd, r.file.id)) {
		return fail_unknown(word, err);
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

int records_open_id(const struct serve *s, const char *id, struct served_record *ret,
                    struct ssb_error *err)
{
	if (!runs_id_valid(id, strlen(id))) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, "run", "not a run id");
	}
	return records_open(s, id, ret, err);
}

void records_close(struct served_record *r)
{
	run_file_done(&r->file);
}

/* ---- what is known about it ---------------------------------------------------- */

void records_put_run(const struct served_record *r, struct json *j)
{
	struct run_facts facts = { 0 };
	auto_buf text = BUF(MAX_RECORD_LINE);
	struct json raw = JSON_TO(&text, false);

	json_key(j, "run");
	if (r->size > MAX_SERVED_RECORD || run_facts_read(&facts, r->file.fd, r->file.id) != 0) {
		json_open(j, '{');
		json_kstr(j, "run_id", r->file.id);
		json_kstr(j, "state", run_file_live(r->file.fd) ? "live" : "unreadable");
		json_close(j, '}');
		return;
	}
	run_facts_json(&raw, &facts);
	show_json(j, text.data, text.len);
}

/* Verifies the record. Uses the last result again if the record has not changed. */
static int verify_again(struct records *k, const struct served_record *r, struct verify_result *ret)
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

void records_put_verified(const struct serve *s, const struct served_record *r, struct json *j)
{
	struct verify_result v = { 0 };

	json_kopen(j, "verified", '{');
	if (r->size > MAX_SERVED_RECORD) {
		json_kstr(j, "state", "unchecked");
		json_kstr(j, "why",
		          "it is too large to be checked here; check it with "
		          "'skillsandbox audit verify'");
	} else if (verify_again(s->records, r, &v) != 0) {
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
