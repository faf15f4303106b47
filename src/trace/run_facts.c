/* run_facts.c - reads the facts of a run from the ends of its record. */
#include "trace/run_facts.h"

#include <string.h>
#include <sys/stat.h>

#include "trace/reader.h"
#include "base/own.h"

/* At the end of a record, this many bytes contain the end line (64 KiB at most) and the
 * signature. */
#define TAIL_BYTES ((size_t)80 * 1024)

/* To count and classify the violations of a record without an end, at most this many bytes of it
 * are read. */
#define MAX_COUNTED_BYTES ((uint64_t)256 << 20)

const char *run_state_name(enum run_state s)
{
	static const char *const names[] = {
		[RUN_LIVE] = "live",
		[RUN_INCOMPLETE] = "incomplete",
		[RUN_ENDED] = "ended",
	};

	return names[s];
}

static void copy_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text != NULL ? text : "");
}

static int read_first(struct run_facts *f, struct line *l, int fd, char home[PATH_MAX])
{
	if (!line_read_run(l, fd)) {
		return -1;
	}
	if (f->id[0] == '\0') {
		copy_text(f->id, sizeof(f->id), line_text(l, "run_id"));
	}
	copy_text(f->started, sizeof(f->started), l->time);
	copy_text(f->skill, sizeof(f->skill), line_text(l, "skill_name"));
	copy_text(f->version, sizeof(f->version), line_text(l, "skill_version"));
	copy_text(home, PATH_MAX, line_home(l));
	return 0;
}

char *run_facts_skill_dir(int fd)
{
	AUTO(line_done) struct line l = { 0 };

	if (!line_read_run(&l, fd)) {
		return NULL;
	}
	const char *dir = json_string(json_member(&l.doc, line_get(&l, "plan"), "skill_dir"), NULL);
	return dir != NULL && dir[0] == '/' ? strdup(dir) : NULL;
}

static void take_end(struct run_facts *f, const struct line *l)
{
	const struct json_node *counters = line_get(l, "counters");
	const struct json_node *summary = line_get(l, "summary");

	copy_text(f->end, sizeof(f->end), line_text(l, "end"));
	f->exit_code = json_integer(line_get(l, "exit_code"), -1);
	f->duration_us = json_integer(line_get(l, "duration_us"), 0);
	f->events = json_integer(json_member(&l->doc, counters, "events"), 0);
	f->violations = json_integer(json_member(&l->doc, counters, "violations"), 0);
	const char *worst = json_string(json_member(&l->doc, summary, "max_severity"), NULL);
	enum class_severity severity = worst != NULL ? classes_severity_from(worst) : SEVERITY_NONE;
	f->severity =
	        severity == SEVERITY_NONE && f->violations > 0 ? SEVERITY_UNCLASSIFIED : severity;
}

/* Reads the last lines. Returns true if the end and the signature are among them. */
static bool read_end(struct run_facts *f, struct line *l, int fd, uint64_t size)
{
	AUTO(reader_done) struct reader in;
	const char *line = NULL;
	const char *why = NULL;
	size_t len = 0;
	bool ended = false;
	bool complete = false;

	reader_init(&in, fd, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	while (reader_next(&in, &line, &len) == READER_LINE) {
		/* The first line read here may be incomplete; then it does not match and is
		 * skipped. */
		if (memmem(line, len < 200 ? len : 200, "\"kind\":\"end\"", 12) != NULL &&
		    line_parse(l, line, len, &why) == 0 && l->kind == EV_END) {
			take_end(f, l);
			ended = true;
		} else {
			complete = ended && memmem(line, len < 200 ? len : 200,
			                           "\"kind\":\"signature\"", 18) != NULL;
		}
	}
	return complete;
}

/* Returns whether the line can affect the classes. Most lines cannot, and are not parsed. A skill
 * cannot put the members that are searched for here into a text, because quotes in a text are
 * escaped. */
static bool has_concern(const char *line, size_t len, bool violation)
{
	return violation || memmem(line, len, ",\"rule\":\"private\"", 17) != NULL ||
	       memmem(line, len, "\"kind\":\"resource_limit_hit\"", 27) != NULL;
}

/* Returns whether a class is already critical. No class is worse, so further lines need only be
 * counted. */
static bool is_worst(const struct classes *c)
{
	bool worst = false;

	for (size_t i = 0; i < CLASS_COUNT && !worst; i++) {
		worst = c->hits[i].count > 0 && CLASSES[i].severity == SEVERITY_CRITICAL;
	}
	return worst;
}

static void count_lines(struct run_facts *f, struct line *l, int fd, const char *home)
{
	AUTO(reader_done) struct reader in;
	struct classes classes;
	const char *line = NULL;
	const char *why = NULL;
	size_t len = 0;
	uint64_t bytes = 0;

	classes_init(&classes, home);
	reader_init(&in, fd, 0);
	while (bytes < MAX_COUNTED_BYTES && reader_next(&in, &line, &len) == READER_LINE) {
		bool violation = memmem(line, len, ",\"violation\":true", 17) != NULL;
		f->events++;
		f->violations += violation;
		bytes += len;
		if (!is_worst(&classes) && has_concern(line, len, violation) &&
		    line_parse(l, line, len, &why) == 0) {
			classes_add_line(&classes, l);
		}
	}
	f->severity = classes_worst(&classes);
	if (f->severity == SEVERITY_NONE && (f->violations > 0 || !classes_empty(&classes))) {
		f->severity = SEVERITY_UNCLASSIFIED;
	}
}

int run_facts_read(struct run_facts *ret, int fd, const char *id)
{
	struct run_facts f = { 0 };
	AUTO(line_done) struct line l = { 0 };
	char home[PATH_MAX];
	struct stat st;

	copy_text(f.id, sizeof(f.id), id);
	/* Check first whether the run is live. A run that ends during this function is then
	 * reported as live, and is read again next time. */
	bool live = run_file_live(fd);
	if (fstat(fd, &st) != 0 || read_first(&f, &l, fd, home) != 0) {
		return -1;
	}
	/* An end without a signature proves nothing, so no part of it is used. */
	struct run_facts ended = f;
	if (read_end(&ended, &l, fd, (uint64_t)st.st_size)) {
		f = ended;
		f.state = RUN_ENDED;
	} else {
		f.state = live ? RUN_LIVE : RUN_INCOMPLETE;
		count_lines(&f, &l, fd, home);
	}
	*ret = f;
	return 0;
}

void run_facts_json(struct json *j, const struct run_facts *f)
{
	json_open(j, '{');
	json_kstr(j, "run_id", f->id);
	json_kstr(j, "started", f->started);
	json_kstr(j, "skill_name", f->skill);
	json_kstr(j, "skill_version", f->version);
	json_kstr(j, "state", run_state_name(f->state));
	if (f->session[0] != '\0') {
		json_kstr(j, "session", f->session);
	}
	if (f->state == RUN_ENDED) {
		json_kstr(j, "end", f->end);
		json_kint(j, "exit_code", f->exit_code);
		json_kint(j, "duration_us", f->duration_us);
	}
	json_kint(j, "events", f->events);
	json_kint(j, "violations", f->violations);
	json_kstr(j, "severity", f->severity > 0 ? classes_severity_name(f->severity) : NULL);
	json_close(j, '}');
}
