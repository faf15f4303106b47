/* record_owner.c - whose runs may be told of, and what a word stands for.
 *
 * The owner's records are of all runs: other servers', of skills that are not served
 * here, of bare commands, each with its output. Whoever speaks to this server is told of
 * the skills that it serves, and so of their runs: by the manifest that the record names
 * in its first line. Runs that this server started are told of too, also where the skill
 * is not there any more; --all-runs opens all. A run that may not be told of is one that
 * does not exist. */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "serve/records_priv.h"
#include "serve/skills.h"
#include "skill/skill.h"

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

/* The directory of the skill: new; NULL where there was none, or the record does not say. */
static char *skill_dir(int fd)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;

	reader_init(&in, fd, 0);
	if (reader_next(&in, &text, &len) != READER_LINE || line_parse(&l, text, len, &why) != 0 ||
	    strcmp(l.kind, "run") != 0) {
		return NULL;
	}
	/* A plan that is too long for its line is not there: mostly the manifest says it. */
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

/* What is served, for as long as one question takes. */
struct served {
	const struct skill *v;
	size_t n;
};

static struct served served_now(const struct serve *s)
{
	struct served now = { 0 };
	struct ssb_error err = { 0 };

	if (!s->opt->all_runs && skills_list(s->skills, &now.v, &now.n, &err) != 0) {
		now.n = 0;
	}
	return now;
}

static bool is_told(const struct serve *s, const struct served *now, int fd, const char *id)
{
	if (s->opt->all_runs || was_started(s->records, id)) {
		return true;
	}
	auto_free char *dir = skill_dir(fd);
	for (size_t i = 0; dir != NULL && i < now->n; i++) {
		if (strcmp(now->v[i].dir, dir) == 0) {
			return true;
		}
	}
	return false;
}

bool record_told(const struct serve *s, int fd, const char *id)
{
	const struct served now = served_now(s);

	return is_told(s, &now, fd, id);
}

/* ---- words ---------------------------------------------------------------------------- */

int records_each(const struct serve *s, const char *begin, record_each_fn *fn, void *arg,
                 struct ssb_error *err)
{
	AUTO(runs_done) struct runs runs = RUNS_NONE;
	const struct served now = served_now(s);
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
		if (fd >= 0 && is_told(s, &now, fd, runs.v[i].id) && !fn(arg, &runs.v[i], fd)) {
			break;
		}
	}
	return 0;
}

struct found {
	char id[RUN_ID_SIZE];
	size_t n;
	size_t most; /* that are looked for */
};

static bool take(void *arg, const struct run_entry *e, int fd)
{
	struct found *f = arg;

	(void)fd;
	if (f->n++ == 0) {
		memcpy(f->id, e->id, sizeof(f->id));
	}
	return f->n < f->most;
}

int record_find(const struct serve *s, const char *word, char ret_id[RUN_ID_SIZE],
                struct ssb_error *err)
{
	bool last = strcmp(word, "last") == 0;
	struct found f = { .most = last ? 1 : 2 };

	if (records_each(s, last ? "" : word, take, &f, err) != 0) {
		return -1;
	}
	if (f.n == 0) {
		return ssb_fail(err, SSB_E_NOT_FOUND, 0, "run_id",
		                "there is no run '%s' of a skill that is served here", word);
	}
	if (f.n > 1) {
		return ssb_fail(err, SSB_E_USAGE, 0, "run_id",
		                "the ids of several runs begin with '%s'; write more of it", word);
	}
	memcpy(ret_id, f.id, sizeof(f.id));
	return 0;
}
