/* otlp_run.c - the facts of a record that its spans are built on. */
#include <stdio.h>
#include <string.h>

#include "otel/otlp_record.h"
#include "base/stamp.h"
#include "base/hex.h"
#include "base/own.h"
#include "base/sha256.h"

void otlp_each_line(int fd, otlp_line_fn *fn, void *arg)
{
	AUTO(reader_done) struct reader in;
	AUTO(line_done) struct line l = { 0 };
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;

	reader_init(&in, fd, 0);
	while (reader_next(&in, &text, &len) == READER_LINE &&
	       line_parse(&l, text, len, &why) == 0) {
		fn(arg, &l);
	}
}

int64_t otlp_mono(const struct line *l)
{
	int64_t v = json_integer(json_member(&l->doc, l->top, "mono"), 0);

	return v > 0 ? v : 0;
}

uint64_t otlp_nano(const struct otlp_run *run, int64_t mono_us)
{
	return ((uint64_t)run->begin_us + (uint64_t)mono_us) * 1000;
}

/* The run's own: the same for every attempt to send it, and for whoever knows
 * the run's id. Never all zeros, which would be none. */
static void make_id(uint8_t ret[OTLP_SPAN_ID], const char *run, const char *what)
{
	uint8_t hash[SHA256_BYTES];
	char text[96];

	snprintf(text, sizeof(text), "skillsandbox span %s %s", run, what);
	sha256(text, strlen(text), hash);
	memcpy(ret, hash, OTLP_SPAN_ID);
	ret[OTLP_SPAN_ID - 1] |= 1;
}

/* The run's id is a UUID: as good as a trace id. */
static bool trace_id_of(uint8_t ret[OTLP_TRACE_ID], const char *run)
{
	char hex[2 * OTLP_TRACE_ID + 1];
	size_t n = 0;

	for (const char *p = run; *p != '\0' && n < sizeof(hex) - 1; p++) {
		if (*p != '-') {
			hex[n++] = *p;
		}
	}
	return n == sizeof(hex) - 1 && hex_decode(hex, n, ret, OTLP_TRACE_ID) == 0;
}

static bool is(const struct line *l, const char *kind)
{
	return strcmp(l->kind, kind) == 0;
}

struct facts {
	struct otlp_run run;
	bool begun;
	int64_t layers_us; /* -1: not yet */
	int64_t exit_us;
};

static void take_first(struct facts *f, const struct line *l)
{
	const char *id = line_text(l, "run_id");

	f->begun = l->seq == 0 && is(l, "run") && id != NULL && run_id_valid(id, strlen(id)) &&
	           stamp_parse(l->time, &f->run.begin_us);
	if (f->begun) {
		snprintf(f->run.id, sizeof(f->run.id), "%s", id);
		const char *skill = line_text(l, "skill_name");
		snprintf(f->run.skill, sizeof(f->run.skill), "%s", skill != NULL ? skill : "");
	}
}

static void take_line(void *arg, const struct line *l)
{
	struct facts *f = arg;
	int64_t at = otlp_mono(l);

	if (!f->begun) {
		take_first(f, l);
		return;
	}
	f->run.end_us = at > f->run.end_us ? at : f->run.end_us;
	f->run.denied += otlp_is_violation(l) ? 1 : 0;
	if (is(l, "layers") && f->exit_us < 0) {
		f->layers_us = at;
	} else if ((is(l, "exit_code") || is(l, "skill_failed")) && f->exit_us < 0) {
		f->exit_us = at;
	} else if (is(l, "end")) {
		const char *end = line_text(l, "end");
		f->run.complete = end != NULL;
		f->run.exit_code = json_integer(line_get(l, "exit_code"), -1);
		snprintf(f->run.end, sizeof(f->run.end), "%s", end != NULL ? end : "");
	}
}

static void set_phase(struct otlp_run *r, enum otlp_phase p, int64_t from, int64_t to)
{
	r->has[p] = true;
	r->from_us[p] = from;
	r->to_us[p] = to > from ? to : from;
}

/* A sandbox that could not be built has no run; a record that was cut off has
 * no end. */
static void set_phases(struct facts *f)
{
	struct otlp_run *r = &f->run;
	int64_t exited = f->exit_us >= 0 ? f->exit_us : r->end_us;

	set_phase(r, PHASE_SETUP, 0, f->layers_us >= 0 ? f->layers_us : exited);
	if (f->layers_us >= 0) {
		set_phase(r, PHASE_RUN, f->layers_us, exited);
	}
	if (f->exit_us >= 0) {
		set_phase(r, PHASE_TEARDOWN, f->exit_us, r->end_us);
	}
}

int otlp_run_read(struct otlp_run *ret, int fd, const struct otel_config *c)
{
	static const char *const PHASE[PHASES] = { "setup", "run", "teardown" };
	struct facts f = { .layers_us = -1, .exit_us = -1, .run.exit_code = -1 };

	otlp_each_line(fd, take_line, &f);
	if (!f.begun) {
		return -1;
	}
	set_phases(&f);
	if (c->has_parent) {
		memcpy(f.run.trace_id, c->trace_id, sizeof(f.run.trace_id));
	} else if (!trace_id_of(f.run.trace_id, f.run.id)) {
		return -1;
	}
	make_id(f.run.span_id, f.run.id, "");
	for (int i = 0; i < PHASES; i++) {
		make_id(f.run.phase_id[i], f.run.id, PHASE[i]);
	}
	*ret = f.run;
	return 0;
}
