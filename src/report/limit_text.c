/* limit_text.c - the words about limits. */
#include "report/limit_text.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/own.h"
#include "manifest/resources.h"
#include "policy/options.h"
#include "report/render.h"

#define NO_FLAG (-1)

/* `before`, the value, `unit` and `after` are one sentence. If it begins with a space, the name of
 * the stream comes first. `unit` is "" if a unit of size or time belongs to the value. `used` and a
 * measured amount follow; NULL: the amount is not worth it. */
static const struct limit_row {
	const char *name;
	int option; /* enum ssb_option, or NO_FLAG */
	const char *before;
	const char *unit;
	const char *after;
	const char *used;
} ROWS[] = {
	{ "memory_mb", SSB_OPT_MEMORY, "the memory limit (", "", ") ended the skill",
	  ", which used " },
	{ "max_runtime_seconds", SSB_OPT_TIMEOUT, "the time limit (", "", ") ended the skill",
	  NULL },
	{ "max_output_bytes", SSB_OPT_MAX_OUTPUT, " was cut at the output limit (", "", ")",
	  "; the skill wrote " },
	{ "max_processes", SSB_OPT_MAX_PROCESSES, "the process limit (", " processes and threads",
	  ") was reached", NULL },
	{ "max_open_files", SSB_OPT_MAX_FILES, "a process reached the limit of open files (",
	  " files", ")", NULL },
	{ "max_disk_mb", SSB_OPT_MAX_DISK, "the private disk (", "", ") was full", NULL },
	{ "max_connections", NO_FLAG, "the connection limit (", " connections", ") was reached",
	  NULL },
	{ "max_connections_per_second", NO_FLAG, "connections waited at their limit (",
	  " new connections a second", ")", NULL },
	{ "max_bytes_out", NO_FLAG, "the limit of bytes (", " to the network", ") was reached",
	  NULL },
	{ "max_bytes_in", NO_FLAG, "the limit of bytes (", " from the network", ") was reached",
	  NULL },
};

static const struct limit_row *find_row(const struct line *l)
{
	const char *name = line_text(l, "limit");

	for (size_t i = 0; name != NULL && i < ARRAY_LEN(ROWS); i++) {
		if (strcmp(ROWS[i].name, name) == 0) {
			return &ROWS[i];
		}
	}
	return NULL;
}

static const struct resource *find_resource(const char *name)
{
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		if (strcmp(RESOURCES[i].name, name) == 0) {
			return &RESOURCES[i];
		}
	}
	for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
		if (strcmp(NET_LIMITS[i].name, name) == 0) {
			return &NET_LIMITS[i];
		}
	}
	return NULL;
}

static uint64_t read_number(const struct line *l, const char *name)
{
	int64_t n = json_integer(line_get(l, name), 0);

	return n > 0 ? (uint64_t)n : 0;
}

/* Divides by 1024 while nothing is lost. Returns the index of the unit that is left. */
static size_t divide_size(uint64_t *v, size_t unit, size_t most)
{
	while (unit < most && *v >= 1024 && *v % 1024 == 0) {
		*v /= 1024;
		unit++;
	}
	return unit;
}

/* Writes a measured amount, which is seldom a round number. */
static void put_measured(struct buf *out, enum unit unit, uint64_t v)
{
	if (unit == UNIT_BYTES) {
		amount_bytes(out, v);
	} else {
		resource_amount(out, unit, v);
	}
}

/* Writes a value that the flag accepts. */
static void put_argument(struct buf *out, const struct resource *r, uint64_t v)
{
	static const char *const LETTERS[] = { "", "K", "M", "G", "T" };

	if (r->unit == UNIT_SECONDS) {
		buf_addf(out, "%" PRIu64 "s", v);
	} else if (r->unit == UNIT_COUNT) {
		buf_addf(out, "%" PRIu64, v);
	} else {
		size_t unit = divide_size(&v, r->unit == UNIT_MIB ? 2 : 0, 4);
		buf_addf(out, "%" PRIu64 "%s", v, LETTERS[unit]);
	}
}

bool limit_text_known(const struct line *l)
{
	return find_row(l) != NULL && read_number(l, "value") > 0;
}

void limit_text_value(struct buf *out, const struct line *l)
{
	const struct limit_row *row = find_row(l);

	assert(row != NULL);
	resource_amount(out, find_resource(row->name)->unit, read_number(l, "value"));
	buf_adds(out, row->unit);
}

void limit_text_what(struct buf *out, const struct line *l)
{
	const struct limit_row *row = find_row(l);
	uint64_t seen = read_number(l, "seen");
	uint64_t refused = read_number(l, "refused");

	assert(row != NULL);
	if (row->before[0] == ' ') {
		render_text(out, line_get(l, "stream"), "the output");
	}
	buf_adds(out, row->before);
	limit_text_value(out, l);
	buf_adds(out, row->after);
	if (row->used != NULL && seen > 0) {
		buf_adds(out, row->used);
		put_measured(out, find_resource(row->name)->unit, seen);
	}
	if (refused > 0) {
		buf_addf(out, ", %" PRIu64 " start%s refused", refused,
		         refused == 1 ? " was" : "s were");
	}
}

/* Returns twice the limit, or more if that was not enough for what was seen. */
static uint64_t find_larger(const struct resource *r, uint64_t value, uint64_t seen)
{
	uint64_t more = value;

	do {
		more = more < r->most / 2 ? more * 2 : r->most;
	} while (more <= seen && more < r->most);
	return more;
}

void limit_text_remedy(struct buf *out, const struct line *l, bool bare)
{
	const struct limit_row *row = find_row(l);

	assert(row != NULL);
	const struct resource *r = find_resource(row->name);
	uint64_t value = read_number(l, "value");
	uint64_t more = find_larger(r, value, read_number(l, "seen"));
	const char *place = row->option == NO_FLAG ? "permissions.network" : "resources";
	if (value >= r->most) {
		return; /* there is no larger value */
	}
	if (row->option != NO_FLAG) {
		buf_addf(out, "%s ", options_flag((enum ssb_option)row->option));
		put_argument(out, r, more);
	}
	if (row->option == NO_FLAG || !bare) {
		buf_addf(out, "%s%s.%s: %" PRIu64 " in %s", row->option != NO_FLAG ? ", or " : "",
		         place, row->name, more,
		         bare ? "a manifest ('skillsandbox init DIR' writes one)" : "the manifest");
	}
}
