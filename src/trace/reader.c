/* reader.c - reads and parses the lines of a record. */
#include "trace/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"

#define CHUNK ((size_t)256 * 1024)

void reader_init(struct reader *r, int fd, uint64_t offset)
{
	*r = (struct reader){ .fd = fd, .offset = offset };
}

void reader_done(struct reader *r)
{
	free(r->data);
	*r = (struct reader){ .fd = -1 };
}

/* Moves the unread bytes to the beginning and makes room for another chunk after them. */
static int reader_room(struct reader *r)
{
	if (r->data != NULL && r->begin > 0) {
		memmove(r->data, r->data + r->begin, r->end - r->begin);
		r->end -= r->begin;
		r->begin = 0;
	}
	if (r->room - r->end >= CHUNK) {
		return 0;
	}
	char *data = realloc(r->data, r->end + CHUNK);
	if (data == NULL) {
		return -1;
	}
	r->data = data;
	r->room = r->end + CHUNK;
	return 0;
}

static ssize_t reader_fill(struct reader *r)
{
	ssize_t n;

	if (reader_room(r) != 0) {
		return -1;
	}
	do {
		n = pread(r->fd, r->data + r->end, CHUNK, (off_t)r->offset);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		r->end += (size_t)n;
		r->offset += (uint64_t)n;
	}
	return n;
}

enum reader_line reader_next(struct reader *r, const char **ret_line, size_t *ret_len)
{
	size_t seen = 0; /* bytes that were already searched for a newline */

	assert(r->begin <= r->end && r->end <= r->room);
	for (;;) {
		size_t have = r->end - r->begin;
		const char *at = have > seen ? r->data + r->begin + seen : NULL;
		const char *newline = at != NULL ? memchr(at, '\n', have - seen) : NULL;
		if (newline != NULL) {
			*ret_line = r->data + r->begin;
			*ret_len = (size_t)(newline + 1 - *ret_line);
			if (*ret_len > MAX_RECORD_LINE) {
				return READER_LONG;
			}
			r->begin += *ret_len;
			return READER_LINE;
		}
		seen = have;
		if (seen > MAX_RECORD_LINE) {
			return READER_LONG;
		}
		ssize_t n = reader_fill(r);
		if (n < 0) {
			return READER_FAIL;
		}
		if (n == 0) {
			return have > 0 ? READER_CUT : READER_END;
		}
	}
}

bool reader_is_header(const char *line, size_t len)
{
	static const char start[] = "{\"bundle\":";

	return len >= sizeof(start) - 1 && memcmp(line, start, sizeof(start) - 1) == 0;
}

int line_parse(struct line *r, const char *line, size_t len, const char **ret_why)
{
	if (json_read(&r->doc, line, len, ret_why) != 0) {
		return -1;
	}
	r->top = json_top(&r->doc);
	r->data = json_member(&r->doc, r->top, "data");
	r->data = json_is(r->data, JSON_OBJECT) ? r->data : NULL;
	r->seq = json_integer(json_member(&r->doc, r->top, "seq"), -1);
	r->time = json_string(json_member(&r->doc, r->top, "time"), NULL);
	r->kind_name = json_string(json_member(&r->doc, r->top, "kind"), NULL);
	if (r->seq < 0 || r->time == NULL || r->kind_name == NULL) {
		*ret_why = "not a line of a record";
		return -1;
	}
	r->kind = event_kind_from(r->kind_name, strlen(r->kind_name));
	return 0;
}

void line_done(struct line *r)
{
	json_doc_done(&r->doc);
	*r = (struct line){ 0 };
}

bool line_read_run(struct line *r, int fd)
{
	AUTO(reader_done) struct reader in;
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;

	reader_init(&in, fd, 0);
	enum reader_line got = reader_next(&in, &text, &len);
	if (got == READER_LINE && reader_is_header(text, len)) {
		got = reader_next(&in, &text, &len);
	}
	return got == READER_LINE && line_parse(r, text, len, &why) == 0 && r->kind == EV_RUN;
}

const struct json_node *line_get(const struct line *r, const char *name)
{
	const struct json_node *m = json_member(&r->doc, r->data, name);

	return m != NULL ? m : json_member(&r->doc, r->top, name);
}

const char *line_text(const struct line *r, const char *name)
{
	return json_string(line_get(r, name), NULL);
}

enum reason line_get_reason(const struct line *r)
{
	return reason_from(line_text(r, "reason"));
}

enum op line_get_op(const struct line *r)
{
	return op_from(line_text(r, "op"));
}

enum mode line_get_mode(const struct line *r)
{
	return mode_from(line_text(r, "mode"));
}

enum event_protocol line_get_protocol(const struct line *r)
{
	return event_protocol_from(line_text(r, "protocol"));
}

enum event_rule line_get_rule(const struct line *r)
{
	return event_rule_from(line_text(r, "rule"));
}

enum event_status line_get_status(const struct line *r)
{
	return event_status_from(line_text(r, "status"));
}

const char *line_home(const struct line *r)
{
	return json_string(json_member(&r->doc, line_get(r, "plan"), "home"), NULL);
}

uint64_t line_times(const struct line *r)
{
	int64_t count = json_integer(line_get(r, "count"), 1);

	return count < 2 ? 1 : (uint64_t)count - (line_get(r, "first") != NULL);
}

bool line_true(const struct line *r, const char *name)
{
	return json_is(line_get(r, name), JSON_TRUE);
}
